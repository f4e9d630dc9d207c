#include "core/file.h"

#include "core/file_calls.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define BUFFER_BYTES ((size_t)256 << 10)

/* ---- writing --------------------------------------------------------------------------------- */

struct tdm_file_writer {
    char *path;
    char *temporary;
    int descriptor;     /* -1: closed */
    bool has_temporary; /* the temporary file is there and ours to remove */
    bool failed;
    bool patched;
    XXH3_state_t *hash;
    int64_t bytes;
    unsigned char *buffer; /* BUFFER_BYTES */
    size_t used;
};

static tdm_status writer_init(tdm_file_writer *writer, const char *path)
{
    TDM_TRY(tdm_strdup(path, &writer->path));
    TDM_TRY(tdm_format(&writer->temporary, "%s.tmp", path));
    TDM_TRY(tdm_alloc(BUFFER_BYTES, 1, &writer->buffer));
    writer->hash = XXH3_createState();
    TDM_FAIL_IF(writer->hash == NULL, TDM_E_NOMEM, "out of memory for a checksum");
    XXH3_64bits_reset(writer->hash);
    writer->descriptor =
        open(writer->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (mode_t)0666);
    if (writer->descriptor < 0)
        return tdm_io_fail("create", writer->temporary);
    writer->has_temporary = true;
    return TDM_OK;
}

tdm_status tdm_file_writer_open(const char *path, tdm_file_writer **out)
{
    *out = NULL;
    tdm_file_writer *writer;
    TDM_TRY(tdm_alloc(1, sizeof *writer, &writer));
    writer->descriptor = -1;
    tdm_status status = writer_init(writer, path);
    if (status == TDM_OK)
        *out = writer;
    else
        tdm_file_writer_close(writer);
    return status;
}

static tdm_status writer_flush(tdm_file_writer *writer)
{
    size_t used = writer->used;
    writer->used = 0;
    return tdm_descriptor_write(writer->descriptor, writer->temporary, writer->buffer, used, NULL);
}

static tdm_status writer_append(tdm_file_writer *writer, const unsigned char *data, size_t bytes)
{
    while (bytes > 0) {
        if (writer->used == 0 && bytes >= BUFFER_BYTES)
            return tdm_descriptor_write(writer->descriptor, writer->temporary, data, bytes, NULL);
        size_t room = BUFFER_BYTES - writer->used;
        size_t part = bytes < room ? bytes : room;
        memcpy(writer->buffer + writer->used, data, part);
        writer->used += part;
        data += part;
        bytes -= part;
        if (writer->used == BUFFER_BYTES)
            TDM_TRY(writer_flush(writer));
    }
    return TDM_OK;
}

static tdm_status writer_check(const tdm_file_writer *writer)
{
    TDM_FAIL_IF(writer->descriptor < 0, TDM_E_STATE, "%s: already committed", writer->path);
    TDM_FAIL_IF(writer->failed, TDM_E_STATE, "%s: an earlier write failed", writer->path);
    return TDM_OK;
}

tdm_status tdm_file_writer_write(tdm_file_writer *writer, const void *data, size_t bytes)
{
    TDM_TRY(writer_check(writer));
    if (bytes == 0)
        return TDM_OK;
    XXH3_64bits_update(writer->hash, data, bytes);
    writer->bytes += (int64_t)bytes;
    tdm_status status = writer_append(writer, data, bytes);
    writer->failed = status != TDM_OK;
    return status;
}

static tdm_status write_at(const tdm_file_writer *writer, int64_t offset, const void *data,
                           size_t bytes)
{
    if (lseek(writer->descriptor, (off_t)offset, SEEK_SET) < 0)
        return tdm_io_fail("write", writer->temporary);
    TDM_TRY(tdm_descriptor_write(writer->descriptor, writer->temporary, data, bytes, NULL));
    if (lseek(writer->descriptor, 0, SEEK_END) < 0)
        return tdm_io_fail("write", writer->temporary);
    return TDM_OK;
}

tdm_status tdm_file_writer_patch(tdm_file_writer *writer, int64_t offset, const void *data,
                                 size_t bytes)
{
    TDM_TRY(writer_check(writer));
    TDM_FAIL_IF(offset < 0 || offset + (int64_t)bytes > writer->bytes, TDM_E_ARG,
                "%s: bytes that were not written cannot be written over", writer->path);
    writer->patched = true;
    tdm_status status = writer_flush(writer);
    if (status == TDM_OK)
        status = write_at(writer, offset, data, bytes);
    writer->failed = status != TDM_OK;
    return status;
}

static tdm_status writer_finish(tdm_file_writer *writer)
{
    TDM_TRY(writer_flush(writer));
    TDM_TRY(tdm_descriptor_sync(writer->descriptor, writer->temporary));
    int result = close(writer->descriptor);
    writer->descriptor = -1;
    if (result != 0 && errno != EINTR)
        return tdm_io_fail("close", writer->temporary);
    TDM_TRY(tdm_file_rename(writer->temporary, writer->path));
    writer->has_temporary = false;
    return TDM_OK;
}

tdm_status tdm_file_writer_commit(tdm_file_writer *writer, uint64_t *hash, int64_t *bytes)
{
    TDM_TRY(writer_check(writer));
    TDM_FAIL_IF(hash != NULL && writer->patched, TDM_E_STATE,
                "%s: was written over: it has no hash", writer->path);
    tdm_status status = writer_finish(writer);
    writer->failed = status != TDM_OK;
    TDM_TRY(status);
    if (hash != NULL)
        *hash = XXH3_64bits_digest(writer->hash);
    if (bytes != NULL)
        *bytes = writer->bytes;
    return TDM_OK;
}

void tdm_file_writer_close(tdm_file_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->descriptor >= 0)
        close(writer->descriptor);
    if (writer->has_temporary && tdm_io_allowed("unlink", writer->temporary))
        unlink(writer->temporary);
    XXH3_freeState(writer->hash);
    tdm_free(writer->buffer);
    tdm_free(writer->temporary);
    tdm_free(writer->path);
    tdm_free(writer);
}

tdm_status tdm_file_put(const char *path, const void *data, size_t bytes, uint64_t *hash)
{
    tdm_file_writer *writer;
    TDM_TRY(tdm_file_writer_open(path, &writer));
    tdm_status status = tdm_file_writer_write(writer, data, bytes);
    if (status == TDM_OK)
        status = tdm_file_writer_commit(writer, hash, NULL);
    tdm_file_writer_close(writer);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------- */

static tdm_status open_for_reading(const char *path, int *out)
{
    *out = open(path, O_RDONLY | O_CLOEXEC);
    return *out < 0 ? tdm_io_fail("open", path) : TDM_OK;
}

static tdm_status read_some(int descriptor, const char *path, void *buffer, size_t capacity,
                            size_t *bytes)
{
    ssize_t got;
    do
        got = read(descriptor, buffer, capacity);
    while (got < 0 && errno == EINTR);
    *bytes = got < 0 ? 0 : (size_t)got;
    return got < 0 ? tdm_io_fail("read", path) : TDM_OK;
}

/* The size is a first guess only: files in /proc have none, and others may grow. */
static tdm_status read_whole(int descriptor, const char *path, size_t limit, char **data,
                             size_t *bytes)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return tdm_io_fail("look at", path);
    size_t guess = info.st_size > 0 ? (size_t)info.st_size : 0;
    TDM_FAIL_IF(guess > limit, TDM_E_FORMAT, "%s: %zu bytes are more than the %zu expected", path,
                guess, limit);
    size_t capacity = 0, used = 0, got;
    TDM_TRY(tdm_grow(data, &capacity, guess + 1, 1));
    for (;;) {
        TDM_TRY(read_some(descriptor, path, *data + used, capacity - used, &got));
        used += got;
        TDM_FAIL_IF(used > limit, TDM_E_FORMAT, "%s: more than the %zu bytes expected", path,
                    limit);
        if (got == 0)
            break;
        TDM_TRY(tdm_grow(data, &capacity, used + 1, 1));
    }
    (*data)[used] = '\0';
    *bytes = used;
    return TDM_OK;
}

tdm_status tdm_file_get(const char *path, size_t limit, char **data, size_t *bytes)
{
    *data = NULL;
    *bytes = 0;
    int descriptor;
    TDM_TRY(open_for_reading(path, &descriptor));
    tdm_status status = read_whole(descriptor, path, limit, data, bytes);
    close(descriptor);
    if (status != TDM_OK) {
        tdm_free(*data);
        *data = NULL;
    }
    return status;
}

static tdm_status hash_descriptor(int descriptor, const char *path, unsigned char *buffer,
                                  XXH3_state_t *state, int64_t *bytes)
{
    XXH3_64bits_reset(state);
    *bytes = 0;
    for (;;) {
        size_t got;
        TDM_TRY(read_some(descriptor, path, buffer, BUFFER_BYTES, &got));
        if (got == 0)
            return TDM_OK;
        XXH3_64bits_update(state, buffer, got);
        *bytes += (int64_t)got;
    }
}

tdm_status tdm_file_hash(const char *path, uint64_t *hash, int64_t *bytes)
{
    unsigned char *buffer = NULL;
    XXH3_state_t *state = NULL;
    int descriptor;
    TDM_TRY(open_for_reading(path, &descriptor));
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(BUFFER_BYTES, 1, &buffer), done);
    state = XXH3_createState();
    if (state == NULL) {
        status = tdm_fail(TDM_E_NOMEM, "out of memory for a checksum");
        goto done;
    }
    TDM_TRY_GOTO(hash_descriptor(descriptor, path, buffer, state, bytes), done);
    *hash = XXH3_64bits_digest(state);
done:
    close(descriptor);
    XXH3_freeState(state);
    tdm_free(buffer);
    return status;
}

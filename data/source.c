#include "data/source.h"

#include "core/file.h"
#include "core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define INPUT_BYTES       ((size_t)256 * 1024)
#define SMALL_INPUT_BYTES ((size_t)16 * 1024) /* of files that are no larger */

struct tdm_source {
    int fd;
    bool is_stdin;
    bool may_wait; /* no regular file: the next bytes may be long in coming */
    bool eager;
    const atomic_bool *cancel;
    const char *name;                /* for errors */
    int64_t file_bytes, modified_ns; /* where it may not wait */
    char *path;
    tdm_compression compression;
    /* Stored bytes that were read and not used yet: input[begin, end). */
    unsigned char *input;
    size_t capacity;
    size_t begin, end;
    bool input_ended;
    int64_t stored_read; /* bytes read from the file */
    z_stream gzip;
    bool gzip_open;
    bool member_open; /* inside a gzip member or zstd frame: the stream may not end here */
    ZSTD_DStream *zstd;
};

static tdm_status wait_for_bytes(tdm_source *source)
{
    struct pollfd poll_fd = {.fd = source->fd, .events = POLLIN};
    while (source->cancel != NULL) {
        TDM_FAIL_IF(atomic_load(source->cancel), TDM_E_CANCELLED, "stopped while reading %s",
                    source->name);
        int ready = poll(&poll_fd, 1, 100);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            break;
    }
    return TDM_OK;
}

static tdm_status read_stored(tdm_source *source, void *buffer, size_t bytes, size_t *got)
{
    *got = 0;
    if (source->may_wait)
        TDM_TRY(wait_for_bytes(source));
    for (;;) {
        ssize_t count = read(source->fd, buffer, bytes);
        if (count < 0 && errno == EINTR)
            continue;
        TDM_FAIL_IF(count < 0, TDM_E_IO, "%s: %s", source->name, tdm_io_error_text(errno));
        *got = (size_t)count;
        source->stored_read += count;
        return TDM_OK;
    }
}

/* Reads more stored bytes when all have been used. */
static tdm_status fill_input(tdm_source *source)
{
    if (source->begin < source->end || source->input_ended)
        return TDM_OK;
    size_t got;
    TDM_TRY(read_stored(source, source->input, source->capacity, &got));
    source->begin = 0;
    source->end = got;
    source->input_ended = got == 0;
    return TDM_OK;
}

/* A frame, or one to be skipped, which pzstd puts before every frame (RFC 8878). */
static bool is_zstd_frame(const unsigned char *bytes)
{
    return memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0 ||
           ((bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0);
}

/* Looks at the first bytes: at least four of them, unless the file is shorter. */
static tdm_status detect(tdm_source *source)
{
    while (source->end < 4 && !source->input_ended) {
        size_t got;
        TDM_TRY(
            read_stored(source, source->input + source->end, source->capacity - source->end, &got));
        source->end += got;
        source->input_ended = got == 0;
    }
    source->input_ended = false;
    const unsigned char *bytes = source->input;
    if (source->end >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        source->compression = TDM_COMPRESSION_GZIP;
    else if (source->end >= 4 && is_zstd_frame(bytes))
        source->compression = TDM_COMPRESSION_ZSTD;
    size_t length = strlen(source->path);
    bool named_gzip = length > 3 && strcmp(source->path + length - 3, ".gz") == 0;
    bool named_zstd = length > 4 && strcmp(source->path + length - 4, ".zst") == 0;
    TDM_FAIL_IF(source->end > 0 && ((named_gzip && source->compression != TDM_COMPRESSION_GZIP) ||
                                    (named_zstd && source->compression != TDM_COMPRESSION_ZSTD)),
                TDM_E_DATA, "%s: does not begin as a %s file does; rename it if it is plain text",
                source->name, named_gzip ? "gzip" : "Zstandard");
    return TDM_OK;
}

static tdm_status open_decoder(tdm_source *source)
{
    if (source->compression == TDM_COMPRESSION_GZIP) {
        TDM_FAIL_IF(inflateInit2(&source->gzip, 15 + 16) != Z_OK, TDM_E_NOMEM,
                    "%s: no memory to decompress it", source->name);
        source->gzip_open = true;
    } else if (source->compression == TDM_COMPRESSION_ZSTD) {
        source->zstd = ZSTD_createDStream();
        TDM_FAIL_IF(source->zstd == NULL, TDM_E_NOMEM, "%s: no memory to decompress it",
                    source->name);
    }
    return TDM_OK;
}

/* Small files, of which there may be very many, are opened without a large buffer. */
static tdm_status reserve_input(tdm_source *source)
{
    bool is_small = !source->may_wait && source->file_bytes <= (int64_t)SMALL_INPUT_BYTES;
    return tdm_grow(&source->input, &source->capacity, is_small ? SMALL_INPUT_BYTES : INPUT_BYTES,
                    1);
}

static tdm_status open_file(tdm_source *source)
{
    source->is_stdin = strcmp(source->path, "-") == 0;
    source->name = source->is_stdin ? "standard input" : source->path;
    if (source->is_stdin) {
        source->fd = STDIN_FILENO;
        source->may_wait = true;
        return reserve_input(source);
    }
    source->fd = open(source->path, O_RDONLY | O_CLOEXEC);
    TDM_FAIL_IF(source->fd < 0, TDM_E_IO, "%s: %s", source->name, tdm_io_error_text(errno));
    struct stat info;
    TDM_FAIL_IF(fstat(source->fd, &info) != 0, TDM_E_IO, "%s: %s", source->name,
                tdm_io_error_text(errno));
    source->may_wait = !S_ISREG(info.st_mode);
    TDM_FAIL_IF(S_ISDIR(info.st_mode), TDM_E_IO,
                "%s: is a folder: name its files, for instance \"%s/*\"", source->name,
                source->name);
    source->file_bytes = info.st_size;
    source->modified_ns = (int64_t)info.st_mtim.tv_sec * 1000000000 + info.st_mtim.tv_nsec;
    return reserve_input(source);
}

tdm_status tdm_source_open(const char *path, const atomic_bool *cancel, tdm_source **out)
{
    *out = NULL;
    tdm_source *source;
    TDM_TRY(tdm_alloc(1, sizeof *source, &source));
    source->fd = -1;
    source->cancel = cancel;
    tdm_status status;
    TDM_TRY_GOTO(tdm_strdup(path, &source->path), fail);
    TDM_TRY_GOTO(open_file(source), fail);
    TDM_TRY_GOTO(detect(source), fail);
    TDM_TRY_GOTO(open_decoder(source), fail);
    *out = source;
    return TDM_OK;
fail:
    tdm_source_close(source);
    return status;
}

static tdm_status truncated(const tdm_source *source, const char *format)
{
    return tdm_fail(TDM_E_DATA,
                    "%s: the %s stream ends too early, after %lld stored bytes: the file "
                    "is truncated",
                    source->name, format, (long long)source->stored_read);
}

static bool wants_more(const tdm_source *source, size_t got, size_t bytes)
{
    return got < bytes && (got == 0 || !source->eager);
}

/* Between members: skips zero padding, and ends quietly where nothing is left. */
static tdm_status next_gzip_member(tdm_source *source, bool *ended)
{
    for (;;) {
        TDM_TRY(fill_input(source));
        if (source->begin == source->end) {
            *ended = true;
            return TDM_OK;
        }
        if (source->input[source->begin] != 0)
            break;
        source->begin++;
    }
    inflateReset(&source->gzip);
    source->member_open = true;
    return TDM_OK;
}

static tdm_status read_gzip(tdm_source *source, unsigned char *buffer, size_t bytes, size_t *got)
{
    bool ended = false;
    while (wants_more(source, *got, bytes)) {
        if (!source->member_open) {
            TDM_TRY(next_gzip_member(source, &ended));
            if (ended)
                return TDM_OK;
        }
        TDM_TRY(fill_input(source));
        if (source->begin == source->end)
            return truncated(source, "gzip");
        size_t room = bytes - *got < UINT32_MAX ? bytes - *got : UINT32_MAX;
        source->gzip.next_in = source->input + source->begin;
        source->gzip.avail_in = (uInt)(source->end - source->begin);
        source->gzip.next_out = buffer + *got;
        source->gzip.avail_out = (uInt)room;
        int code = inflate(&source->gzip, Z_NO_FLUSH);
        source->begin = source->end - source->gzip.avail_in;
        *got += room - source->gzip.avail_out;
        if (code == Z_STREAM_END) {
            source->member_open = false;
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            return tdm_fail(TDM_E_DATA, "%s: corrupt gzip stream near stored byte %lld: %s",
                            source->name, (long long)tdm_source_stored_position(source),
                            source->gzip.msg != NULL ? source->gzip.msg : "unreadable");
        }
    }
    return TDM_OK;
}

static tdm_status read_zstd(tdm_source *source, unsigned char *buffer, size_t bytes, size_t *got)
{
    while (wants_more(source, *got, bytes)) {
        TDM_TRY(fill_input(source));
        bool empty = source->begin == source->end;
        if (empty && !source->member_open)
            return TDM_OK;
        ZSTD_inBuffer in = {source->input, source->end, source->begin};
        ZSTD_outBuffer out = {buffer, bytes, *got};
        size_t code = ZSTD_decompressStream(source->zstd, &out, &in);
        if (empty && out.pos == *got) /* nothing was left inside the decoder either */
            return truncated(source, "Zstandard");
        source->begin = in.pos;
        *got = out.pos;
        TDM_FAIL_IF(ZSTD_isError(code), TDM_E_DATA,
                    "%s: corrupt Zstandard stream near stored byte %lld: %s", source->name,
                    (long long)tdm_source_stored_position(source), ZSTD_getErrorName(code));
        source->member_open = code != 0;
    }
    return TDM_OK;
}

static tdm_status read_plain(tdm_source *source, unsigned char *buffer, size_t bytes, size_t *got)
{
    while (wants_more(source, *got, bytes) && !source->input_ended) {
        size_t buffered = source->end - source->begin;
        size_t count = bytes - *got;
        if (buffered > 0) {
            count = count < buffered ? count : buffered;
            memcpy(buffer + *got, source->input + source->begin, count);
            source->begin += count;
        } else {
            TDM_TRY(read_stored(source, buffer + *got, count, &count));
            source->input_ended = count == 0;
        }
        *got += count;
    }
    return TDM_OK;
}

tdm_status tdm_source_read(tdm_source *source, void *buffer, size_t bytes, size_t *got)
{
    *got = 0;
    switch (source->compression) {
    case TDM_COMPRESSION_GZIP:
        return read_gzip(source, buffer, bytes, got);
    case TDM_COMPRESSION_ZSTD:
        return read_zstd(source, buffer, bytes, got);
    case TDM_COMPRESSION_NONE:
        break;
    }
    return read_plain(source, buffer, bytes, got);
}

void tdm_source_set_eager(tdm_source *source)
{
    source->eager = true;
}

tdm_compression tdm_source_compression(const tdm_source *source)
{
    return source->compression;
}

bool tdm_source_identity(const tdm_source *source, int64_t *bytes, int64_t *modified_ns)
{
    if (source->may_wait)
        return false;
    *bytes = source->file_bytes;
    *modified_ns = source->modified_ns;
    return true;
}

int64_t tdm_source_stored_position(const tdm_source *source)
{
    return source->stored_read - (int64_t)(source->end - source->begin);
}

void tdm_source_close(tdm_source *source)
{
    if (source == NULL)
        return;
    if (source->gzip_open)
        inflateEnd(&source->gzip);
    ZSTD_freeDStream(source->zstd);
    if (source->fd >= 0 && !source->is_stdin)
        close(source->fd);
    tdm_free(source->input);
    tdm_free(source->path);
    tdm_free(source);
}

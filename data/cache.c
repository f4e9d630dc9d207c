#include "data/cache.h"

#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "data/cache_format.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

/* The pieces of a block: its columns, row_records, and its bad records as one. */
#define MAX_PIECES (TDM_MAX_COLUMNS + 2)

static uint64_t layout_hash(const tdm_columns_layout *layout)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    if (layout->rows_are_pieces)
        XXH3_64bits_update(&state, "", 1);
    for (int i = 0; i < layout->count; i++) {
        const tdm_column *column = &layout->columns[i];
        XXH3_64bits_update(&state, column->name, strlen(column->name) + 1);
        XXH3_64bits_update(&state, &column->dtype, sizeof column->dtype);
        XXH3_64bits_update(&state, &column->width, sizeof column->width);
    }
    return XXH3_64bits_digest(&state);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int column_pieces(const tdm_columns_layout *layout, tdm_extract *extract, int64_t rows,
                         struct iovec *pieces)
{
    for (int i = 0; i < layout->count; i++) {
        size_t width = tdm_column_row_bytes(&layout->columns[i]);
        pieces[i] = (struct iovec){extract->columns[i], (size_t)rows * width};
    }
    if (layout->rows_are_pieces)
        return layout->count;
    pieces[layout->count] =
        (struct iovec){extract->row_records, (size_t)rows * sizeof *extract->row_records};
    return layout->count + 1;
}

static uint64_t hash_pieces(const struct iovec *pieces, int count, uint64_t *bytes)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    *bytes = 0;
    for (int i = 0; i < count; i++) {
        XXH3_64bits_update(&state, pieces[i].iov_base, pieces[i].iov_len);
        *bytes += pieces[i].iov_len;
    }
    return XXH3_64bits_digest(&state);
}

/* Moves all bytes of the pieces, which it uses up. False at an error or the end of the file. */
static bool move_pieces(int fd, struct iovec *pieces, int count, uint64_t offset, bool write)
{
    while (count > 0) {
        if (pieces->iov_len == 0) {
            pieces++;
            count--;
            continue;
        }
        ssize_t moved = write ? pwritev(fd, pieces, count, (off_t)offset)
                              : preadv(fd, pieces, count, (off_t)offset);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return false;
        offset += (uint64_t)moved;
        for (size_t left = (size_t)moved; left > 0;) {
            size_t used = left < pieces->iov_len ? left : pieces->iov_len;
            pieces->iov_base = (char *)pieces->iov_base + used;
            pieces->iov_len -= used;
            left -= used;
            if (pieces->iov_len == 0 && left > 0) {
                pieces++;
                count--;
            }
        }
    }
    return true;
}

/* ---- bad records ----------------------------------------------------------------------------- */

static tdm_status pack_bad_records(const tdm_extract *extract, char **out, size_t *bytes)
{
    size_t capacity = 0;
    *out = NULL;
    *bytes = 0;
    for (size_t i = 0; i < extract->bad_count; i++) {
        const tdm_bad_record *bad = &extract->bad[i];
        tdm_cache_bad_record head = {.line = bad->line,
                                     .record = bad->record,
                                     .file = bad->file,
                                     .column = bad->column,
                                     .kind = (int32_t)bad->kind,
                                     .reason_bytes = (uint32_t)strlen(bad->reason),
                                     .text_bytes = bad->text_bytes};
        size_t need = *bytes + sizeof head + head.reason_bytes + bad->text_bytes;
        tdm_status status = tdm_grow(out, &capacity, need, 1);
        if (status != TDM_OK) {
            tdm_free(*out);
            return status;
        }
        memcpy(*out + *bytes, &head, sizeof head);
        memcpy(*out + *bytes + sizeof head, bad->reason, head.reason_bytes);
        memcpy(*out + *bytes + sizeof head + head.reason_bytes, bad->text, bad->text_bytes);
        *bytes = need;
    }
    return TDM_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct tdm_cache_writer {
    char *path, *temporary;
    const tdm_columns_layout *layout;
    int fd;
    bool owns_temporary;
    pthread_mutex_t lock;
    uint64_t end; /* where the next block goes */
    tdm_cache_entry *entries;
    size_t entry_count, entry_capacity;
};

static tdm_status write_failed(const tdm_cache_writer *writer)
{
    return tdm_fail(TDM_E_IO, "%s: %s", writer->temporary, tdm_io_error_text(errno));
}

/* Two runs may want to write the same cache: the lock goes to one of them. */
static tdm_status open_temporary(tdm_cache_writer *writer)
{
    writer->fd = open(writer->temporary, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (writer->fd < 0)
        return write_failed(writer);
    struct stat opened, named;
    bool locked = flock(writer->fd, LOCK_EX | LOCK_NB) == 0 && fstat(writer->fd, &opened) == 0 &&
                  stat(writer->temporary, &named) == 0 && opened.st_ino == named.st_ino;
    TDM_FAIL_IF(!locked, TDM_E_STATE, "%s: another run is writing it", writer->temporary);
    writer->owns_temporary = true;
    return ftruncate(writer->fd, 0) != 0 ? write_failed(writer) : TDM_OK;
}

static tdm_status create_file(tdm_cache_writer *writer, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash != NULL) {
        char *folder;
        TDM_TRY(tdm_strndup(path, (size_t)(slash - path), &folder));
        tdm_status status = tdm_folder_create(folder);
        tdm_free(folder);
        TDM_TRY(status);
    }
    TDM_TRY(tdm_strdup(path, &writer->path));
    TDM_TRY(tdm_format(&writer->temporary, "%s.tmp", path));
    return open_temporary(writer);
}

tdm_status tdm_cache_writer_create(const char *path, const tdm_columns_layout *layout,
                                   tdm_cache_writer **out)
{
    *out = NULL;
    tdm_cache_writer *writer;
    TDM_TRY(tdm_alloc(1, sizeof *writer, &writer));
    writer->fd = -1;
    writer->layout = layout;
    writer->end = sizeof(tdm_cache_header);
    pthread_mutex_init(&writer->lock, NULL);
    tdm_status status = create_file(writer, path);
    if (status != TDM_OK) {
        tdm_cache_writer_close(writer);
        return status;
    }
    *out = writer;
    return TDM_OK;
}

/* Reserves the block's place and notes its entry. */
static tdm_status place_block(tdm_cache_writer *writer, int64_t block, tdm_cache_entry *entry)
{
    pthread_mutex_lock(&writer->lock);
    size_t needed = (size_t)block + 1;
    tdm_status status =
        tdm_grow(&writer->entries, &writer->entry_capacity, needed, sizeof *writer->entries);
    if (status == TDM_OK) {
        if (needed > writer->entry_count) {
            memset(writer->entries + writer->entry_count, 0,
                   (needed - writer->entry_count) * sizeof *writer->entries);
            writer->entry_count = needed;
        }
        entry->offset = writer->end;
        writer->end += entry->bytes;
        writer->entries[block] = *entry;
    }
    pthread_mutex_unlock(&writer->lock);
    return status;
}

tdm_status tdm_cache_writer_add(tdm_cache_writer *writer, const tdm_extract *extract)
{
    struct iovec pieces[MAX_PIECES];
    tdm_extract view = *extract;
    int count = column_pieces(writer->layout, &view, extract->rows, pieces);
    char *bad;
    size_t bad_bytes;
    TDM_TRY(pack_bad_records(extract, &bad, &bad_bytes));
    pieces[count++] = (struct iovec){bad, bad_bytes};
    tdm_cache_entry entry = {.rows = extract->rows,
                             .records = extract->records,
                             .lines = extract->lines,
                             .first_line = extract->first_line,
                             .stored_bytes = extract->stored_bytes,
                             .encoding_errors = extract->encoding_errors,
                             .file = extract->file,
                             .bad_count = (uint32_t)extract->bad_count};
    entry.hash = hash_pieces(pieces, count, &entry.bytes);
    tdm_status status = place_block(writer, extract->block, &entry);
    if (status == TDM_OK && !move_pieces(writer->fd, pieces, count, entry.offset, true))
        status = write_failed(writer);
    tdm_free(bad);
    return status;
}

tdm_status tdm_cache_writer_commit(tdm_cache_writer *writer, int64_t block_count)
{
    size_t index_bytes = (size_t)block_count * sizeof *writer->entries;
    tdm_cache_header header = {.magic = TDM_CACHE_MAGIC,
                               .version = TDM_CACHE_VERSION,
                               .layout_hash = layout_hash(writer->layout)};
    tdm_cache_footer footer = {.index_offset = writer->end,
                               .block_count = block_count,
                               .index_hash = XXH3_64bits(writer->entries, index_bytes),
                               .magic = TDM_CACHE_MAGIC};
    struct iovec head = {&header, sizeof header};
    struct iovec tail[] = {{writer->entries, index_bytes}, {&footer, sizeof footer}};
    if (!move_pieces(writer->fd, &head, 1, 0, true) ||
        !move_pieces(writer->fd, tail, 2, writer->end, true))
        return write_failed(writer);
    /* No sync: checksums tell of what a power cut leaves behind, and the text is still there. */
    TDM_TRY(tdm_file_rename(writer->temporary, writer->path));
    writer->owns_temporary = false;
    return TDM_OK;
}

void tdm_cache_writer_close(tdm_cache_writer *writer)
{
    if (writer == NULL)
        return;
    if (writer->owns_temporary)
        unlink(writer->temporary);
    if (writer->fd >= 0)
        close(writer->fd);
    pthread_mutex_destroy(&writer->lock);
    tdm_free(writer->entries);
    tdm_free(writer->temporary);
    tdm_free(writer->path);
    tdm_free(writer);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct tdm_cache {
    char *path;
    int fd;
    const tdm_columns_layout *layout;
    int64_t bytes;
    int64_t block_count;
    tdm_cache_entry *entries;
};

static tdm_status damaged(const tdm_cache *cache, const char *what)
{
    return tdm_fail(TDM_E_FORMAT, "%s: damaged cache: %s", cache->path, what);
}

static bool read_at(const tdm_cache *cache, void *buffer, size_t bytes, uint64_t offset)
{
    struct iovec piece = {buffer, bytes};
    return move_pieces(cache->fd, &piece, 1, offset, false);
}

static tdm_status read_index(tdm_cache *cache)
{
    tdm_cache_header header;
    tdm_cache_footer footer;
    uint64_t bytes = (uint64_t)cache->bytes;
    if (bytes < sizeof header + sizeof footer || !read_at(cache, &header, sizeof header, 0) ||
        !read_at(cache, &footer, sizeof footer, bytes - sizeof footer))
        return damaged(cache, "it is cut off");
    if (memcmp(header.magic, TDM_CACHE_MAGIC, 8) != 0 ||
        memcmp(footer.magic, TDM_CACHE_MAGIC, 8) != 0)
        return damaged(cache, "it does not begin and end as a cache does");
    if (header.version != TDM_CACHE_VERSION || header.layout_hash != layout_hash(cache->layout))
        return damaged(cache, "it is of another version or of other features");
    uint64_t room = bytes - sizeof footer;
    if (footer.block_count < 0 || footer.index_offset > room ||
        (uint64_t)footer.block_count > (room - footer.index_offset) / sizeof *cache->entries)
        return damaged(cache, "its index lies outside of it");
    size_t index_bytes = (size_t)footer.block_count * sizeof *cache->entries;
    TDM_TRY(tdm_alloc((size_t)footer.block_count, sizeof *cache->entries, &cache->entries));
    cache->block_count = footer.block_count;
    if (!read_at(cache, cache->entries, index_bytes, footer.index_offset) ||
        XXH3_64bits(cache->entries, index_bytes) != footer.index_hash)
        return damaged(cache, "the checksum of its index does not match");
    return TDM_OK;
}

tdm_status tdm_cache_open(const char *path, const tdm_columns_layout *layout, tdm_cache **out)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return TDM_OK;
    TDM_FAIL_IF(fd < 0, TDM_E_IO, "%s: %s", path, tdm_io_error_text(errno));
    tdm_cache *cache = NULL;
    tdm_status status = tdm_alloc(1, sizeof *cache, &cache);
    if (status != TDM_OK) {
        close(fd);
        return status;
    }
    cache->fd = fd;
    cache->layout = layout;
    struct stat info = {0};
    cache->bytes = fstat(fd, &info) == 0 ? info.st_size : 0;
    status = tdm_strdup(path, &cache->path);
    if (status == TDM_OK)
        status = read_index(cache);
    if (status == TDM_OK) {
        *out = cache;
        return TDM_OK;
    }
    tdm_cache_close(cache);
    if (status != TDM_E_FORMAT)
        return status;
    tdm_warn("%s; it is made anew", tdm_error_message());
    unlink(path);
    return TDM_OK;
}

int64_t tdm_cache_block_count(const tdm_cache *cache)
{
    return cache->block_count;
}

int64_t tdm_cache_bytes(const tdm_cache *cache)
{
    return cache->bytes;
}

int64_t tdm_cache_lines(const tdm_cache *cache, int64_t block)
{
    return cache->entries[block].lines;
}

int32_t tdm_cache_file(const tdm_cache *cache, int64_t block)
{
    return cache->entries[block].file;
}

int64_t tdm_cache_stored_bytes(const tdm_cache *cache, int64_t block)
{
    return cache->entries[block].stored_bytes;
}

/* Bytes of the block's bad records; -1 where the entry makes no sense. */
static int64_t bad_record_bytes(const tdm_cache *cache, const tdm_cache_entry *entry)
{
    size_t row_record = cache->layout->rows_are_pieces ? 0 : sizeof(uint32_t);
    uint64_t width = row_record + tdm_columns_row_bytes(cache->layout);
    uint64_t size = (uint64_t)cache->bytes;
    if (entry->offset > size || entry->bytes > size - entry->offset || entry->rows < 0 ||
        (uint64_t)entry->rows > entry->bytes / width)
        return -1;
    return (int64_t)(entry->bytes - (uint64_t)entry->rows * width);
}

static tdm_status unpack_bad_records(const tdm_cache *cache, const char *bytes, size_t size,
                                     uint32_t count, tdm_extract *out)
{
    size_t at = 0;
    if (count > size / sizeof(tdm_cache_bad_record))
        return damaged(cache, "a block lacks its bad records");
    TDM_TRY(tdm_grow(&out->bad, &out->bad_capacity, count, sizeof *out->bad));
    for (uint32_t i = 0; i < count; i++) {
        tdm_cache_bad_record head;
        if (size - at < sizeof head)
            return damaged(cache, "a block lacks its bad records");
        memcpy(&head, bytes + at, sizeof head);
        at += sizeof head;
        if (head.reason_bytes > size - at || head.text_bytes > size - at - head.reason_bytes)
            return damaged(cache, "a bad record is cut off");
        tdm_bad_record *bad = &out->bad[out->bad_count];
        *bad = (tdm_bad_record){.line = head.line,
                                .record = head.record,
                                .file = head.file,
                                .column = head.column,
                                .kind = (tdm_bad_kind)head.kind,
                                .text_bytes = head.text_bytes};
        TDM_TRY(tdm_strndup(bytes + at, head.reason_bytes, &bad->reason));
        out->bad_count++;
        TDM_TRY(tdm_strndup(bytes + at + head.reason_bytes, head.text_bytes, &bad->text));
        at += head.reason_bytes + head.text_bytes;
    }
    return TDM_OK;
}

static tdm_status read_pieces(const tdm_cache *cache, const tdm_cache_entry *entry, char *bad,
                              size_t bad_bytes, tdm_extract *out)
{
    struct iovec pieces[MAX_PIECES], all[MAX_PIECES];
    int count = column_pieces(cache->layout, out, entry->rows, pieces);
    pieces[count++] = (struct iovec){bad, bad_bytes};
    memcpy(all, pieces, sizeof all);
    if (!move_pieces(cache->fd, all, count, entry->offset, false))
        return damaged(cache, "a block cannot be read");
    uint64_t bytes;
    if (hash_pieces(pieces, count, &bytes) != entry->hash)
        return damaged(cache, "the checksum of a block does not match");
    return unpack_bad_records(cache, bad, bad_bytes, entry->bad_count, out);
}

tdm_status tdm_cache_read(const tdm_cache *cache, int64_t block, tdm_extract *out)
{
    const tdm_cache_entry *entry = &cache->entries[block];
    tdm_extract_clear(out);
    int64_t bad_bytes = bad_record_bytes(cache, entry);
    if (bad_bytes < 0)
        return damaged(cache, "a block lies outside of it");
    TDM_TRY(tdm_extract_reserve(cache->layout, out, (size_t)entry->rows));
    char *bad;
    TDM_TRY(tdm_alloc((size_t)bad_bytes, 1, &bad));
    tdm_status status = read_pieces(cache, entry, bad, (size_t)bad_bytes, out);
    tdm_free(bad);
    out->block = block;
    out->file = entry->file;
    out->stored_bytes = entry->stored_bytes;
    out->first_line = entry->first_line;
    out->lines = entry->lines;
    out->records = entry->records;
    out->encoding_errors = entry->encoding_errors;
    out->rows = entry->rows;
    return status;
}

void tdm_cache_close(tdm_cache *cache)
{
    if (cache == NULL)
        return;
    close(cache->fd);
    tdm_free(cache->entries);
    tdm_free(cache->path);
    tdm_free(cache);
}

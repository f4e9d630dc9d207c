/* A thread that wants a piece takes a stream that no other one reads, and opens the next file where
 * all are busy: so a single file is read by turns and many are read side by side. */
#include "data/text_pieces.h"

#include "core/file.h"
#include "core/memory.h"
#include "data/input_internal.h"
#include "data/paths.h"
#include "data/utf8.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

/* A file that is being read. */
typedef struct piece_stream {
    tdm_source *source; /* NULL: the place is free */
    bool busy;
    bool began;
    bool ended;
    int64_t stored; /* bytes that are counted as done */
    char *carry;    /* what was read behind the last piece */
    size_t carry_bytes, carry_capacity;
} piece_stream;

struct tdm_text_pieces {
    tdm_strings paths;
    const atomic_bool *cancel;
    int64_t total;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t next_path;
    piece_stream *streams; /* [stream_count] */
    int stream_count;
    int64_t done;
    tdm_error error;
};

static tdm_status add_size(tdm_text_pieces *pieces, const char *path)
{
    struct stat info;
    if (strcmp(path, "-") == 0) {
        pieces->total = -1;
        return TDM_OK;
    }
    TDM_FAIL_IF(stat(path, &info) != 0, TDM_E_IO, "%s: %s", path, tdm_io_error_text(errno));
    if (!S_ISREG(info.st_mode))
        pieces->total = -1;
    else if (pieces->total >= 0)
        pieces->total += info.st_size;
    return TDM_OK;
}

tdm_status tdm_text_pieces_open(const tdm_strings *names, int streams, const atomic_bool *cancel,
                                tdm_text_pieces **out)
{
    *out = NULL;
    tdm_text_pieces *pieces;
    TDM_TRY(tdm_alloc(1, sizeof *pieces, &pieces));
    pthread_mutex_init(&pieces->lock, NULL);
    pthread_cond_init(&pieces->changed, NULL);
    pieces->cancel = cancel;
    tdm_status status;
    TDM_TRY_GOTO(tdm_paths_expand(names, &pieces->paths, NULL), fail);
    for (int64_t i = 0; i < pieces->paths.count; i++)
        TDM_TRY_GOTO(add_size(pieces, pieces->paths.items[i]), fail);
    TDM_TRY_GOTO(tdm_alloc((size_t)streams, sizeof *pieces->streams, &pieces->streams), fail);
    pieces->stream_count = streams;
    *out = pieces;
    return TDM_OK;
fail:
    tdm_text_pieces_close(pieces);
    return status;
}

void tdm_text_pieces_close(tdm_text_pieces *pieces)
{
    if (pieces == NULL)
        return;
    for (int i = 0; i < pieces->stream_count; i++) {
        tdm_source_close(pieces->streams[i].source);
        tdm_free(pieces->streams[i].carry);
    }
    pthread_cond_destroy(&pieces->changed);
    pthread_mutex_destroy(&pieces->lock);
    tdm_strings_free(&pieces->paths);
    tdm_free(pieces->streams);
    tdm_free(pieces);
}

void tdm_text_piece_deinit(tdm_text_piece *piece)
{
    tdm_free(piece->text);
    *piece = (tdm_text_piece){0};
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* The bytes of text[0, bytes) up to its last white space, that included. */
static size_t through_last_space(const char *text, size_t bytes)
{
    while (bytes > 0 && text[bytes - 1] != ' ' && text[bytes - 1] != '\n' &&
           text[bytes - 1] != '\t' && text[bytes - 1] != '\r')
        bytes--;
    return bytes;
}

/* The bytes of text[0, bytes) less a character at its end that may lack bytes. */
static size_t through_last_character(const char *text, size_t bytes)
{
    for (size_t back = 1; back <= 3 && back < bytes; back++) {
        unsigned char byte = (unsigned char)text[bytes - back];
        if ((byte & 0xc0) != 0x80)
            return byte >= 0xc0 ? bytes - back : bytes;
    }
    return bytes;
}

static void skip_byte_order_mark(piece_stream *stream, tdm_text_piece *piece)
{
    size_t mark = stream->began ? 0 : tdm_byte_order_mark(piece->text, piece->bytes);
    memmove(piece->text, piece->text + mark, piece->bytes - mark);
    piece->bytes -= mark;
    stream->began = true;
}

/* Fills the piece with a stretch that ends behind white space, or with the rest of the file. */
static tdm_status read_piece(piece_stream *stream, tdm_text_piece *piece)
{
    size_t wanted = TDM_PIECE_BYTES;
    piece->bytes = 0;
    for (;;) {
        TDM_TRY(tdm_grow(&piece->text, &piece->capacity, stream->carry_bytes + wanted, 1));
        if (piece->bytes == 0 && stream->carry_bytes > 0)
            memcpy(piece->text, stream->carry, stream->carry_bytes);
        size_t have = piece->bytes == 0 ? stream->carry_bytes : piece->bytes;
        size_t got = 0;
        if (have < wanted)
            TDM_TRY(tdm_source_read(stream->source, piece->text + have, wanted - have, &got));
        piece->bytes = have + got;
        stream->ended = piece->bytes < wanted;
        skip_byte_order_mark(stream, piece);
        size_t cut = stream->ended ? piece->bytes : through_last_space(piece->text, piece->bytes);
        if (cut == 0 && wanted >= TDM_PIECE_BYTES_MAX)
            cut = through_last_character(piece->text, piece->bytes);
        if (cut > 0 || stream->ended) {
            stream->carry_bytes = piece->bytes - cut;
            TDM_TRY(tdm_grow(&stream->carry, &stream->carry_capacity, stream->carry_bytes, 1));
            if (stream->carry_bytes > 0)
                memcpy(stream->carry, piece->text + cut, stream->carry_bytes);
            piece->bytes = cut;
            return TDM_OK;
        }
        wanted *= 2;
    }
}

/* ---- taking turns ---------------------------------------------------------------------------- */

/* With the lock held: a stream to read from, which is made busy and has no source where *path is
 * to be opened; NULL where nothing is left. Waits where others may leave something. */
static piece_stream *take_stream(tdm_text_pieces *pieces, const char **path)
{
    for (;;) {
        piece_stream *free_place = NULL;
        bool any_busy = false;
        if (pieces->error.status != TDM_OK)
            return NULL;
        for (int i = 0; i < pieces->stream_count; i++) {
            piece_stream *stream = &pieces->streams[i];
            any_busy = any_busy || stream->busy;
            if (stream->busy)
                continue;
            if (stream->source != NULL) {
                stream->busy = true;
                return stream;
            }
            free_place = stream;
        }
        if (free_place != NULL && pieces->next_path < pieces->paths.count) {
            *path = pieces->paths.items[pieces->next_path++];
            free_place->busy = true;
            return free_place;
        }
        if (!any_busy)
            return NULL;
        pthread_cond_wait(&pieces->changed, &pieces->lock);
    }
}

static tdm_status read_stream(tdm_text_pieces *pieces, piece_stream *stream, const char *path,
                              tdm_text_piece *piece)
{
    if (stream->source == NULL) {
        TDM_TRY(tdm_source_open(path, pieces->cancel, &stream->source));
        stream->began = stream->ended = false;
        stream->stored = 0;
        stream->carry_bytes = 0;
    }
    return read_piece(stream, piece);
}

/* With the lock held. */
static void give_back(tdm_text_pieces *pieces, piece_stream *stream, tdm_status status)
{
    if (status != TDM_OK) {
        tdm_error_keep(&pieces->error, status);
    } else {
        int64_t stored = tdm_source_stored_position(stream->source);
        pieces->done += stored - stream->stored;
        stream->stored = stored;
    }
    if (status != TDM_OK || stream->ended) {
        tdm_source_close(stream->source);
        stream->source = NULL;
    }
    stream->busy = false;
    pthread_cond_broadcast(&pieces->changed);
}

tdm_status tdm_text_pieces_next(tdm_text_pieces *pieces, tdm_text_piece *piece)
{
    piece->bytes = 0;
    for (;;) {
        const char *path = NULL;
        pthread_mutex_lock(&pieces->lock);
        piece_stream *stream = take_stream(pieces, &path);
        pthread_mutex_unlock(&pieces->lock);
        if (stream == NULL)
            return tdm_error_raise(&pieces->error);
        tdm_status status = read_stream(pieces, stream, path, piece);
        pthread_mutex_lock(&pieces->lock);
        give_back(pieces, stream, status);
        pthread_mutex_unlock(&pieces->lock);
        if (status != TDM_OK || piece->bytes > 0)
            return status;
    }
}

void tdm_text_pieces_progress(tdm_text_pieces *pieces, int64_t *done, int64_t *total)
{
    pthread_mutex_lock(&pieces->lock);
    *done = pieces->done;
    pthread_mutex_unlock(&pieces->lock);
    *total = pieces->total;
}

int64_t tdm_text_pieces_file_count(const tdm_text_pieces *pieces)
{
    return pieces->paths.count;
}

/* The text of many files in pieces, for those to whom their order does not matter. */
#ifndef TDM_DATA_TEXT_PIECES_H
#define TDM_DATA_TEXT_PIECES_H

#include "core/config.h"
#include "data/source.h"

#define TDM_PIECE_BYTES ((size_t)1 << 20)

/* Text without white space is cut between two characters where it is longer than that. */
#define TDM_PIECE_BYTES_MAX ((size_t)64 << 20)

typedef struct tdm_text_pieces tdm_text_pieces;

/* `names` are files, globs or "-"; `streams` of them are read at the same time at most. Looks at
 * every file's size. `cancel` as tdm_source_open(). */
TDM_MUST_CHECK tdm_status tdm_text_pieces_open(const tdm_strings *names, int streams,
                                               const atomic_bool *cancel, tdm_text_pieces **out);
/* NULL is allowed. */
void tdm_text_pieces_close(tdm_text_pieces *pieces);

/* Some text of one file; the buffer is kept and reused. */
typedef struct tdm_text_piece {
    char *text; /* [bytes] */
    size_t bytes, capacity;
} tdm_text_piece;

/* Fills `piece`; its bytes are 0 where all has been read. From any thread, with a piece of its own.
 * Pieces of a file follow one another without a gap, less the byte order mark it begins with, and
 * are cut behind blanks, tabs and line ends. After an error every call fails so. */
TDM_MUST_CHECK tdm_status tdm_text_pieces_next(tdm_text_pieces *pieces, tdm_text_piece *piece);

void tdm_text_piece_deinit(tdm_text_piece *piece);

/* Stored bytes read so far and in all; `total` is -1 where standard input or a pipe is among the
 * files. */
void tdm_text_pieces_progress(tdm_text_pieces *pieces, int64_t *done, int64_t *total);

int64_t tdm_text_pieces_file_count(const tdm_text_pieces *pieces);

#endif

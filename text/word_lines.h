/* Files of words with their counts, ordered by the words' bytes: a line "COUNT<TAB>WORD" a word.
 * A file of word counts, as docs/FORMATS.md describes it, has a first line that tells how they were
 * counted, and a last one by which its end is known; a run that is put aside has neither. */
#ifndef TDM_TEXT_WORD_LINES_H
#define TDM_TEXT_WORD_LINES_H

#include "core/status.h"

#include <stdbool.h>

typedef struct tdm_word_entry {
    const char *word;
    size_t bytes; /* 1 .. TDM_WORD_BYTES_MAX */
    int64_t count;
} tdm_word_entry;

#define TDM_WORD_COUNTS_MAGIC "#tandem-word-counts 1 "

/* ---- writing --------------------------------------------------------------------------------- */

typedef tdm_status tdm_write_bytes(void *context, const void *data, size_t bytes);

typedef struct tdm_word_writer {
    tdm_write_bytes *write;
    void *context;
    char *buffer;
    size_t used;
    int64_t words, total;
} tdm_word_writer;

/* `settings` is what the first line says; NULL: there is none. */
TDM_MUST_CHECK tdm_status tdm_word_writer_open(tdm_write_bytes *write, void *context,
                                               const char *settings, tdm_word_writer *out);
TDM_MUST_CHECK tdm_status tdm_word_writer_add(tdm_word_writer *writer, const tdm_word_entry *entry);

/* Writes the last line, where `with_end`, and all that is still held back. */
TDM_MUST_CHECK tdm_status tdm_word_writer_end(tdm_word_writer *writer, bool with_end);
void tdm_word_writer_deinit(tdm_word_writer *writer);

/* ---- reading --------------------------------------------------------------------------------- */

typedef struct tdm_word_reader tdm_word_reader;

/* `settings` NULL: neither a first nor a last line is expected. Else TDM_E_DATA where the file was
 * counted with others. */
TDM_MUST_CHECK tdm_status tdm_word_reader_open(const char *path, const char *settings,
                                               tdm_word_reader **out);
/* NULL is allowed. */
void tdm_word_reader_close(tdm_word_reader *reader);

/* The next word, valid until the next call; *ended behind the last one. TDM_E_DATA with file and
 * line for what is no such line, for words out of order, and for a file that lacks its end. */
TDM_MUST_CHECK tdm_status tdm_word_reader_next(tdm_word_reader *reader, tdm_word_entry *entry,
                                               bool *ended);

#endif

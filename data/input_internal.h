#ifndef TDM_DATA_INPUT_INTERNAL_H
#define TDM_DATA_INPUT_INTERNAL_H

#include "data/input.h"

/* A file that cannot be opened twice: its source and what was read of it to see the first line,
 * until the stream takes them. */
typedef struct tdm_once {
    tdm_source *source; /* NULL: the file is another one */
    char *head;
    size_t head_bytes;
} tdm_once;

struct tdm_input {
    tdm_record_format *format;
    bool owns_format;
    int32_t file_count;
    size_t file_capacity;
    tdm_input_file *files;
    bool seekable;
    bool weighted;
    int64_t block_bytes;
    int64_t block_count;
    size_t most_parts; /* of a block by arithmetic */
    int64_t stored_bytes;
    int64_t max_record_bytes;
    bool eager;
    const atomic_bool *cancel;
    _Atomic(int32_t) *block_lines; /* [block_count], -1 unknown; seekable inputs */
    tdm_once *once;                /* [file_count] */
    bool reads_once;               /* some file can be read only once, */
    bool used;                     /* and has been */
};

/* Opens every file once, the sources that can be read only once for good. */
TDM_MUST_CHECK tdm_status tdm_input_look_at_files(tdm_input *input,
                                                  const tdm_input_options *options);

/* Makes room for `bytes` of text and its padding, and sets text->text. */
TDM_MUST_CHECK tdm_status tdm_block_text_reserve(tdm_block_text *text, size_t bytes);

/* A block without text and parts. */
TDM_MUST_CHECK tdm_status tdm_block_text_begin(tdm_block_text *text, int64_t block);

/* A part that begins at text->size. */
TDM_MUST_CHECK tdm_status tdm_block_text_add_part(tdm_block_text *text, int32_t file,
                                                  int64_t first_line);

/* Sets the padding before and behind the text to zero. */
void tdm_block_text_pad(tdm_block_text *text);

/* Lines in a text, one without an end included. */
int64_t tdm_line_count(const char *text, size_t bytes);

#endif

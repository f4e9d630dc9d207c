#ifndef TDM_DATA_INPUT_INTERNAL_H
#define TDM_DATA_INPUT_INTERNAL_H

#include "data/input.h"

struct tdm_input {
    tdm_record_format *format;
    bool owns_format;
    int32_t file_count;
    size_t file_capacity;
    tdm_input_file *files;
    bool seekable;
    int64_t block_bytes;
    int64_t block_count;
    int64_t stored_bytes;
    int64_t max_record_bytes;
    bool eager;
    const atomic_bool *cancel;
    _Atomic(int32_t) *block_lines; /* [block_count], -1 unknown; seekable inputs */
    /* Standard input cannot be opened twice: the source and what was read of it to see the first
     * line, until the stream takes them. */
    tdm_source *stdin_source;
    char *stdin_head;
    size_t stdin_head_bytes;
    bool stdin_used;
};

/* Makes room for `bytes` of text and sets text->text; padding is zero. */
TDM_MUST_CHECK tdm_status tdm_block_text_reserve(tdm_block_text *text, size_t bytes);

/* Bytes of a UTF-8 byte order mark that the text begins with: 0 or 3. */
size_t tdm_byte_order_mark(const char *text, size_t bytes);

/* How much of an overlong record, of which `bytes` were read, is kept for the report. */
#define TDM_CUT_RECORD_BYTES ((int64_t)65536)
int64_t tdm_cut_bytes(int64_t bytes);

#endif

/* Records whose text the caller has in memory, as blocks for tdm_extract_block(). */
#ifndef TDM_DATA_INPUT_MEMORY_H
#define TDM_DATA_INPUT_MEMORY_H

#include "data/input.h"

typedef struct tdm_memory_input tdm_memory_input;

/* `format` is borrowed. A record of more than `max_record_bytes` is a bad one. */
TDM_MUST_CHECK tdm_status tdm_memory_input_create(tdm_record_format *format,
                                                  int64_t max_record_bytes, tdm_memory_input **out);
/* NULL is allowed. */
void tdm_memory_input_destroy(tdm_memory_input *memory);

/* The input that extractors are created on. It has one file, and no blocks of its own. */
tdm_input *tdm_memory_input_get(tdm_memory_input *memory);

/* Begins with a text, which is borrowed until the last block was taken. There is no header line:
 * columns are the format's own, unless it tells from the first line that some are missing. */
TDM_MUST_CHECK tdm_status tdm_memory_input_begin(tdm_memory_input *memory, const char *text,
                                                 size_t bytes);

/* The next block of whole lines, copied; *ended where none is left. TDM_E_DATA for a line that is
 * too long for any block, 4 GiB. */
TDM_MUST_CHECK tdm_status tdm_memory_input_next(tdm_memory_input *memory, tdm_block_text *text,
                                                bool *ended);

#endif

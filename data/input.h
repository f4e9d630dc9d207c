/* A list of input files, cut into blocks that end on record boundaries.
 *
 * Blocks of plain files are found by arithmetic: block k of a file holds the lines that begin in
 * bytes [k · B, (k + 1) · B). So they can be read in any order by any thread. Documents between
 * blank lines are kept together: block k begins with the first line that begins in these bytes and
 * is blank as far as they show; where there is none, unless the file ends in them, with the first
 * line that begins there; where there is none either, it is empty. It ends where the next one
 * begins. So a document of up to B bytes is never cut, and a longer one is cut at line ends.
 * Consecutive files of the same weight that have room in a block together share one.
 *
 * Compressed files and standard input are streams: their blocks are cut one after the other, at the
 * first line end at or behind B bytes, or at the first end of a document there, but no later than
 * at the first line end at or behind 2 · B bytes; what a file's end leaves room for, the next file
 * of the same weight fills. Where one file is a stream, the whole list is read in order. */
#ifndef TDM_DATA_INPUT_H
#define TDM_DATA_INPUT_H

#include "core/pool.h"
#include "data/record_format.h"
#include "data/source.h"

#define TDM_BLOCK_BYTES_MIN ((int64_t)16 << 10)
#define TDM_BLOCK_BYTES_MAX ((int64_t)4 << 20)

#define TDM_MAX_WEIGHT 1000.0

typedef struct tdm_input_file {
    char *path;
    int64_t bytes;       /* stored; 0 for standard input */
    int64_t modified_ns; /* with path and bytes, its identity */
    double weight;       /* how often an epoch has its blocks, on average */
    bool seekable;
    int64_t mark_bytes; /* of the byte order mark that it begins with: 0 or 3 */
    tdm_file_layout layout;
    int64_t first_block; /* seekable inputs only */
    int64_t block_count; /* 1 for each of the files that share a block */
} tdm_input_file;

typedef struct tdm_input tdm_input;

typedef struct tdm_input_options {
    const tdm_strings *paths;         /* files, globs, "-" */
    const double *weights;            /* [paths->count], in (0, TDM_MAX_WEIGHT]; NULL: all 1 */
    const tdm_format_options *format; /* where the format comes from the first file, or */
    tdm_record_format *saved_format;  /* the format of a run folder, borrowed */
    int64_t block_bytes;              /* 0: stored bytes / (lanes · 16), within the limits above */
    int lanes;
    int64_t max_record_bytes;
    tdm_pool *pool;            /* files are opened side by side on it; NULL: one after another */
    bool eager;                /* a stream's blocks are the whole lines that are there to be read */
    const atomic_bool *cancel; /* as tdm_source_open */
} tdm_input_options;

/* Expands globs, opens every file once and reads its first line. Missing files, a glob that matches
 * nothing, folders, and a list without a byte are errors. */
TDM_MUST_CHECK tdm_status tdm_input_open(const tdm_input_options *options, tdm_input **out);
/* NULL is allowed. */
void tdm_input_close(tdm_input *input);

const tdm_record_format *tdm_input_format(const tdm_input *input);
int32_t tdm_input_file_count(const tdm_input *input);
const tdm_input_file *tdm_input_file_get(const tdm_input *input, int32_t file);
bool tdm_input_seekable(const tdm_input *input);
/* True where some file has a weight that is not 1. */
bool tdm_input_weighted(const tdm_input *input);
/* True where standard input or a pipe is among the files: they have no length, and can be read only
 * once. */
bool tdm_input_is_stdin(const tdm_input *input);
int64_t tdm_input_block_bytes(const tdm_input *input);
int64_t tdm_input_max_record_bytes(const tdm_input *input);
int64_t tdm_input_block_count(const tdm_input *input); /* -1 for streams */
int64_t tdm_input_stored_bytes(const tdm_input *input);
/* That an epoch reads, on average. */
int64_t tdm_input_epoch_bytes(const tdm_input *input);
bool tdm_input_cancelled(const tdm_input *input);

/* What a block holds of one file. */
typedef struct tdm_block_part {
    int32_t file;
    uint32_t begin;     /* in the text */
    int64_t first_line; /* of the file, from 0; -1 where it is not known: in the first part only */
} tdm_block_part;

/* The text of a block. The buffers are kept and reused. */
typedef struct tdm_block_text {
    int64_t block;
    char *text; /* [size], with TDM_TEXT_PADDING readable bytes before and behind; of a line
                              beyond max_record_bytes as much as shows that it is */
    uint32_t size;
    tdm_block_part *parts; /* [part_count], at least one, in order; only a part's end ends its last
                              line where the file lacks the line end */
    size_t part_count, part_capacity;
    int64_t stored_bytes; /* that the block stands for */
    char *buffer;
    size_t capacity;
} tdm_block_text;

uint32_t tdm_block_part_end(const tdm_block_text *text, size_t part);

void tdm_block_text_deinit(tdm_block_text *text);

/* Makes room for a block whose last record ends soon behind it. */
TDM_MUST_CHECK tdm_status tdm_input_reserve_block(const tdm_input *input, tdm_block_text *text);

/* Of a seekable input: the file that a block begins in, and the bytes that it stands for. */
int32_t tdm_input_block_file(const tdm_input *input, int64_t block);
int64_t tdm_input_block_stored_bytes(const tdm_input *input, int64_t block);

/* Reads block `block` of a seekable input, from any thread. A file whose length is no longer what
 * it was is an error. */
TDM_MUST_CHECK tdm_status tdm_input_read_block(const tdm_input *input, int64_t block,
                                               tdm_block_text *text);

/* Notes how many lines begin in a block (seekable inputs; any thread), and answers how many lines
 * of its file come before a block, reading what has not been noted. */
void tdm_input_note_lines(tdm_input *input, int64_t block, int64_t lines);
TDM_MUST_CHECK tdm_status tdm_input_lines_before(tdm_input *input, int64_t block, int64_t *lines);

/* All blocks of any input in order, one pass. */
typedef struct tdm_input_stream tdm_input_stream;

TDM_MUST_CHECK tdm_status tdm_input_stream_open(tdm_input *input, tdm_input_stream **out);
/* *ended where no block is left. From one thread at a time. */
TDM_MUST_CHECK tdm_status tdm_input_stream_next(tdm_input_stream *stream, tdm_block_text *text,
                                                bool *ended);
/* NULL is allowed. */
void tdm_input_stream_close(tdm_input_stream *stream);

#endif

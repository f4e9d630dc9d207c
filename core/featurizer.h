/* A featurizer: what a family of tasks makes of records. The pipeline reads, orders and batches; it
 * knows no more of features or text than this table.
 *
 *   records --extract--> columns of a block (no seed, no epoch: what the cache keeps)
 *   blocks of a window --open_window--> rows of the window, in this epoch's order
 *   rows --assemble--> a batch --finish--> what saves the device time (distinct ids) */
#ifndef TDM_CORE_FEATURIZER_H
#define TDM_CORE_FEATURIZER_H

#include "core/batch.h"
#include "tandem/plugin.h"

#include <stdbool.h>

#define TDM_MAX_COLUMNS 8

typedef struct tdm_column {
    const char *name;
    tdm_dtype dtype;
    int32_t width; /* elements a row */
} tdm_column;

typedef struct tdm_columns_layout {
    int count;
    bool rows_are_pieces; /* of records, any number of each; else each row is made of one record,
                             which row_records tells */
    tdm_column columns[TDM_MAX_COLUMNS];
} tdm_columns_layout;

/* Bytes of a row, in one column and in all. */
size_t tdm_column_row_bytes(const tdm_column *column);
size_t tdm_columns_row_bytes(const tdm_columns_layout *layout);

/* The index of the column called `name`, or -1. */
int tdm_columns_find(const tdm_columns_layout *layout, const char *name);

/* What follows from a record that could not be used. */
typedef enum tdm_bad_kind {
    TDM_BAD_JUDGED = 0,  /* what data.on_bad_record and data.max_bad_records say */
    TDM_BAD_DROPPED = 1, /* it is told and kept like the others, and never ends the run */
    TDM_BAD_FATAL = 2,   /* it ends the run */
} tdm_bad_kind;

/* A record that could not be used. */
typedef struct tdm_bad_record {
    int64_t line;   /* from 0, counted from the first line of its file in the block */
    int64_t record; /* within the block, from 0, counting bad ones */
    int32_t file;
    int32_t column; /* -1: the whole record */
    tdm_bad_kind kind;
    char *reason;
    char *text; /* the record as it stood, at most TDM_BAD_RECORD_BYTES of it */
    size_t text_bytes;
} tdm_bad_record;

#define TDM_BAD_RECORD_BYTES 65536

/* What was extracted from one block of input. Buffers are kept and reused from block to block. */
typedef struct tdm_extract {
    int64_t block;        /* its number in the unpermuted list */
    int32_t file;         /* that it begins in; of others it holds the first line */
    int64_t stored_bytes; /* of the input that it stands for */
    int64_t first_line;   /* of that file, from 0; -1 where it is not known yet */
    int64_t lines;
    int32_t occurrence;      /* how often the epoch had the block before: set by the pipeline */
    int64_t records;         /* good and bad */
    int64_t encoding_errors; /* records with bytes that are not UTF-8, used or dropped */
    int64_t rows;
    size_t capacity;                /* rows that the columns have room for */
    void *columns[TDM_MAX_COLUMNS]; /* [rows, width] each */
    uint32_t *row_records;          /* [rows]: the record that row r was made of; not filled where
                                       rows are no records */
    size_t row_records_capacity;
    char *keys;         /* the cells that the extractor was told to keep, row after row, or where
                           rows are no records good record after good record */
    uint64_t *key_ends; /* [key_count]: where those of each end in keys */
    int64_t key_count;
    size_t keys_capacity, key_ends_capacity;
    tdm_bad_record *bad;
    size_t bad_count;
    size_t bad_capacity;
} tdm_extract;

/* The last word of the counter (core/rng.h) for draws about a block in an epoch. */
static inline uint32_t tdm_extract_counter(const tdm_extract *block, int64_t epoch)
{
    return (uint32_t)epoch | (uint32_t)block->occurrence << 16;
}

/* Consecutive blocks of a lane, whose rows are mixed. */
typedef struct tdm_window {
    int64_t epoch;
    int64_t number; /* within the lane and epoch */
    int block_count;
    tdm_extract **blocks;
    /* set by open_window */
    uint64_t seed; /* where assemble draws random numbers */
    int64_t rows;
    uint32_t *order;     /* [rows]: what row r of the window is */
    uint32_t *details;   /* what order refers to, where the featurizer has use for it */
    int64_t *token_ends; /* [rows]: tokens of rows 0 to r, where rows have tokens */
    size_t order_capacity, details_capacity, token_ends_capacity;
} tdm_window;

typedef struct tdm_featurizer tdm_featurizer;

/* All functions may be called from many threads at once. */
typedef struct tdm_featurizer_type {
    const char *name;

    /* Appends the rows that it makes of the records to out's columns, behind its out->rows rows,
     * and returns how many through *rows; out->rows stays as it is. Where rows are records, that is
     * one row for each record that it accepts, the columns have room for records->count more, and
     * row_records[i] gets the index within `records` of row i; else row_records is NULL, and it
     * makes room itself by tdm_extract_reserve(). Refused records are told to `reject`, in any
     * order. */
    tdm_status (*extract)(const tdm_featurizer *featurizer, const tdm_records *records,
                          tdm_extract *out, uint32_t *row_records, int64_t *rows,
                          void (*reject)(void *context, int64_t record, int32_t column,
                                         const char *reason),
                          void *context);

    /* Sets the window's rows, order and what else it needs. `shuffle` false keeps the order of the
     * input. */
    tdm_status (*open_window)(const tdm_featurizer *featurizer, uint64_t seed, bool shuffle,
                              tdm_window *window);

    /* Writes rows [first, first + count) of the window to rows [at, at + count) of the batch, and
     * their tokens from `token` on, where batches have a token budget. */
    void (*assemble)(const tdm_featurizer *featurizer, const tdm_window *window, int64_t first,
                     int64_t count, tdm_batch *batch, int64_t at, int64_t token);

    /* Work on a batch whose rows are all there, in finish_parts independent parts. */
    void (*finish)(const tdm_featurizer *featurizer, tdm_batch *batch, int part);

    /* NULL is allowed. */
    void (*destroy)(tdm_featurizer *featurizer);
} tdm_featurizer_type;

/* The first member of every featurizer's own struct. */
struct tdm_featurizer {
    const tdm_featurizer_type *type;
    tdm_columns_layout columns;
    tdm_batch_layout batch;
    int finish_parts;   /* 0: nothing to finish */
    uint64_t spec_hash; /* of all that extract depends on: part of the key of a cache */
};

/* NULL is allowed. */
void tdm_featurizer_destroy(tdm_featurizer *featurizer);

/* Bytes that a row takes in an extract, and where rows are records in the order of its window. */
int64_t tdm_extract_row_bytes(const tdm_columns_layout *layout);

/* Makes room in out's columns for `rows` rows in all. */
TDM_MUST_CHECK tdm_status tdm_extract_reserve(const tdm_columns_layout *layout, tdm_extract *out,
                                              size_t rows);
/* Forgets rows and bad records, keeps the buffers. */
void tdm_extract_clear(tdm_extract *extract);
void tdm_extract_deinit(tdm_extract *extract);
/* Frees what open_window made. */
void tdm_window_deinit(tdm_window *window);
void tdm_bad_records_free(tdm_bad_record *records, size_t count);

/* Where rows are records, window->order packs the block within the window above the row within the
 * block. */
#define TDM_ORDER_ROW_BITS 22

#endif

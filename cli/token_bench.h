/* A text in memory, tokenized in parts on a pool: what the benchmarks of tokenizing share. */
#ifndef TDM_CLI_TOKEN_BENCH_H
#define TDM_CLI_TOKEN_BENCH_H

#include "core/pool.h"
#include "text/word_ids.h"

#include <stdatomic.h>

/* A thread's. */
typedef struct tdm_token_bench_lane {
    tdm_word_ids *words;
    tdm_token_list tokens; /* of all its lines in this pass */
    tdm_error error;
} tdm_token_bench_lane;

typedef struct tdm_token_bench {
    tdm_pool *pool;              /* borrowed */
    tdm_token_bench_lane *lanes; /* [threads] */
    char *text;
    size_t bytes, capacity;
    size_t *parts; /* [part_count + 1]: where each begins */
    size_t part_count, parts_capacity;
    int64_t lines;
} tdm_token_bench;

/* On failure nothing is left to free. */
TDM_MUST_CHECK tdm_status tdm_token_bench_init(tdm_token_bench *bench, tdm_pool *pool);
void tdm_token_bench_deinit(tdm_token_bench *bench);

/* Appends a file's text. */
TDM_MUST_CHECK tdm_status tdm_token_bench_read(tdm_token_bench *bench, const char *path,
                                               const atomic_bool *cancel);

/* Cuts what was read into parts of whole lines. */
TDM_MUST_CHECK tdm_status tdm_token_bench_cut(tdm_token_bench *bench);

/* Makes what the threads from `first` on need of a tokenizer, which is borrowed until it is
 * closed. */
TDM_MUST_CHECK tdm_status tdm_token_bench_open(tdm_token_bench *bench,
                                               const tdm_tokenizer *tokenizer, int first, int end);
void tdm_token_bench_close(tdm_token_bench *bench);

/* Tokenizes all lines. `context` is a tdm_token_bench. */
TDM_MUST_CHECK tdm_status tdm_token_bench_pass(void *context);

/* Tokens of the last pass. */
int64_t tdm_token_bench_tokens(const tdm_token_bench *bench);

#endif

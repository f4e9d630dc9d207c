/* Vectors of texts: those of the hidden states, whatever batches and threads there are. */
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/pretrained_rig.h"
#include "trainer/embedder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { HIDDEN = 16, TEXTS = 120, LENGTH = 12 };

static tdm_encoder_run *open_run(int threads, int64_t batch_tokens)
{
    tdm_encoder_run *run;
    const tdm_encoder_run_options options = {
        .threads = threads, .batch_tokens = batch_tokens, .precision = TDM_PRECISION_FP32};
    ck_assert_ok(tdm_encoder_run_open(tdm_golden_folder("bert_pretraining"), &options, &run));
    return run;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static char text_store[TEXTS][64];
static tdm_text_input texts[TEXTS];

/* Of 0 to 14 words. */
static void make_texts(void)
{
    for (int i = 0; i < TEXTS; i++) {
        char *at = text_store[i];
        for (int w = 0; w < i * 7 % 15; w++)
            at += sprintf(at, "%c%s", 'a' + (i * w + i / 3) % 8, w % 4 == 3 ? "b " : " ");
        *at = '\0';
        texts[i] = (tdm_text_input){.text = text_store[i], .bytes = strlen(text_store[i])};
    }
}

typedef struct vector_list {
    int64_t count;
    float vectors[TEXTS][HIDDEN];
    int64_t fail_at; /* take fails behind so many; 0: never */
} vector_list;

static tdm_status keep_vectors(void *context, const float *vectors, int64_t count)
{
    vector_list *list = context;
    ck_assert_int_le(list->count + count, TEXTS);
    memcpy(list->vectors[list->count], vectors, (size_t)count * sizeof list->vectors[0]);
    list->count += count;
    TDM_FAIL_IF(list->fail_at > 0 && list->count >= list->fail_at, TDM_E_IO, "nobody takes them");
    return TDM_OK;
}

/* The texts, so many at a time. */
static tdm_status embed(tdm_encoder_run *run, tdm_pooling pooling, int64_t at_once,
                        vector_list *list, tdm_embedder_counts *counts)
{
    tdm_embedder *embedder;
    const tdm_embedder_options options = {
        .pooling = pooling, .take = keep_vectors, .context = list};
    list->count = 0;
    TDM_TRY(tdm_embedder_create(run, &options, &embedder));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < TEXTS && status == TDM_OK; i += at_once) {
        int64_t left = TEXTS - i;
        status = tdm_embedder_add(embedder, texts + i, left < at_once ? left : at_once);
    }
    if (status == TDM_OK)
        status = tdm_embedder_finish(embedder);
    *counts = tdm_embedder_counts_get(embedder);
    tdm_embedder_destroy(embedder);
    return status;
}

/* ---- vectors --------------------------------------------------------------------------------- */

/* What the model's states of the text alone come to. */
static void expect_vector(tdm_encoder_run *run, tdm_encoder *encoder, const tdm_text_input *text,
                          tdm_pooling pooling, const float *vector)
{
    const uint32_t *ids;
    int64_t count;
    tdm_matrix hidden;
    ck_assert_ok(tdm_encoder_ids(encoder, text->text, text->bytes, &ids, &count));
    if (count > LENGTH - 2)
        count = LENGTH - 2;
    tdm_sequence_batch_empty(&run->batch);
    uint32_t *to = tdm_sequence_batch_add(&run->batch, count + 2, count + 2);
    to[0] = 2;
    if (count > 0)
        memcpy(to + 1, ids, (size_t)count * sizeof *ids);
    to[count + 1] = 3;
    ck_assert_ok(tdm_encoder_run_forward(run));
    ck_assert_ok(tdm_encoder_run_output(run, "hidden", count + 2, &hidden));
    for (int64_t c = 0; c < HIDDEN; c++) {
        double sum = 0;
        int64_t rows = pooling == TDM_POOLING_CLS ? 1 : count + 2;
        for (int64_t t = 0; t < rows; t++)
            sum += (double)((const float *)hidden.data)[t * hidden.stride + c];
        ck_assert_double_eq_tol((double)vector[c], sum / (double)rows, 2e-6);
    }
}

static void check_vectors(const vector_list *list, tdm_pooling pooling)
{
    tdm_encoder *encoder;
    tdm_encoder_run *run = open_run(1, 0);
    ck_assert_ok(tdm_encoder_create(run->tokenizer, 1, &encoder));
    ck_assert_int_eq(list->count, TEXTS);
    for (int i = 0; i < TEXTS; i++)
        expect_vector(run, encoder, &texts[i], pooling, list->vectors[i]);
    tdm_encoder_destroy(encoder);
    tdm_encoder_run_close(run);
}

START_TEST(test_vectors_are_those_of_the_states)
{
    static vector_list list;
    tdm_embedder_counts counts;
    make_texts();
    for (int pooling = TDM_POOLING_MEAN; pooling <= TDM_POOLING_CLS; pooling++) {
        tdm_encoder_run *run = open_run(2, 256);
        ck_assert_ok(embed(run, (tdm_pooling)pooling, TEXTS, &list, &counts));
        check_vectors(&list, (tdm_pooling)pooling);
        tdm_encoder_run_close(run);
    }
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_batches_and_threads_do_not_matter)
{
    static const struct {
        int threads;
        int64_t tokens, at_once;
    } ways[] = {{1, 0, 1}, {3, 24, 7}, {2, 31, 120}, {1, 4000, 50}};
    static vector_list first, list;
    tdm_embedder_counts counts;
    make_texts();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        tdm_encoder_run *run = open_run(ways[i].threads, ways[i].tokens);
        ck_assert_ok(
            embed(run, TDM_POOLING_MEAN, ways[i].at_once, i == 0 ? &first : &list, &counts));
        ck_assert_int_eq(counts.texts, TEXTS);
        for (int t = 0; t < TEXTS && i > 0; t++) {
            for (int c = 0; c < HIDDEN; c++)
                ck_assert_float_eq_tol(list.vectors[t][c], first.vectors[t][c], 1e-6f);
        }
        tdm_encoder_run_close(run);
    }
    check_vectors(&first, TDM_POOLING_MEAN);
}
END_TEST

START_TEST(test_what_is_cut_off_is_counted)
{
    static const tdm_text_input some[] = {
        {"a b c d e f g h a b", 19, NULL, 0},   /* 12 tokens: as many as fit */
        {"a b c d e f g h a b c", 21, NULL, 0}, /* one more */
        {"", 0, NULL, 0},
        {"[MASK]", 6, NULL, 0}, /* text like any other: [ mask ] is three words */
    };
    static vector_list list;
    tdm_embedder *embedder;
    const tdm_embedder_options options = {.take = keep_vectors, .context = &list};
    tdm_encoder_run *run = open_run(2, 0);
    list.count = 0;
    ck_assert_ok(tdm_embedder_create(run, &options, &embedder));
    ck_assert_ok(tdm_embedder_add(embedder, some, 4));
    ck_assert_ok(tdm_embedder_finish(embedder));
    tdm_embedder_counts counts = tdm_embedder_counts_get(embedder);
    ck_assert_int_eq(counts.texts, 4);
    ck_assert_int_eq(counts.cut, 1);
    ck_assert_int_eq(counts.tokens, 12 + 12 + 2 + 5);
    ck_assert(memcmp(list.vectors[0], list.vectors[1], sizeof list.vectors[0]) == 0);
    /* It goes on behind a finish, and ends without one. */
    ck_assert_ok(tdm_embedder_add(embedder, some, 1));
    ck_assert_ok(tdm_embedder_finish(embedder));
    ck_assert_int_eq(list.count, 5);
    ck_assert(memcmp(list.vectors[0], list.vectors[4], sizeof list.vectors[0]) == 0);
    ck_assert_ok(tdm_embedder_add(embedder, some, 4));
    tdm_embedder_destroy(embedder);
    tdm_encoder_run_close(run);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

START_TEST(test_nobody_takes_the_vectors)
{
    static vector_list list;
    tdm_embedder_counts counts;
    make_texts();
    tdm_encoder_run *run = open_run(2, 48);
    list.fail_at = 20;
    ck_assert_fails(embed(run, TDM_POOLING_MEAN, 30, &list, &counts), TDM_E_IO,
                    "nobody takes them");
    list.fail_at = 0;
    ck_assert_ok(embed(run, TDM_POOLING_MEAN, 30, &list, &counts));
    check_vectors(&list, TDM_POOLING_MEAN);
    tdm_encoder_run_close(run);
}
END_TEST

static tdm_status open_and_embed(void)
{
    static vector_list list;
    tdm_encoder_run *run;
    tdm_embedder_counts counts;
    const tdm_encoder_run_options options = {.threads = 1, .precision = TDM_PRECISION_FP32};
    TDM_TRY(tdm_encoder_run_open(tdm_golden_folder("bert_pretraining"), &options, &run));
    tdm_status status = embed(run, TDM_POOLING_MEAN, 50, &list, &counts);
    tdm_encoder_run_close(run);
    return status;
}

START_TEST(test_out_of_memory)
{
    int failures = 0;
    make_texts();
    for (int64_t n = 1;; n++) {
        tdm_memory_fail_at(n, true);
        tdm_status status = open_and_embed();
        tdm_memory_fail_at(0, false);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
        if (status == TDM_OK)
            break;
        ck_assert_int_eq(status, TDM_E_NOMEM);
        failures++;
    }
    ck_assert_int_gt(failures, 100);
}
END_TEST

TDM_CHECK_MAIN(test_vectors_are_those_of_the_states, test_batches_and_threads_do_not_matter,
               test_what_is_cut_off_is_counted, test_nobody_takes_the_vectors, test_out_of_memory)

/* The pseudo-perplexity of texts, beside probabilities that are asked one by one. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"
#include "trainer/pseudo_perplexity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tdm_encoder_run *open_run(const char *name, tdm_text_head head, int threads,
                                 int64_t batch_tokens)
{
    tdm_encoder_run *run;
    const tdm_encoder_run_options options = {.head = head,
                                             .threads = threads,
                                             .batch_tokens = batch_tokens,
                                             .predictions = batch_tokens / 3,
                                             .precision = TDM_PRECISION_FP32};
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path(name), &options, &run));
    return run;
}

static tdm_status measure(tdm_encoder_run *run, const char *file,
                          const tdm_evaluate_options *options, tdm_pseudo_perplexity *out)
{
    char *names[] = {(char *)(uintptr_t)tdm_text_path(file)};
    const tdm_strings files = {.items = names, .count = 1};
    return tdm_measure_pseudo_perplexity(run, &files, options, out);
}

/* -ln of the probability of each token, summed. */
static double sum_of_losses(tdm_encoder_run *run, const uint32_t *ids, int64_t count)
{
    double sum = 0;
    for (int64_t token = 1; token <= count; token++) {
        tdm_matrix logits;
        tdm_sequence_batch_empty(&run->batch);
        uint32_t *to = tdm_sequence_batch_add(&run->batch, count + 2, count + 2);
        memcpy(to + 1, ids, (size_t)count * sizeof *ids);
        to[0] = (uint32_t)tdm_tokenizer_find(run->tokenizer, "[CLS]", 5);
        to[count + 1] = (uint32_t)tdm_tokenizer_find(run->tokenizer, "[SEP]", 5);
        to[token] = (uint32_t)tdm_tokenizer_find(run->tokenizer, "[MASK]", 6);
        tdm_sequence_batch_predict(&run->batch, token, 0);
        ck_assert_ok(tdm_encoder_run_forward(run));
        ck_assert_ok(tdm_encoder_run_output(run, "logits", 1, &logits));
        double all = 0;
        for (int64_t i = 0; i < logits.columns; i++)
            all += exp((double)((const float *)logits.data)[i]);
        sum -= log(exp((double)((const float *)logits.data)[ids[token - 1]]) / all);
    }
    return sum;
}

static const char *const documents[] = {"the river of light", "house", "stones and night .\na"};
#define DOCUMENTS 3

static void write_documents(void)
{
    tdm_text text = {0};
    for (int i = 0; i < DOCUMENTS; i++)
        ck_assert_ok(tdm_text_printf(&text, "%s\n\n", documents[i]));
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "few.txt", text.bytes));
    tdm_text_free(&text);
}

START_TEST(test_each_token_is_masked_alone)
{
    tdm_encoder *encoder;
    tdm_pseudo_perplexity found;
    const tdm_evaluate_options options = {0};
    double sum = 0;
    int64_t tokens = 0;
    tdm_text_runs_begin();
    write_documents();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", WITH("text.sequences=one_per_record")));
    tdm_encoder_run *filler = open_run("mlm", TDM_HEAD_FILL, 1, 0);
    ck_assert_ok(tdm_encoder_create(filler->tokenizer, 1, &encoder));
    for (int i = 0; i < DOCUMENTS; i++) {
        const uint32_t *ids;
        int64_t count;
        ck_assert_ok(tdm_encoder_ids(encoder, documents[i], strlen(documents[i]), &ids, &count));
        sum += sum_of_losses(filler, ids, count);
        tokens += count;
    }
    tdm_encoder_destroy(encoder);
    tdm_encoder_run_close(filler);
    tdm_encoder_run *run = open_run("mlm", TDM_HEAD_MASKED, 2, 64);
    ck_assert_ok(measure(run, "few.txt", &options, &found));
    ck_assert_int_eq(found.sequences, DOCUMENTS);
    ck_assert_int_eq(found.tokens, tokens);
    ck_assert_double_eq_tol(found.loss, sum / (double)tokens, 1e-5);
    ck_assert_double_eq_tol(found.perplexity, exp(found.loss), 1e-9);
    tdm_encoder_run_close(run);
    tdm_text_runs_end();
}
END_TEST

/* Threads and batches do not matter, masks of the recipe neither; pairs have two [SEP]. */
START_TEST(test_ways_to_the_same_number)
{
    static const char *const recipes[][3] = {
        {"text.sequences=full_sentences", "text.masking.unit=token", "text.batch=unpadded"},
        {"text.sequences=segment_pairs", "text.masking.rate=0.4", "text.batch=padded"},
    };
    const tdm_evaluate_options options = {0};
    tdm_text_runs_begin();
    for (int r = 0; r < 2; r++) {
        tdm_pseudo_perplexity first, other;
        const char *name = r == 0 ? "plain" : "pairs";
        ck_assert_ok(
            tdm_text_train(TDM_TASK_MLM, name, WITH(recipes[r][0], recipes[r][1], recipes[r][2])));
        tdm_encoder_run *run = open_run(name, TDM_HEAD_MASKED, 1, 4096);
        ck_assert_ok(measure(run, "corpus.txt", &options, &first));
        ck_assert_ok(measure(run, "corpus.txt", &options, &other));
        ck_assert(memcmp(&first.loss, &other.loss, sizeof first.loss) == 0);
        tdm_encoder_run_close(run);
        run = open_run(name, TDM_HEAD_MASKED, 3, 0);
        ck_assert_ok(measure(run, "corpus.txt", &options, &other));
        ck_assert_int_eq(other.tokens, first.tokens);
        ck_assert_int_gt(first.tokens, 500);
        ck_assert_double_eq_tol(other.loss, first.loss, 1e-6);
        ck_assert(first.accuracy >= 0 && first.accuracy < 1);
        tdm_encoder_run_close(run);
    }
    tdm_text_runs_end();
}
END_TEST

static atomic_bool stop;

static void stop_soon(void *context, int64_t tokens, double share)
{
    (void)context;
    ck_assert_int_ge(tokens, 0);
    ck_assert(share > 0 && share <= 1);
    atomic_store(&stop, true);
}

START_TEST(test_progress_and_stopping)
{
    tdm_pseudo_perplexity found;
    const tdm_evaluate_options options = {.stop = &stop, .progress = stop_soon};
    tdm_text_runs_begin();
    char *corpus = tdm_test_read(tdm_text_path("corpus.txt"));
    FILE *file = fopen(tdm_text_path("long.txt"), "we");
    for (int i = 0; i < 2000; i++)
        fputs(corpus, file);
    fclose(file);
    tdm_free(corpus);
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    tdm_encoder_run *run = open_run("mlm", TDM_HEAD_MASKED, 2, 4096);
    ck_assert_fails(measure(run, "long.txt", &options, &found), TDM_E_CANCELLED,
                    "the evaluation was stopped");
    tdm_encoder_run_close(run);
    tdm_text_runs_end();
}
END_TEST

START_TEST(test_files_that_cannot_be_measured)
{
    tdm_pseudo_perplexity found;
    const tdm_evaluate_options options = {0};
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", NULL));
    tdm_encoder_run *run = open_run("mlm", TDM_HEAD_MASKED, 1, 0);
    ck_assert_fails(measure(run, "none.txt", &options, &found), TDM_E_IO, "none.txt");
    tdm_free(tdm_data_rig_put_text(tdm_text_folder, "empty.txt", "\n"));
    ck_assert_ok(measure(run, "empty.txt", &options, &found));
    ck_assert_int_eq(found.tokens, 0);
    ck_assert(isnan(found.loss));
    tdm_encoder_run_close(run);
    tdm_text_runs_end();
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_each_token_is_masked_alone, test_ways_to_the_same_number,
               test_progress_and_stopping, test_files_that_cannot_be_measured)

/* Training encoders on text: what is learnt, what the bits depend on, what is written and
 * refused. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/same_run.h"
#include "tests/support/texts.h"
#include "trainer/checkpoint.h"
#include "trainer/device.h"
#include "trainer/evaluate.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OOM_STRIDE 97
#else
#define OOM_STRIDE 11
#endif

#define PAIRS  "text.sequences=segment_pairs"
#define PADDED "text.batch=padded"

static const char *eval_on(const char *path)
{
    static char text[400];
    snprintf(text, sizeof text, "data.eval=[%s]", path);
    return text;
}

/* The number `key` of the n-th line of metrics.jsonl of this event; NaN where there is none. */
static double line_value(const char *event, int n, const char *key)
{
    char *text = tdm_test_read(tdm_test_path(tdm_texts.run, "metrics.jsonl"));
    double value = NAN;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        json_t *json = json_loads(line, 0, NULL);
        bool is_event = strcmp(json_string_value(json_object_get(json, "event")), event) == 0;
        const json_t *number = json_object_get(json, key);
        if (is_event && n-- == 0 && json_is_number(number))
            value = json_number_value(number);
        json_decref(json);
    }
    tdm_free(text);
    return value;
}

static tdm_train_result train_ok(tdm_task_kind task, const char *overrides[])
{
    tdm_train_result result;
    ck_assert_ok(tdm_texts_train(task, overrides, &tdm_from_start, &result));
    return result;
}

static void remove_run(void)
{
    ck_assert_ok(tdm_folder_remove(tdm_texts.run));
}

/* ---- learning -------------------------------------------------------------------------------- */

static void assert_learns(tdm_task_kind task, const char *overrides[], double least)
{
    tdm_train_result result = train_ok(task, overrides);
    double first = line_value("train", 0, "loss");
    double last = tdm_metrics_result_get(&result.eval, "loss");
    ck_assert_msg(last < first - least, "loss %g, at first %g", last, first);
    remove_run();
}

START_TEST(the_loss_falls)
{
    tdm_texts_begin(1000);
    const char *steps = "train.max_steps=150", *eval = eval_on(tdm_texts.eval_corpus);
    assert_learns(TDM_TASK_MLM, WITH(steps, eval), 0.5);
    assert_learns(TDM_TASK_MLM, WITH(steps, eval, PADDED), 0.5);
    assert_learns(TDM_TASK_MLM, WITH(steps, eval, PAIRS), 0.5);
    assert_learns(TDM_TASK_MLM, WITH(steps, eval, PAIRS, "text.pairs=sop", "text.max_length=64"),
                  0.5);
    eval = eval_on(tdm_texts.eval_labels);
    assert_learns(TDM_TASK_CLASSIFY, WITH(steps, eval), 0.5);
    tdm_texts_end();
}
END_TEST

/* ---- bits ------------------------------------------------------------------------------------ */

static uint64_t train_bits(tdm_task_kind task, const char *overrides[])
{
    tdm_train_result result = train_ok(task, overrides);
    uint64_t hash = tdm_test_weights_hash(tdm_texts.run, result.step);
    remove_run();
    return hash;
}

#define SAME(task, bits, ...) ck_assert_uint_eq(bits, train_bits(task, WITH(__VA_ARGS__)))

static void assert_bits_depend_on_seed_alone(tdm_task_kind task, const char *way)
{
    const char *epochs = "train.epochs=2", *hold_out = "data.eval={hold_out: 5%}";
    uint64_t bits = train_bits(task, WITH(way, epochs, hold_out, "data.cache=off"));
    SAME(task, bits, way, epochs, hold_out, "train.threads=1");
    SAME(task, bits, way, epochs, hold_out, "train.threads=3", "train.eval_every_steps=9");
    SAME(task, bits, way, epochs, hold_out, "train.recompute=true", "checkpoint.every_steps=7");
    tdm_device_set_test_create(tdm_test_create_far);
    SAME(task, bits, way, epochs, hold_out);
    tdm_device_set_test_create(NULL);
    ck_assert_uint_ne(bits, train_bits(task, WITH(way, epochs, hold_out, "seed=4")));
}

START_TEST(bits_depend_on_seed_alone)
{
    tdm_texts_begin(300);
    assert_bits_depend_on_seed_alone(TDM_TASK_MLM, PAIRS);
    assert_bits_depend_on_seed_alone(TDM_TASK_MLM, PADDED);
    assert_bits_depend_on_seed_alone(TDM_TASK_MLM, "train.micro_batch_tokens=100");
    assert_bits_depend_on_seed_alone(TDM_TASK_CLASSIFY, "train.micro_batch_tokens=100");
    tdm_texts_end();
}
END_TEST

/* ---- parts ----------------------------------------------------------------------------------- */

#define STEPS 20

typedef struct step_numbers {
    double loss, tokens, predictions, rows;
} step_numbers;

static void train_steps(tdm_task_kind task, const char *way, const char *parts,
                        step_numbers steps[STEPS])
{
    train_ok(task, WITH(way, parts, "train.max_steps=20", "train.log_every_steps=1"));
    for (int i = 0; i < STEPS; i++)
        steps[i] = (step_numbers){line_value("train", i, "loss"), line_value("train", i, "tokens"),
                                  line_value("train", i, "predictions"),
                                  line_value("train", i, "scored_rows")};
    remove_run();
}

/* The first loss is of the same weights, so that other masks or dropout would show in it. */
static void assert_parts_change_nothing(tdm_task_kind task, const char *way, const char *parts)
{
    step_numbers whole[STEPS], cut[STEPS];
    train_steps(task, way, "train.micro_batch_tokens=0", whole);
    train_steps(task, way, parts, cut);
    ck_assert_double_eq_tol(whole[0].loss, cut[0].loss, 1e-6);
    for (int i = 0; i < STEPS; i++) {
        ck_assert_double_eq_tol(whole[i].loss, cut[i].loss, 1e-3);
        ck_assert_double_eq(whole[i].rows, cut[i].rows);
        if (task != TDM_TASK_MLM)
            continue;
        ck_assert_double_eq(whole[i].tokens, cut[i].tokens);
        ck_assert_double_eq(whole[i].predictions, cut[i].predictions);
    }
}

START_TEST(parts_of_a_batch_change_nothing_but_roundings)
{
    tdm_texts_begin(300);
    assert_parts_change_nothing(TDM_TASK_MLM, PAIRS, "train.micro_batch_tokens=32");
    assert_parts_change_nothing(TDM_TASK_MLM, PADDED, "train.micro_batch_tokens=100");
    assert_parts_change_nothing(TDM_TASK_MLM, "text.masking.count=bernoulli",
                                "train.micro_batch_tokens=200");
    assert_parts_change_nothing(TDM_TASK_CLASSIFY, "labels.type=classes",
                                "train.micro_batch_tokens=50");
    tdm_texts_end();
}
END_TEST

static tdm_train_plan plan_of(const char *overrides[])
{
    tdm_train_plan plan;
    tdm_recipe *recipe = tdm_texts_recipe(TDM_TASK_MLM, tdm_texts.folder, overrides);
    ck_assert_ok(tdm_train_plan_make(recipe, NULL, &plan));
    tdm_recipe_free(recipe);
    return plan;
}

START_TEST(parts_and_recomputing_save_memory)
{
    tdm_texts_begin(300);
    const char *layers = "model.layers=8", *tokens = "train.batch_tokens=8192";
    int64_t whole = plan_of(WITH(layers, tokens)).arena_bytes;
    int64_t cut = plan_of(WITH(layers, tokens, "train.micro_batch_tokens=2048")).arena_bytes;
    int64_t twice = plan_of(WITH(layers, tokens, "train.recompute=true")).arena_bytes;
    ck_assert_int_lt(cut, whole / 3);
    ck_assert_int_lt(twice, whole / 2);
    tdm_texts_end();
}
END_TEST

/* A step takes what lanes have, whose last ones are the fewest. */
static void check_dry_run(tdm_task_kind task, const char *way)
{
    const char **overrides = WITH(way, "train.epochs=2", "data.eval={hold_out: 20%}");
    tdm_recipe *recipe = tdm_texts_recipe(task, tdm_texts.folder, overrides);
    tdm_train_plan plan;
    tdm_text text = {0};
    int64_t before = tdm_memory_stats_get().live_bytes;
    ck_assert_ok(tdm_train_plan_make(recipe, NULL, &plan));
    ck_assert(!tdm_file_exists(tdm_texts.run));
    tdm_recipe_free(recipe);
    tdm_train_result result = train_ok(task, overrides);
    double rows = (double)result.rows / 2, steps = (double)result.step;
    double tokens = tdm_metrics_result_get(&result.train, "tokens") / 2;
    ck_assert_double_eq_tol((double)plan.rows, rows, 0.1 * rows);
    if (task == TDM_TASK_MLM)
        ck_assert_double_eq_tol((double)plan.tokens, tokens, 0.1 * tokens);
    ck_assert_double_eq_tol((double)plan.steps, steps, 0.2 * steps);
    ck_assert_double_eq_tol((double)plan.eval_rows, (double)result.eval.rows,
                            0.1 * (double)result.eval.rows);
    ck_assert_int_le(tdm_memory_stats_get().peak_bytes - before, plan.peak_bytes);
    ck_assert_ok(tdm_train_plan_text(&plan, &text));
    ck_assert_ptr_nonnull(strstr(text.bytes, "\ntokens        about "));
    tdm_text_free(&text);
    remove_run();
}

START_TEST(dry_runs_count_sequences_tokens_and_steps)
{
    tdm_texts_begin(1000);
    check_dry_run(TDM_TASK_MLM, "text.masking.unit=whole_word");
    check_dry_run(TDM_TASK_MLM, PAIRS);
    check_dry_run(TDM_TASK_MLM, PADDED);
    check_dry_run(TDM_TASK_CLASSIFY, "train.micro_batch_tokens=100");
    tdm_texts_end();
}
END_TEST

/* ---- precision ------------------------------------------------------------------------------- */

static bool has_bf16(void)
{
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_backend_properties properties;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_cpu_create(pool, &backend));
    ck_assert_ok(backend->type->properties(backend, &properties));
    tdm_backend_destroy(backend);
    tdm_pool_destroy(pool);
    return properties.bf16;
}

START_TEST(products_in_bfloat16)
{
    if (!has_bf16()) {
        tdm_test_skip("the CPU has no products in bfloat16");
        return;
    }
    tdm_texts_begin(1000);
    const char *half = "train.precision=bf16", *steps = "train.max_steps=150";
    assert_learns(TDM_TASK_MLM, WITH(half, steps, eval_on(tdm_texts.eval_corpus)), 0.5);
    uint64_t bits = train_bits(TDM_TASK_MLM, WITH(half, "train.epochs=1"));
    SAME(TDM_TASK_MLM, bits, half, "train.epochs=1", "train.threads=3", "train.recompute=true");
    SAME(TDM_TASK_MLM, bits, "train.precision=auto", "train.epochs=1", "train.threads=1");
    ck_assert_uint_ne(bits, train_bits(TDM_TASK_MLM, WITH("train.epochs=1")));
    tdm_texts_end();
}
END_TEST

START_TEST(a_device_without_bfloat16)
{
    tdm_texts_begin(100);
    tdm_device_set_test_create(tdm_test_create_far);
    ck_assert_fails(
        tdm_texts_train(TDM_TASK_MLM, WITH("train.precision=bf16"), &tdm_from_start, NULL),
        TDM_E_UNSUPPORTED, "far has no products in bfloat16");
    ck_assert(!tdm_file_exists(tdm_texts.run));
    uint64_t bits = train_bits(TDM_TASK_MLM, WITH("train.precision=auto"));
    ck_assert_uint_eq(bits, train_bits(TDM_TASK_MLM, NULL));
    tdm_device_set_test_create(NULL);
    tdm_texts_end();
}
END_TEST

/* ---- phases ---------------------------------------------------------------------------------- */

START_TEST(phases_have_their_own_sequences_and_steps)
{
    tdm_texts_begin(300);
    tdm_train_result result =
        train_ok(TDM_TASK_MLM, WITH("train.log_every_steps=1", eval_on(tdm_texts.eval_corpus),
                                    "train.phases=[{steps: 3, max_length: 16}, {steps: 2, "
                                    "batch_tokens: 1024}, {steps: 4, max_length: 64}]"));
    ck_assert_int_eq(result.step, 9);
    /* Steps are almost full, at most as long as a sequence a lane short of it. */
    for (int i = 0; i < 9; i++) {
        double most = i == 3 || i == 4 ? 1024 : 512, length = i < 3 ? 16 : i < 5 ? 32 : 64;
        ck_assert_double_le(line_value("train", i, "tokens"), most);
        ck_assert_double_gt(line_value("train", i, "tokens"), most - 4 * length);
        ck_assert_double_eq(line_value("train", i, "epoch"), i < 3 ? 0 : i < 5 ? 1 : 2);
    }
    /* A second of a phase is told once. */
    ck_assert_double_le(line_value("end", 0, "seconds"), result.seconds);
    remove_run();
    /* What all phases cut off counts. */
    const char *length = "text.max_length=64";
    double last = train_ok(TDM_TASK_MLM, WITH(PAIRS, length, "train.max_steps=1")).cut_share;
    remove_run();
    double all =
        train_ok(TDM_TASK_MLM,
                 WITH(PAIRS, length, "train.phases=[{steps: 3, max_length: 8}, {steps: 1}]"))
            .cut_share;
    ck_assert_double_gt(all, 1.5 * last + 0.01);
    tdm_texts_end();
}
END_TEST

/* As the last phase had it. */
START_TEST(a_run_with_phases_is_evaluated)
{
    tdm_texts_begin(300);
    char *paths[] = {tdm_texts.eval_corpus};
    const tdm_strings files = {.items = paths, .count = 1};
    tdm_train_result result =
        train_ok(TDM_TASK_MLM, WITH(eval_on(tdm_texts.eval_corpus),
                                    "train.phases=[{steps: 3, max_length: 16}, {steps: 2}]"));
    tdm_run *run;
    tdm_evaluation evaluation;
    const tdm_run_options options = {.use = TDM_USE_EVALUATION};
    const tdm_evaluate_options quietly = {.stop = NULL};
    ck_assert_ok(tdm_run_open(tdm_texts.run, &options, &run));
    ck_assert_ok(tdm_evaluate_run(run, &files, &quietly, &evaluation));
    tdm_run_close(run);
    ck_assert_int_eq(evaluation.metrics.rows, result.eval.rows);
    ck_assert_double_eq(tdm_metrics_result_get(&evaluation.metrics, "loss"),
                        tdm_metrics_result_get(&result.eval, "loss"));
    tdm_texts_end();
}
END_TEST

static void assert_refused(const char *text, const char *overrides[])
{
    ck_assert_fails(tdm_texts_train(TDM_TASK_MLM, overrides, &tdm_from_start, NULL), TDM_E_CONFIG,
                    text);
    ck_assert(!tdm_file_exists(tdm_texts.run));
}

START_TEST(phases_that_do_not_fit)
{
    tdm_texts_begin(10);
    assert_refused("they have 7 steps together, and train.max_steps is 8",
                   WITH("train.phases=[{steps: 3}, {steps: 4}]", "train.max_steps=8"));
    assert_refused("steps", WITH("train.phases=[{max_length: 16}]"));
    assert_refused(
        "model.max_positions: 40 is less than text.max_length, 64",
        WITH("train.phases=[{steps: 3}, {steps: 4, max_length: 64}]", "model.max_positions=40"));
    assert_refused("train.batch_tokens: 512 is 128 for each of data.lanes, 4, less than "
                   "text.max_length, 256",
                   WITH("train.phases=[{steps: 3}, {steps: 4, max_length: 256}]"));
    assert_refused("train.micro_batch_tokens: 20 is less than text.max_length, 32",
                   WITH("train.micro_batch_tokens=20"));
    assert_refused("train.phases[1].micro_batch_tokens: 40 is less than text.max_length, 64",
                   WITH("train.phases=[{steps: 3}, {steps: 4, max_length: 64, "
                        "micro_batch_tokens: 40}]"));
    assert_refused("model.attention_dropout: 8 attention heads of 32768 * 32768 weights are more "
                   "than 2^32",
                   WITH("text.max_length=32768", "train.batch_tokens=131072", "model.heads=8",
                        "model.max_positions=32768"));
    assert_refused("train.phases[0].batch_tokens: 64 is 16 for each of data.lanes, 4",
                   WITH("train.phases=[{steps: 3, batch_tokens: 64}, {steps: 4}]"));
    assert_refused("train.phases[0].max_length: expected 0 or a whole number from 8 on, not 1",
                   WITH("train.phases=[{steps: 3, max_length: 1}, {steps: 4}]"));
    assert_refused("train.epochs: train.phases say how long the training is",
                   WITH("train.phases=[{steps: 3}, {steps: 4, max_length: 16}]", "train.epochs=1"));
    assert_refused("train.phases: each reads its data anew",
                   WITH("train.phases=[{steps: 3}, {steps: 4}]", "data.train=[-]"));
    tdm_texts_end();
}
END_TEST

/* ---- little text ----------------------------------------------------------------------------- */

static void write_corpus(const char *text)
{
    ck_assert_ok(tdm_file_put(tdm_texts.corpus, text, strlen(text), NULL));
}

START_TEST(a_text_shorter_than_a_step)
{
    tdm_texts_begin(10);
    write_corpus("the river walks .\n");
    tdm_train_result result =
        train_ok(TDM_TASK_MLM, WITH("train.max_steps=3", "train.log_every_steps=1"));
    ck_assert_int_eq(result.step, 3);
    ck_assert_int_eq(result.rows, 3);
    ck_assert_double_eq(line_value("train", 0, "tokens"), 6);
    ck_assert_double_eq(line_value("train", 0, "predictions"), 1);
    ck_assert(isfinite(line_value("train", 2, "loss")));
    tdm_texts_end();
}
END_TEST

/* Epochs without a row, of which there would be no end. */
START_TEST(no_text_at_all)
{
    char weighted[400];
    const char *steps = "train.max_steps=3", *none = "corpus.txt: there is no row to train on";
    tdm_texts_begin(10);
    snprintf(weighted, sizeof weighted, "data.train=[{files: %s, weight: 0.3}]", tdm_texts.corpus);
    write_corpus(" \n\n\n");
    ck_assert_fails(tdm_texts_train(TDM_TASK_MLM, WITH(steps), &tdm_go_on, NULL), TDM_E_DATA, none);
    ck_assert_fails(tdm_texts_train(TDM_TASK_MLM, WITH(steps, weighted), &tdm_go_on, NULL),
                    TDM_E_DATA, none);
    /* One block, which most epochs leave out. */
    write_corpus("the river walks .\n");
    ck_assert_ok(tdm_texts_train(TDM_TASK_MLM, WITH(steps, weighted), &tdm_go_on, NULL));
    tdm_texts_end();
}
END_TEST

/* ---- bad records ----------------------------------------------------------------------------- */

/* Of 11 documents, whose sequences are many more, one is bad. */
START_TEST(bad_records_are_judged_by_documents)
{
    tdm_train_result result;
    char line[3000];
    tdm_texts_begin(10);
    memset(line, 'x', sizeof line);
    memcpy(line, "\n", 1);
    memcpy(line + sizeof line - 2, "\n", 2);
    tdm_test_append(tdm_texts.corpus, line);
    ck_assert_fails(
        tdm_texts_train(TDM_TASK_MLM, WITH("data.max_bad_records=9%"), &tdm_from_start, NULL),
        TDM_E_DATA, "1 of 11 records are bad (9.09%)");
    ck_assert_ok(
        tdm_texts_train(TDM_TASK_MLM, WITH("data.max_bad_records=10%"), &tdm_go_on, &result));
    ck_assert_int_eq(result.records, 11);
    remove_run();
    /* An epoch that a phase has cut off is judged at the end. */
    const char *phases = "train.phases=[{steps: 1, max_length: 16}, {steps: 2}]";
    ck_assert_fails(tdm_texts_train(TDM_TASK_MLM, WITH("data.max_bad_records=9%", phases),
                                    &tdm_from_start, NULL),
                    TDM_E_DATA, "1 of 11 records are bad (9.09%)");
    ck_assert_int_eq(result.bad_records, 1);
    ck_assert_int_gt(result.rows, 11);
    tdm_texts_end();
}
END_TEST

/* ---- evaluation ------------------------------------------------------------------------------ */

START_TEST(evaluations_give_the_same_numbers_twice)
{
    static const char *const hold_out = "data.eval={hold_out: 20%}";
    tdm_texts_begin(300);
    for (int i = 0; i < 4; i++) {
        tdm_task_kind task = i < 2 ? TDM_TASK_MLM : TDM_TASK_CLASSIFY;
        const char *eval = i % 2 == 0 ? hold_out
                           : i == 1   ? eval_on(tdm_texts.eval_corpus)
                                      : eval_on(tdm_texts.eval_labels);
        /* A rate of nothing: the evaluations are of the same weights. */
        tdm_train_result result =
            train_ok(task, WITH("train.max_steps=4", "train.eval_every_steps=1", eval,
                                "optimizer={learning_rate: 0, weight_decay: 0}"));
        ck_assert_int_gt(result.eval.rows, 20);
        for (int line = 1; line < 4; line++)
            ck_assert_double_eq(line_value("eval", line, "loss"), line_value("eval", 0, "loss"));
        remove_run();
    }
    tdm_texts_end();
}
END_TEST

START_TEST(the_best_is_kept)
{
    tdm_texts_begin(300);
    tdm_train_result result =
        train_ok(TDM_TASK_MLM, WITH("train.max_steps=40", "train.eval_every_steps=5",
                                    "optimizer.learning_rate=0.5", "data.eval={hold_out: 20%}"));
    int best = 0;
    for (int i = 1; i < 8; i++)
        best = line_value("eval", i, "loss") < line_value("eval", best, "loss") ? i : best;
    int64_t step;
    bool found;
    ck_assert_ok(tdm_checkpoint_best(tdm_texts.run, &step, &found));
    ck_assert(found);
    ck_assert_int_eq(step, 5 * (best + 1));
    ck_assert_int_eq(result.best_step, step);
    ck_assert_double_eq_tol(result.best_score, line_value("eval", best, "loss"), 1e-7);
    tdm_texts_end();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* What the pipeline refuses when it begins leaves no run behind that would have to be removed. */
START_TEST(a_training_that_cannot_begin_leaves_no_run)
{
    char data[700];
    tdm_texts_begin(100);
    char *text = tdm_test_read(tdm_texts.corpus);
    gzFile file = gzopen(tdm_test_path(tdm_texts.folder, "corpus.txt.gz"), "wb");
    ck_assert_int_eq(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
    ck_assert_int_eq(gzclose(file), Z_OK);
    tdm_free(text);
    snprintf(data, sizeof data, "data.train=[{files: %s.gz, weight: 2}]", tdm_texts.corpus);
    const char *off = "data.cache=off";
    ck_assert_fails(tdm_texts_train(TDM_TASK_MLM, WITH(data, off), &tdm_from_start, NULL),
                    TDM_E_CONFIG, "weights need files");
    train_ok(TDM_TASK_MLM, NULL);
    tdm_texts_end();
}
END_TEST

static tdm_status train_failing_at(int64_t n, tdm_task_kind task, const char *overrides[])
{
    int64_t live = tdm_memory_stats_get().live_bytes;
    tdm_recipe *recipe = tdm_texts_recipe(task, tdm_texts.folder, overrides);
    tdm_memory_fail_at(n, false);
    tdm_status status = tdm_train(recipe, &tdm_from_start, NULL);
    tdm_memory_fail_at(0, false);
    tdm_recipe_free(recipe);
    ck_assert_msg(tdm_memory_stats_get().live_bytes == live,
                  "allocation %lld: %lld bytes are left behind (%s)", (long long)n,
                  (long long)(tdm_memory_stats_get().live_bytes - live), tdm_error_message());
    return status;
}

/* Where memory ran out the training ends with that error, or does without what it was for; then it
 * goes on, or begins where the folder holds no run. */
static void test_out_of_memory(tdm_task_kind task, const char *overrides[])
{
    int64_t before = tdm_memory_stats_get().allocations, failures = 0;
    ck_assert_ok(train_failing_at(0, task, overrides));
    int64_t count = tdm_memory_stats_get().allocations - before;
    uint64_t bits = tdm_test_weights_hash(tdm_texts.run, 6);
    remove_run();
    for (int64_t n = 1; n <= count; n += OOM_STRIDE) {
        tdm_status status = train_failing_at(n, task, overrides);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: status %d (%s)",
                      (long long)n, (int)status, tdm_error_message());
        failures += status == TDM_E_NOMEM;
        bool is_run = tdm_file_exists(tdm_test_path(tdm_texts.run, "recipe.yaml"));
        ck_assert_ok(tdm_texts_train(task, overrides, is_run ? &tdm_go_on : &tdm_from_start, NULL));
        ck_assert_uint_eq(bits, tdm_test_weights_hash(tdm_texts.run, 6));
        remove_run();
    }
    ck_assert_int_gt(failures, count / OOM_STRIDE / 3);
}

START_TEST(out_of_memory)
{
    tdm_texts_begin(60);
    test_out_of_memory(TDM_TASK_MLM, WITH("train.threads=1", "data.eval={hold_out: 20%}",
                                          "train.phases=[{steps: 2, max_length: 16}, {steps: 4}]",
                                          "checkpoint.every_steps=1"));
    test_out_of_memory(TDM_TASK_CLASSIFY,
                       WITH("train.threads=1", "data.eval={hold_out: 20%}", "labels.classes=auto",
                            "train.max_steps=6", "train.micro_batch_tokens=100"));
    tdm_texts_end();
}
END_TEST

TDM_CHECK_MAIN(the_loss_falls, bits_depend_on_seed_alone,
               parts_of_a_batch_change_nothing_but_roundings, parts_and_recomputing_save_memory,
               dry_runs_count_sequences_tokens_and_steps, products_in_bfloat16,
               a_device_without_bfloat16, phases_have_their_own_sequences_and_steps,
               a_run_with_phases_is_evaluated, phases_that_do_not_fit, a_text_shorter_than_a_step,
               bad_records_are_judged_by_documents, evaluations_give_the_same_numbers_twice,
               the_best_is_kept, no_text_at_all, a_training_that_cannot_begin_leaves_no_run,
               out_of_memory)

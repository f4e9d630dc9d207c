/* Encoders that are opened to answer: their outputs beside Transformers', and guesses for masks.
 * The references are made by tests/golden/make_interchange_golden.py. */
#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/golden.h"
#include "tests/support/pretrained_rig.h"
#include "tests/support/text_runs.h"
#include "trainer/device.h"
#include "trainer/fill_mask.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tdm_encoder_run *open_run(const char *path, tdm_text_head head, int64_t batch_tokens)
{
    tdm_encoder_run *run;
    const tdm_encoder_run_options options = {.head = head,
                                             .threads = 2,
                                             .max_length = 12,
                                             .batch_tokens = batch_tokens,
                                             .predictions = batch_tokens,
                                             .precision = TDM_PRECISION_FP32};
    ck_assert_ok(tdm_encoder_run_open(path, &options, &run));
    return run;
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* A CPU whose memory the host may not look at. */
static tdm_backend_type far_type;

static tdm_status far_properties(tdm_backend *backend, tdm_backend_properties *out)
{
    (void)backend;
    *out = (tdm_backend_properties){.name = "far"};
    return TDM_OK;
}

static tdm_status create_far(tdm_pool *pool, tdm_backend **out)
{
    TDM_TRY(tdm_cpu_create_deferred(pool, out));
    far_type = *(*out)->type;
    far_type.properties = far_properties;
    (*out)->type = &far_type;
    return TDM_OK;
}

/* All sequences of the reference, every token to be predicted. */
static int64_t add_golden(tdm_encoder_run *run, const tdm_golden *golden)
{
    int64_t tokens, ends;
    const uint32_t *ids = tdm_golden_get(golden, "batch.ids", TDM_U32, &tokens);
    const uint32_t *types = tdm_golden_get(golden, "batch.types", TDM_U32, &tokens);
    const int32_t *begins = tdm_golden_get(golden, "batch.cu_seqlens", TDM_I32, &ends);
    for (int64_t s = 0; s + 1 < ends; s++) {
        int64_t length = begins[s + 1] - begins[s], second = 0;
        while (second < length && types[begins[s] + second] == 0)
            second++;
        ck_assert(tdm_sequence_batch_has_room(&run->batch, length, 0));
        memcpy(tdm_sequence_batch_add(&run->batch, length, second), ids + begins[s],
               (size_t)length * sizeof *ids);
        for (int64_t t = 0; t < length && run->batch.max_predictions > 0; t++)
            tdm_sequence_batch_predict(&run->batch, t, 0);
    }
    return tokens;
}

static void check_output(const char *folder, tdm_text_head head, const char *output)
{
    char path[128];
    tdm_matrix found;
    int64_t elements;
    snprintf(path, sizeof path, "interchange/%s/answers.safetensors", folder);
    tdm_golden *golden = tdm_golden_open(path);
    tdm_encoder_run *run = open_run(tdm_golden_folder(folder), head, 64);
    int64_t tokens = add_golden(run, golden);
    ck_assert_ok(tdm_encoder_run_forward(run));
    ck_assert_ok(tdm_encoder_run_output(run, output, tokens, &found));
    const float *reference = tdm_golden_get(golden, output, TDM_F32, &elements);
    ck_assert_int_eq(found.rows * found.columns, elements);
    for (int64_t r = 0; r < found.rows; r++) {
        for (int64_t c = 0; c < found.columns; c++)
            ck_assert_float_eq_tol(((const float *)found.data)[r * found.stride + c],
                                   reference[r * found.columns + c],
                                   head == TDM_HEAD_FILL ? 1e-4f : 1e-5f);
    }
    tdm_encoder_run_close(run);
    tdm_golden_close(golden);
}

static void check_all_outputs(void)
{
    static const char *const names[] = {"bert_pretraining", "bert_masked", "megatron_masked",
                                        "modern_masked"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        check_output(names[i], TDM_HEAD_NONE, "hidden");
        check_output(names[i], TDM_HEAD_FILL, "logits");
    }
    check_output("bert_classes", TDM_HEAD_NONE, "hidden");
    check_output("bert_tokens", TDM_HEAD_NONE, "hidden");
}

START_TEST(test_outputs_are_those_of_transformers)
{
    check_all_outputs();
    tdm_device_set_test_create(create_far);
    check_all_outputs();
    tdm_device_set_test_create(NULL);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

/* ---- guesses --------------------------------------------------------------------------------- */

#define MOST_ANSWERS 64
#define TOP          4

typedef struct answer_list {
    int count;
    struct {
        int64_t masks;
        tdm_mask_guess guesses[3][TOP];
    } items[MOST_ANSWERS];
} answer_list;

static tdm_status keep_answer(void *context, const tdm_mask_answer *answer)
{
    answer_list *list = context;
    ck_assert_int_le(answer->masks, 3);
    ck_assert_int_eq(answer->top, TOP);
    list->items[list->count].masks = answer->masks;
    memcpy(list->items[list->count].guesses, answer->guesses,
           (size_t)answer->masks * sizeof list->items[0].guesses[0]);
    list->count++;
    return TDM_OK;
}

static tdm_status fill(tdm_encoder_run *run, const char *const *texts, int64_t count,
                       answer_list *answers, int64_t *failed)
{
    tdm_mask_filler *filler;
    tdm_text_input inputs[MOST_ANSWERS];
    for (int64_t i = 0; i < count; i++)
        inputs[i] = (tdm_text_input){.text = texts[i], .bytes = strlen(texts[i])};
    answers->count = 0;
    TDM_TRY(tdm_mask_filler_create(run, TOP, &filler));
    tdm_status status = tdm_mask_filler_fill(filler, inputs, count, keep_answer, answers, failed);
    tdm_mask_filler_destroy(filler);
    return status;
}

/* What the model says of one token, of all tokens. */
static double probability_of(tdm_encoder_run *run, const uint32_t *ids, int64_t length,
                             int64_t token, uint32_t id)
{
    tdm_matrix logits;
    tdm_sequence_batch_empty(&run->batch);
    memcpy(tdm_sequence_batch_add(&run->batch, length, length), ids, (size_t)length * sizeof *ids);
    tdm_sequence_batch_predict(&run->batch, token, 0);
    ck_assert_ok(tdm_encoder_run_forward(run));
    ck_assert_ok(tdm_encoder_run_output(run, "logits", 1, &logits));
    const float *row = logits.data;
    double sum = 0;
    for (int64_t i = 0; i < logits.columns; i++)
        sum += exp((double)row[i]);
    tdm_sequence_batch_empty(&run->batch);
    return exp((double)row[id]) / sum;
}

/* The vocabulary is [PAD] [UNK] [CLS] [SEP] [MASK], a to h (5 to 12), ... */
START_TEST(test_guesses_are_the_largest_probabilities)
{
    static const char *const text[] = {"a [MASK] b[MASK]"};
    static const uint32_t ids[] = {2, 5, 4, 6, 4, 3};
    static const int64_t places[] = {2, 4};
    static answer_list answers;
    int64_t failed;
    tdm_encoder_run *run = open_run(tdm_golden_folder("bert_masked"), TDM_HEAD_FILL, 64);
    ck_assert_ok(fill(run, text, 1, &answers, &failed));
    ck_assert_int_eq(answers.count, 1);
    ck_assert_int_eq(answers.items[0].masks, 2);
    for (int m = 0; m < 2; m++) {
        const tdm_mask_guess *guesses = answers.items[0].guesses[m];
        int larger = 0;
        for (uint32_t id = 0; id < 26; id++)
            larger += probability_of(run, ids, 6, places[m], id) >
                      (double)guesses[TOP - 1].probability + 1e-7;
        ck_assert_int_eq(larger, TOP - 1);
        for (int i = 0; i < TOP; i++) {
            ck_assert_double_eq_tol((double)guesses[i].probability,
                                    probability_of(run, ids, 6, places[m], guesses[i].id), 1e-6);
            ck_assert(i == 0 || guesses[i].probability <= guesses[i - 1].probability);
        }
    }
    tdm_encoder_run_close(run);
}
END_TEST

/* Whatever the batches are, answers are the same and in order. */
START_TEST(test_guesses_of_many_texts)
{
    static const char *const kinds[] = {"[MASK] a", "a b c d [MASK] e", "h [MASK] [MASK] [MASK] g",
                                        "[MASK]"};
    static answer_list together, alone;
    const char *texts[MOST_ANSWERS];
    int64_t failed;
    for (int i = 0; i < MOST_ANSWERS; i++)
        texts[i] = kinds[i * 7 / 5 % 4];
    tdm_encoder_run *run = open_run(tdm_golden_folder("megatron_masked"), TDM_HEAD_FILL, 30);
    ck_assert_ok(fill(run, texts, MOST_ANSWERS, &together, &failed));
    ck_assert_int_eq(together.count, MOST_ANSWERS);
    for (int i = 0; i < MOST_ANSWERS; i++) {
        ck_assert_ok(fill(run, &texts[i], 1, &alone, &failed));
        ck_assert_int_eq(together.items[i].masks, alone.items[0].masks);
        for (int64_t m = 0; m < alone.items[0].masks; m++) {
            for (int g = 0; g < TOP; g++) {
                const tdm_mask_guess *a = &together.items[i].guesses[m][g];
                const tdm_mask_guess *b = &alone.items[0].guesses[m][g];
                ck_assert_uint_eq(a->id, b->id);
                ck_assert_float_eq_tol(a->probability, b->probability, 1e-6f);
            }
        }
    }
    ck_assert_ok(fill(run, texts, 0, &alone, &failed));
    ck_assert_int_eq(alone.count, 0);
    tdm_encoder_run_close(run);
}
END_TEST

START_TEST(test_texts_that_cannot_be_filled)
{
    static const char *const unmasked[] = {"a [MASK]", "b [MASK]", "a [mask] b", "c [MASK]"};
    static const char *const long_text[] = {"a b c d a b c d a b [MASK]"};
    static answer_list answers;
    int64_t failed;
    tdm_encoder_run *run = open_run(tdm_golden_folder("bert_masked"), TDM_HEAD_FILL, 64);
    ck_assert_fails(fill(run, unmasked, 4, &answers, &failed), TDM_E_DATA,
                    "there is no [MASK] in the text");
    ck_assert_int_eq(failed, 2);
    ck_assert_int_eq(answers.count, 2); /* what came before is answered */
    ck_assert_fails(fill(run, long_text, 1, &answers, &failed), TDM_E_DATA,
                    "the text has 13 tokens, and the model takes 12");
    ck_assert_int_eq(failed, 0);
    tdm_encoder_run_close(run);
}
END_TEST

/* ---- opening --------------------------------------------------------------------------------- */

START_TEST(test_lengths_and_precision)
{
    tdm_encoder_run *run;
    tdm_backend_properties properties;
    tdm_encoder_run_options options = {.head = TDM_HEAD_NONE, .threads = 1};
    ck_assert_ok(tdm_encoder_run_open(tdm_golden_folder("bert_masked"), &options, &run));
    ck_assert_int_eq(run->max_length, 12);
    ck_assert_ok(run->backend->type->properties(run->backend, &properties));
    ck_assert(run->bf16 == properties.bf16);
    tdm_encoder_run_close(run);
    options.max_length = 13;
    ck_assert_fails(tdm_encoder_run_open(tdm_golden_folder("bert_masked"), &options, &run),
                    TDM_E_CONFIG, "the model has 12 positions");
    options.precision = TDM_PRECISION_FP32;
    ck_assert_ok(tdm_encoder_run_open(tdm_golden_folder("modern_masked"), &options, &run));
    ck_assert_int_eq(run->max_length, 13);
    ck_assert(!run->bf16);
    tdm_encoder_run_close(run);
    options.max_length = 2;
    ck_assert_fails(tdm_encoder_run_open(tdm_golden_folder("modern_masked"), &options, &run),
                    TDM_E_CONFIG, "sequences of 2 tokens hold no text");
    options.max_length = 0;
    ck_assert_ok(tdm_encoder_run_open(tdm_golden_folder("modern_masked"), &options, &run));
    ck_assert_int_eq(run->max_length, 512);
    tdm_encoder_run_close(run);
    options.precision = TDM_PRECISION_BF16;
    tdm_device_set_test_create(create_far);
    ck_assert_fails(tdm_encoder_run_open(tdm_golden_folder("bert_masked"), &options, &run),
                    TDM_E_UNSUPPORTED, "far has no products in bfloat16");
    tdm_device_set_test_create(NULL);
}
END_TEST

START_TEST(test_runs)
{
    tdm_encoder_run *run;
    tdm_encoder_run_options options = {.head = TDM_HEAD_FILL, .threads = 1};
    tdm_text_runs_begin();
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "mlm", WITH("checkpoint.every_steps=2")));
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, "classes", WITH(TINY_MODEL)));
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path("mlm"), &options, &run));
    ck_assert_int_eq(run->source.step, 4);
    ck_assert_int_eq(run->max_length, 32);
    ck_assert_int_eq(run->hidden, 16);
    tdm_encoder_run_close(run);
    options.checkpoint = "2";
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path("mlm"), &options, &run));
    ck_assert_int_eq(run->source.step, 2);
    tdm_encoder_run_close(run);
    options.checkpoint = "3";
    ck_assert_fails(tdm_encoder_run_open(tdm_text_path("mlm"), &options, &run), TDM_E_STATE,
                    "has no checkpoint of step 3");
    options.checkpoint = NULL;
    ck_assert_fails(tdm_encoder_run_open(tdm_text_path("classes"), &options, &run), TDM_E_FORMAT,
                    "has no values for masked.dense.weight");
    options.head = TDM_HEAD_NONE;
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path("classes"), &options, &run));
    tdm_encoder_run_close(run);
    ck_assert_fails(tdm_encoder_run_open(tdm_text_path("nowhere"), &options, &run), TDM_E_STATE,
                    "nowhere: holds neither a run");
    /* That of the checkpoint's phase. */
    ck_assert_ok(tdm_text_train(TDM_TASK_MLM, "phases",
                                WITH("train.max_steps=0", "checkpoint.every_steps=1",
                                     "checkpoint.keep_last=4",
                                     "train.phases=[{steps: 2, max_length: 16}, {steps: 2}]")));
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path("phases"), &options, &run));
    ck_assert_int_eq(run->max_length, 32);
    tdm_encoder_run_close(run);
    options.checkpoint = "1";
    ck_assert_ok(tdm_encoder_run_open(tdm_text_path("phases"), &options, &run));
    ck_assert_int_eq(run->max_length, 16);
    tdm_encoder_run_close(run);
    tdm_text_runs_end();
}
END_TEST

TDM_CHECK_MAIN(test_outputs_are_those_of_transformers, test_guesses_are_the_largest_probabilities,
               test_guesses_of_many_texts, test_texts_that_cannot_be_filled,
               test_lengths_and_precision, test_runs)

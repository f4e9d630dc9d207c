/* Recipes of text: their sections, defaults and checks. */
#include "core/memory.h"
#include "models/encoder.h"
#include "tests/support/check_main.h"
#include "trainer/recipe.h"

#include <string.h>

static const char minimal[] = "task: mlm\n"
                              "data: {train: a.txt}\n"
                              "text: {tokenizer: vocab.txt}\n"
                              "model: {type: bert}\n";

static tdm_status parse(const char *text, const char *override, tdm_recipe **out)
{
    const tdm_recipe_arguments arguments = {.overrides = &override,
                                            .override_count = override != NULL};
    return tdm_recipe_parse(text, strlen(text), "recipes/bert/small.yaml", &arguments, out);
}

static tdm_recipe *parse_good(const char *text, const char *override)
{
    tdm_recipe *recipe;
    ck_assert_ok(parse(text, override, &recipe));
    return recipe;
}

static void assert_bad(const char *override, const char *message)
{
    tdm_recipe *recipe;
    ck_assert_fails(parse(minimal, override, &recipe), TDM_E_CONFIG, message);
    ck_assert_ptr_null(recipe);
}

START_TEST(test_defaults)
{
    tdm_recipe *recipe = parse_good(minimal, NULL);
    const tdm_text_options *text = &recipe->text;
    const tdm_bert_options *model = recipe->model_options;
    ck_assert_int_eq(recipe->task, TDM_TASK_MLM);
    ck_assert_ptr_eq(tdm_record_formats[recipe->data.format], &tdm_format_text);
    ck_assert_int_eq(recipe->data.documents, TDM_DOCUMENTS_BLANK_LINE);
    ck_assert_str_eq(text->tokenizer, "vocab.txt");
    ck_assert_int_eq(text->max_length, 128);
    ck_assert_int_eq(recipe->train.batch_tokens, 16384);
    ck_assert_int_eq(recipe->optimizer.dense.type, TDM_UPDATE_ADAMW);
    ck_assert_double_eq(recipe->optimizer.dense.eps, 1e-6);
    ck_assert_ptr_eq(recipe->model_type, &tdm_bert);
    ck_assert_int_eq(model->layers, 12);
    ck_assert_int_eq(model->hidden, 768);
    ck_assert_int_eq(model->intermediate, 0);
    tdm_sequence_options sequences = tdm_text_sequence_options(text);
    ck_assert_int_eq(sequences.mode, TDM_FULL_SENTENCES);
    ck_assert(sequences.cross_documents);
    ck_assert_double_eq(sequences.short_probability, 0);
    tdm_masking_options masking = tdm_text_masking_options(text);
    ck_assert_double_eq(masking.rate, 0.15);
    ck_assert_double_eq(masking.replace[TDM_MASK_BY_MASK], 0.8);
    ck_assert_double_eq(masking.replace[TDM_MASK_KEPT], 0.1);
    ck_assert_int_eq(masking.unit, TDM_MASK_TOKEN);
    ck_assert(masking.at_least_one && !masking.mask_unk);
    tdm_recipe_free(recipe);
}
END_TEST

static const char full[] =
    "task: mlm\n"
    "seed: 7\n"
    "data: {format: jsonl, field: body, train: [a.jsonl.gz], eval: {hold_out: 0.5%}, lanes: 4}\n"
    "text:\n"
    "  tokenizer: tokenizer.json\n"
    "  lowercase: false\n"
    "  strip_accents: true\n"
    "  unicode: google\n"
    "  max_length: 512\n"
    "  sequences: segment_pairs\n"
    "  pairs: sop\n"
    "  short_seq_prob: 0.1\n"
    "  batch: padded\n"
    "  masking: {rate: 0.3, unit: whole_word, replace: [1, 0, 0], count: bernoulli,\n"
    "            max_predictions: 80, mask_unk: true, at_least_one: false}\n"
    "model: {type: bert, layers: 4, hidden: 256, heads: 4, intermediate: 1000, dropout: 0.2}\n"
    "optimizer:\n"
    "  type: lamb\n"
    "  schedule: {type: wsd, warmup_share: 0.1}\n"
    "train: {max_steps: 100000, batch_tokens: 4096, threads: 2}\n"
    "cache: {dir: /tmp/c}\n"
    "output: {dir: runs/x}\n";

START_TEST(test_emitted_recipes_load)
{
    tdm_text first = {0}, second = {0};
    tdm_recipe *recipe = parse_good(full, NULL);
    ck_assert_ok(tdm_recipe_emit(recipe, &first));
    tdm_recipe *again = parse_good(first.bytes, NULL);
    ck_assert_ok(tdm_recipe_emit(again, &second));
    ck_assert_str_eq(first.bytes, second.bytes);
    ck_assert_ptr_nonnull(strstr(first.bytes, "  lowercase: false\n"));
    ck_assert_ptr_nonnull(strstr(first.bytes, "    replace: [1, 0, 0]\n"));
    ck_assert_ptr_nonnull(strstr(first.bytes, "  type: lamb\n"));
    ck_assert_ptr_nonnull(strstr(first.bytes, "    decay_share: 0.1\n"));
    ck_assert_ptr_null(strstr(first.bytes, "batch_size"));
    tdm_masking_options masking = tdm_text_masking_options(&again->text);
    ck_assert_int_eq(masking.count, TDM_MASK_BERNOULLI);
    ck_assert_int_eq(masking.max_predictions, 80);
    ck_assert(masking.mask_unk && !masking.at_least_one);
    ck_assert_int_eq(tdm_text_sequence_options(&again->text).pairs, TDM_SENTENCE_ORDER);
    ck_assert_int_eq(((const tdm_bert_options *)again->model_options)->intermediate, 1000);
    tdm_text_free(&first);
    tdm_text_free(&second);
    tdm_recipe_free(recipe);
    tdm_recipe_free(again);
}
END_TEST

START_TEST(test_what_is_refused)
{
    assert_bad("train.batch_size=4096", "train.batch_size: unknown key");
    assert_bad("features.label=x", "features: unknown key");
    assert_bad("text.max_lenght=128", "did you mean max_length?");
    assert_bad("text.masking.unit=word", "expected one of token, whole_word, span, not word");
    assert_bad("text.masking.replace=[0.8, 0.1]", "text.masking.replace: expected three shares");
    assert_bad("text.masking={unit: span, count: bernoulli}", "text.masking.count: spans are");
    assert_bad("data.format=csv", "data.format: mlm reads documents: take text or jsonl");
    assert_bad("train.batch_tokens=1024",
               "train.batch_tokens: 1024 is 64 for each of data.lanes, 16, less than "
               "text.max_length, 128: 2048 would be enough");
    assert_bad("model.hidden=100", "model.hidden: 100 is not a multiple of model.heads, 12");
    assert_bad("model.type=deepfm", "expected one of bert, not deepfm");
    assert_bad("model.mlp=1", "model.mlp: unknown key");
    assert_bad("optimizer.dense.type=adam", "optimizer.dense: unknown key");
    assert_bad("optimizer.momentum=0.9", "optimizer.momentum: adamw has none");
    tdm_recipe *recipe;
    static const char ctr[] = "model: {type: deepfm, mlp: {units: [8]}}\ntext: {max_length: 8}\n";
    ck_assert_fails(parse(ctr, NULL, &recipe), TDM_E_CONFIG, "small.yaml:2: text: unknown key");
    static const char tokens[] = "model: {type: deepfm}\ntrain: {batch_tokens: 8}\n";
    ck_assert_fails(parse(tokens, NULL, &recipe), TDM_E_CONFIG, "train.batch_tokens: unknown key");
}
END_TEST

START_TEST(test_tokenizers)
{
    tdm_recipe *recipe = parse_good(minimal, "text.tokenizer=/nowhere/vocab.txt");
    tdm_tokenizer *tokenizer;
    ck_assert_fails(tdm_recipe_tokenizer(recipe, &tokenizer), TDM_E_IO,
                    "text.tokenizer: /nowhere/vocab.txt: no such file");
    ck_assert_ptr_null(tokenizer);
    tdm_recipe_free(recipe);
    recipe = parse_good(minimal, "text.tokenizer=~");
    ck_assert_fails(tdm_recipe_tokenizer(recipe, &tokenizer), TDM_E_CONFIG,
                    "text.tokenizer: name a vocabulary");
    tdm_recipe_free(recipe);
}
END_TEST

/* Every allocation of a load fails once: nothing leaks (the sanitizers look) and it says so. */
START_TEST(test_out_of_memory)
{
    tdm_recipe *recipe;
    tdm_status status = TDM_E_NOMEM;
    for (int64_t n = 1; status != TDM_OK && n < 5000; n++) {
        tdm_memory_fail_at(n, false);
        status = parse(full, NULL, &recipe);
        tdm_memory_fail_at(0, false);
        ck_assert_msg(status == TDM_OK || status == TDM_E_NOMEM, "allocation %lld: %s",
                      (long long)n, tdm_error_message());
    }
    ck_assert_int_eq(status, TDM_OK);
    tdm_recipe_free(recipe);
    ck_assert_int_eq(tdm_memory_stats_get().live_bytes, 0);
}
END_TEST

TDM_CHECK_MAIN(test_defaults, test_emitted_recipes_load, test_what_is_refused, test_tokenizers,
               test_out_of_memory)

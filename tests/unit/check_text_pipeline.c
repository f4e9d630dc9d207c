/* From text to masked batches: the same ones, bit for bit, on any number of threads, with and without
 * the cache and after a resume anywhere; and what every batch must hold. */
#include "core/file.h"
#include "core/memory.h"
#include "tandem/text.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/text_rig.h"

#include <stdio.h>
#include <string.h>

enum { PAD = 0, UNK = 2, CLS = 3, SEP = 4, MASK = 5 };

static char folder[TDM_FOLDER_BYTES];
static char *vocabulary, *path, *corpus;
static tdm_text section;

static void set_text(const char *options)
{
    tdm_text_free(&section);
    ck_assert_ok(tdm_text_printf(&section, "text: {tokenizer: %s, %s}", vocabulary, options));
}

static tdm_data_rig_options open_files(const char *name, int documents, const char *options)
{
    tdm_new_folder(folder);
    vocabulary = tdm_rig_vocabulary(folder, 0);
    corpus = tdm_rig_corpus(11, documents);
    path = tdm_data_rig_put_text(folder, name, corpus);
    set_text(options);
    return (tdm_data_rig_options){.files = {path},
                                  .format = TDM_FORMAT_TEXT,
                                  .documents = TDM_DOCUMENTS_BLANK_LINE,
                                  .text = section.bytes,
                                  .block_bytes = 1500,
                                  .batch_tokens = 512,
                                  .epochs = 2,
                                  .seed = 7};
}

static void close_files(void)
{
    tdm_text_free(&section);
    tdm_free(vocabulary);
    tdm_free(path);
    tdm_free(corpus);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* ---- the same batches ------------------------------------------------------------------------ */

static const char *const ways[] = {
    "max_length: 32",
    "max_length: 64, masking: {unit: whole_word}, short_seq_prob: 0.1",
    "max_length: 48, sequences: segment_pairs, short_seq_prob: 0.1, masking: {unit: span}",
    "max_length: 48, sequences: segment_pairs, pairs: sop, masking: {count: bernoulli}",
    "max_length: 64, sequences: one_per_record, batch: padded",
};
#define WAYS (sizeof ways / sizeof ways[0])

static void check_all_ways(tdm_data_rig_options options)
{
    static const int threads[] = {1, 2, 4};
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/same.cache", folder));
    tdm_given_list reference = {0};
    tdm_data_rig_run(&options, &reference);
    ck_assert_uint_gt(reference.count, 10);
    for (size_t t = 0; t < 3; t++) {
        /* without the cache, writing it, reading it */
        for (int use = 0; use < 3; use++) {
            tdm_given_list list = {0};
            options.threads = threads[t];
            options.depth = 2 + (int)t;
            options.cache_path = use == 0 ? NULL : cache;
            tdm_data_rig_run(&options, &list);
            tdm_given_same(&reference, 0, &list, true);
            tdm_given_list_free(&list);
        }
        ck_assert_ok(tdm_file_remove(cache));
    }
    tdm_given_list_free(&reference);
    tdm_free(cache);
}

static void check_file(const char *name)
{
    for (size_t w = 0; w < WAYS; w++) {
        check_all_ways(open_files(name, 120, ways[w]));
        close_files();
    }
}

START_TEST(test_plain_file_gives_same_batches)
{
    check_file("a.txt");
}
END_TEST

START_TEST(test_stream_gives_same_batches)
{
    check_file("a.txt.gz");
}
END_TEST

/* Takes `count` deliveries and stops in the middle of everything. */
static void run_and_stop(const tdm_data_rig_options *options, size_t count, tdm_given_list *list)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    for (size_t i = 0; i < count; i++) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        tdm_given_note(list, delivery);
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_data_rig_close(&rig);
}

static void check_resume_everywhere(tdm_data_rig_options options)
{
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    for (size_t n = 0; n + 1 < whole.count; n++) {
        tdm_given_list first = {0}, rest = {0};
        options.start = NULL;
        options.threads = 1 + (int)(n % 3);
        options.depth = 2 + (int)(n % 4);
        run_and_stop(&options, n + 1, &first);
        options.start = &first.items[n].after;
        tdm_data_rig_run(&options, &rest);
        tdm_given_same(&whole, n + 1, &rest, true);
        tdm_given_list_free(&first);
        tdm_given_list_free(&rest);
    }
    tdm_given_list_free(&whole);
}

START_TEST(test_resumes_everywhere)
{
    for (size_t w = 0; w < WAYS; w++) {
        check_resume_everywhere(open_files(w % 2 == 0 ? "a.txt" : "a.txt.zst", 60, ways[w]));
        close_files();
    }
}
END_TEST

/* Windows of a few sequences, which end in every way within a lane's part of a batch; and empty ones. */
START_TEST(test_small_windows_resume_everywhere)
{
    tdm_data_rig_options options = open_files("a.txt", 40, "max_length: 16");
    options.window_blocks = 1;
    options.block_bytes = 60;
    options.batch_tokens = 400;
    check_resume_everywhere(options);
    close_files();
}
END_TEST

/* ---- what a batch holds ---------------------------------------------------------------------- */

typedef struct batch_view {
    const tdm_batch *batch;
    const uint32_t *ids, *types, *positions, *mask_labels, *pair_labels;
    const int32_t *cu_seqlens, *lengths, *mask_positions;
    int64_t tokens, predictions, max_seqlen;
} batch_view;

static const void *tensor_of(const tdm_batch *batch, const char *name)
{
    int tensor = tdm_batch_layout_find(batch->layout, name);
    return tensor < 0 ? NULL : tdm_batch_data(batch, tensor);
}

static batch_view view_of(const tdm_batch *batch)
{
    return (batch_view){.batch = batch,
                        .ids = tensor_of(batch, "ids"),
                        .types = tensor_of(batch, "types"),
                        .positions = tensor_of(batch, "positions"),
                        .mask_labels = tensor_of(batch, "mask_labels"),
                        .pair_labels = tensor_of(batch, "pair_labels"),
                        .cu_seqlens = tensor_of(batch, "cu_seqlens"),
                        .lengths = tensor_of(batch, "lengths"),
                        .mask_positions = tensor_of(batch, "mask_positions"),
                        .tokens = *(const int64_t *)tensor_of(batch, "token_count"),
                        .predictions = *(const int64_t *)tensor_of(batch, "mask_count"),
                        .max_seqlen = *(const int64_t *)tensor_of(batch, "max_seqlen")};
}

/* The ids as they were before masking; freed with tdm_free(). */
static uint32_t *original_ids(const batch_view *view)
{
    const tdm_shape *shape =
        &view->batch->layout->tensors[tdm_batch_layout_find(view->batch->layout, "ids")].shape;
    uint32_t *ids;
    size_t count = (size_t)tdm_shape_elements(shape);
    ck_assert_ok(tdm_alloc(count, sizeof *ids, &ids));
    memcpy(ids, view->ids, count * sizeof *ids);
    for (int64_t i = 0; i < view->predictions; i++)
        ids[view->mask_positions[i]] = view->mask_labels[i];
    return ids;
}

/* [CLS], text, [SEP], and again text, [SEP]; types and positions; nothing of it masked. */
static bool sequence_is_good(const batch_view *view, const uint32_t *original, int64_t begin,
                             int64_t length)
{
    bool good = length >= 3 && original[begin] == CLS && original[begin + length - 1] == SEP;
    uint32_t type = 0;
    for (int64_t i = 0; i < length; i++) {
        uint32_t id = original[begin + i];
        good = good && view->positions[begin + i] == (uint32_t)i && id != MASK && id != PAD;
        good = good && (id == CLS) == (i == 0) && view->types[begin + i] == type;
        good = good && (view->ids[begin + i] == CLS) == (i == 0) &&
               (view->ids[begin + i] == SEP) == (id == SEP);
        type += view->pair_labels != NULL && id == SEP;
    }
    return good;
}

static void check_batch(const tdm_batch *batch, int lanes, int64_t lane_tokens)
{
    batch_view view = view_of(batch);
    uint32_t *original = original_ids(&view);
    int64_t longest = 0, tokens = 0;
    bool good = true;
    for (int64_t r = 0; r < batch->rows; r++) {
        int64_t max_length = view.lengths != NULL ? lane_tokens : 0;
        int64_t begin = view.lengths != NULL ? r * max_length : view.cu_seqlens[r];
        int64_t length =
            view.lengths != NULL ? view.lengths[r] : view.cu_seqlens[r + 1] - view.cu_seqlens[r];
        good = good && sequence_is_good(&view, original, begin, length);
        for (int64_t i = length; i < max_length; i++)
            good = good && view.ids[begin + i] == PAD && view.types[begin + i] == 0;
        longest = length > longest ? length : longest;
        tokens += length;
    }
    for (int64_t i = 0; i < view.predictions; i++) {
        int64_t at = view.mask_positions[i];
        good = good && (i == 0 || at > view.mask_positions[i - 1]);
        good = good && view.mask_labels[i] != SEP && view.mask_labels[i] != UNK;
    }
    ck_assert(good);
    ck_assert_int_eq(view.tokens, tokens);
    ck_assert_int_eq(view.max_seqlen, longest);
    ck_assert_int_ge(view.predictions, batch->rows);
    if (view.cu_seqlens != NULL) {
        ck_assert_int_eq(view.cu_seqlens[0], 0);
        ck_assert_int_le(tokens, lanes * lane_tokens);
        for (int64_t r = batch->rows; r <= batch->layout->batch_size; r++)
            ck_assert_int_eq(view.cu_seqlens[r], tokens);
    }
    tdm_free(original);
}

typedef struct checking {
    int64_t rows, tokens, batches, predictions;
    int64_t used[256]; /* how often each id came, before masking */
    uint64_t of_sample[4096];
} checking;

/* What the masked sequence of each sample is. */
static void note_samples(const batch_view *view, checking *check)
{
    const uint64_t *samples = tdm_batch_data(view->batch, TDM_BATCH_SAMPLE);
    for (int64_t r = 0; r < view->batch->rows; r++) {
        int64_t max_length =
            view->lengths == NULL ? 0 : view->batch->layout->tensors[3].shape.sizes[1];
        int64_t begin = view->lengths != NULL ? r * max_length : view->cu_seqlens[r];
        int64_t length = view->lengths != NULL ? view->lengths[r]
                                               : view->cu_seqlens[r + 1] - view->cu_seqlens[r];
        uint64_t hash = 1;
        for (int64_t i = 0; i < length; i++)
            hash = hash * 1099511628211u + view->ids[begin + i];
        size_t place = (size_t)(samples[r] >> 32) * 64 + (samples[r] & 0xffffffff);
        ck_assert_uint_lt(place, 4096);
        ck_assert_uint_eq(check->of_sample[place], 0);
        check->of_sample[place] = hash;
    }
}

/* Runs one epoch and checks all of it. */
static void run_checked(const tdm_data_rig_options *options, int64_t max_length, checking *check)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    int lanes = rig.options.lanes;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        if (delivery->epoch_end) {
            tdm_pipeline_release(rig.pipeline, delivery);
            continue;
        }
        batch_view view = view_of(&delivery->batch);
        int64_t lane_tokens = rig.options.batch_tokens / lanes;
        check_batch(&delivery->batch, lanes, view.lengths != NULL ? max_length : lane_tokens);
        uint32_t *original = original_ids(&view);
        for (int64_t t = 0; view.cu_seqlens != NULL && t < view.tokens; t++)
            check->used[original[t]]++;
        tdm_free(original);
        note_samples(&view, check);
        check->batches++;
        check->rows += delivery->batch.rows;
        check->tokens += view.tokens;
        check->predictions += view.predictions;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_text_counts counts = tdm_text_featurizer_counts(rig.featurizer);
    ck_assert_int_eq(counts.sequences, check->rows);
    tdm_data_rig_close(&rig);
}

START_TEST(test_batches_hold_what_they_must)
{
    static const int64_t lengths[] = {32, 64, 48, 48, 64};
    for (size_t w = 0; w < WAYS; w++) {
        tdm_data_rig_options options = open_files("a.txt", 120, ways[w]);
        options.epochs = 1;
        options.threads = 2;
        checking check = {0};
        run_checked(&options, lengths[w], &check);
        ck_assert_int_gt(check.batches, 5);
        close_files();
    }
}
END_TEST

/* Full sentences use every token of the text exactly once. */
START_TEST(test_an_epoch_uses_all_text_once)
{
    tdm_data_rig_options options = open_files("a.txt", 120, "max_length: 64");
    options.epochs = 1;
    checking check = {0};
    run_checked(&options, 64, &check);
    tdm_tokenizer *tokenizer;
    tdm_encoder *encoder;
    const uint32_t *ids;
    int64_t count;
    ck_assert_ok(tdm_tokenizer_open(vocabulary, NULL, &tokenizer));
    ck_assert_ok(tdm_encoder_create(tokenizer, 1, &encoder));
    ck_assert_ok(tdm_encoder_ids(encoder, corpus, strlen(corpus), &ids, &count));
    for (int64_t i = 0; i < count; i++)
        check.used[ids[i]]--;
    for (int id = SEP + 1; id < 256; id++)
        ck_assert_int_eq(check.used[id], 0);
    ck_assert_int_eq(check.used[UNK], 0);
    ck_assert_int_eq(check.used[CLS], check.rows);
    tdm_encoder_destroy(encoder);
    tdm_tokenizer_close(tokenizer);
    /* Parts of lanes are filled but for what the next sequence needs. */
    ck_assert_int_gt(check.tokens, check.batches * 512 * 6 / 10);
    close_files();
}
END_TEST

/* A sequence is masked alike in any batch: of other sizes, padded or not. */
START_TEST(test_masks_do_not_depend_on_packing)
{
    static checking checks[3];
    tdm_data_rig_options options = open_files("a.txt", 120, "max_length: 64");
    options.epochs = 1;
    run_checked(&options, 64, &checks[0]);
    options.batch_tokens = 1700;
    run_checked(&options, 64, &checks[1]);
    set_text("max_length: 64, batch: padded");
    options.text = section.bytes;
    options.batch_tokens = 512;
    run_checked(&options, 64, &checks[2]);
    ck_assert_int_lt(checks[1].batches, checks[0].batches);
    ck_assert_mem_eq(checks[0].of_sample, checks[1].of_sample, sizeof checks[0].of_sample);
    ck_assert_mem_eq(checks[0].of_sample, checks[2].of_sample, sizeof checks[0].of_sample);
    close_files();
}
END_TEST

/* Every epoch masks anew, and packs anew. */
START_TEST(test_epochs_differ)
{
    tdm_data_rig_options options = open_files("a.txt", 60, "max_length: 64");
    tdm_given_list list = {0};
    tdm_data_rig_run(&options, &list);
    size_t half = list.count / 2;
    ck_assert_int_eq(list.items[half - 1].epoch_end, 1);
    for (size_t i = 0; i + 1 < half; i++) {
        for (size_t j = half; j < list.count; j++)
            ck_assert_uint_ne(list.items[i].hash, list.items[j].hash);
    }
    tdm_given_list_free(&list);
    close_files();
}
END_TEST

/* ---- columns --------------------------------------------------------------------------------- */

/* What is extracted of a text, as "token:marks" of each. */
static void check_tokens(const char *text, const char *expected)
{
    tdm_data_rig_options options = open_files("a.txt", 1, "max_length: 32");
    tdm_free(path);
    path = tdm_data_rig_put_text(folder, "a.txt", text);
    options.block_bytes = 1 << 16;
    options.files[0] = path;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_block_text block = {0};
    tdm_extract extract = {0};
    tdm_text got = {0};
    ck_assert_ok(tdm_text_printf(&got, "%s", ""));
    ck_assert_ok(tdm_input_read_block(rig.input, 0, &block));
    ck_assert_ok(tdm_extract_block(rig.extractor, &block, &extract));
    for (int64_t i = 0; i < extract.rows; i++) {
        size_t bytes;
        const char *token =
            tdm_tokenizer_token(rig.tokenizer, ((const uint16_t *)extract.columns[0])[i], &bytes);
        ck_assert_ok(tdm_text_printf(&got, "%s%.*s:%u", i > 0 ? " " : "", (int)bytes, token,
                                     ((const uint8_t *)extract.columns[1])[i]));
    }
    ck_assert_str_eq(got.bytes, expected);
    tdm_text_free(&got);
    tdm_extract_deinit(&extract);
    tdm_block_text_deinit(&block);
    tdm_data_rig_close(&rig);
    close_files();
}

START_TEST(test_marks_of_words_sentences_and_documents)
{
    check_tokens("The river\nwo.\n\nnight", "the:7 river:1 w:3 ##o:0 .:1 night:7");
    /* Lines and documents that tokenize to nothing are not there. */
    check_tokens("\xc2\xad\n \xe2\x80\x8b\nthe\n\xc2\xad\nnight\n\n\xc2\xad\n\nof\n",
                 "the:7 night:3 of:7");
    check_tokens("[MASK] \xff\n", "[UNK]:7 m:1 ##a:0 ##s:0 ##k:0 [UNK]:1");
}
END_TEST

START_TEST(test_wide_vocabularies)
{
    tdm_data_rig_options options = open_files("a.txt", 10, "max_length: 32");
    for (int wide = 0; wide < 2; wide++) {
        tdm_free(vocabulary);
        /* 7, 52 letters, 11 words: 65536 and 65537 tokens */
        vocabulary = tdm_rig_vocabulary(folder, 65536 - 70 + wide);
        tdm_free(path);
        path = tdm_data_rig_put_text(folder, "a.txt", wide ? "w65466 the" : "w65465 the");
        options.files[0] = path;
        options.epochs = 1;
        tdm_data_rig rig;
        tdm_data_rig_open(&options, &rig);
        ck_assert_int_eq(rig.featurizer->columns.columns[0].dtype, wide ? TDM_U32 : TDM_U16);
        ck_assert_int_eq(tdm_tokenizer_size(rig.tokenizer), 65536 + wide);
        tdm_data_rig_start(&rig);
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        batch_view view = view_of(&delivery->batch);
        uint32_t *original = original_ids(&view);
        ck_assert_uint_eq(original[1], 65535 + (uint32_t)wide);
        tdm_free(original);
        tdm_pipeline_release(rig.pipeline, delivery);
        tdm_data_rig_close(&rig);
    }
    close_files();
}
END_TEST

/* The key of the cache tells of the tokenizer, and of nothing that a later epoch may change. */
START_TEST(test_the_cache_belongs_to_the_tokenizer)
{
    tdm_data_rig_options options = open_files("a.txt", 10, "max_length: 32");
    uint64_t hashes[5];
    static const char *const texts[] = {"max_length: 32", "lowercase: false",
                                        "strip_accents: false", "unicode: google",
                                        "masking: {unit: span}, batch: padded"};
    tdm_data_rig rig;
    for (int i = 0; i < 5; i++) {
        set_text(texts[i]);
        options.text = section.bytes;
        tdm_data_rig_open(&options, &rig);
        hashes[i] = rig.featurizer->spec_hash;
        tdm_data_rig_close(&rig);
    }
    ck_assert_uint_eq(hashes[0], hashes[4]);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(hashes[i], hashes[j]);
    }
    tdm_free(vocabulary);
    vocabulary = tdm_rig_vocabulary(folder, 1);
    tdm_data_rig_open(&options, &rig);
    ck_assert_uint_ne(rig.featurizer->spec_hash, hashes[0]);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

static void check_refused(tdm_data_rig_options *options, const char *text, const char *message)
{
    tdm_data_rig rig;
    set_text(text);
    options->text = section.bytes;
    ck_assert_fails(tdm_data_rig_try_open(options, &rig), TDM_E_CONFIG, message);
}

START_TEST(test_options_that_cannot_be)
{
    tdm_data_rig_options options = open_files("a.txt", 3, "");
    check_refused(&options, "max_length: 129",
                  "train.batch_tokens 512 is 128 for each of data.lanes 4, less than "
                  "text.max_length 129: 516 would be enough");
    check_refused(&options, "max_length: 7", "from 8 to 32768");
    check_refused(&options, "masking: {replace: [0.8, 0.1]}",
                  "r.yaml:1: text.masking.replace: expected three shares that make 1");
    check_refused(&options, "masking: {replace: [0.8, 0.1, 0.2]}", "three shares");
    check_refused(&options, "masking: {unit: span, count: bernoulli}",
                  "r.yaml:1: text.masking.count: spans are drawn until");
    check_refused(&options, "sequences: sentence_pairs", "did you mean segment_pairs?");
    check_refused(&options, "masking: {ratio: 1}", "text.masking.ratio");
    tdm_free(vocabulary);
    vocabulary = tdm_data_rig_put_text(folder, "v.txt", "[UNK]\n[CLS]\n[SEP]\nthe\n");
    check_refused(&options, "max_length: 32", "v.txt has no [MASK]");
    tdm_free(vocabulary);
    vocabulary = tdm_data_rig_put_text(folder, "v.txt", "[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\n");
    check_refused(&options, "batch: padded, max_length: 32", "v.txt has no [PAD]");
    tdm_free(vocabulary);
    vocabulary = tdm_data_rig_put_text(folder, "v.txt", "[CLS]\n[SEP]\n[MASK]\nthe\n");
    tdm_data_rig rig;
    set_text("max_length: 32");
    options.text = section.bytes;
    ck_assert_fails(tdm_data_rig_try_open(&options, &rig), TDM_E_DATA, "has no [UNK]");
    tdm_free(vocabulary);
    ck_assert_ok(tdm_strdup("~", &vocabulary));
    check_refused(&options, "max_length: 32", "text.tokenizer: name a vocabulary");
    close_files();
}
END_TEST

/* Nothing but blanks: an epoch without a batch. */
START_TEST(test_text_without_tokens)
{
    tdm_data_rig_options options = open_files("a.txt", 1, "max_length: 32");
    tdm_free(path);
    path = tdm_data_rig_put_text(folder, "a.txt", "\xc2\xad\n\n \n\xc2\xad\n");
    options.files[0] = path;
    tdm_given_list list = {0};
    tdm_data_rig_run(&options, &list);
    ck_assert_uint_eq(list.count, 2);
    ck_assert(list.items[0].epoch_end && list.items[1].last);
    tdm_given_list_free(&list);
    close_files();
}
END_TEST

TDM_CHECK_MAIN(test_plain_file_gives_same_batches, test_stream_gives_same_batches,
               test_resumes_everywhere, test_small_windows_resume_everywhere,
               test_batches_hold_what_they_must, test_an_epoch_uses_all_text_once,
               test_masks_do_not_depend_on_packing, test_epochs_differ,
               test_marks_of_words_sentences_and_documents, test_wide_vocabularies,
               test_the_cache_belongs_to_the_tokenizer, test_options_that_cannot_be,
               test_text_without_tokens)

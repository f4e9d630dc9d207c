/* From text to masked batches: the same ones, bit for bit, on any number of threads, with and
 * without the cache and after a resume anywhere; and what every batch must hold. */
#include "core/file.h"
#include "core/memory.h"
#include "tandem/text.h"
#include "tests/support/check_main.h"
#include "tests/support/same_batches.h"
#include "tests/support/text_rig.h"
#include "text/masked_batch.h"

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

static void check_file(const char *name)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_check_same_batches(open_files(name, 120, ways[w]), folder);
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

START_TEST(test_resumes_everywhere)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_check_resumes(open_files(w % 2 == 0 ? "a.txt" : "a.txt.zst", 60, ways[w]));
        close_files();
    }
}
END_TEST

/* Windows of a few sequences, which end in every way within a lane's part of a batch; and empty
 * ones. */
START_TEST(test_small_windows_resume_everywhere)
{
    tdm_data_rig_options options = open_files("a.txt", 40, "max_length: 16");
    options.window_blocks = 1;
    options.block_bytes = 60;
    options.batch_tokens = 400;
    tdm_check_resumes(options);
    close_files();
}
END_TEST

/* ---- what a batch holds ---------------------------------------------------------------------- */

/* The ids as they were before masking; freed with tdm_free(). */
static uint32_t *original_ids(const tdm_masked_batch *view)
{
    int64_t count = view->row_stride > 0 ? view->rows * view->row_stride : view->tokens;
    uint32_t *ids;
    ck_assert_ok(tdm_alloc((size_t)count, sizeof *ids, &ids));
    memcpy(ids, view->ids, (size_t)count * sizeof *ids);
    for (int64_t i = 0; i < view->mask_count; i++)
        ids[view->mask_positions[i]] = view->mask_labels[i];
    return ids;
}

/* [CLS], text, [SEP], and again text, [SEP]; types and positions; nothing of it masked. */
static bool sequence_is_good(const tdm_masked_batch *view, const uint32_t *original,
                             tdm_token_range row)
{
    bool good =
        row.end - row.begin >= 3 && original[row.begin] == CLS && original[row.end - 1] == SEP;
    uint32_t type = 0;
    for (int64_t i = row.begin; i < row.end; i++) {
        uint32_t id = original[i];
        good = good && view->positions[i] == (uint32_t)(i - row.begin) && id != MASK && id != PAD;
        good = good && (id == CLS) == (i == row.begin) && view->types[i] == type;
        good = good && (view->ids[i] == CLS) == (id == CLS) && (view->ids[i] == SEP) == (id == SEP);
        type += view->pair_labels != NULL && id == SEP;
    }
    for (int64_t i = row.end; i < row.begin + view->row_stride; i++)
        good = good && view->ids[i] == PAD && view->types[i] == 0 &&
               view->positions[i] == (uint32_t)(i - row.begin);
    return good;
}

static void check_batch(const tdm_batch *batch, int64_t batch_tokens)
{
    tdm_masked_batch view = tdm_masked_batch_of(batch);
    uint32_t *original = original_ids(&view);
    int64_t longest = 0, tokens = 0;
    bool good = true;
    for (int64_t r = 0; r < batch->rows; r++) {
        tdm_token_range row = tdm_masked_batch_row(&view, r);
        good = good && sequence_is_good(&view, original, row);
        good = good && (view.row_stride > 0 || row.begin == tokens);
        longest = row.end - row.begin > longest ? row.end - row.begin : longest;
        tokens += row.end - row.begin;
    }
    for (int64_t i = 0; i < view.mask_count; i++) {
        good = good && (i == 0 || view.mask_positions[i] > view.mask_positions[i - 1]);
        good = good && view.mask_labels[i] != SEP && view.mask_labels[i] != UNK;
    }
    for (int64_t r = batch->rows; view.cu_seqlens != NULL && r <= batch->layout->batch_size; r++)
        good = good && view.cu_seqlens[r] == tokens;
    ck_assert(good);
    ck_assert_int_eq(view.tokens, tokens);
    ck_assert_int_eq(view.max_seqlen, longest);
    ck_assert_int_ge(view.mask_count, batch->rows);
    ck_assert_int_le(tokens, batch_tokens);
    tdm_free(original);
}

typedef struct checking {
    int64_t rows, tokens, batches, predictions;
    int64_t used[256]; /* how often each id came, before masking */
    uint64_t of_sample[4096];
} checking;

static uint64_t hash_row(const tdm_masked_batch *view, int64_t index)
{
    tdm_token_range row = tdm_masked_batch_row(view, index);
    uint64_t hash = 1;
    for (int64_t i = row.begin; i < row.end; i++)
        hash = hash * 1099511628211u + view->ids[i];
    return hash;
}

static size_t place_of(uint64_t sample)
{
    size_t place = (size_t)(sample >> 32) * 64 + (sample & 0xffffffff);
    ck_assert_uint_lt(place, 4096);
    return place;
}

/* What the masked sequence of each sample is. */
static void note_samples(const tdm_masked_batch *view, checking *check)
{
    for (int64_t r = 0; r < view->rows; r++) {
        size_t place = place_of(view->samples[r]);
        ck_assert_uint_eq(check->of_sample[place], 0);
        check->of_sample[place] = hash_row(view, r);
    }
}

/* Runs one epoch and checks all of it. */
static void run_checked(const tdm_data_rig_options *options, checking *check)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        if (delivery->epoch_end) {
            tdm_pipeline_release(rig.pipeline, delivery);
            continue;
        }
        tdm_masked_batch view = tdm_masked_batch_of(&delivery->batch);
        check_batch(&delivery->batch, rig.options.batch_tokens);
        uint32_t *original = original_ids(&view);
        for (int64_t t = 0; view.row_stride == 0 && t < view.tokens; t++)
            check->used[original[t]]++;
        tdm_free(original);
        note_samples(&view, check);
        check->batches++;
        check->rows += delivery->batch.rows;
        check->tokens += view.tokens;
        check->predictions += view.mask_count;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_text_counts counts = tdm_text_featurizer_counts(rig.featurizer);
    ck_assert_int_eq(counts.sequences, check->rows);
    tdm_data_rig_close(&rig);
}

START_TEST(test_batches_hold_what_they_must)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_data_rig_options options = open_files("a.txt", 120, ways[w]);
        options.epochs = 1;
        options.threads = 2;
        checking check = {0};
        run_checked(&options, &check);
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
    run_checked(&options, &check);
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
    run_checked(&options, &checks[0]);
    options.batch_tokens = 1700;
    run_checked(&options, &checks[1]);
    set_text("max_length: 64, batch: padded");
    options.text = section.bytes;
    options.batch_tokens = 512;
    run_checked(&options, &checks[2]);
    ck_assert_int_lt(checks[1].batches, checks[0].batches);
    ck_assert_mem_eq(checks[0].of_sample, checks[1].of_sample, sizeof checks[0].of_sample);
    ck_assert_mem_eq(checks[0].of_sample, checks[2].of_sample, sizeof checks[0].of_sample);
    close_files();
}
END_TEST

/* Every lane gives a batch at most its part, and stops only where its next sequence does not fit. A
 * stream's blocks are dealt in their order, so that samples tell the lane. */
START_TEST(test_lanes_fill_their_parts)
{
    tdm_data_rig_options options = open_files("a.txt.gz", 120, ways[1]);
    options.epochs = 1;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    int64_t room[4] = {0}, stops = 0;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        tdm_masked_batch view = {0};
        if (!delivery->epoch_end)
            view = tdm_masked_batch_of(&delivery->batch);
        bool seen[4] = {false};
        for (int64_t r = 0; r < view.rows; r++) {
            tdm_token_range row = tdm_masked_batch_row(&view, r);
            int lane = (int)(view.samples[r] >> 32) % 4;
            if (!seen[lane] && room[lane] > 0) {
                ck_assert_int_gt(row.end - row.begin, room[lane]);
                stops++;
            }
            if (!seen[lane])
                room[lane] = rig.options.batch_tokens / 4;
            seen[lane] = true;
            room[lane] -= row.end - row.begin;
            ck_assert_int_ge(room[lane], 0);
        }
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    ck_assert_int_gt(stops, 20);
    tdm_data_rig_close(&rig);
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

/* A block that an epoch has twice is packed and masked anew the second time. */
START_TEST(test_a_block_that_comes_again_differs)
{
    static uint64_t hashes[4096][2];
    static unsigned char occurrences[4096];
    tdm_data_rig_options options = open_files("a.txt", 120, "max_length: 64");
    options.weights[0] = 2;
    options.window_blocks = 1;
    options.epochs = 1;
    tdm_data_rig rig;
    int64_t twice = 0, equal = 0;
    memset(hashes, 0, sizeof hashes);
    memset(occurrences, 0, sizeof occurrences);
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        tdm_masked_batch view = tdm_masked_batch_of(&delivery->batch);
        for (int64_t r = 0; r < delivery->batch.rows; r++) {
            size_t place = place_of(view.samples[r]);
            uint64_t hash = hash_row(&view, r), *seen = hashes[place];
            uint32_t occurrence =
                ((uint32_t *)tdm_batch_data(&delivery->batch, TDM_BATCH_OCCURRENCE))[r];
            ck_assert_uint_le(occurrence, 1);
            ck_assert_uint_eq(occurrences[place] & 1u << occurrence, 0);
            occurrences[place] |= (unsigned char)(1u << occurrence);
            twice += seen[0] != 0;
            equal += seen[0] == hash;
            seen[seen[0] != 0] = hash;
        }
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    ck_assert_int_gt(twice, 50);
    ck_assert_int_eq(equal, 0);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Buffers are reused: epochs later on ask for no memory. */
START_TEST(test_later_epochs_allocate_nothing)
{
    for (size_t w = 0; w < WAYS; w++) {
        tdm_data_rig_options options = open_files("a.txt", 120, ways[w]);
        options.epochs = 24;
        /* A window is more than a lane's part of a batch. */
        options.lanes = 2;
        options.block_bytes = 3000;
        options.batch_tokens = 256;
        tdm_check_reuse(&options);
        close_files();
    }
}
END_TEST

/* Every allocation fails once: it says so, and nothing leaks. */
START_TEST(test_memory_that_runs_out)
{
    tdm_data_rig_options options = open_files("a.txt", 20, ways[2]);
    options.epochs = 1;
    tdm_check_out_of_memory(&options);
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
        tdm_masked_batch view = tdm_masked_batch_of(&delivery->batch);
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
               test_masks_do_not_depend_on_packing, test_lanes_fill_their_parts, test_epochs_differ,
               test_a_block_that_comes_again_differs, test_later_epochs_allocate_nothing,
               test_memory_that_runs_out, test_marks_of_words_sentences_and_documents,
               test_wide_vocabularies, test_the_cache_belongs_to_the_tokenizer,
               test_options_that_cannot_be, test_text_without_tokens)

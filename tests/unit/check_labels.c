/* Labelled text to batches: what labels of each type, pairs and words become, what is refused and
 * why, and classes that are found. */
#include "core/file.h"
#include "core/memory.h"
#include "core/ops.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/text_rig.h"
#include "text/label_block.h"
#include "text/masked_batch.h"

#include <stdio.h>
#include <string.h>

static char folder[TDM_FOLDER_BYTES];
static char *vocabulary, *path;
static tdm_text recipe;

static void set_recipe(const char *data, const char *labels)
{
    tdm_text_free(&recipe);
    ck_assert_ok(tdm_text_printf(
        &recipe, "text: {tokenizer: %s, max_length: 12}\ndata: {%s}\nlabels: {%s}\n", vocabulary,
        data, labels));
}

static tdm_data_rig_options open_bytes(const char *name, const char *text, const char *data,
                                       const char *labels)
{
    tdm_new_folder(folder);
    vocabulary = tdm_rig_vocabulary(folder, 0);
    path = tdm_data_rig_put_text(folder, name, text);
    set_recipe(data, labels);
    return (tdm_data_rig_options){
        .files = {path}, .text = recipe.bytes, .batch_tokens = 4096, .lanes = 1, .seed = 3};
}

static void close_files(void)
{
    tdm_text_free(&recipe);
    tdm_free(vocabulary);
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* ---- what a batch says ----------------------------------------------------------------------- */

static void add_label(const tdm_label_spec *spec, const tdm_masked_batch *view, int64_t at,
                      tdm_text *out)
{
    uint32_t number = view->words != NULL ? view->words[at] : ((const uint32_t *)view->labels)[at];
    size_t bytes;
    if (number == TDM_NO_LABEL)
        return;
    if (view->words != NULL) {
        ck_assert_ok(tdm_text_printf(out, "<%u>", number));
        return;
    }
    const char *name = tdm_class_name(spec, number, &bytes);
    ck_assert_ok(tdm_text_printf(out, "<%.*s>", (int)bytes, name));
}

static void add_row_label(const tdm_label_spec *spec, const tdm_masked_batch *view, int64_t row,
                          tdm_text *out)
{
    const float *flags = (const float *)view->labels + row * spec->classes.size;
    if (view->labels == NULL || spec->type == TDM_LABEL_TOKENS)
        return;
    if (spec->type == TDM_LABEL_CLASSES)
        add_label(spec, view, row, out);
    if (spec->type == TDM_LABEL_REGRESSION)
        ck_assert_ok(tdm_text_printf(out, "<%.9g>", (double)((const float *)view->labels)[row]));
    for (int64_t c = 0; spec->type == TDM_LABEL_MULTIPLE && c < spec->classes.size; c++)
        ck_assert_ok(tdm_text_printf(out, flags[c] == 1 ? "1" : flags[c] == 0 ? "0" : "?"));
}

/* "token/type<label> …" of each row, with positions and lengths checked. */
static void add_batch(const tdm_data_rig *rig, const tdm_batch *batch, tdm_text *out)
{
    tdm_masked_batch view = tdm_masked_batch_of(batch);
    for (int64_t r = 0; r < view.rows; r++) {
        tdm_token_range row = tdm_masked_batch_row(&view, r);
        add_row_label(rig->labels, &view, r, out);
        for (int64_t t = row.begin; t < row.end; t++) {
            size_t bytes;
            const char *token = tdm_tokenizer_token(rig->tokenizer, view.ids[t], &bytes);
            ck_assert_uint_eq(view.positions[t], (uint32_t)(t - row.begin));
            ck_assert_ok(tdm_text_printf(out, "%s%.*s%s", t > row.begin ? " " : "", (int)bytes,
                                         token, view.types[t] == 1 ? "/1" : ""));
            if (rig->labels->type == TDM_LABEL_TOKENS)
                add_label(rig->labels, &view, t, out);
        }
        ck_assert_ok(tdm_text_printf(out, "\n"));
    }
}

static void add_reports(tdm_input *input, const tdm_extract *block, tdm_text *out)
{
    const tdm_record_format *format = tdm_input_format(input);
    for (size_t i = 0; i < block->bad_count; i++) {
        const tdm_bad_record *bad = &block->bad[i];
        ck_assert_ok(tdm_text_printf(out, "! %lld: %s%s%s\n", (long long)bad->line + 1,
                                     bad->column < 0 ? "" : format->columns[bad->column],
                                     bad->column < 0 ? "" : ": ", bad->reason));
    }
}

/* All of the first block in its order, rows and then bad records. */
static void read_rig(tdm_data_rig *rig, tdm_text *out)
{
    const tdm_featurizer *featurizer = rig->featurizer;
    tdm_input_stream *stream;
    tdm_block_text text = {0};
    tdm_extract extract = {0}, *block = &extract;
    tdm_window window = {.block_count = 1, .blocks = &block};
    tdm_batch batch = {.layout = &featurizer->batch};
    bool ended;
    ck_assert_ok(tdm_input_stream_open(rig->input, &stream));
    ck_assert_ok(tdm_input_stream_next(stream, &text, &ended));
    ck_assert_ok(tdm_extract_block(rig->extractor, &text, &extract));
    ck_assert_ok(featurizer->type->open_window(featurizer, 0, false, &window));
    ck_assert_ok(tdm_alloc(batch.layout->bytes, 1, &batch.data));
    featurizer->type->assemble(featurizer, &window, 0, window.rows, &batch, 0, 0);
    batch.rows = window.rows;
    batch.tokens = window.rows > 0 ? window.token_ends[window.rows - 1] : 0;
    featurizer->type->finish(featurizer, &batch, 0);
    ck_assert_ok(tdm_text_printf(out, "%s", ""));
    add_batch(rig, &batch, out);
    add_reports(rig->input, block, out);
    if (rig->labels->use == TDM_LABEL_PREDICTION)
        ck_assert_int_eq(window.rows + (int64_t)block->bad_count, block->records);
    tdm_free(batch.data);
    tdm_window_deinit(&window);
    tdm_extract_deinit(&extract);
    tdm_block_text_deinit(&text);
    tdm_input_stream_close(stream);
}

static void check_rig(const tdm_data_rig_options *options, const char *expected)
{
    tdm_data_rig rig;
    tdm_text got = {0};
    tdm_data_rig_open(options, &rig);
    read_rig(&rig, &got);
    ck_assert_str_eq(got.bytes, expected);
    tdm_text_free(&got);
    tdm_data_rig_close(&rig);
}

static void check_bytes(const char *name, const char *text, const char *data, const char *labels,
                        const char *expected)
{
    tdm_data_rig_options options = open_bytes(name, text, data, labels);
    check_rig(&options, expected);
    close_files();
}

#define TSV "format: tsv, header: false, columns: [label, text]"

/* ---- classes --------------------------------------------------------------------------------- */

START_TEST(test_classes)
{
    check_bytes("a.tsv", "pos\tthe river\nneg\t a night\n pos \two\n", TSV, "classes: [neg, pos]",
                "<pos>[CLS] the river [SEP]\n<neg>[CLS] a night [SEP]\n<pos>[CLS] w ##o [SEP]\n");
    check_bytes("a.tsv", "10\tthe\n9\triver\n-1\tnight\n", TSV, "classes: auto",
                "<10>[CLS] the [SEP]\n<9>[CLS] river [SEP]\n<-1>[CLS] night [SEP]\n");
}
END_TEST

START_TEST(test_records_that_are_refused)
{
    check_bytes("a.tsv",
                "pos\tthe\nsad\triver\n\tnight\npos\t\nneg\t \xc2\xad \nneg\tthe\tend\npos\tof\n",
                TSV, "classes: [neg, pos]",
                "<pos>[CLS] the [SEP]\n<pos>[CLS] of [SEP]\n"
                "! 2: label: \"sad\" is none of the 2 classes: neg, pos\n"
                "! 3: label: the label is missing\n"
                "! 4: text: there is no word in it\n"
                "! 5: text: there is no word in it\n"
                "! 6: 3 columns, expected 2\n");
}
END_TEST

/* What is shown of labels and classes is printable and ends somewhere. */
START_TEST(test_reasons_are_short)
{
    tdm_text text = {0}, classes = {0};
    ck_assert_ok(tdm_text_printf(&text, "\x01\x1b"));
    for (int i = 0; i < 500; i++)
        ck_assert_ok(tdm_text_printf(&text, "x"));
    ck_assert_ok(tdm_text_printf(&text, "\tthe\n"));
    ck_assert_ok(tdm_text_printf(&classes, "classes: ["));
    for (int i = 0; i < 200; i++)
        ck_assert_ok(tdm_text_printf(&classes, "class%d, ", i));
    ck_assert_ok(tdm_text_printf(&classes, "last]"));
    tdm_data_rig_options options = open_bytes("a.tsv", text.bytes, TSV, classes.bytes);
    tdm_data_rig rig;
    tdm_text got = {0};
    tdm_data_rig_open(&options, &rig);
    read_rig(&rig, &got);
    ck_assert_uint_lt(got.length, 500);
    ck_assert_ptr_nonnull(strstr(got.bytes, "\"\\x01\\x1bxxx"));
    ck_assert_ptr_nonnull(strstr(got.bytes, "201 classes: class0, class1, "));
    ck_assert_ptr_nonnull(strstr(got.bytes, ", ...\n"));
    tdm_text_free(&got);
    tdm_data_rig_close(&rig);
    close_files();
    tdm_text_free(&text);
    tdm_text_free(&classes);
}
END_TEST

START_TEST(test_long_texts_are_cut)
{
    tdm_data_rig_options options = open_bytes(
        "a.tsv",
        "a\tthe the the the the the the the the the\nb\tof of of of of of of of of of of\n", TSV,
        "classes: [a, b]");
    tdm_data_rig rig;
    tdm_text got = {0};
    tdm_data_rig_open(&options, &rig);
    read_rig(&rig, &got);
    ck_assert_str_eq(got.bytes, "<a>[CLS] the the the the the the the the the the [SEP]\n"
                                "<b>[CLS] of of of of of of of of of of [SEP]\n");
    tdm_text_counts counts = tdm_text_featurizer_counts(rig.featurizer);
    ck_assert_int_eq(counts.documents, 2);
    ck_assert_int_eq(counts.tokens, 21);
    ck_assert_int_eq(counts.cut_tokens, 1);
    tdm_text_free(&got);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* ---- pairs ----------------------------------------------------------------------------------- */

#define PAIRS "format: tsv, header: false, columns: [text, b, label]"

START_TEST(test_pairs)
{
    check_bytes("a.tsv",
                "the river\tnight\ty\nof\t\tn\n\tof\tn\n"
                "the the the the\tof of of of of of of of of\tn\n"
                "the the the the the the the\tof of of of of of of of of\ty\n",
                PAIRS, "classes: [n, y], text_pair: b",
                "<y>[CLS] the river [SEP] night/1 [SEP]/1\n"
                "<n>[CLS] the the the the [SEP] of/1 of/1 of/1 of/1 of/1 [SEP]/1\n"
                "<y>[CLS] the the the the [SEP] of/1 of/1 of/1 of/1 of/1 [SEP]/1\n"
                "! 2: b: there is no word in it\n! 3: text: there is no word in it\n");
}
END_TEST

/* ---- several labels, numbers ----------------------------------------------------------------- */

START_TEST(test_multiple)
{
    check_bytes("a.tsv", "a,c\tthe\n\triver\nb, b ,\tof\na,d\tnight\nc\ta\n", TSV,
                "type: multiple, classes: [a, b, c]",
                "101[CLS] the [SEP]\n000[CLS] river [SEP]\n010[CLS] of [SEP]\n001[CLS] a [SEP]\n"
                "! 4: label: \"d\" is none of the 3 classes: a, b, c\n");
    check_bytes("a.csv", "x y|z,the\nz,of\n", "format: csv, header: false, columns: [label, text]",
                "type: multiple, separator: pipe", "11[CLS] the [SEP]\n01[CLS] of [SEP]\n");
}
END_TEST

/* More classes than a word has bits. */
START_TEST(test_many_classes)
{
    tdm_text text = {0}, classes = {0}, expected = {0};
    ck_assert_ok(tdm_text_printf(&classes, "type: multiple, classes: [c0"));
    for (int i = 1; i < 70; i++)
        ck_assert_ok(tdm_text_printf(&classes, ", c%d", i));
    ck_assert_ok(tdm_text_printf(&classes, "]"));
    for (int row = 0; row < 5; row++) {
        for (int c = row; c < 70; c += 1 + 7 * row) {
            ck_assert_ok(tdm_text_printf(&text, "%sc%d", c > row ? "," : "", c));
        }
        for (int c = 0; c < 70; c++)
            ck_assert_ok(
                tdm_text_printf(&expected, c >= row && (c - row) % (1 + 7 * row) == 0 ? "1" : "0"));
        ck_assert_ok(tdm_text_printf(&text, "\tthe\n"));
        ck_assert_ok(tdm_text_printf(&expected, "[CLS] the [SEP]\n"));
    }
    check_bytes("a.tsv", text.bytes, TSV, classes.bytes, expected.bytes);
    tdm_text_free(&text);
    tdm_text_free(&classes);
    tdm_text_free(&expected);
}
END_TEST

START_TEST(test_regression)
{
    check_bytes("a.tsv", "0.1\tthe\n -3e2 \triver\nx\tof\n\tof\nnan\tof\n1e39\tof\n1e999\tof\n",
                TSV, "type: regression",
                "<0.100000001>[CLS] the [SEP]\n<-300>[CLS] river [SEP]\n"
                "! 3: label: the label is not a finite number\n"
                "! 4: label: the label is missing\n"
                "! 5: label: the label is not a finite number\n"
                "! 6: label: the label is not a finite number\n"
                "! 7: label: the label is not a finite number\n");
}
END_TEST

/* ---- words ----------------------------------------------------------------------------------- */

START_TEST(test_conll)
{
    check_bytes("a.txt",
                "-DOCSTART- O\n\nthe O\nWo B-PER\nriver  I-PER\n\nnight\tO\r\n. O\n\n"
                "of O\nwalks\n\nof X O\n\n\xc2\xad O\n\xe2\x82\xac O\nof O\n\n\xc2\xad O\n\nof Q\n",
                "format: text", "type: tokens, classes: [O, B-PER, I-PER]",
                "[CLS] the<O> w<B-PER> ##o river<I-PER> [SEP]\n[CLS] night<O> .<O> [SEP]\n"
                "[CLS] [UNK]<O> of<O> [SEP]\n"
                "! 10: its line 2 has 1 columns, expected 2\n"
                "! 13: its line 1 has 3 columns, expected 2\n"
                "! 19: there is no word in it\n"
                "! 21: its line 1: \"Q\" is none of the 3 classes: O, B-PER, I-PER\n");
}
END_TEST

START_TEST(test_conll_columns)
{
    check_bytes(
        "a.txt", "1\tthe river\tDET\n2\tnight\tNOUN\n\n1\tof\t\n\n",
        "format: text, separator: tab, columns: [id, form, pos]",
        "type: tokens, text: form, column: pos, classes: [DET, NOUN]",
        "[CLS] the<DET> river night<NOUN> [SEP]\n! 4: its line 1 has 2 columns, expected 3\n");
}
END_TEST

START_TEST(test_words_in_cells)
{
    check_bytes("a.tsv", "O B\tthe river\nO\tthe night\nO O B\tof a\nB\t\nX O\tof a\nB\tWo\n", TSV,
                "type: tokens, classes: [O, B]",
                "[CLS] the<O> river<B> [SEP]\n[CLS] w<B> ##o [SEP]\n"
                "! 2: label: 2 words have 1 labels\n! 3: label: 2 words have 3 labels\n"
                "! 4: label: 0 words have 1 labels\n"
                "! 5: label: \"X\" is none of the 2 classes: O, B\n");
    check_bytes("a.tsv", "O;B\tthe river\n\t \nB;\tof a\n", TSV,
                "type: tokens, separator: semicolon, classes: [O, B]",
                "[CLS] the<O> river<B> [SEP]\n! 2: text: there is no word in it\n"
                "! 3: label: the label is missing\n");
}
END_TEST

START_TEST(test_words_are_cut)
{
    check_bytes("a.txt", "the A\nxyzxyz B\nriver C\nof A\na B\nnight C\nof A\n", "format: text",
                "type: tokens",
                "[CLS] the<A> x<B> ##y ##z ##x ##y ##z river<C> of<A> a<B> [SEP]\n");
}
END_TEST

/* ---- JSON ------------------------------------------------------------------------------------ */

START_TEST(test_quoted_cells)
{
    check_bytes("a.csv",
                "label,text\n\"neg\",\"the, river\"\npos,\"of \"\"a\"\"\"\nneg,the\npos,\"a\nb\"\n",
                "format: csv", "classes: [neg, pos]",
                "<neg>[CLS] the [UNK] river [SEP]\n<pos>[CLS] of [UNK] a [UNK] [SEP]\n"
                "<neg>[CLS] the [SEP]\n"
                "! 5: text: begins with a quote and ends in another line, which is not supported\n"
                "! 6: label: ends with a quote that it does not begin with\n");
}
END_TEST

START_TEST(test_json_lines)
{
    check_bytes("a.jsonl",
                "{\"text\": \"the\\nriver\", \"label\": 1}\n{\"label\": 0.5, \"text\": \"of\"}\n"
                "{\"text\": \"a\", \"label\": 1.0}\n{\"text\": \"a\"}\n{\"label\": \"1\"}\n"
                "{\"text\": {}, \"label\": 1}\n[1]\n{\"text\": \"a\\u0000\", \"label\": 1}\n",
                "format: jsonl, columns: [label, text]", "",
                "<1>[CLS] the river [SEP]\n<0.5>[CLS] of [SEP]\n<1>[CLS] a [SEP]\n"
                "! 4: label: the label is missing\n! 5: text: there is no word in it\n"
                "! 6: text: expected a text, a number, true, false or a list of these, without NUL "
                "characters\n! 7: is a JSON array, expected an object\n"
                "! 8: text: expected a text, a number, true, false or a list of these, without NUL "
                "characters\n");
}
END_TEST

/* Lists are items as they stand, whatever is in them. */
START_TEST(test_json_lists)
{
    check_bytes(
        "a.jsonl",
        "{\"text\": [\"the\", \"river\"], \"label\": [\"a, b\", true]}\n"
        "{\"text\": \"of\", \"label\": []}\n{\"text\": \"of\", \"label\": \"true,a\\nb\"}\n",
        "format: jsonl, columns: [label, text]", "type: multiple, classes: ['true', 'a b']",
        "00[CLS] of [SEP]\n! 1: label: \"a, b\" is none of the 2 classes: true, a b\n"
        "! 3: label: \"a\\x0ab\" is none of the 2 classes: true, a b\n");
    check_bytes("a.jsonl",
                "{\"w\": [\"the\", \"w o\", \"\", \"of\\nof\"], \"t\": [\"O\", \"B x\", \"O\", "
                "\"O\"]}\n{\"w\": [\"the\"], \"t\": []}\n{\"w\": [], \"t\": []}\n",
                "format: jsonl, columns: [w, t]", "type: tokens, text: w, column: t",
                "[CLS] the<O> w<B x> o of<O> of [SEP]\n! 2: t: 1 words have 0 labels\n"
                "! 3: w: there is no word in it\n");
}
END_TEST

/* ---- predictions ----------------------------------------------------------------------------- */

static void check_prediction(const char *name, const char *text, const char *data,
                             const char *labels, const char *expected)
{
    tdm_data_rig_options options = open_bytes(name, text, data, labels);
    options.label_use = TDM_LABEL_PREDICTION;
    check_rig(&options, expected);
    close_files();
}

START_TEST(test_predictions)
{
    check_prediction("a.tsv", "pos\tthe\nsad\triver\n\tof\npos\t\n", TSV, "classes: [neg, pos]",
                     "[CLS] the [SEP]\n[CLS] river [SEP]\n[CLS] of [SEP]\n"
                     "! 4: text: there is no word in it\n");
    check_prediction("a.tsv", "text\nthe\nof\n", "format: tsv", "",
                     "[CLS] the [SEP]\n[CLS] of [SEP]\n");
    /* One column is the text, whatever it is called. */
    check_prediction("a.txt", "the\n\nof a\n", "format: text, documents: line", "text: review",
                     "[CLS] the [SEP]\n[CLS] of a [SEP]\n");
    check_prediction("a.tsv", "the\tof\n", "format: tsv, header: false, columns: [a, b]",
                     "text: a, text_pair: b", "[CLS] the [SEP] of/1 [SEP]/1\n");
    check_prediction("a.txt", "the O\nWo B\n\n-DOCSTART- O\n\nof\n\xc2\xad\na\n", "format: text",
                     "type: tokens",
                     "[CLS] the<0> w<1> ##o [SEP]\n"
                     "[CLS] [UNK]<0> d ##o ##c ##s ##t ##a ##r ##t [UNK] [SEP]\n"
                     "[CLS] of<0> a<2> [SEP]\n");
    check_prediction("a.txt", "the Wo\n", "format: text, documents: line", "type: tokens",
                     "[CLS] the<0> w<1> ##o [SEP]\n");
}
END_TEST

START_TEST(test_records_of_rows)
{
    tdm_bad_record bad[] = {{.record = 0}, {.record = 3}};
    const tdm_extract block = {.records = 5, .bad = bad, .bad_count = 2};
    const int64_t expected[5] = {-1, 0, 1, -1, 2};
    int64_t rows[5];
    tdm_label_record_rows(&block, rows);
    ck_assert_mem_eq(rows, expected, sizeof rows);
}
END_TEST

/* ---- padded, wide ---------------------------------------------------------------------------- */

START_TEST(test_padded_batches)
{
    tdm_data_rig_options options =
        open_bytes("a.txt", "the A\nWo B\n\nof A\n", "format: text", "type: tokens");
    tdm_text_free(&recipe);
    ck_assert_ok(tdm_text_printf(&recipe,
                                 "text: {tokenizer: %s, max_length: 12, batch: padded}\n"
                                 "data: {format: text}\nlabels: {type: tokens}\n",
                                 vocabulary));
    options.text = recipe.bytes;
    tdm_data_rig rig;
    tdm_data_rig_open(&options, &rig);
    tdm_data_rig_start(&rig);
    tdm_delivery *delivery;
    ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
    tdm_masked_batch view = tdm_masked_batch_of(&delivery->batch);
    ck_assert_int_eq(view.rows, 2);
    ck_assert_int_eq(view.row_stride, 12);
    for (int64_t r = 0; r < 2; r++) {
        const uint32_t *labels = (const uint32_t *)view.labels + 12 * r;
        tdm_token_range row = tdm_masked_batch_row(&view, r);
        for (int64_t t = row.end; t < 12 * (r + 1); t++) {
            ck_assert_uint_eq(view.ids[t], 0);
            ck_assert_uint_eq(view.types[t], 0);
        }
        for (int64_t t = row.end - row.begin - 1; t < 12; t++)
            ck_assert_uint_eq(labels[t], TDM_NO_LABEL);
        ck_assert_uint_eq(labels[0], TDM_NO_LABEL);
        ck_assert_uint_eq(labels[1], 0);
    }
    tdm_pipeline_release(rig.pipeline, delivery);
    tdm_data_rig_close(&rig);
    close_files();
}
END_TEST

/* Ids of 32 bits: the head of a record is one row for each word. */
START_TEST(test_wide_vocabularies)
{
    tdm_data_rig_options options =
        open_bytes("a.tsv", "-1.5\tw65530 the\n2\tof\n", TSV, "type: regression");
    tdm_free(vocabulary);
    vocabulary = tdm_rig_vocabulary(folder, 65536);
    set_recipe(TSV, "type: regression");
    options.text = recipe.bytes;
    check_rig(&options, "<-1.5>[CLS] w65530 the [SEP]\n<2>[CLS] of [SEP]\n");
    close_files();
}
END_TEST

/* ---- classes that are found ------------------------------------------------------------------ */

static void check_found(const char *text, const char *data, const char *labels,
                        const char *expected)
{
    tdm_data_rig_options options = open_bytes("a.txt", text, data, labels);
    tdm_data_rig rig;
    tdm_text got = {0};
    options.threads = 3;
    options.block_bytes = 60;
    tdm_data_rig_open(&options, &rig);
    for (int64_t c = 0; c < rig.labels->classes.size; c++) {
        size_t bytes;
        const char *name = tdm_class_name(rig.labels, c, &bytes);
        ck_assert_ok(tdm_text_printf(&got, "%s%.*s", c > 0 ? "|" : "", (int)bytes, name));
    }
    ck_assert_str_eq(got.bytes, expected);
    tdm_text_free(&got);
    tdm_data_rig_close(&rig);
    close_files();
}

START_TEST(test_classes_are_found_in_order)
{
    check_found("10\ta\nz\ta\n9\ta\nA\ta\n-1\ta\n\ta\n1e1\ta\n10\ta\n", TSV, "", "-1|9|10|1e1|A|z");
    check_found("b, a\tx\n,c,b\tx\n", TSV, "type: multiple", "a|b|c");
    check_found("x B-PER\ny O\n\n-DOCSTART- Q\n\nz I-LOC\n", "format: text", "type: tokens",
                "B-PER|I-LOC|O");
}
END_TEST

static void check_not_found(const char *text, const char *data, const char *labels, tdm_status code,
                            const char *message)
{
    tdm_data_rig_options options = open_bytes("a.txt", text, data, labels);
    tdm_data_rig rig;
    ck_assert_fails(tdm_data_rig_try_open(&options, &rig), code, message);
    close_files();
}

START_TEST(test_classes_that_cannot_be_found)
{
    check_not_found("a\tx\na\ty\n", TSV, "", TDM_E_DATA,
                    "every record has the same label in label, a: there is nothing to learn");
    check_not_found("\tx\n", TSV, "", TDM_E_DATA, "no record has a label in label");
    check_not_found("\tx\na\tx\tz\nb\ty\tz\n", TSV, "", TDM_E_DATA,
                    "a.txt:2: 3 columns, expected 2");
    check_not_found(
        "label\ttext\na\tx\nb\ty\n", TSV, "", TDM_E_DATA,
        "a record has the label label, the name of its column: where files begin with a "
        "header, say data.header: true");
    check_not_found("x \xff\ny O\n", "format: text", "type: tokens", TDM_E_DATA,
                    "is not text in UTF-8");
    check_not_found("a\tx\n", TSV, "column: labels", TDM_E_CONFIG,
                    "r.yaml:3: labels.column: there is no column labels; did you mean label?");
    check_not_found("a\tx\n", TSV, "text: body", TDM_E_CONFIG,
                    "labels.text: there is no column body (columns: label .. text)");
    check_not_found("a\tx\n", TSV, "text_pair: b", TDM_E_CONFIG, "labels.text_pair: there is no");
    check_not_found("a x\n", "format: text, columns: [word, pos, tag]", "type: tokens, text: word",
                    TDM_E_CONFIG, "labels.column: there is no column label (columns: word .. tag)");
}
END_TEST

START_TEST(test_too_many_classes)
{
    tdm_text text = {0};
    for (int i = 0; i <= TDM_MAX_CLASSES; i++)
        ck_assert_ok(tdm_text_printf(&text, "%d\tx\n", i));
    check_not_found(text.bytes, TSV, "", TDM_E_DATA,
                    "label has more than 65536 different labels: is it the right column?");
    tdm_text_free(&text);
}
END_TEST

START_TEST(test_the_search_can_be_stopped)
{
    tdm_data_rig_options options = open_bytes("a.tsv", "a\tx\nb\ty\n", TSV, "");
    const atomic_bool stop = true;
    tdm_data_rig rig;
    options.cancel = &stop;
    ck_assert_fails(tdm_data_rig_try_open(&options, &rig), TDM_E_CANCELLED, "stopped");
    close_files();
}
END_TEST

/* The key of the cache tells of all that a record becomes, and of nothing else. */
START_TEST(test_the_cache_belongs_to_the_labels)
{
    static const char *const ways[][2] = {
        {TSV, "classes: [a, b]"},
        {TSV, "classes: [b, a]"},
        {TSV, "classes: [a, b], type: multiple"},
        {TSV, "classes: [a, b], type: multiple, separator: pipe"},
        {TSV, "classes: [a, b], type: tokens"},
        {TSV, "type: regression"},
        {"format: tsv, header: false, columns: [text, label]", "classes: [a, b]"},
        {"format: tsv, header: false, separator: comma, columns: [label, text]", "classes: [a, b]"},
    };
    uint64_t hashes[9];
    tdm_data_rig_options options = open_bytes("a.tsv", "a,\tb\n", TSV, "");
    tdm_data_rig rig;
    for (int i = 0; i < 9; i++) {
        set_recipe(ways[i % 8][0], ways[i % 8][1]);
        options.text = recipe.bytes;
        options.label_use = i == 8 ? TDM_LABEL_PREDICTION : TDM_LABEL_TRAINING;
        tdm_data_rig_open(&options, &rig);
        hashes[i] = rig.featurizer->spec_hash;
        tdm_data_rig_close(&rig);
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(hashes[i], hashes[j]);
    }
    close_files();
}
END_TEST

TDM_CHECK_MAIN(test_classes, test_records_that_are_refused, test_reasons_are_short,
               test_long_texts_are_cut, test_pairs, test_multiple, test_many_classes,
               test_regression, test_conll, test_conll_columns, test_words_in_cells,
               test_words_are_cut, test_quoted_cells, test_json_lines, test_json_lists,
               test_predictions, test_records_of_rows, test_padded_batches, test_wide_vocabularies,
               test_classes_are_found_in_order, test_classes_that_cannot_be_found,
               test_too_many_classes, test_the_search_can_be_stopped,
               test_the_cache_belongs_to_the_labels)

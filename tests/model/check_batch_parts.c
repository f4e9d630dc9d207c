/* Parts of a batch of text hold the same sequences, masks and labels as the batch. */
#include "core/file.h"
#include "core/memory.h"
#include "models/encoder.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/text_rig.h"
#include "text/masked_batch.h"
#include "trainer/batch_parts.h"

#include <stdio.h>
#include <string.h>

#define LENGTH 24

/* The tensor of a part; NULL where it has none of this name. */
static const void *part_tensor(const tdm_batch_layout *layout, const unsigned char *part,
                               const char *name)
{
    int tensor = tdm_batch_layout_find(layout, name);
    return tensor < 0 ? NULL : part + layout->tensors[tensor].offset;
}

/* Sequence `r` of the part is row `row` of the batch, and begins at token `begin` of it. */
static void check_row(const tdm_batch *batch, int64_t row, const tdm_batch_layout *layout,
                      const unsigned char *part, int64_t r, int64_t begin)
{
    tdm_masked_batch whole = tdm_masked_batch_of(batch);
    tdm_token_range range = tdm_masked_batch_row(&whole, row);
    const uint32_t *ids = part_tensor(layout, part, "ids");
    const uint32_t *rows = part_tensor(layout, part, "token_rows");
    size_t bytes = (size_t)(range.end - range.begin) * sizeof *ids;
    ck_assert_mem_eq(ids + begin, whole.ids + range.begin, bytes);
    for (int64_t t = begin; t < begin + range.end - range.begin; t++)
        ck_assert_int_eq(rows[t], r);
    static const int common[] = {TDM_BATCH_WEIGHT, TDM_BATCH_SAMPLE, TDM_BATCH_OCCURRENCE};
    for (int i = 0; i < 3; i++) {
        const char *tensor = (const char *)part + layout->tensors[common[i]].offset;
        size_t size = tdm_dtype_size(layout->tensors[common[i]].dtype);
        ck_assert_mem_eq(tensor + (size_t)r * size,
                         (char *)tdm_batch_data(batch, common[i]) + (size_t)row * size, size);
    }
}

/* Predictions from *next on are those of tokens [begin, end) of the batch. */
static void check_predictions(const tdm_batch *batch, const tdm_batch_layout *layout,
                              const unsigned char *part, int64_t begin, int64_t end, int64_t *next)
{
    tdm_masked_batch whole = tdm_masked_batch_of(batch);
    const uint32_t *positions = part_tensor(layout, part, "mask_positions");
    const uint32_t *labels = part_tensor(layout, part, "mask_labels");
    const int64_t *parts = part_tensor(layout, part, "mask_parts");
    int64_t count = *(const int64_t *)part_tensor(layout, part, "mask_count");
    int tensor = tdm_batch_layout_find(layout, "mask_parts");
    for (int64_t i = 0; i < count; i++, ++*next) {
        ck_assert_int_eq(begin + positions[i], whole.mask_positions[*next]);
        ck_assert_uint_eq(labels[i], whole.mask_labels[*next]);
    }
    ck_assert(*next == whole.mask_count || whole.mask_positions[*next] >= end);
    for (int64_t i = 0; i < tdm_shape_elements(&layout->tensors[tensor].shape); i++) {
        ck_assert(parts[i] == count || parts[i] == TDM_MASKED_PART);
        count -= parts[i];
    }
    ck_assert_int_eq(count, 0);
}

/* Where the sequences of a part begin, behind each other or at first_tokens. */
static int64_t row_begin(const tdm_batch_layout *layout, const unsigned char *part, int64_t r)
{
    const int32_t *begins = part_tensor(layout, part, "cu_seqlens");
    const uint32_t *first_tokens = part_tensor(layout, part, "first_tokens");
    return begins != NULL ? begins[r] : (int64_t)first_tokens[r];
}

/* Returns how many parts there were. */
static int check_parts(tdm_batch_parts *parts, const tdm_batch *batch,
                       const tdm_batch_layout *layout)
{
    tdm_masked_batch whole = tdm_masked_batch_of(batch);
    int64_t next_row = 0, next_prediction = 0;
    int count = 0;
    tdm_batch_parts_begin(parts, batch, batch->data);
    for (;; count++) {
        const unsigned char *part;
        tdm_row_range rows;
        ck_assert_ok(tdm_batch_parts_next(parts, &part, &rows));
        if (part == NULL)
            break;
        ck_assert_int_eq(rows.begin, next_row);
        ck_assert_int_gt(rows.end, rows.begin);
        ck_assert_int_le(*(const int64_t *)part_tensor(layout, part, "token_count"),
                         layout->max_tokens);
        for (int64_t r = rows.begin; r < rows.end; r++)
            check_row(batch, r, layout, part, r - rows.begin,
                      row_begin(layout, part, r - rows.begin));
        int64_t begin = tdm_masked_batch_row(&whole, rows.begin).begin;
        int64_t end =
            rows.end < whole.rows ? tdm_masked_batch_row(&whole, rows.end).begin : 1 << 30;
        check_predictions(batch, layout, part, begin, end, &next_prediction);
        next_row = rows.end;
    }
    ck_assert_int_eq(next_row, whole.rows);
    ck_assert_int_eq(next_prediction, whole.mask_count);
    return count;
}

/* Of parts of at most `tokens` tokens there are at least `least` for a full batch. */
static void check_text(const char *options, int64_t tokens, int least)
{
    char folder[TDM_FOLDER_BYTES];
    tdm_new_folder(folder);
    char *vocabulary = tdm_rig_vocabulary(folder, 0), *corpus = tdm_rig_corpus(5, 100);
    char *path = tdm_data_rig_put_text(folder, "corpus.txt", corpus), *section;
    ck_assert_ok(tdm_format(&section, "text: {tokenizer: %s, max_length: %d, %s}", vocabulary,
                            LENGTH, options));
    const tdm_data_rig_options rig_options = {.files = {path},
                                              .format = TDM_FORMAT_TEXT,
                                              .documents = TDM_DOCUMENTS_BLANK_LINE,
                                              .text = section,
                                              .block_bytes = 4000,
                                              .batch_tokens = 512};
    tdm_data_rig rig;
    tdm_batch_layout layout;
    tdm_batch_parts *parts;
    int most = 0;
    tdm_data_rig_open(&rig_options, &rig);
    tdm_data_rig_start(&rig);
    ck_assert_ok(tdm_batch_part_layout(&rig.featurizer->batch, tokens, LENGTH, &layout));
    ck_assert_int_le(layout.max_tokens, tokens);
    ck_assert_ok(tdm_batch_parts_create(&rig.featurizer->batch, &layout, rig.backend, &parts));
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        int count = delivery->epoch_end ? 0 : check_parts(parts, &delivery->batch, &layout);
        most = count > most ? count : most;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    ck_assert_int_ge(most, least);
    tdm_batch_parts_destroy(parts);
    tdm_data_rig_close(&rig);
    tdm_free(section);
    tdm_free(path);
    tdm_free(corpus);
    tdm_free(vocabulary);
    ck_assert_ok(tdm_folder_remove(folder));
}

START_TEST(parts_hold_what_the_batch_holds)
{
    check_text("masking: {rate: 0.15}", 512, 1);
    check_text("masking: {rate: 0.15}", LENGTH, 16);
    check_text("masking: {rate: 0.9, count: bernoulli}", 100, 4);
    check_text("sequences: segment_pairs, short_seq_prob: 0.5", 200, 2);
    check_text("batch: padded, sequences: one_per_record", 100, 4);
}
END_TEST

START_TEST(parts_that_hold_no_sequence)
{
    tdm_batch_layout from, layout;
    tdm_batch_layout_init(&from, 8);
    tdm_batch_layout_add(&from, "ids", TDM_U32, (tdm_shape){1, {256}});
    ck_assert_fails(tdm_batch_part_layout(&from, LENGTH - 1, LENGTH, &layout), TDM_E_CONFIG,
                    "train.micro_batch_tokens: 23 is less than text.max_length, 24");
}
END_TEST

TDM_CHECK_MAIN(parts_hold_what_the_batch_holds, parts_that_hold_no_sequence)

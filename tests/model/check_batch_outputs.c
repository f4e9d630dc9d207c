/* What a model puts out for a batch: how much that is, and where its numbers went wrong. */
#include "tests/support/check_main.h"
#include "trainer/outputs.h"

#include <math.h>
#include <string.h>

#define ROWS    3
#define TOKENS  12
#define COLUMNS 2

static tdm_bert_options encoder = {.hidden = 5};
static tdm_featurizer featurizer;
static tdm_task task;
static _Alignas(64) unsigned char data[4096];
static tdm_batch batch;

static void begin(bool padded)
{
    tdm_batch_layout *layout = &featurizer.batch;
    tdm_batch_layout_init(layout, ROWS);
    layout->max_tokens = padded ? 0 : TOKENS;
    int spans = tdm_batch_layout_add(layout, padded ? "lengths" : "cu_seqlens", TDM_I32,
                                     (tdm_shape){1, {ROWS + 1}});
    ck_assert_uint_le(layout->bytes, sizeof data);
    batch = (tdm_batch){.layout = layout, .data = data, .rows = ROWS};
    const int32_t begins[] = {0, 4, 7, 9}, lengths[] = {4, 3, 2, 0};
    memcpy(tdm_batch_data(&batch, spans), padded ? lengths : begins, sizeof begins);
    task = (tdm_task){.featurizer = &featurizer, .output = "logits"};
}

static void use_head(tdm_text_head head)
{
    task.encoder = &encoder;
    task.inputs = (tdm_model_inputs){.max_length = 4, .head = head, .classes = COLUMNS};
}

/* Where the number at `index` alone is none. */
static int64_t find(int index)
{
    float numbers[TOKENS * COLUMNS] = {0};
    const tdm_outputs outputs = {.task = &task, .host = numbers};
    if (index >= 0)
        numbers[index] = NAN;
    return tdm_outputs_find_non_finite(&outputs, &batch);
}

START_TEST(numbers_of_rows)
{
    begin(false);
    ck_assert_int_eq(tdm_outputs_bytes(&task), ROWS * sizeof(float));
    ck_assert_int_eq(find(-1), -1);
    ck_assert_int_eq(find(2), 2);
    use_head(TDM_HEAD_CLASSES);
    ck_assert_int_eq(tdm_outputs_bytes(&task), ROWS * COLUMNS * sizeof(float));
    ck_assert_int_eq(find(2), 1);
    ck_assert_int_eq(find(5), 2);
    ck_assert_int_eq(find(6), -1);
    task.output = NULL;
    ck_assert_int_eq(tdm_outputs_bytes(&task), 0);
}
END_TEST

START_TEST(numbers_of_tokens)
{
    begin(false);
    use_head(TDM_HEAD_TOKEN_CLASSES);
    ck_assert_int_eq(tdm_outputs_bytes(&task), TOKENS * COLUMNS * sizeof(float));
    ck_assert_int_eq(find(7), 0);
    ck_assert_int_eq(find(8), 1);
    ck_assert_int_eq(find(17), 2);
    ck_assert_int_eq(find(18), -1);
    use_head(TDM_HEAD_NONE);
    ck_assert_int_eq(tdm_outputs_bytes(&task), TOKENS * 5 * sizeof(float));
}
END_TEST

START_TEST(padding_has_none)
{
    begin(true);
    use_head(TDM_HEAD_TOKEN_CLASSES);
    ck_assert_int_eq(tdm_outputs_bytes(&task), ROWS * 4 * COLUMNS * sizeof(float));
    ck_assert_int_eq(find(13), 1);
    ck_assert_int_eq(find(14), -1);
    ck_assert_int_eq(find(16), 2);
    ck_assert_int_eq(find(20), -1);
}
END_TEST

TDM_CHECK_MAIN(numbers_of_rows, numbers_of_tokens, padding_has_none)

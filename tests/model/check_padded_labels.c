/* Labelled texts are learnt the same in padded batches. */
#include "core/json.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/text_runs.h"
#include "tests/support/training.h"
#include "trainer/run_folder.h"

#include <string.h>

typedef struct first_step {
    double loss, norm, labels;
} first_step;

/* The first step, on all records, of a run. */
static first_step read_first_step(const char *name)
{
    char *text = tdm_test_read(tdm_test_path(tdm_text_path(name), TDM_RUN_METRICS));
    *strchr(text, '\n') = '\0';
    json_t *line = json_loads(text, 0, NULL);
    first_step step = {json_number_value(json_object_get(line, "loss")),
                       json_number_value(json_object_get(line, "gradient_norm")),
                       json_number_value(json_object_get(line, "labels"))};
    json_decref(line);
    tdm_free(text);
    return step;
}

static first_step train(const char *name, const char *labels, const char *file, const char *batch,
                        const char *part)
{
    ck_assert_ok(tdm_text_train(TDM_TASK_CLASSIFY, name,
                                WITH(TINY_MODEL, labels, tdm_text_override("data.train=", file),
                                     batch, part, "model.dropout=0", "train.batch_tokens=8192",
                                     "train.log_every_steps=1")));
    return read_first_step(name);
}

static void assert_same(const char *labels, const char *file)
{
    static const char whole[] = "train.micro_batch_tokens=0";
    tdm_text_runs_begin();
    first_step dense = train("dense", labels, file, "text.batch=unpadded", whole);
    first_step padded = train("padded", labels, file, "text.batch=padded", whole);
    first_step parts =
        train("parts", labels, file, "text.batch=padded", "train.micro_batch_tokens=64");
    ck_assert_double_gt(dense.loss, 0);
    ck_assert_double_eq_tol(padded.loss, dense.loss, 1e-5);
    ck_assert_double_eq_tol(padded.norm, dense.norm, 1e-4 * dense.norm);
    ck_assert_double_eq(padded.labels, dense.labels);
    ck_assert_double_eq_tol(parts.loss, dense.loss, 1e-5);
    tdm_text_runs_end();
}

START_TEST(labels_of_texts)
{
    assert_same("labels={type: classes}", "lines.tsv");
    assert_same("labels={type: multiple}", "lines.tsv");
}
END_TEST

START_TEST(labels_of_words)
{
    assert_same("labels={type: tokens}", "words.txt");
}
END_TEST

TDM_CHECK_MAIN(labels_of_texts, labels_of_words)

#include "tests/support/same_run.h"

#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/training.h"
#include "trainer/checkpoint.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

const char *tdm_test_checkpoint(const char *run_folder, int64_t step, const char *name)
{
    static char paths[4][600];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/checkpoints/step-%08lld/%s", run_folder, (long long)step,
             name);
    return path;
}

uint64_t tdm_test_weights_hash(const char *run_folder, int64_t step)
{
    uint64_t hash;
    int64_t bytes;
    ck_assert_ok(
        tdm_file_hash(tdm_test_checkpoint(run_folder, step, "model.safetensors"), &hash, &bytes));
    return hash;
}

static void assert_same_file(const char *a, const char *b)
{
    uint64_t hash_a, hash_b;
    int64_t bytes_a, bytes_b;
    ck_assert_ok(tdm_file_hash(a, &hash_a, &bytes_a));
    ck_assert_ok(tdm_file_hash(b, &hash_b, &bytes_b));
    ck_assert_msg(hash_a == hash_b && bytes_a == bytes_b, "%s and %s differ", a, b);
}

/* Names the first line that differs: the texts are too long for a message. */
static void assert_same_text(const char *what, const char *a, const char *b)
{
    size_t line = 0;
    for (size_t i = 0; a[i] == b[i]; i++) {
        if (a[i] == '\0')
            return;
        line = a[i] == '\n' ? i + 1 : line;
    }
    ck_abort_msg("%s: %.300s\nis now %.300s", what, a + line, b + line);
}

/* state.json without what times decide. */
static char *read_state(const char *run_folder, int64_t step)
{
    json_t *state = json_load_file(tdm_test_checkpoint(run_folder, step, "state.json"), 0, NULL);
    ck_assert_ptr_nonnull(state);
    json_object_del(state, "seconds");
    json_object_del(state, "metrics_bytes");
    json_object_del(state, "machine");
    char *text = json_dumps(state, JSON_SORT_KEYS | JSON_INDENT(1));
    json_decref(state);
    return text;
}

static void assert_same_states(const char *a, const char *b, int64_t step)
{
    char *left = read_state(a, step), *right = read_state(b, step);
    assert_same_text("state.json", left, right);
    free(left);
    free(right);
}

static void assert_same_metrics(const char *a, const char *b)
{
    char *left = tdm_test_metrics(a), *right = tdm_test_metrics(b);
    assert_same_text("metrics.jsonl", left, right);
    tdm_free(left);
    tdm_free(right);
}

/* A file that is only there where records were bad. */
static void assert_same_quarantine(const char *a, const char *b)
{
    bool there = tdm_file_exists(tdm_test_path(a, "quarantine.txt"));
    ck_assert_int_eq(there, tdm_file_exists(tdm_test_path(b, "quarantine.txt")));
    if (!there)
        return;
    char *left = tdm_test_read(tdm_test_path(a, "quarantine.txt"));
    char *right = tdm_test_read(tdm_test_path(b, "quarantine.txt"));
    assert_same_text("quarantine.txt", left, right);
    tdm_free(left);
    tdm_free(right);
}

static void assert_same_best(const char *a, const char *b)
{
    int64_t best[2];
    bool found[2];
    ck_assert_ok(tdm_checkpoint_best(a, &best[0], &found[0]));
    ck_assert_ok(tdm_checkpoint_best(b, &best[1], &found[1]));
    ck_assert_int_eq(found[0], found[1]);
    if (found[0])
        ck_assert_int_eq(best[0], best[1]);
}

void tdm_assert_same_runs(const char *a, const char *b, int64_t step)
{
    static const char *const files[] = {"model.safetensors", "optimizer.safetensors"};
    for (int i = 0; i < 2; i++)
        assert_same_file(tdm_test_checkpoint(a, step, files[i]),
                         tdm_test_checkpoint(b, step, files[i]));
    assert_same_states(a, b, step);
    assert_same_metrics(a, b);
    assert_same_quarantine(a, b);
    assert_same_best(a, b);
}

static void stop_training(void *context, const tdm_train_status *status)
{
    tdm_test_stop *stop = context;
    if (status->event == stop->event && status->step >= stop->step)
        atomic_store(&stop->stop, true);
}

tdm_train_control tdm_test_stopping(tdm_test_stop *stop, bool resume)
{
    return (tdm_train_control){
        .resume = resume, .stop = &stop->stop, .monitor = stop_training, .monitor_context = stop};
}

#include "trainer/training.h"

#include "core/clock.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/memory.h"
#include "trainer/checkpoint.h"
#include "trainer/tensor_file.h"

#include <stdlib.h>
#include <string.h>

#define STATE_BYTES_MAX ((size_t)1 << 30)

/* ---- what else state.json keeps -------------------------------------------------------------- */

static json_t *pack_inputs(const tdm_input *input)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < tdm_input_file_count(input) && list != NULL; i++) {
        const tdm_input_file *file = tdm_input_file_get(input, i);
        json_t *item =
            json_pack("{s:s, s:I, s:I}", "path", file->path, "bytes", (json_int_t)file->bytes,
                      "modified_ns", (json_int_t)file->modified_ns);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Settings that the position depends on; the whole recipe is in recipe.yaml. */
static json_t *pack_order(const tdm_recipe *recipe)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f}", "seed", (json_int_t)recipe->seed,
                     "batch_size", (json_int_t)recipe->train.batch_size, "lanes",
                     (json_int_t)recipe->data.lanes, "window_blocks",
                     (json_int_t)recipe->data.window_blocks, "block_bytes",
                     (json_int_t)recipe->data.block_bytes, "hold_out", recipe->eval.hold_out);
}

/* On what the bits depend. */
static json_t *pack_machine(const tdm_session *session)
{
    return json_pack("{s:s, s:s, s:s, s:i}", "tandem", TDM_VERSION, "device",
                     session->properties.name, "instructions", session->properties.instructions,
                     "threads", tdm_pool_threads(session->pool));
}

static tdm_status put(json_t *object, const char *key, json_t *value)
{
    TDM_FAIL_IF(json_object_set_new(object, key, value) != 0, TDM_E_NOMEM,
                "out of memory for the state of the training");
    return TDM_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static tdm_status save_tensors(tdm_training *training, tdm_checkpoint_writer *writer,
                               const char *name, const tdm_saved_tensor *tensors, int count)
{
    char *path;
    uint64_t hash;
    int64_t bytes;
    if (count == 0)
        return TDM_OK;
    TDM_TRY(tdm_checkpoint_writer_path(writer, name, &path));
    tdm_status status =
        tdm_tensor_file_save(path, training->session.backend, tensors, count, &hash, &bytes);
    tdm_free(path);
    TDM_TRY(status);
    return tdm_checkpoint_writer_add(writer, name, hash, bytes);
}

static tdm_status save_model(tdm_training *training, tdm_checkpoint_writer *writer)
{
    tdm_saved_tensor *tensors = NULL;
    int count;
    tdm_status status = tdm_model_tensors(training->session.model, &tensors, &count);
    if (status == TDM_OK)
        status = save_tensors(training, writer, TDM_MODEL_FILE, tensors, count);
    tdm_free(tensors);
    return status;
}

static tdm_status save_optimizer(tdm_training *training, tdm_checkpoint_writer *writer)
{
    tdm_saved_tensor *tensors = NULL;
    int count;
    tdm_status status = tdm_optimizer_tensors(training->optimizer, &tensors, &count);
    if (status == TDM_OK)
        status = save_tensors(training, writer, TDM_OPTIMIZER_FILE, tensors, count);
    tdm_free(tensors);
    return status;
}

static tdm_status put_state(tdm_training *training, tdm_checkpoint_writer *writer, json_t *state)
{
    TDM_TRY(put(state, "inputs", pack_inputs(training->session.input)));
    TDM_TRY(put(state, "order", pack_order(training->recipe)));
    TDM_TRY(put(state, "machine", pack_machine(&training->session)));
    char *text = json_dumps(state, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
    TDM_FAIL_IF(text == NULL, TDM_E_NOMEM, "out of memory for the state of the training");
    tdm_status status = tdm_checkpoint_writer_put(writer, TDM_STATE_FILE, text, strlen(text));
    free(text);
    return status;
}

static tdm_status save_state(tdm_training *training, tdm_checkpoint_writer *writer)
{
    tdm_train_state *state = &training->state;
    json_t *saved;
    TDM_TRY(tdm_run_folder_sync(training->folder, &state->metrics_bytes));
    TDM_TRY(tdm_bad_record_log_sync(training->bad, &state->bad));
    state->seconds = tdm_training_seconds(training);
    TDM_TRY(tdm_train_state_save(state, (int)training->recipe->data.lanes, &saved));
    tdm_status status = put_state(training, writer, saved);
    json_decref(saved);
    return status;
}

static tdm_status write_checkpoint(tdm_training *training, const char *folder)
{
    tdm_checkpoint_writer *writer;
    tdm_status status;
    TDM_TRY(tdm_checkpoint_writer_begin(folder, training->state.step, &writer));
    TDM_TRY_GOTO(save_model(training, writer), done);
    TDM_TRY_GOTO(save_optimizer(training, writer), done);
    TDM_TRY_GOTO(save_state(training, writer), done);
    status = tdm_checkpoint_writer_commit(writer);
done:
    tdm_checkpoint_writer_close(writer);
    return status;
}

tdm_status tdm_training_save(tdm_training *training)
{
    const char *folder = tdm_run_folder_path(training->folder);
    const tdm_train_state *state = &training->state;
    double start = tdm_clock_seconds();
    tdm_status status = write_checkpoint(training, folder);
    if (status != TDM_OK && training->saved_step >= 0)
        return tdm_fail_context(status, "step %lld was not saved, the last good step is %lld",
                                (long long)state->step, (long long)training->saved_step);
    if (status != TDM_OK)
        return tdm_fail_context(status, "step %lld was not saved", (long long)state->step);
    training->saved_step = state->step;
    if (state->best_step == state->step)
        TDM_TRY(tdm_checkpoint_set_best(folder, state->step));
    TDM_TRY(tdm_checkpoint_prune(folder, state->step, training->recipe->checkpoint.keep_last,
                                 state->best_step));
    training->saved_at = tdm_clock_seconds();
    tdm_training_add_pause(training, training->saved_at - start);
    tdm_training_tell(training, TDM_EVENT_CHECKPOINT);
    return TDM_OK;
}

/* ---- restoring ------------------------------------------------------------------------------- */

static tdm_status check_file(const tdm_input_file *file, const json_t *saved)
{
    const char *path = json_string_value(json_object_get(saved, "path"));
    json_int_t bytes = json_integer_value(json_object_get(saved, "bytes"));
    json_int_t modified = json_integer_value(json_object_get(saved, "modified_ns"));
    TDM_FAIL_IF(path == NULL || strcmp(path, file->path) != 0, TDM_E_CONFIG,
                "the training data is not what it was: %s now, %s before", file->path,
                path == NULL ? "nothing" : path);
    TDM_FAIL_IF(bytes != file->bytes, TDM_E_CONFIG,
                "%s: has %lld bytes, had %lld when this training began: resuming would not go on "
                "with the same training; restore the file, or train into another folder "
                "(output.dir)",
                path, (long long)file->bytes, (long long)bytes);
    if (modified != file->modified_ns)
        tdm_warn("%s: was changed or copied since this training began; its length is the same, so "
                 "training goes on",
                 path);
    return TDM_OK;
}

static tdm_status check_inputs(const tdm_input *input, const json_t *saved)
{
    size_t count = json_array_size(saved);
    TDM_FAIL_IF(count != (size_t)tdm_input_file_count(input), TDM_E_CONFIG,
                "the training data is not what it was: %d files now, %zu before",
                (int)tdm_input_file_count(input), count);
    for (int32_t i = 0; i < tdm_input_file_count(input); i++)
        TDM_TRY(check_file(tdm_input_file_get(input, i), json_array_get(saved, (size_t)i)));
    return TDM_OK;
}

/* recipe.yaml was compared already; this finds one that was edited since. */
static tdm_status check_order(const tdm_recipe *recipe, const json_t *saved)
{
    json_t *order = pack_order(recipe);
    TDM_FAIL_IF(order == NULL, TDM_E_NOMEM, "out of memory for the state of the training");
    const char *wrong = NULL;
    const char *key;
    json_t *value;
    json_object_foreach(order, key, value)
    {
        if (!json_equal(value, json_object_get(saved, key)))
            wrong = wrong == NULL ? key : wrong;
    }
    tdm_status status = TDM_OK;
    if (wrong != NULL)
        status = tdm_fail(TDM_E_CONFIG,
                          "%s is not what it was when the checkpoint was saved: was %s edited?",
                          wrong, TDM_RUN_RECIPE);
    json_decref(order);
    return status;
}

static void compare_machine(const tdm_session *session, const json_t *saved)
{
    const char *device = json_string_value(json_object_get(saved, "device"));
    const char *instructions = json_string_value(json_object_get(saved, "instructions"));
    bool same = device != NULL && instructions != NULL &&
                strcmp(device, session->properties.name) == 0 &&
                strcmp(instructions, session->properties.instructions) == 0;
    if (!same)
        tdm_warn("this training began on %s (%s) and goes on on %s (%s): results may differ in "
                 "their last bits from those of one machine",
                 device == NULL ? "another device" : device,
                 instructions == NULL ? "" : instructions, session->properties.name,
                 session->properties.instructions);
}

static tdm_status apply_state(tdm_training *training, const json_t *saved)
{
    const tdm_recipe *recipe = training->recipe;
    TDM_TRY(tdm_train_state_restore(&training->state, (int)recipe->data.lanes, saved));
    TDM_TRY(check_order(recipe, json_object_get(saved, "order")));
    TDM_TRY(check_inputs(training->session.input, json_object_get(saved, "inputs")));
    compare_machine(&training->session, json_object_get(saved, "machine"));
    return TDM_OK;
}

static tdm_status restore_state(tdm_training *training, const char *folder, int64_t step)
{
    char *path;
    json_t *saved;
    TDM_TRY(tdm_checkpoint_path(folder, step, TDM_STATE_FILE, &path));
    tdm_status status = tdm_json_file_get(path, STATE_BYTES_MAX, &saved);
    if (status == TDM_OK) {
        status = apply_state(training, saved);
        if (status == TDM_E_FORMAT || status == TDM_E_VERSION)
            status = tdm_fail_context(status, "%s", path);
    }
    json_decref(saved);
    tdm_free(path);
    return status;
}

static tdm_status restore_tensors(tdm_training *training, const char *folder, int64_t step,
                                  const char *name, const tdm_saved_tensor *tensors, int count)
{
    char *path;
    if (count == 0)
        return TDM_OK;
    TDM_TRY(tdm_checkpoint_path(folder, step, name, &path));
    tdm_status status = tdm_tensor_file_load(path, training->session.backend, tensors, count);
    tdm_free(path);
    return status;
}

static tdm_status restore_all_tensors(tdm_training *training, const char *folder, int64_t step)
{
    tdm_saved_tensor *tensors = NULL;
    int count;
    tdm_status status = tdm_model_tensors(training->session.model, &tensors, &count);
    if (status == TDM_OK)
        status = restore_tensors(training, folder, step, TDM_MODEL_FILE, tensors, count);
    tdm_free(tensors);
    tensors = NULL;
    TDM_TRY(status);
    status = tdm_optimizer_tensors(training->optimizer, &tensors, &count);
    if (status == TDM_OK)
        status = restore_tensors(training, folder, step, TDM_OPTIMIZER_FILE, tensors, count);
    tdm_free(tensors);
    return status;
}

/* `verified` is known to be good; the message tells why another is not. */
static tdm_status is_good(const char *folder, int64_t step, int64_t verified, bool *good)
{
    tdm_status status = step == verified ? TDM_OK : tdm_checkpoint_verify(folder, step);
    *good = status == TDM_OK;
    return status == TDM_E_NOMEM ? status : TDM_OK;
}

/* The best of the evaluated steps whose checkpoints are there and good. */
static tdm_status choose_best(tdm_train_state *state, const char *folder, int64_t verified)
{
    state->best_step = -1;
    for (size_t i = 0; i < state->score_count; i++) {
        const tdm_score *score = &state->scores[i];
        if (!tdm_train_state_is_better(state, score->score))
            continue;
        bool good;
        TDM_TRY(is_good(folder, score->step, verified, &good));
        if (!good)
            continue;
        state->best_step = score->step;
        state->best_score = score->score;
    }
    return TDM_OK;
}

/* The link may lie behind or before `step`, the checkpoint that is gone on from. */
static tdm_status restore_best(tdm_training *training, const char *folder, int64_t step)
{
    tdm_train_state *state = &training->state;
    bool good = true;
    if (state->best_step >= 0)
        TDM_TRY(is_good(folder, state->best_step, step, &good));
    if (!good) {
        tdm_warn("the best checkpoint, of step %lld, cannot be used, so that the best of those "
                 "that are left takes its place: %s",
                 (long long)state->best_step, tdm_error_message());
        TDM_TRY(choose_best(state, folder, step));
    }
    if (state->best_step >= 0)
        return tdm_checkpoint_set_best(folder, state->best_step);
    char *path;
    TDM_TRY(tdm_format(&path, "%s/checkpoints/best", folder));
    tdm_status status = tdm_file_remove(path);
    tdm_free(path);
    return status;
}

static tdm_status cut_files(tdm_training *training)
{
    tdm_status status = tdm_run_folder_cut(training->folder, training->state.metrics_bytes);
    if (status == TDM_E_FORMAT) {
        tdm_warn("%s; training goes on without the lines that are gone", tdm_error_message());
        status = TDM_OK;
    }
    TDM_TRY(status);
    return tdm_bad_record_log_restore(training->bad, &training->state.bad);
}

tdm_status tdm_training_restore(tdm_training *training, int64_t step)
{
    const char *folder = tdm_run_folder_path(training->folder);
    TDM_TRY(restore_state(training, folder, step));
    TDM_TRY(restore_all_tensors(training, folder, step));
    TDM_TRY(restore_best(training, folder, step));
    TDM_TRY(cut_files(training));
    training->resumed_step = training->saved_step = step;
    return TDM_OK;
}

#include "interchange/pretrained_plan.h"

#include "core/log.h"
#include "core/memory.h"

#include <string.h>

#define STAGING_FLOATS ((int64_t)1 << 20)
#define LIST_NAMES     8

typedef struct load {
    const tdm_pretrained_plan *plan;
    tdm_backend *backend;
    float *staging; /* [STAGING_FLOATS] */
} load;

/* ---- writing --------------------------------------------------------------------------------- */

/* Elements of a step's rows from `first` on, which lie in staging, to the device. */
static tdm_status put(const load *to, const tdm_pretrained_step *one, int64_t first, int64_t count)
{
    float *data = to->plan->to.parameters[one->parameter].data + one->first + first;
    TDM_TRY(to->backend->type->copy_in(to->backend, data, to->staging,
                                       (size_t)count * sizeof(float), NULL));
    return to->backend->type->stream_sync(to->backend, NULL);
}

static tdm_status write_plain(const load *to, const tdm_pretrained_step *one)
{
    int64_t all = one->rows * one->columns, some;
    for (int64_t at = 0; at < all; at += some) {
        some = all - at < STAGING_FLOATS ? all - at : STAGING_FLOATS;
        TDM_TRY(tdm_pretrained_tensors_read(to->plan->from->tensors, one->tensor, at, to->staging,
                                            some));
        TDM_TRY(put(to, one, at, some));
    }
    return TDM_OK;
}

static tdm_status write_transposed(const load *to, const tdm_pretrained_step *one)
{
    float *theirs;
    int64_t all = one->rows * one->columns;
    tdm_status status;
    TDM_TRY(tdm_alloc((size_t)all, sizeof *theirs, &theirs));
    TDM_TRY_GOTO(tdm_pretrained_tensors_read(to->plan->from->tensors, one->tensor, 0, theirs, all),
                 done);
    for (int64_t at = 0, some; at < all; at += some) {
        some = all - at < STAGING_FLOATS ? all - at : STAGING_FLOATS;
        for (int64_t i = 0; i < some; i++) {
            int64_t row = (at + i) / one->columns, column = (at + i) % one->columns;
            to->staging[i] = theirs[column * one->rows + row];
        }
        TDM_TRY_GOTO(put(to, one, at, some), done);
    }
done:
    tdm_free(theirs);
    return status;
}

/* ---- rows of tokens -------------------------------------------------------------------------- */

/* Sums rows of theirs in doubles. */
typedef struct row_mean {
    double *sum; /* [columns] */
    float *row;  /* [columns] */
    double *all; /* [columns]: the mean of all rows */
    bool has_all;
} row_mean;

static tdm_status add_row(const load *to, const tdm_pretrained_step *one, int64_t row,
                          row_mean *mean)
{
    TDM_TRY(tdm_pretrained_tensors_read(to->plan->from->tensors, one->tensor, row * one->columns,
                                        mean->row, one->columns));
    for (int64_t i = 0; i < one->columns; i++)
        mean->sum[i] += (double)mean->row[i];
    return TDM_OK;
}

/* The mean of the rows of all tokens of theirs. */
static tdm_status mean_of_all(const load *to, const tdm_pretrained_step *one, row_mean *mean)
{
    if (mean->has_all)
        return TDM_OK;
    int64_t count = tdm_tokenizer_size(to->plan->from->tokenizer);
    memset(mean->sum, 0, (size_t)one->columns * sizeof *mean->sum);
    for (int64_t row = 0; row < count; row++)
        TDM_TRY(add_row(to, one, row, mean));
    for (int64_t i = 0; i < one->columns; i++)
        mean->all[i] = mean->sum[i] / (double)count;
    mean->has_all = true;
    return TDM_OK;
}

static tdm_status make_row(const load *to, const tdm_pretrained_step *one, int64_t id,
                           row_mean *mean, float *out)
{
    const int64_t *rows = to->plan->rows.rows + to->plan->rows.starts[id];
    int64_t count = to->plan->rows.starts[id + 1] - to->plan->rows.starts[id];
    if (count == 1)
        return tdm_pretrained_tensors_read(to->plan->from->tensors, one->tensor,
                                           rows[0] * one->columns, out, one->columns);
    const double *sum = mean->sum;
    if (count == 0) {
        TDM_TRY(mean_of_all(to, one, mean));
        sum = mean->all;
        count = 1;
    } else {
        memset(mean->sum, 0, (size_t)one->columns * sizeof *mean->sum);
        for (int64_t i = 0; i < count; i++)
            TDM_TRY(add_row(to, one, rows[i], mean));
    }
    for (int64_t i = 0; i < one->columns; i++)
        out[i] = (float)(sum[i] / (double)count);
    return TDM_OK;
}

static tdm_status write_rows(const load *to, const tdm_pretrained_step *one)
{
    row_mean mean = {0};
    size_t columns = (size_t)one->columns;
    int64_t fit = STAGING_FLOATS / one->columns, some;
    tdm_status status;
    TDM_TRY_GOTO(tdm_alloc(columns, sizeof *mean.sum, &mean.sum), done);
    TDM_TRY_GOTO(tdm_alloc(columns, sizeof *mean.all, &mean.all), done);
    TDM_TRY_GOTO(tdm_alloc(columns, sizeof *mean.row, &mean.row), done);
    for (int64_t id = 0; id < one->rows; id += some) {
        some = one->rows - id < fit ? one->rows - id : fit;
        for (int64_t i = 0; i < some; i++)
            TDM_TRY_GOTO(make_row(to, one, id + i, &mean, to->staging + i * one->columns), done);
        TDM_TRY_GOTO(put(to, one, id * one->columns, some * one->columns), done);
    }
done:
    tdm_free(mean.sum);
    tdm_free(mean.all);
    tdm_free(mean.row);
    return status;
}

static tdm_status write(const load *to, const tdm_pretrained_step *one)
{
    if (one->by_token && to->plan->rows.count > 0 && !to->plan->rows.are_same)
        return write_rows(to, one);
    return one->transposed ? write_transposed(to, one) : write_plain(to, one);
}

static tdm_status write_all(const tdm_pretrained_plan *plan, tdm_backend *backend)
{
    load to = {.plan = plan, .backend = backend};
    tdm_status status = TDM_OK;
    TDM_TRY(backend->type->host_alloc(backend, STAGING_FLOATS * sizeof(float), &to.staging));
    for (size_t i = 0; i < plan->step_count && status == TDM_OK; i++)
        status = write(&to, &plan->steps[i]);
    backend->type->host_free(backend, to.staging);
    return status;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Names, the first ones of many. */
typedef struct name_list {
    tdm_text text;
    int count;
} name_list;

static tdm_status add_name(name_list *list, const char *name)
{
    if (list->count < LIST_NAMES)
        TDM_TRY(tdm_text_printf(&list->text, "%s%s", list->count == 0 ? "" : ", ", name));
    list->count++;
    return TDM_OK;
}

static void tell(const tdm_pretrained_plan *plan, name_list *list, const char *what)
{
    if (list->count > LIST_NAMES)
        tdm_info("%s: %s: %s and %d more", tdm_pretrained_tensors_path(plan->from->tensors), what,
                 list->text.bytes, list->count - LIST_NAMES);
    else if (list->count > 0)
        tdm_info("%s: %s: %s", tdm_pretrained_tensors_path(plan->from->tensors), what,
                 list->text.bytes);
    tdm_text_free(&list->text);
}

static tdm_status tell_kept(const tdm_pretrained_plan *plan, tdm_pretrained_report *report)
{
    name_list list = {0};
    tdm_status status = TDM_OK;
    for (int i = 0; i < plan->to.count && status == TDM_OK; i++) {
        if (plan->parts_found[i] == 0)
            status = add_name(&list, plan->to.parameters[i].name);
    }
    report->kept = list.count;
    report->loaded = plan->to.count - list.count;
    tell(plan, &list, "has no values for these parameters, which keep their initial ones");
    return status;
}

static tdm_status tell_unused(const tdm_pretrained_plan *plan, tdm_pretrained_report *report)
{
    name_list list = {0};
    tdm_status status = TDM_OK;
    int count = tdm_pretrained_tensors_count(plan->from->tensors);
    for (int i = 0; i < count && status == TDM_OK; i++) {
        const char *name = tdm_pretrained_tensors_get(plan->from->tensors, i)->name;
        if (!plan->used[i] && !tdm_weight_is_redundant(plan->naming, name))
            status = add_name(&list, name);
    }
    report->unused = list.count;
    tell(plan, &list, "tensors that this model has no place for");
    return status;
}

static void tell_tokens(const tdm_pretrained_plan *plan, tdm_pretrained_report *report)
{
    const tdm_vocabulary_rows *rows = &plan->rows;
    report->new_tokens = rows->new_tokens;
    report->left_out = rows->left_out;
    if (rows->new_tokens > 0 || rows->left_out > 0)
        tdm_info("%s: %lld tokens are new and begin as the mean of their pieces, %lld of them as "
                 "the mean of all tokens; %lld tokens are left out",
                 tdm_pretrained_tensors_path(plan->from->tensors), (long long)rows->new_tokens,
                 (long long)rows->without_pieces, (long long)rows->left_out);
    if (plan->padding_rows > 0)
        tdm_info("%s: has %lld rows of tokens more than the vocabulary beside it has tokens; they "
                 "are left out as padding",
                 tdm_pretrained_tensors_path(plan->from->tensors), (long long)plan->padding_rows);
}

static void warn_of_settings(const tdm_pretrained_plan *plan)
{
    if (plan->from->tokenizer == NULL)
        return;
    tdm_tokenizer_settings theirs = tdm_tokenizer_get_settings(plan->from->tokenizer);
    tdm_tokenizer_settings ours = tdm_tokenizer_get_settings(plan->to.tokenizer);
    if (theirs.lowercase != ours.lowercase || theirs.strip_accents != ours.strip_accents ||
        theirs.handle_chinese_chars != ours.handle_chinese_chars)
        tdm_warn("%s: was trained on text with lowercase %d, strip_accents %d, "
                 "handle_chinese_chars %d, and the recipe's tokenizer has %d, %d, %d: it will see "
                 "other tokens than it knows",
                 tdm_pretrained_tensors_path(plan->from->tensors), theirs.lowercase,
                 theirs.strip_accents, theirs.handle_chinese_chars, ours.lowercase,
                 ours.strip_accents, ours.handle_chinese_chars);
}

tdm_status tdm_pretrained_load(const tdm_pretrained *pretrained, const tdm_bert_options *options,
                               const tdm_model_inputs *inputs, const tdm_tokenizer *tokenizer,
                               tdm_backend *backend, const tdm_saved_tensor *parameters, int count,
                               tdm_pretrained_report *report)
{
    const tdm_pretrained_target target = {options, inputs, tokenizer, parameters, count};
    tdm_pretrained_plan plan;
    tdm_status status;
    *report = (tdm_pretrained_report){0};
    TDM_TRY(tdm_pretrained_plan_create(pretrained, &target, &plan));
    warn_of_settings(&plan);
    TDM_TRY_GOTO(write_all(&plan, backend), done);
    TDM_TRY_GOTO(tell_kept(&plan, report), done);
    TDM_TRY_GOTO(tell_unused(&plan, report), done);
    tell_tokens(&plan, report);
done:
    tdm_pretrained_plan_free(&plan);
    return status;
}

tdm_status tdm_pretrained_load_all(const tdm_pretrained *pretrained,
                                   const tdm_bert_options *options, const tdm_model_inputs *inputs,
                                   const tdm_tokenizer *tokenizer, tdm_backend *backend,
                                   const tdm_saved_tensor *parameters, int count)
{
    const tdm_pretrained_target target = {options, inputs, tokenizer, parameters, count};
    tdm_pretrained_plan plan;
    TDM_TRY(tdm_pretrained_plan_create(pretrained, &target, &plan));
    tdm_status status = TDM_OK;
    for (int i = 0; i < count && status == TDM_OK; i++) {
        if (plan.parts_found[i] == 0)
            status = tdm_fail(TDM_E_FORMAT,
                              "%s: has no values for %s: it is of a model without that part",
                              tdm_pretrained_tensors_path(pretrained->tensors), parameters[i].name);
    }
    if (status == TDM_OK)
        status = write_all(&plan, backend);
    tdm_pretrained_plan_free(&plan);
    return status;
}

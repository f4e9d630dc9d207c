#include "interchange/pretrained_plan.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

static const char *path_of(const tdm_pretrained_plan *plan)
{
    return tdm_pretrained_tensors_path(plan->from->tensors);
}

/* ---- finding --------------------------------------------------------------------------------- */

static int find_parameter(const tdm_pretrained_plan *plan, const char *name)
{
    for (int i = 0; i < plan->to.count; i++) {
        if (strcmp(plan->to.parameters[i].name, name) == 0)
            return i;
    }
    return -1;
}

/* Norms were called gamma and beta before 2019. */
static int find_spelled(const tdm_pretrained_plan *plan, const char *name)
{
    static const struct {
        const char *now, *before;
    } spellings[] = {{".weight", ".gamma"}, {".bias", ".beta"}};
    int found = tdm_pretrained_tensors_find(plan->from->tensors, name);
    if (found >= 0 || strstr(name, "LayerNorm") == NULL)
        return found;
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        size_t length = strlen(name), bytes = strlen(spellings[i].now);
        if (strcmp(name + length - bytes, spellings[i].now) != 0)
            continue;
        char old[TDM_WEIGHT_NAME_BYTES + 8];
        snprintf(old, sizeof old, "%.*s%s", (int)(length - bytes), name, spellings[i].before);
        found = tdm_pretrained_tensors_find(plan->from->tensors, old);
    }
    return found;
}

/* The tensor of theirs, with what stands before its name or without it. */
static int find_tensor(const tdm_pretrained_plan *plan, const char *name)
{
    const char *prefix = tdm_weight_prefix(plan->naming);
    int found = find_spelled(plan, name);
    if (found < 0 && strncmp(name, prefix, strlen(prefix)) == 0)
        found = find_spelled(plan, name + strlen(prefix));
    return found;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static const char *print_shape(const tdm_shape *shape, char text[96])
{
    size_t used = (size_t)snprintf(text, 96, "[");
    for (int i = 0; i < shape->rank; i++)
        used += (size_t)snprintf(text + used, 96 - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)shape->sizes[i]);
    snprintf(text + used, 96 - used, "]");
    return text;
}

/* What theirs must be to be this part of ours. */
static tdm_shape shape_wanted(const tdm_weight *weight, const tdm_shape *ours)
{
    tdm_shape shape = *ours;
    shape.sizes[0] /= weight->parts;
    if (weight->transposed) {
        shape.sizes[0] = ours->sizes[1];
        shape.sizes[1] = ours->sizes[0] / weight->parts;
    }
    return shape;
}

/* Which of ours' dimensions differs; -1: none. The number of rows of tokens is looked at
 * elsewhere. */
static int differing_dimension(const tdm_weight *weight, const tdm_shape *wanted,
                               const tdm_shape *theirs)
{
    if (theirs->rank != wanted->rank)
        return 0;
    for (int i = 0; i < wanted->rank; i++) {
        int dimension = weight->transposed ? 1 - i : i;
        if (weight->sizes[dimension] != 'V' && theirs->sizes[i] != wanted->sizes[i])
            return dimension;
    }
    return -1;
}

static tdm_status shape_refused(const tdm_pretrained_plan *plan, const tdm_weight *weight,
                                int dimension, const tdm_pretrained_tensor *tensor,
                                const tdm_shape *wanted)
{
    const char *key;
    char theirs[96], ours[96];
    tdm_weight_size(weight->sizes[dimension], plan->to.options, plan->to.inputs, &key);
    return tdm_fail(TDM_E_CONFIG,
                    "%s: tensor \"%s\" is %s, and %s takes %s: %s is set in another way here",
                    path_of(plan), tensor->name, print_shape(&tensor->shape, theirs), weight->ours,
                    print_shape(wanted, ours), key);
}

/* ---- planning -------------------------------------------------------------------------------- */

static tdm_status add_step(tdm_pretrained_plan *plan, const tdm_weight *weight, int parameter,
                           int tensor)
{
    const tdm_shape *shape = &plan->to.parameters[parameter].shape;
    int64_t columns = shape->rank > 1 ? shape->sizes[1] : 1;
    int64_t rows = shape->sizes[0] / weight->parts;
    TDM_TRY(
        tdm_grow(&plan->steps, &plan->step_capacity, plan->step_count + 1, sizeof *plan->steps));
    plan->steps[plan->step_count++] = (tdm_pretrained_step){.tensor = tensor,
                                                            .parameter = parameter,
                                                            .first = weight->part * rows * columns,
                                                            .rows = rows,
                                                            .columns = columns,
                                                            .transposed = weight->transposed,
                                                            .by_token = weight->sizes[0] == 'V'};
    plan->parts_found[parameter]++;
    plan->used[tensor] = true;
    return TDM_OK;
}

static tdm_status part_missing(const tdm_pretrained_plan *plan, const tdm_weight *weight)
{
    return tdm_fail(TDM_E_FORMAT,
                    "%s: has no tensor \"%s\", which %s is made of: it is incomplete, or of "
                    "another model",
                    path_of(plan), weight->theirs, weight->ours);
}

static tdm_status plan_weight(void *context, const tdm_weight *weight)
{
    tdm_pretrained_plan *plan = context;
    int parameter = find_parameter(plan, weight->ours);
    if (parameter < 0)
        return TDM_OK;
    int index = find_tensor(plan, weight->theirs);
    if (index < 0) {
        bool is_needed =
            weight->group == TDM_GROUP_ENCODER || plan->parts_found[parameter] != weight->part;
        return is_needed ? part_missing(plan, weight) : TDM_OK;
    }
    const tdm_pretrained_tensor *tensor = tdm_pretrained_tensors_get(plan->from->tensors, index);
    const tdm_shape *ours = &plan->to.parameters[parameter].shape;
    TDM_FAIL_IF(ours->rank != weight->rank || ours->sizes[0] % weight->parts != 0, TDM_E_ARG,
                "parameter %s is not one of an encoder", weight->ours);
    /* No elements, but what their type is. */
    TDM_TRY(tdm_pretrained_tensors_read(plan->from->tensors, index, 0, &(float){0}, 0));
    tdm_shape wanted = shape_wanted(weight, ours);
    int dimension = differing_dimension(weight, &wanted, &tensor->shape);
    if (dimension < 0)
        return add_step(plan, weight, parameter, index);
    if (weight->group == TDM_GROUP_CLASSIFIER && weight->sizes[dimension] == 'C')
        return TDM_OK;
    return shape_refused(plan, weight, dimension, tensor, &wanted);
}

/* Tables are padded to multiples of at most as many rows. */
#define PADDED_ROWS 1024

/* The number of rows of a table of tokens. */
static tdm_status check_rows(tdm_pretrained_plan *plan, const tdm_pretrained_step *one)
{
    const tdm_tokenizer *theirs = plan->from->tokenizer;
    const tdm_pretrained_tensor *tensor =
        tdm_pretrained_tensors_get(plan->from->tensors, one->tensor);
    long long rows = tensor->shape.sizes[0], ours = one->rows;
    TDM_FAIL_IF(theirs == NULL && rows != ours, TDM_E_DATA,
                "%s: tensor \"%s\" has %lld rows, the tokenizer of the recipe %lld tokens, and no "
                "vocab.txt beside it says what tokens its rows are of: put it there",
                path_of(plan), tensor->name, rows, ours);
    if (theirs == NULL)
        return TDM_OK;
    long long tokens = tdm_tokenizer_size(theirs);
    plan->padding_rows = rows - tokens;
    TDM_FAIL_IF(rows < tokens, TDM_E_FORMAT,
                "%s: tensor \"%s\" has %lld rows, and the vocabulary beside it %lld tokens: it is "
                "of another checkpoint",
                path_of(plan), tensor->name, rows, tokens);
    TDM_FAIL_IF(
        plan->padding_rows >= PADDED_ROWS, TDM_E_FORMAT,
        "%s: tensor \"%s\" has %lld rows, and the vocabulary beside it only %lld tokens: it "
        "is cut off, or of another checkpoint",
        path_of(plan), tensor->name, rows, tokens);
    return TDM_OK;
}

/* Which rows of theirs those of our tokens are. */
static tdm_status plan_rows(tdm_pretrained_plan *plan)
{
    long long tokens = tdm_tokenizer_size(plan->to.tokenizer);
    TDM_FAIL_IF(tokens != plan->to.inputs->vocabulary, TDM_E_ARG,
                "the tokenizer has %lld tokens, and the model is to have %lld", tokens,
                (long long)plan->to.inputs->vocabulary);
    for (size_t i = 0; i < plan->step_count; i++) {
        if (plan->steps[i].by_token)
            TDM_TRY(check_rows(plan, &plan->steps[i]));
    }
    if (plan->from->tokenizer == NULL)
        return TDM_OK;
    return tdm_vocabulary_rows_create(plan->from->tokenizer, plan->to.tokenizer, &plan->rows);
}

/* Parameters of the encoder that no name of theirs stands for. */
static tdm_status check_complete(const tdm_pretrained_plan *plan)
{
    static const char *const heads[] = {"pooler.", "masked.", "pair.", "classifier."};
    for (int i = 0; i < plan->to.count; i++) {
        const char *name = plan->to.parameters[i].name;
        bool is_head = false;
        for (size_t j = 0; j < sizeof heads / sizeof heads[0]; j++)
            is_head = is_head || strncmp(name, heads[j], strlen(heads[j])) == 0;
        TDM_FAIL_IF(plan->parts_found[i] == 0 && !is_head, TDM_E_CONFIG,
                    "%s: has nothing for %s: it is of a model of type %s, which has no such "
                    "parameter",
                    path_of(plan), name, tdm_encoder_family_name(plan->from->config.family));
    }
    return TDM_OK;
}

static tdm_status check_tied(const tdm_pretrained_plan *plan)
{
    const tdm_pretrained_tensors *tensors = plan->from->tensors;
    bool has_decoder =
        tdm_pretrained_tensors_find(tensors, "cls.predictions.decoder.weight") >= 0 ||
        tdm_pretrained_tensors_find(tensors, "decoder.weight") >= 0;
    TDM_FAIL_IF(!plan->from->config.tied && has_decoder, TDM_E_UNSUPPORTED,
                "%s: tie_word_embeddings is false: the decoder of masked tokens is the word table "
                "here, and this checkpoint has another one",
                plan->from->config.path);
    return TDM_OK;
}

static tdm_status make_plan(tdm_pretrained_plan *plan)
{
    int tensors = tdm_pretrained_tensors_count(plan->from->tensors);
    TDM_TRY(tdm_alloc((size_t)plan->to.count + 1, sizeof *plan->parts_found, &plan->parts_found));
    TDM_TRY(tdm_alloc((size_t)tensors + 1, sizeof *plan->used, &plan->used));
    TDM_TRY(check_tied(plan));
    TDM_TRY(tdm_weight_names_each(plan->naming, plan->to.options->layers, plan_weight, plan));
    TDM_TRY(check_complete(plan));
    return plan_rows(plan);
}

tdm_status tdm_pretrained_plan_create(const tdm_pretrained *from, const tdm_pretrained_target *to,
                                      tdm_pretrained_plan *out)
{
    *out = (tdm_pretrained_plan){.from = from, .to = *to};
    out->naming = (tdm_weight_naming)from->config.family;
    if (tdm_pretrained_tensors_are_tensorflow(from->tensors))
        out->naming = TDM_NAMING_TENSORFLOW;
    if (from->is_ours)
        out->naming = TDM_NAMING_OURS;
    tdm_status status = make_plan(out);
    if (status != TDM_OK)
        tdm_pretrained_plan_free(out);
    return status;
}

void tdm_pretrained_plan_free(tdm_pretrained_plan *plan)
{
    tdm_free(plan->steps);
    tdm_free(plan->parts_found);
    tdm_free(plan->used);
    tdm_vocabulary_rows_free(&plan->rows);
    *plan = (tdm_pretrained_plan){0};
}

#include "core/memory.h"
#include "trainer/loss_sums.h"
#include "trainer/metrics.h"
#include "trainer/saved_number.h"

#include <string.h>

/* ---- adding ---------------------------------------------------------------------------------- */

static double weight_of(const tdm_class_step *step, int64_t i)
{
    return step->weights == NULL ? 1.0 : (double)step->weights[i];
}

/* The first of the largest logits, but the label's where it is one of them. */
static uint32_t predict(const float *logits, int64_t classes, uint32_t label)
{
    uint32_t best = label;
    for (uint32_t i = 0; i < classes; i++) {
        if (logits[i] > logits[best])
            best = i;
    }
    return best;
}

static void count_label(tdm_class_metrics *metrics, const float *logits, uint32_t label,
                        double weight)
{
    uint32_t predicted = predict(logits, metrics->classes.count, label);
    metrics->counts[label].labelled += weight;
    metrics->counts[predicted].predicted += weight;
    if (predicted == label)
        metrics->counts[label].right += weight;
}

static void count_set(tdm_class_metrics *metrics, const float *probabilities, const float *labels,
                      double weight)
{
    for (int64_t i = 0; i < metrics->classes.count; i++) {
        bool predicted = probabilities[i] > 0.5f, labelled = labels[i] > 0.5f;
        metrics->counts[i].labelled += labelled ? weight : 0.0;
        metrics->counts[i].predicted += predicted ? weight : 0.0;
        metrics->counts[i].right += predicted && labelled ? weight : 0.0;
    }
}

/* The second of two classes is the positive one. */
static tdm_status add_to_auc(tdm_auc *auc, const tdm_class_step *step)
{
    enum { SOME = 256 };
    float scores[SOME], labels[SOME], weights[SOME];
    for (int64_t at = 0; at < step->count;) {
        int64_t count = 0;
        for (; at < step->count && count < SOME; at++) {
            const float *logits = step->outputs + 2 * at;
            if (step->labels[at] == TDM_NO_LABEL)
                continue;
            scores[count] = (float)(1.0 / (1.0 + exp((double)logits[0] - (double)logits[1])));
            labels[count] = (float)step->labels[at];
            weights[count++] = (float)weight_of(step, at);
        }
        TDM_TRY(tdm_auc_add(auc, scores, labels, weights, count));
    }
    return TDM_OK;
}

tdm_status tdm_class_metrics_add(tdm_class_metrics *metrics, const tdm_class_step *step)
{
    const int64_t classes = metrics->classes.count;
    if (metrics->has_auc)
        TDM_TRY(add_to_auc(&metrics->auc, step));
    for (int64_t i = 0; i < step->count; i++) {
        const float *outputs = step->outputs + i * classes;
        double weight = weight_of(step, i);
        if (weight == 0.0 || (step->labels != NULL && step->labels[i] == TDM_NO_LABEL))
            continue;
        if (step->labels != NULL)
            count_label(metrics, outputs, step->labels[i], weight);
        else
            count_set(metrics, outputs, step->label_sets + i * classes, weight);
        metrics->labels++;
    }
    metrics->rows += step->rows;
    tdm_loss_sums_add(&metrics->loss, &step->loss);
    return TDM_OK;
}

/* ---- the accumulator ------------------------------------------------------------------------- */

static tdm_status init(tdm_metrics *metrics)
{
    tdm_class_metrics *classes = &metrics->of_classes;
    classes->classes = metrics->spec.classes;
    return tdm_alloc((size_t)classes->classes.count, sizeof *classes->counts, &classes->counts);
}

static tdm_status init_binary(tdm_metrics *metrics)
{
    TDM_TRY(init(metrics));
    metrics->of_classes.has_auc = true;
    return tdm_auc_init(&metrics->of_classes.auc, metrics->exact_auc_rows);
}

static void deinit(tdm_metrics *metrics)
{
    tdm_auc_deinit(&metrics->of_classes.auc);
    tdm_free(metrics->of_classes.counts);
}

static void reset(tdm_metrics *metrics)
{
    tdm_class_metrics *classes = &metrics->of_classes;
    if (classes->has_auc)
        tdm_auc_reset(&classes->auc);
    memset(classes->counts, 0, (size_t)classes->classes.count * sizeof *classes->counts);
    classes->rows = classes->labels = 0;
    classes->loss = (tdm_loss_scalars){0};
}

static tdm_status merge(tdm_metrics *into_all, const tdm_metrics *from_all)
{
    tdm_class_metrics *into = &into_all->of_classes;
    const tdm_class_metrics *from = &from_all->of_classes;
    if (into->has_auc)
        TDM_TRY(tdm_auc_merge(&into->auc, &from->auc));
    for (int64_t i = 0; i < into->classes.count; i++) {
        into->counts[i].right += from->counts[i].right;
        into->counts[i].predicted += from->counts[i].predicted;
        into->counts[i].labelled += from->counts[i].labelled;
    }
    into->rows += from->rows;
    into->labels += from->labels;
    tdm_loss_sums_add(&into->loss, &from->loss);
    return TDM_OK;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* [class, right, predicted, labelled, class, …] of the classes that have any; NULL without
 * memory. */
static json_t *save_counts(const tdm_class_metrics *classes)
{
    json_t *array = json_array();
    int failed = array == NULL;
    for (int64_t i = 0; i < classes->classes.count && !failed; i++) {
        const tdm_class_counts *counts = &classes->counts[i];
        if (counts->predicted == 0.0 && counts->labelled == 0.0)
            continue;
        failed |= json_array_append_new(array, json_integer(i));
        failed |= json_array_append_new(array, tdm_saved_double(counts->right));
        failed |= json_array_append_new(array, tdm_saved_double(counts->predicted));
        failed |= json_array_append_new(array, tdm_saved_double(counts->labelled));
    }
    if (!failed)
        return array;
    json_decref(array);
    return NULL;
}

static tdm_status restore_counts(const json_t *saved, tdm_class_metrics *classes)
{
    const json_t *array = json_object_get(saved, "classes");
    TDM_FAIL_IF(!json_is_array(array) || json_array_size(array) % 4 != 0, TDM_E_FORMAT,
                "saved metrics: classes is not a list of four numbers a class");
    json_int_t last = -1;
    for (size_t i = 0; i < json_array_size(array); i += 4) {
        const json_t *index = json_array_get(array, i);
        json_int_t class = json_is_integer(index) ? json_integer_value(index) : -1;
        tdm_class_counts counts;
        bool good = class > last && class < classes->classes.count &&
                    tdm_saved_double_get(json_array_get(array, i + 1), &counts.right) &&
                    tdm_saved_double_get(json_array_get(array, i + 2), &counts.predicted) &&
                    tdm_saved_double_get(json_array_get(array, i + 3), &counts.labelled) &&
                    counts.right >= 0.0 && counts.predicted >= 0.0 && counts.labelled >= 0.0;
        TDM_FAIL_IF(!good, TDM_E_FORMAT, "saved metrics: classes is damaged at item %zu", i);
        classes->counts[class] = counts;
        last = class;
    }
    return TDM_OK;
}

static int save(const tdm_metrics *metrics, json_t *object)
{
    const tdm_class_metrics *classes = &metrics->of_classes;
    int failed = json_object_set_new(object, "rows", json_integer(classes->rows));
    failed |= json_object_set_new(object, "labels", json_integer(classes->labels));
    failed |= json_object_set_new(object, "loss", tdm_loss_sums_save(&classes->loss));
    failed |= json_object_set_new(object, "classes", save_counts(classes));
    if (classes->has_auc)
        failed |= json_object_set_new(object, "auc_bins", tdm_auc_save(&classes->auc));
    return failed;
}

static tdm_status restore(tdm_metrics *metrics, const json_t *saved)
{
    tdm_class_metrics *classes = &metrics->of_classes;
    TDM_TRY(tdm_saved_count_restore(saved, "rows", &classes->rows));
    TDM_TRY(tdm_saved_count_restore(saved, "labels", &classes->labels));
    TDM_TRY(tdm_loss_sums_restore(saved, "loss", &classes->loss));
    TDM_TRY(restore_counts(saved, classes));
    return classes->has_auc ? tdm_auc_restore(&classes->auc, json_object_get(saved, "auc_bins"))
                            : TDM_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* NaN of a class that is neither predicted nor there. */
static double f1_of(const tdm_class_counts *counts)
{
    return tdm_ratio(2.0 * counts->right, counts->predicted + counts->labelled);
}

static double macro_f1(const tdm_class_metrics *classes)
{
    double sum = 0.0, count = 0.0;
    for (int64_t i = 0; i < classes->classes.count; i++) {
        double f1 = f1_of(&classes->counts[i]);
        sum += isnan(f1) ? 0.0 : f1;
        count += isnan(f1) ? 0.0 : 1.0;
    }
    return tdm_ratio(sum, count);
}

static double micro_f1(const tdm_class_metrics *classes, int64_t left_out)
{
    tdm_class_counts all = {0};
    for (int64_t i = 0; i < classes->classes.count; i++) {
        if (i == left_out)
            continue;
        all.right += classes->counts[i].right;
        all.predicted += classes->counts[i].predicted;
        all.labelled += classes->counts[i].labelled;
    }
    return f1_of(&all);
}

/* Values in the order of the type's table. */
static void fill(const tdm_metrics *metrics, const double *values, tdm_metrics_result *out)
{
    const tdm_metrics_type *type = metrics->spec.type;
    const tdm_class_metrics *classes = &metrics->of_classes;
    bool is_lost = isnan(classes->loss.loss_sum);
    *out = (tdm_metrics_result){.rows = classes->rows};
    for (int i = 0; i < type->metric_count; i++) {
        const tdm_metric *metric = &type->metrics[i];
        tdm_metrics_result_add(out, metric, is_lost && !metric->is_count ? NAN : values[i]);
    }
}

#define LOSS                                                                                       \
    {                                                                                              \
        .name = "loss", .title = "loss", .brief = "loss", .headline = 1, .decimals = 5,            \
        .goal = TDM_GOAL_LOWER                                                                     \
    }
#define SHARE(key, in_table, in_line, place)                                                       \
    {                                                                                              \
        .name = (key), .title = (in_table), .brief = (in_line), .headline = (place),               \
        .decimals = 5, .goal = TDM_GOAL_HIGHER                                                     \
    }

static const tdm_metric binary_table[] = {
    LOSS,
    SHARE("accuracy", "accuracy", "accuracy", 2),
    SHARE("auc", "auc", "AUC", 3),
    {.name = "auc_error", .title = "auc error, at most", .is_error = true},
    SHARE("f1", "f1", "F1", 4),
};

static tdm_status binary_result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    tdm_class_metrics *classes = &metrics->of_classes;
    tdm_auc_result auc;
    TDM_TRY(tdm_auc_get(&classes->auc, pool, &auc));
    const double values[] = {tdm_loss_sums_mean(&classes->loss),
                             tdm_loss_sums_accuracy(&classes->loss), auc.auc, auc.error,
                             f1_of(&classes->counts[1])};
    fill(metrics, values, out);
    return TDM_OK;
}

static const tdm_metric class_table[] = {
    LOSS,
    SHARE("accuracy", "accuracy", "accuracy", 2),
    SHARE("macro_f1", "macro f1", "F1", 3),
};

static tdm_status class_result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    const tdm_class_metrics *classes = &metrics->of_classes;
    const double values[] = {tdm_loss_sums_mean(&classes->loss),
                             tdm_loss_sums_accuracy(&classes->loss), macro_f1(classes)};
    (void)pool;
    fill(metrics, values, out);
    return TDM_OK;
}

static const tdm_metric token_table[] = {
    LOSS,
    SHARE("accuracy", "accuracy", "accuracy", 3),
    SHARE("micro_f1", "micro f1", "F1", 2),
    {.name = "labels", .title = "labels", .is_count = true},
};

static tdm_status token_result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    const tdm_class_metrics *classes = &metrics->of_classes;
    const double values[] = {tdm_loss_sums_mean(&classes->loss),
                             tdm_loss_sums_accuracy(&classes->loss),
                             micro_f1(classes, classes->classes.none), (double)classes->labels};
    (void)pool;
    fill(metrics, values, out);
    return TDM_OK;
}

static const tdm_metric multiple_table[] = {
    LOSS,
    SHARE("accuracy", "accuracy", "accuracy", 3),
    SHARE("micro_f1", "micro f1", "F1", 2),
};

static tdm_status multiple_result(tdm_metrics *metrics, tdm_pool *pool, tdm_metrics_result *out)
{
    const tdm_class_metrics *classes = &metrics->of_classes;
    const double values[] = {tdm_loss_sums_mean(&classes->loss),
                             tdm_loss_sums_accuracy(&classes->loss), micro_f1(classes, -1)};
    (void)pool;
    fill(metrics, values, out);
    return TDM_OK;
}

#define TYPE(of, table, default_best, start, results)                                              \
    {                                                                                              \
        .name = (of), .metrics = (table), .metric_count = sizeof(table) / sizeof(table)[0],        \
        .best = (default_best), .init = (start), .deinit = deinit, .reset = reset, .merge = merge, \
        .save = save, .restore = restore, .result = (results)                                      \
    }

const tdm_metrics_type tdm_binary_metrics_type =
    TYPE("two classes", binary_table, "accuracy", init_binary, binary_result);
const tdm_metrics_type tdm_class_metrics_type =
    TYPE("more than two classes", class_table, "accuracy", init, class_result);
const tdm_metrics_type tdm_token_metrics_type =
    TYPE("classes of tokens", token_table, "micro_f1", init, token_result);
const tdm_metrics_type tdm_multiple_metrics_type =
    TYPE("any number of classes", multiple_table, "micro_f1", init, multiple_result);

#include "cli/train_figures.h"

#include "cli/console.h"
#include "cli/machine.h"
#include "cli/op_profile.h"
#include "cli/progress.h"

#include <stdio.h>

/* ---- what follows ---------------------------------------------------------------------------- */

/* Rows a second, of text tokens, that the matrix products alone would allow. Attention's products
 * are taken to run as fast as the fastest of the others. */
static double limit_of(const tdm_train_figures *figures)
{
    const tdm_step_work *work = &figures->work;
    int count = figures->product_count;
    if (!figures->is_text)
        return (double)figures->batch_size / tdm_products_seconds(figures->products, count);
    double parts = (double)work->parts;
    double seconds = parts * tdm_products_seconds_onednn(figures->products, count) +
                     work->attention_flops / tdm_products_best_onednn(figures->products, count);
    return (double)work->tokens / seconds;
}

/* Rows a second, of text tokens. */
static double speed_of(const tdm_train_figures *figures)
{
    const char *work;
    double per_row = figures->is_text ? tdm_metrics_result_work(&figures->result.train, &work) : 1;
    return figures->result.rows_per_second * per_row;
}

static double wait_share(const tdm_train_figures *figures)
{
    const tdm_train_pace *pace = &figures->result.pace;
    return tdm_ratio(pace->wait_seconds, pace->seconds);
}

/* Of the time of all threads. */
static double reading_share(const tdm_train_figures *figures)
{
    const tdm_train_pace *pace = &figures->result.pace;
    return tdm_ratio(pace->reading_seconds, pace->seconds * figures->threads);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *products_json(const tdm_train_figures *figures)
{
    json_t *products = json_array();
    for (int i = 0; i < figures->product_count; i++) {
        const tdm_product_speed *speed = &figures->products[i];
        double flops = tdm_product_flops(&speed->product);
        json_array_append_new(
            products,
            json_pack("{s:I, s:I, s:I, s:b, s:b, s:i, s:o, s:o}", "m", (json_int_t)speed->product.m,
                      "n", (json_int_t)speed->product.n, "k", (json_int_t)speed->product.k,
                      "trans_a", speed->product.trans_a, "trans_b", speed->product.trans_b, "times",
                      speed->times, "gflops", tdm_json_number(flops / speed->ours / 1e9),
                      "onednn_gflops", tdm_json_number(flops / speed->onednn / 1e9)));
    }
    return products;
}

static json_t *profile_json(void)
{
    int count;
    const tdm_op_time *times = tdm_op_profile_get(&count);
    json_t *ops = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(ops, json_pack("{s:s, s:o, s:I}", "op", times[i].name, "seconds",
                                             tdm_json_number(times[i].seconds), "calls",
                                             (json_int_t)times[i].calls));
    return ops;
}

static json_t *speeds_json(const tdm_train_figures *figures)
{
    const tdm_train_result *result = &figures->result;
    bool is_text = figures->is_text;
    bool has_limit = figures->product_count > 0;
    const char *limit = is_text ? "matmul_limit_tokens_per_second" : "matmul_limit_rows_per_second";
    const char *loss = is_text ? "loss" : "logloss";
    json_t *json =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", limit,
                  has_limit ? tdm_json_number(limit_of(figures)) : json_null(), "share_of_limit",
                  has_limit ? tdm_json_number(speed_of(figures) / limit_of(figures)) : json_null(),
                  "wait_for_batches", tdm_json_number(wait_share(figures)), "reading_share",
                  tdm_json_number(reading_share(figures)), loss,
                  tdm_json_number(tdm_metrics_result_get(&result->train, loss)), "rows_per_second",
                  tdm_json_number(result->rows_per_second));
    json_t *own =
        is_text
            ? json_pack("{s:I, s:o, s:o, s:I}", "tokens", (json_int_t)figures->work.tokens,
                        "tokens_per_second", tdm_json_number(speed_of(figures)), "flops",
                        tdm_json_number(result->flops), "parts", (json_int_t)figures->work.parts)
            : json_pack("{s:o}", "bytes_per_second",
                        tdm_json_number(result->rows_per_second * figures->bytes_per_row));
    json_object_update_new(json, own);
    return json;
}

tdm_status tdm_train_figures_json(const tdm_train_figures *figures)
{
    json_t *json =
        json_pack("{s:I, s:I, s:s, s:i, s:o}", "rows", (json_int_t)figures->result.rows, "steps",
                  (json_int_t)figures->result.step, "precision", figures->precision, "threads",
                  figures->threads, "products", products_json(figures));
    json_object_update_new(json, speeds_json(figures));
    if (figures->profiled)
        json_object_set_new(json, "ops", profile_json());
    return tdm_console_json(json);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_speed(const tdm_train_figures *figures)
{
    const tdm_train_result *result = &figures->result;
    if (figures->is_text) {
        printf("%lld sequences of %.1f tokens, in %lld steps, %s\n", (long long)result->rows,
               (double)figures->work.tokens / (double)figures->work.rows, (long long)result->step,
               figures->precision);
        printf("text to trained weights  %s tokens/s  %s sequences/s  %.1f GFLOP/s\n",
               tdm_count_text(speed_of(figures)), tdm_count_text(result->rows_per_second),
               result->flops / 1e9);
    } else {
        printf("%lld rows in %lld steps\n", (long long)result->rows, (long long)result->step);
        printf("text to trained weights  %s rows/s  %s/s\n",
               tdm_count_text(result->rows_per_second),
               tdm_bytes_text(result->rows_per_second * figures->bytes_per_row));
    }
    if (figures->product_count > 0)
        printf("matrix products alone    %s %s/s: training is at %.0f%% of that\n",
               tdm_count_text(limit_of(figures)), figures->is_text ? "tokens" : "rows",
               100 * speed_of(figures) / limit_of(figures));
    printf("reading                  the model waits %.1f%% of the time, reading takes %.1f%% of "
           "the processors\n",
           100 * wait_share(figures), 100 * reading_share(figures));
}

static void print_products(const tdm_train_figures *figures)
{
    printf("\n%6s %8s %8s %8s %12s %12s\n", "times", "m", "n", "k", "ours GF/s", "oneDNN GF/s");
    for (int i = 0; i < figures->product_count; i++) {
        const tdm_product_speed *speed = &figures->products[i];
        double flops = tdm_product_flops(&speed->product);
        printf("%6d %8lld %8lld %8lld %12.1f %12.1f\n", speed->times, (long long)speed->product.m,
               (long long)speed->product.n, (long long)speed->product.k, flops / speed->ours / 1e9,
               flops / speed->onednn / 1e9);
    }
}

static void print_op(const char *name, double seconds, const tdm_train_pace *pace)
{
    printf("%-24s %10.3f %8.1f\n", name, 1e3 * seconds / (double)pace->steps,
           100 * seconds / pace->seconds);
}

static void print_profile(const tdm_train_pace *pace)
{
    int count;
    const tdm_op_time *times = tdm_op_profile_get(&count);
    double rest = pace->seconds - pace->wait_seconds;
    printf("\n%-24s %10s %8s\n", "op", "ms a step", "% of all");
    for (int i = 0; i < count; i++) {
        print_op(times[i].name, times[i].seconds, pace);
        rest -= times[i].seconds;
    }
    print_op("(waiting for batches)", pace->wait_seconds, pace);
    print_op("(the rest)", rest, pace);
}

void tdm_train_figures_print(const tdm_train_figures *figures)
{
    print_speed(figures);
    if (figures->profiled)
        print_profile(&figures->result.pace);
    if (figures->product_count > 0)
        print_products(figures);
}

#include "tests/support/data_rig.h"

#include "core/log.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "text/label_classes.h"

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

static const char default_recipe[] = "features:\n"
                                     "  defaults: {buckets: 1000, embedding_dim: 4}\n"
                                     "  fields:\n"
                                     "    - {column: id, encoding: identity, buckets: 1000000}\n"
                                     "    - {column: [a, b]}\n"
                                     "    - {column: n, transform: ln_squared}\n"
                                     "  dense:\n"
                                     "    - {column: n, transform: signed_log}\n"
                                     "    - {column: m}\n";

static void fill_defaults(tdm_data_rig_options *options)
{
    if (options->recipe == NULL)
        options->recipe = default_recipe;
    options->threads = options->threads == 0 ? 1 : options->threads;
    options->batch_size = options->batch_size == 0 ? 16 : options->batch_size;
    options->lanes = options->lanes == 0 ? 4 : options->lanes;
    options->window_blocks = options->window_blocks == 0 ? 2 : options->window_blocks;
    options->max_record_bytes =
        options->max_record_bytes == 0 ? 1 << 20 : options->max_record_bytes;
    options->epochs = options->epochs == 0 ? 1 : options->epochs;
    options->depth = options->depth == 0 ? 2 : options->depth;
    options->batch_tokens = options->batch_tokens == 0 ? 1024 : options->batch_tokens;
}

static const tdm_config_node *section_of(const tdm_data_rig *rig, const char *name)
{
    return tdm_config_get(tdm_config_root(rig->config), name);
}

static tdm_status open_paths(tdm_data_rig *rig, const tdm_format_options *format)
{
    const tdm_data_rig_options *options = &rig->options;
    tdm_strings paths = {.items = (char **)(uintptr_t)options->files};
    while (options->files[paths.count] != NULL)
        paths.count++;
    tdm_input_options input = {.paths = &paths,
                               .weights = options->weights[0] > 0 ? options->weights : NULL,
                               .format = format,
                               .block_bytes = options->block_bytes,
                               .lanes = options->lanes,
                               .max_record_bytes = options->max_record_bytes,
                               .pool = rig->pool,
                               .cancel = options->cancel};
    return tdm_input_open(&input, &rig->input);
}

static tdm_status open_input(tdm_data_rig *rig)
{
    tdm_format_options format = {.type = rig->options.format, .documents = rig->options.documents};
    if (section_of(rig, "data") == NULL)
        return open_paths(rig, &format);
    tdm_data_options data;
    TDM_TRY(tdm_config_bind(section_of(rig, "data"), &tdm_data_schema, &data));
    tdm_status status = tdm_data_format_options(&data, &format);
    if (status == TDM_OK)
        status = open_paths(rig, &format);
    tdm_config_unbind(&tdm_data_schema, &data);
    return status;
}

static tdm_status open_spec(tdm_data_rig *rig)
{
    const tdm_config_node *section = section_of(rig, "features");
    tdm_feature_options features;
    TDM_TRY(tdm_config_bind(section, &tdm_feature_schema, &features));
    tdm_status status =
        tdm_feature_spec_create(&features, section, tdm_input_format(rig->input), &rig->spec);
    tdm_config_unbind(&tdm_feature_schema, &features);
    return status;
}

static tdm_status open_masked(tdm_data_rig *rig, const tdm_text_options *text)
{
    const tdm_data_rig_options *options = &rig->options;
    TDM_TRY(tdm_text_options_check(text, section_of(rig, "text")));
    TDM_TRY(tdm_text_open_tokenizer(text, section_of(rig, "text"), &rig->tokenizer));
    return tdm_text_featurizer_create(text, rig->tokenizer, rig->pool, options->batch_tokens,
                                      options->lanes, &rig->featurizer);
}

static tdm_status make_labels(tdm_data_rig *rig, const tdm_label_options *labels,
                              const tdm_data_options *data)
{
    tdm_label_spec_destroy(rig->labels);
    return tdm_label_spec_create(labels, section_of(rig, "labels"), tdm_input_format(rig->input),
                                 &data->columns, rig->options.label_use, &rig->labels);
}

/* With the classes that the input has where the recipe names none. */
static tdm_status find_labels(tdm_data_rig *rig, tdm_label_options *labels,
                              const tdm_data_options *data)
{
    TDM_TRY(tdm_label_options_check(labels, data, section_of(rig, "labels")));
    TDM_TRY(make_labels(rig, labels, data));
    if (!tdm_label_classes_are_auto(labels) || rig->options.label_use == TDM_LABEL_PREDICTION)
        return TDM_OK;
    tdm_strings_free(&labels->classes);
    TDM_TRY(tdm_label_classes_find(rig->labels, rig->input, rig->pool, &labels->classes));
    return make_labels(rig, labels, data);
}

static tdm_status open_labelled(tdm_data_rig *rig, const tdm_text_options *text)
{
    const tdm_data_rig_options *options = &rig->options;
    tdm_label_options labels;
    tdm_data_options data;
    TDM_TRY(tdm_text_open_tokenizer(text, section_of(rig, "text"), &rig->tokenizer));
    TDM_TRY(tdm_config_bind(section_of(rig, "data"), &tdm_data_schema, &data));
    tdm_status status = tdm_config_bind(section_of(rig, "labels"), &tdm_label_schema, &labels);
    if (status == TDM_OK) {
        status = find_labels(rig, &labels, &data);
        tdm_config_unbind(&tdm_label_schema, &labels);
    }
    tdm_config_unbind(&tdm_data_schema, &data);
    TDM_TRY(status);
    return tdm_label_featurizer_create(rig->labels, tdm_input_format(rig->input), text,
                                       rig->tokenizer, rig->pool, options->batch_tokens,
                                       options->lanes, &rig->featurizer);
}

static tdm_status open_text(tdm_data_rig *rig)
{
    bool labelled = section_of(rig, "labels") != NULL;
    const tdm_config_schema *schema = labelled ? &tdm_labelled_text_schema : &tdm_text_schema;
    tdm_text_options text = {0};
    TDM_TRY(tdm_config_bind(section_of(rig, "text"), schema, &text));
    tdm_status status = labelled ? open_labelled(rig, &text) : open_masked(rig, &text);
    tdm_config_unbind(schema, &text);
    return status;
}

static tdm_status open_features(tdm_data_rig *rig)
{
    TDM_TRY(open_spec(rig));
    return tdm_ctr_featurizer_create(rig->spec, tdm_input_format(rig->input), rig->pool,
                                     rig->options.batch_size, rig->options.use, &rig->featurizer);
}

static tdm_status open_parts(tdm_data_rig *rig)
{
    const tdm_data_rig_options *options = &rig->options;
    TDM_TRY(tdm_pool_create(options->threads, &rig->pool));
    TDM_TRY(tdm_cpu_create(rig->pool, &rig->backend));
    const char *recipe = options->text != NULL ? options->text : options->recipe;
    TDM_TRY(tdm_config_parse(recipe, strlen(recipe), "r.yaml", NULL, 0, &rig->config));
    TDM_TRY(open_input(rig));
    TDM_TRY(options->text != NULL ? open_text(rig) : open_features(rig));
    return tdm_extractor_create(rig->featurizer, rig->input, rig->pool, options->selection,
                                options->hold_out, &rig->extractor);
}

tdm_status tdm_data_rig_try_open(const tdm_data_rig_options *options, tdm_data_rig *rig)
{
    *rig = (tdm_data_rig){.options = *options};
    fill_defaults(&rig->options);
    tdm_status status = open_parts(rig);
    if (status != TDM_OK)
        tdm_data_rig_close(rig);
    return status;
}

void tdm_data_rig_open(const tdm_data_rig_options *options, tdm_data_rig *rig)
{
    ck_assert_ok(tdm_data_rig_try_open(options, rig));
}

tdm_status tdm_data_rig_try_start(tdm_data_rig *rig)
{
    const tdm_data_rig_options *options = &rig->options;
    tdm_pipeline_options pipeline = {.extractor = rig->extractor,
                                     .pool = rig->pool,
                                     .backend = rig->backend,
                                     .seed = options->seed,
                                     .lanes = options->lanes,
                                     .window_blocks = options->window_blocks,
                                     .epochs = options->epochs,
                                     .depth = options->depth,
                                     .cache_path = options->cache_path,
                                     .write_cache =
                                         options->cache_path != NULL && !options->read_only_cache,
                                     .start = options->start};
    return tdm_pipeline_create(&pipeline, &rig->pipeline);
}

void tdm_data_rig_start(tdm_data_rig *rig)
{
    ck_assert_ok(tdm_data_rig_try_start(rig));
}

void tdm_data_rig_close(tdm_data_rig *rig)
{
    tdm_pipeline_destroy(rig->pipeline);
    tdm_extractor_destroy(rig->extractor);
    tdm_featurizer_destroy(rig->featurizer);
    tdm_feature_spec_destroy(rig->spec);
    tdm_label_spec_destroy(rig->labels);
    tdm_tokenizer_close(rig->tokenizer);
    tdm_input_close(rig->input);
    tdm_backend_destroy(rig->backend);
    tdm_pool_destroy(rig->pool);
    tdm_config_free(rig->config);
    *rig = (tdm_data_rig){0};
}

/* ---- what a pipeline gave -------------------------------------------------------------------- */

/* Hashes `count` values from `first` on of a tensor. */
static void hash_values(XXH3_state_t *state, const tdm_batch *batch, const char *name,
                        int64_t first, int64_t count)
{
    int tensor = tdm_batch_layout_find(batch->layout, name);
    if (tensor < 0)
        return;
    size_t size = tdm_dtype_size(batch->layout->tensors[tensor].dtype);
    const unsigned char *data = tdm_batch_data(batch, tensor);
    XXH3_64bits_update(state, data + (size_t)first * size, (size_t)count * size);
}

static void hash_fields(XXH3_state_t *state, const tdm_batch *batch)
{
    int ids = tdm_batch_layout_find(batch->layout, "ids");
    int counts = tdm_batch_layout_find(batch->layout, "distinct_counts");
    int64_t size = batch->layout->batch_size;
    int64_t fields = ids < 0 ? 0 : batch->layout->tensors[ids].shape.sizes[0];
    for (int64_t f = 0; f < fields; f++) {
        hash_values(state, batch, "ids", f * size, batch->rows);
        if (counts < 0)
            continue;
        int64_t count = ((const int32_t *)tdm_batch_data(batch, counts))[f];
        hash_values(state, batch, "distinct_counts", f, 1);
        hash_values(state, batch, "distinct_ids", f * size, count);
        hash_values(state, batch, "distinct_starts", f * (size + 1), count + 1);
        hash_values(state, batch, "distinct_positions", f * size, batch->rows);
    }
}

static int64_t count_in(const tdm_batch *batch, const char *name)
{
    int tensor = tdm_batch_layout_find(batch->layout, name);
    return tensor < 0 ? 0 : *(const int64_t *)tdm_batch_data(batch, tensor);
}

/* What a batch has of each row, or of each token. */
static void hash_labels(XXH3_state_t *state, const tdm_batch *batch, const char *name,
                        int64_t tokens)
{
    int tensor = tdm_batch_layout_find(batch->layout, name);
    if (tensor < 0)
        return;
    const tdm_shape *shape = &batch->layout->tensors[tensor].shape;
    bool of_rows = shape->sizes[0] == batch->layout->batch_size;
    int64_t each = shape->rank == 2 ? shape->sizes[1] : 1;
    hash_values(state, batch, name, 0, of_rows ? batch->rows * each : tokens);
}

static void hash_text(XXH3_state_t *state, const tdm_batch *batch)
{
    int ids = tdm_batch_layout_find(batch->layout, "ids");
    const tdm_shape *shape = &batch->layout->tensors[ids].shape;
    bool padded = shape->rank == 2;
    int64_t tokens = padded ? batch->rows * shape->sizes[1] : count_in(batch, "token_count");
    int64_t predictions = count_in(batch, "mask_count");
    hash_values(state, batch, "ids", 0, tokens);
    hash_values(state, batch, "types", 0, tokens);
    hash_values(state, batch, "positions", 0, tokens);
    hash_values(state, batch, "cu_seqlens", 0, batch->layout->batch_size + 1);
    hash_values(state, batch, "lengths", 0, batch->rows);
    hash_values(state, batch, "mask_positions", 0, predictions);
    hash_values(state, batch, "mask_labels", 0, predictions);
    hash_values(state, batch, "pair_labels", 0, batch->rows);
    hash_labels(state, batch, "labels", tokens);
    hash_labels(state, batch, "words", tokens);
    hash_values(state, batch, "token_count", 0, 1);
    hash_values(state, batch, "mask_count", 0, 1);
    hash_values(state, batch, "max_seqlen", 0, 1);
}

static uint64_t hash_batch(const tdm_batch *batch)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    int dense = tdm_batch_layout_find(batch->layout, "dense");
    int64_t dense_count = dense < 0 ? 0 : batch->layout->tensors[dense].shape.sizes[1];
    hash_values(&state, batch, "rows", 0, 1);
    hash_values(&state, batch, "weight", 0, batch->layout->batch_size);
    hash_values(&state, batch, "sample", 0, batch->rows);
    hash_values(&state, batch, "occurrence", 0, batch->rows);
    hash_values(&state, batch, "label", 0, batch->rows);
    hash_values(&state, batch, "dense", 0, batch->rows * dense_count);
    if (tdm_batch_layout_find(batch->layout, "token_count") >= 0)
        hash_text(&state, batch);
    else
        hash_fields(&state, batch);
    return XXH3_64bits_digest(&state);
}

static void note_reports(const tdm_delivery *delivery, tdm_given *given)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < delivery->report_count; i++) {
        const tdm_bad_report *report = &delivery->reports[i];
        XXH3_64bits_update(&state, &report->block, sizeof report->block);
        XXH3_64bits_update(&state, &report->file, sizeof report->file);
        for (size_t r = 0; r < report->count; r++) {
            const tdm_bad_record *bad = &report->records[r];
            XXH3_64bits_update(&state, &bad->line, sizeof bad->line);
            XXH3_64bits_update(&state, &bad->record, sizeof bad->record);
            XXH3_64bits_update(&state, &bad->file, sizeof bad->file);
            XXH3_64bits_update(&state, &bad->column, sizeof bad->column);
            XXH3_64bits_update(&state, &bad->kind, sizeof bad->kind);
            XXH3_64bits_update(&state, bad->reason, strlen(bad->reason));
            XXH3_64bits_update(&state, bad->text, bad->text_bytes);
        }
        given->bad += (int64_t)report->count;
    }
    given->reports_hash = XXH3_64bits_digest(&state);
}

static void count_ids(tdm_given_list *list, const tdm_delivery *delivery)
{
    const uint32_t *ids =
        tdm_batch_data(&delivery->batch, tdm_batch_layout_find(delivery->batch.layout, "ids"));
    for (int64_t i = 0; i < delivery->batch.rows; i++) {
        int64_t id = (int64_t)ids[i] - 4;
        ck_assert(id >= 0 && id < list->seen_ids);
        list->seen[delivery->epoch * list->seen_ids + id]++;
    }
}

void tdm_given_note(tdm_given_list *list, const tdm_delivery *delivery)
{
    ck_assert_ok(tdm_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    tdm_given *given = &list->items[list->count++];
    memset(given, 0, sizeof *given);
    given->rows = delivery->batch.rows;
    given->epoch = delivery->epoch;
    given->epoch_end = delivery->epoch_end;
    given->last = delivery->last;
    given->share = delivery->batch.share;
    given->after = delivery->batch.after;
    given->hash = given->epoch_end ? 0 : hash_batch(&delivery->batch);
    given->windows = delivery->windows;
    given->good = delivery->good_records;
    note_reports(delivery, given);
    if (list->seen != NULL && !given->epoch_end)
        count_ids(list, delivery);
}

tdm_status tdm_data_rig_try_run(tdm_data_rig *rig, tdm_given_list *list)
{
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        TDM_TRY(tdm_pipeline_next(rig->pipeline, &delivery));
        tdm_given_note(list, delivery);
        last = delivery->last;
        tdm_pipeline_release(rig->pipeline, delivery);
    }
    tdm_delivery *delivery;
    ck_assert_fails(tdm_pipeline_next(rig->pipeline, &delivery), TDM_E_STATE, "read to its end");
    return TDM_OK;
}

void tdm_data_rig_run(const tdm_data_rig_options *options, tdm_given_list *list)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    ck_assert_ok(tdm_data_rig_try_run(&rig, list));
    tdm_data_rig_close(&rig);
}

void tdm_data_rig_take(const tdm_data_rig_options *options, size_t count, tdm_given_list *list)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    for (size_t i = 0; i < count; i++) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        tdm_given_note(list, delivery);
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_data_rig_close(&rig);
}

void tdm_given_list_free(tdm_given_list *list)
{
    tdm_free(list->items);
    *list = (tdm_given_list){.seen = list->seen, .seen_ids = list->seen_ids};
}

void tdm_given_same(const tdm_given_list *a, size_t from, const tdm_given_list *b, bool positions)
{
    ck_assert_uint_eq(a->count - from, b->count);
    for (size_t i = 0; i < b->count; i++) {
        const tdm_given *x = &a->items[from + i];
        const tdm_given *y = &b->items[i];
        ck_assert_int_eq(x->rows, y->rows);
        ck_assert_int_eq(x->epoch, y->epoch);
        ck_assert_int_eq(x->epoch_end, y->epoch_end);
        ck_assert_int_eq(x->last, y->last);
        ck_assert_msg(x->hash == y->hash, "batch %zu differs", from + i);
        ck_assert_int_eq(x->windows, y->windows);
        ck_assert_int_eq(x->good, y->good);
        ck_assert_int_eq(x->bad, y->bad);
        ck_assert_msg(x->reports_hash == y->reports_hash, "reports of batch %zu differ", from + i);
        if (!positions)
            continue;
        ck_assert(x->share == y->share);
        ck_assert_mem_eq(&x->after, &y->after, sizeof x->after);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

void tdm_new_folder(char folder[TDM_FOLDER_BYTES])
{
    snprintf(folder, TDM_FOLDER_BYTES, "%s", tdm_test_folder());
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void add_row(tdm_text *text, int64_t id, int bad_every)
{
    static const char *const broken[] = {"1,%lld,x", "2,%lld,a,b,1,2", "1,%lld,a,b,nan,2",
                                         "1,%lld,a,b,1,two", "0,%lld,a,\"b,1,2"};
    uint64_t state = (uint64_t)id * 7919 + 17;
    uint32_t label = next_random(&state) & 1;
    if (bad_every > 0 && id % bad_every == bad_every - 1) {
        char line[64];
        /* The formats of the table take one number each. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(line, sizeof line, broken[id / bad_every % 5], (long long)id);
#pragma GCC diagnostic pop
        ck_assert_ok(tdm_text_printf(text, "%s\n", line));
        return;
    }
    ck_assert_ok(tdm_text_printf(text, "%u,%lld,", label, (long long)id));
    if (next_random(&state) % 8 != 0)
        ck_assert_ok(tdm_text_printf(text, "v%u", next_random(&state) % 300));
    ck_assert_ok(tdm_text_printf(text, ",%08x,", next_random(&state) % 40));
    if (next_random(&state) % 4 != 0)
        ck_assert_ok(tdm_text_printf(text, "%d", (int)(next_random(&state) % 2000) - 3));
    ck_assert_ok(tdm_text_printf(text, ",%.3f\n", next_random(&state) % 100000 / 1000.0));
}

char *tdm_data_rig_text(int64_t first, int64_t count, int bad_every)
{
    tdm_text text = {0};
    ck_assert_ok(tdm_text_printf(&text, "label,id,a,b,n,m\n"));
    for (int64_t i = 0; i < count; i++)
        add_row(&text, first + i, bad_every);
    return text.bytes;
}

static bool ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

char *tdm_data_rig_put(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path;
    ck_assert_ok(tdm_format(&path, "%s/%s", folder, name));
    if (ends_with(name, ".gz")) {
        gzFile file = gzopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(gzwrite(file, bytes, (unsigned)size), (int)size);
        ck_assert_int_eq(gzclose(file), Z_OK);
        return path;
    }
    void *packed = NULL;
    if (ends_with(name, ".zst")) {
        ck_assert_ok(tdm_alloc(ZSTD_compressBound(size), 1, &packed));
        size = ZSTD_compress(packed, ZSTD_compressBound(size), bytes, size, 3);
        ck_assert(!ZSTD_isError(size));
        bytes = packed;
    }
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    tdm_free(packed);
    return path;
}

char *tdm_data_rig_put_text(const char *folder, const char *name, const char *text)
{
    return tdm_data_rig_put(folder, name, text, strlen(text));
}

/* ---- warnings -------------------------------------------------------------------------------- */

static const char *expected_warning;
static _Atomic int warnings;

static void count_warning(void *context, tdm_log_level level, const char *message)
{
    (void)context;
    if (level == TDM_LOG_WARNING &&
        (expected_warning == NULL || strstr(message, expected_warning) != NULL))
        warnings++;
}

void tdm_warnings_expect(const char *text)
{
    expected_warning = text;
    warnings = 0;
    tdm_log_set_sink(count_warning, NULL);
}

int tdm_warnings_seen(void)
{
    return warnings;
}

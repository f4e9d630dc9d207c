/* tandem features: records as the model will see them. */
#include "cli/console.h"
#include "cli/field_stats.h"
#include "cli/masked_rows.h"
#include "cli/progress.h"
#include "cli/reading.h"
#include "cli/verbs.h"
#include "core/memory.h"
#include "features/hash.h"

#include <stdio.h>
#include <string.h>

typedef struct features_values {
    int64_t rows;
    bool stats;
    bool json;
} features_values;

typedef struct showing {
    tdm_reading reading;
    const features_values *values;
    tdm_text text;
    json_t *json; /* an array of rows; NULL for text */
    char *cell;   /* the one being shown, without quotes */
    size_t cell_capacity;
    int64_t shown;
    int64_t records; /* before this block */
    int64_t bad;
} showing;

/* ---- one row --------------------------------------------------------------------------------- */

/* The next cell of a row's kept cells, which are CSV, in show->cell. */
static tdm_status next_cell(showing *show, const char **at, const char *end)
{
    TDM_TRY(tdm_grow(&show->cell, &show->cell_capacity, (size_t)(end - *at) + 1, 1));
    char *to = show->cell;
    bool quoted = *at < end && **at == '"';
    const char *from = *at + quoted;
    for (; from < end; from++) {
        if (quoted && *from == '"' && (from + 1 == end || from[1] != '"')) {
            from++;
            break;
        }
        if (!quoted && *from == ',')
            break;
        if (quoted && *from == '"')
            from++;
        *to++ = *from;
    }
    *to = '\0';
    *at = from < end ? from + 1 : from;
    return TDM_OK;
}

static const char *id_meaning(uint32_t id)
{
    static const char *const meanings[] = {"padding", "missing", "unseen", "rare"};
    return id < TDM_ID_FIRST ? meanings[id] : "";
}

/* The bin that a number becomes; false where the field's values are no numbers. */
static bool find_bin(const tdm_field *field, const char *value, int64_t *bin)
{
    double number;
    if (field->transform == TDM_TRANSFORM_NONE || !tdm_parse_number(value, strlen(value), &number))
        return false;
    *bin = tdm_transform_bin(field->transform, number, field->min, field->max);
    return true;
}

static tdm_status show_field(showing *show, const tdm_field *field, uint32_t id, json_t *row)
{
    int64_t bin = 0;
    bool has_bin = find_bin(field, show->cell, &bin);
    if (row != NULL) {
        json_t *entry = json_pack("{s:s, s:s, s:I}", "field", field->name, "value", show->cell,
                                  "id", (json_int_t)id);
        if (has_bin)
            json_object_set_new(entry, "bin", json_integer(bin));
        json_array_append_new(json_object_get(row, "fields"), entry);
        return TDM_OK;
    }
    char bin_text[24] = "";
    if (has_bin)
        snprintf(bin_text, sizeof bin_text, "%lld", (long long)bin);
    return tdm_text_printf(&show->text, "  %-16s %-24s %8s %10u  %s\n", field->name, show->cell,
                           bin_text, id, id_meaning(id));
}

static tdm_status show_number(showing *show, const tdm_dense_feature *feature, float number,
                              json_t *row)
{
    if (row != NULL) {
        json_array_append_new(json_object_get(row, "dense"),
                              json_pack("{s:s, s:s, s:f}", "name", feature->name, "value",
                                        show->cell, "number", (double)number));
        return TDM_OK;
    }
    return tdm_text_printf(&show->text, "  %-16s %-24s %8s %10.6g\n", feature->name, show->cell, "",
                           (double)number);
}

static const void *row_of(const showing *show, const tdm_extract *block, const char *name,
                          int64_t row)
{
    const tdm_columns_layout *layout = &show->reading.featurizer->columns;
    int column = tdm_columns_find(layout, name);
    return column < 0 ? NULL
                      : (const char *)block->columns[column] +
                            (size_t)row * tdm_column_row_bytes(&layout->columns[column]);
}

/* Kept cells lie in the order of keep_cells(): the label, the fields, the dense features. */
static tdm_status show_row(showing *show, const tdm_extract *block, int64_t row)
{
    const tdm_feature_spec *spec = show->reading.spec;
    const char *at = block->keys + (row > 0 ? block->key_ends[row - 1] : 0);
    const char *end = block->keys + block->key_ends[row];
    long long number = (long long)(show->records + block->row_records[row]) + 1;
    TDM_TRY(next_cell(show, &at, end));
    json_t *object = NULL;
    if (show->json != NULL) {
        object = json_pack("{s:I, s:s, s:[], s:[]}", "record", number, "label", show->cell,
                           "fields", "dense");
        json_array_append_new(show->json, object);
    } else {
        TDM_TRY(tdm_text_printf(&show->text, "record %lld, label %s\n  %-16s %-24s %8s %10s\n",
                                number, show->cell[0] != '\0' ? show->cell : "missing", "field",
                                "value", "bin", "id"));
    }
    const uint32_t *ids = row_of(show, block, "ids", row);
    for (int32_t f = 0; f < spec->field_count; f++) {
        TDM_TRY(next_cell(show, &at, end));
        TDM_TRY(show_field(show, &spec->fields[f], ids[f], object));
    }
    const float *dense = row_of(show, block, "dense", row);
    if (spec->dense_count > 0 && object == NULL)
        TDM_TRY(tdm_text_printf(&show->text, "  %-16s %-24s %8s %10s\n", "dense", "value", "",
                                "number"));
    for (int32_t d = 0; d < spec->dense_count; d++) {
        TDM_TRY(next_cell(show, &at, end));
        TDM_TRY(show_number(show, &spec->dense[d], dense[d], object));
    }
    return object != NULL ? TDM_OK : tdm_text_printf(&show->text, "\n");
}

/* ---- the first rows -------------------------------------------------------------------------- */

static tdm_status keep_cells(const tdm_reading *reading)
{
    const tdm_feature_spec *spec = reading->spec;
    int count = 1 + spec->field_count + spec->dense_count;
    int32_t *columns;
    TDM_TRY(tdm_alloc((size_t)count, sizeof *columns, &columns));
    columns[0] = spec->label;
    for (int32_t f = 0; f < spec->field_count; f++)
        columns[1 + f] = spec->fields[f].column;
    for (int32_t d = 0; d < spec->dense_count; d++)
        columns[1 + spec->field_count + d] = spec->dense[d].column;
    tdm_status status = tdm_extractor_keep(reading->extractor, columns, count);
    tdm_free(columns);
    return status;
}

static tdm_status show_blocks(showing *show, tdm_block_stream *stream)
{
    while (show->shown < show->values->rows) {
        tdm_extract *block;
        TDM_TRY(tdm_block_stream_next(stream, &block));
        if (block == NULL)
            break;
        for (int64_t r = 0; r < block->rows && show->shown < show->values->rows; r++) {
            TDM_TRY(show_row(show, block, r));
            show->shown++;
        }
        for (size_t b = 0; b < block->bad_count && show->bad < 3; b++, show->bad++)
            tdm_console_print("record %lld is bad: %s",
                              (long long)(show->records + block->bad[b].record) + 1,
                              block->bad[b].reason);
        show->records += block->records;
    }
    TDM_FAIL_IF(show->shown == 0 && show->values->rows > 0, TDM_E_DATA,
                "there is no good record among %lld", (long long)show->records);
    return TDM_OK;
}

static tdm_status show_rows(showing *show)
{
    TDM_TRY(keep_cells(&show->reading));
    if (show->values->json)
        show->json = json_array();
    tdm_block_stream *stream;
    TDM_TRY(tdm_block_stream_open(show->reading.extractor, show->reading.pool, &stream));
    tdm_status status = show_blocks(show, stream);
    tdm_block_stream_close(stream);
    TDM_TRY(status);
    if (show->json != NULL)
        return tdm_console_json(json_pack("{s:O}", "rows", show->json));
    return tdm_console_text(TDM_OK, &show->text);
}

/* ---- all rows -------------------------------------------------------------------------------- */

typedef struct summing {
    tdm_field_stats *stats;
    const tdm_featurizer *featurizer;
} summing;

static tdm_status add_block(void *context, const tdm_extract *block)
{
    summing *sum = context;
    tdm_field_stats_add(sum->stats, sum->featurizer, block, block->rows);
    return TDM_OK;
}

static tdm_status print_stats(const tdm_field_stats *stats, bool as_json)
{
    if (as_json) {
        json_t *json;
        TDM_TRY(tdm_field_stats_json(stats, &json));
        json_object_set_new(json, "rows", json_integer(tdm_field_stats_rows(stats)));
        return tdm_console_json(json);
    }
    tdm_text text = {0};
    tdm_status status =
        tdm_text_printf(&text, "%lld rows\n", (long long)tdm_field_stats_rows(stats));
    if (status == TDM_OK)
        status = tdm_field_stats_text(stats, &text);
    return tdm_console_text(status, &text);
}

static tdm_status show_stats(showing *show, const tdm_command *command)
{
    summing sum = {.featurizer = show->reading.featurizer};
    TDM_TRY(tdm_field_stats_create(show->reading.spec, &sum.stats));
    tdm_progress progress;
    tdm_progress_init(&progress, "reading", show->reading.recipe->train.log_every_seconds);
    tdm_status status = tdm_reading_blocks(&show->reading, command->cancel, add_block,
                                           tdm_progress_rows, &progress, &sum);
    tdm_progress_end(&progress);
    if (status == TDM_OK && tdm_field_stats_rows(sum.stats) == 0)
        status = tdm_fail(TDM_E_DATA, "there is no good record");
    if (status == TDM_OK)
        status = print_stats(sum.stats, show->values->json);
    tdm_field_stats_destroy(sum.stats);
    return status;
}

static tdm_status show_sequences(tdm_reading *reading, const tdm_command *command)
{
    const features_values *values = command->values;
    TDM_TRY(tdm_reading_select_training(reading));
    return values->stats
               ? tdm_masked_rows_stats(reading, values->json, command->cancel)
               : tdm_masked_rows_show(reading, values->rows, values->json, command->cancel);
}

static tdm_status show_features(showing *show, const tdm_command *command)
{
    if (show->reading.recipe->task != TDM_TASK_CTR)
        return show_sequences(&show->reading, command);
    return show->values->stats ? show_stats(show, command) : show_rows(show);
}

static tdm_status run(const tdm_command *command)
{
    showing show = {.values = command->values};
    const tdm_recipe_arguments arguments = tdm_command_recipe_arguments(command);
    TDM_TRY(tdm_reading_open(command->plain[0], &arguments, -1, TDM_CTR_PREDICTION, command->cancel,
                             &show.reading));
    tdm_status status = show_features(&show, command);
    tdm_text_free(&show.text);
    json_decref(show.json);
    tdm_free(show.cell);
    tdm_reading_close(&show.reading);
    return status;
}

static const tdm_option options[] = {
    {.name = "rows",
     .type = TDM_OPTION_INT,
     .offset = offsetof(features_values, rows),
     .value = "N",
     .min = 1,
     .max = 100000,
     .fallback = 3,
     .help = "good records, or sequences, to show (3)"},
    {.name = "stats",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(features_values, stats),
     .help = "read everything: what is missing, how full the tables get; how long sequences are"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(features_values, json),
     .help = "print one JSON object"},
    {0},
};

const tdm_verb tdm_verb_features = {
    .name = "features",
    .arguments = "RECIPE [FILE...] [key=value]...",
    .summary = "the first records as the model will see them",
    .text =
        "Shows for each field the value in the record, the bin that a transform makes of a "
        "number,\n"
        "and the row of the embedding table that it becomes; and the dense numbers. Labels may be\n"
        "missing.\n"
        "\n"
        "Of a text recipe it shows the first sequences of the first epoch, in the order of the\n"
        "training. The house<river> is a token that the model sees, and the one that it has to\n"
        "predict there: mostly [MASK]<river>; a random one; or river<river>, which was kept. Of a\n"
        "recipe of task classify it shows the labels; of words so: geneva<B-LOC>.\n"
        "\n"
        "  tandem features recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz\n"
        "  tandem features recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz --rows 1 --json\n"
        "  tandem features recipes/ctr/deepfm_criteo.yaml day_0.tsv.gz --stats\n"
        "  tandem features recipes/bert/bert_mini.yaml corpus.txt.gz text.tokenizer=vocab.txt",
    .options = options,
    .values_bytes = sizeof(features_values),
    .min_plain = 1,
    .max_plain = -1,
    .takes_overrides = true,
    .run = run,
};

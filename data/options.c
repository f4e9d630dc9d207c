#include "data/options.h"

#include "core/featurizer.h"
#include "core/memory.h"
#include "data/input.h"

#include <string.h>

static const char *const policies[] = {"fail", "skip", "quarantine", NULL};
static const char *const documents[] = {"line", "blank_line", "file", NULL};
static const char *const encoding_policies[] = {"replace", "skip", "fail", NULL};
static const char *const cache_modes[] = {"auto", "on", "off", NULL};

#define AT(member) offsetof(tdm_data_options, member)

static const tdm_config_key keys[] = {
    {.name = "format",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(format),
     .fallback = "criteo",
     .choices = tdm_record_format_names,
     .help = "how a line becomes a record"},
    {.name = "separator",
     .type = TDM_CONFIG_STRING,
     .offset = AT(separator),
     .fallback = "~",
     .help = "csv, tsv: one character, or tab, comma, semicolon, space, pipe"},
    {.name = "header",
     .type = TDM_CONFIG_BOOL,
     .offset = AT(header),
     .fallback = "true",
     .help = "csv, tsv: the first line of each file names the columns; false for classify where "
             "data.columns does"},
    {.name = "columns",
     .type = TDM_CONFIG_STRINGS,
     .offset = AT(columns),
     .fallback = "[]",
     .help =
         "csv, tsv: the names of the columns, for files without a header; jsonl: the fields that "
         "are columns; text: the columns of CoNLL, with labels.type: tokens"},
    {.name = "documents",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(documents),
     .fallback = "blank_line",
     .choices = documents,
     .help = "text: a document is a line, ends at a blank line, or is a file"},
    {.name = "field",
     .type = TDM_CONFIG_STRING,
     .offset = AT(field),
     .fallback = "text",
     .help = "jsonl: the field that holds the text, where there are no columns"},
    {.name = "encoding_errors",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(encoding_errors),
     .fallback = "replace",
     .choices = encoding_policies,
     .help =
         "text, jsonl: bytes that are not UTF-8 count as U+FFFD, or their record is dropped, or "
         "they end the run"},
    {.name = "train",
     .type = TDM_CONFIG_NODE,
     .offset = AT(train),
     .fallback = "~",
     .help =
         "files and globs, or {files: [...], weight: 2} for those that an epoch has more or less "
         "often; files on the command line replace them"},
    {.name = "eval",
     .type = TDM_CONFIG_NODE,
     .offset = AT(eval),
     .fallback = "~",
     .help = "files and globs, or {hold_out: 0.5%}: that share of the training records"},
    {.name = "on_bad_record",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(on_bad_record),
     .fallback = "quarantine",
     .choices = policies,
     .help = "fail at the first, skip and count, or also write it to quarantine.txt"},
    {.name = "max_bad_records",
     .type = TDM_CONFIG_SHARE,
     .offset = AT(max_bad_records),
     .fallback = "1%",
     .help = "a count, or a share of the records consumed"},
    {.name = "max_record_bytes",
     .type = TDM_CONFIG_INT,
     .offset = AT(max_record_bytes),
     .fallback = "67108864",
     .min = 1024,
     .max = 1 << 30,
     .help = "a longer record is a bad one"},
    {.name = "cache",
     .type = TDM_CONFIG_CHOICE,
     .offset = AT(cache),
     .fallback = "auto",
     .choices = cache_modes,
     .help = "keep extracted features: when another epoch follows"},
    {.name = "lanes",
     .type = TDM_CONFIG_INT,
     .offset = AT(lanes),
     .fallback = "16",
     .min = 1,
     .max = TDM_MAX_LANES,
     .help = "streams of blocks that every batch takes its rows from"},
    {.name = "window_blocks",
     .type = TDM_CONFIG_INT,
     .offset = AT(window_blocks),
     .fallback = "4",
     .min = 1,
     .max = 64,
     .help = "blocks of a lane whose rows are mixed"},
    {.name = "block_bytes",
     .type = TDM_CONFIG_INT,
     .offset = AT(block_bytes),
     .fallback = "0",
     .min = 0,
     .max = 1 << 22,
     .help = "of input in a block; 0: stored bytes / (lanes * 16)"},
};

const tdm_config_schema tdm_data_schema = {
    .size = sizeof(tdm_data_options), .keys = keys, .count = sizeof keys / sizeof keys[0]};

/* Appends the files with their weight; takes over the strings. */
static tdm_status add_corpus(tdm_strings *files, double weight, tdm_train_source *out)
{
    size_t count = (size_t)(out->files.count + files->count);
    size_t room = (size_t)out->files.count, weight_room = room;
    TDM_TRY(tdm_grow(&out->files.items, &room, count, sizeof *out->files.items));
    TDM_TRY(tdm_grow(&out->weights, &weight_room, count, sizeof *out->weights));
    for (int64_t i = 0; i < files->count; i++) {
        out->weights[out->files.count] = weight;
        out->files.items[out->files.count++] = files->items[i];
    }
    tdm_free(files->items);
    *files = (tdm_strings){0};
    return TDM_OK;
}

static tdm_status bind_corpus(const tdm_config_node *node, tdm_train_source *out)
{
    typedef struct corpus {
        tdm_strings files;
        double weight;
    } corpus;
    static const tdm_config_key corpus_keys[] = {
        {.name = "files",
         .type = TDM_CONFIG_STRINGS,
         .offset = offsetof(corpus, files),
         .help = "files and globs"},
        {.name = "weight",
         .type = TDM_CONFIG_FLOAT,
         .offset = offsetof(corpus, weight),
         .fallback = "1",
         .min = 0.001,
         .max = TDM_MAX_WEIGHT,
         .help = "how often an epoch has them, on average"},
    };
    static const tdm_config_schema schema = {
        .size = sizeof(corpus), .keys = corpus_keys, .count = 2};
    corpus values = {.weight = 1};
    if (tdm_config_is_sequence(node))
        return tdm_config_fail(node, "expected a text or a mapping, not a list");
    if (tdm_config_is_mapping(node))
        TDM_TRY(tdm_config_bind(node, &schema, &values));
    else
        TDM_TRY(tdm_config_bind_strings(node, &values.files));
    tdm_status status = add_corpus(&values.files, values.weight, out);
    tdm_strings_free(&values.files);
    return status;
}

tdm_status tdm_train_source_bind(const tdm_config_node *node, tdm_train_source *out)
{
    *out = (tdm_train_source){0};
    if (node == NULL)
        return TDM_OK;
    bool list = tdm_config_is_sequence(node);
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < (list ? tdm_config_count(node) : 1) && status == TDM_OK; i++)
        status = bind_corpus(list ? tdm_config_item(node, i) : node, out);
    if (status != TDM_OK)
        tdm_train_source_deinit(out);
    return status;
}

void tdm_train_source_deinit(tdm_train_source *source)
{
    tdm_strings_free(&source->files);
    tdm_free(source->weights);
    source->weights = NULL;
}

static tdm_status bind_hold_out(const tdm_config_node *node, tdm_eval_source *out)
{
    struct hold_out {
        tdm_share share;
    } values;
    const tdm_config_key key = {
        .name = "hold_out", .type = TDM_CONFIG_SHARE, .help = "share of the training records"};
    const tdm_config_schema schema = {.size = sizeof values, .keys = &key, .count = 1};
    TDM_TRY(tdm_config_bind(node, &schema, &values));
    if (!values.share.is_share || values.share.value <= 0 || values.share.value >= 1)
        return tdm_config_fail(tdm_config_get(node, "hold_out"),
                               "must be a share between 0%% and 100%%, like 0.5%%");
    out->hold_out = values.share.value;
    return TDM_OK;
}

tdm_status tdm_eval_source_bind(const tdm_config_node *node, tdm_eval_source *out)
{
    *out = (tdm_eval_source){0};
    if (tdm_config_is_mapping(node))
        return bind_hold_out(node, out);
    return node == NULL ? TDM_OK : tdm_config_bind_strings(node, &out->files);
}

void tdm_eval_source_deinit(tdm_eval_source *source)
{
    tdm_strings_free(&source->files);
}

bool tdm_separator_parse(const char *text, char *out)
{
    static const struct {
        const char *name;
        char separator;
    } names[] = {{"tab", '\t'}, {"comma", ','}, {"semicolon", ';'}, {"space", ' '}, {"pipe", '|'}};
    *out = strlen(text) == 1 ? text[0] : '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, text) == 0)
            *out = names[i].separator;
    }
    unsigned char byte = (unsigned char)*out;
    return byte != 0 && byte < 0x80 && byte != '\n' && byte != '\r' && byte != '"';
}

tdm_status tdm_data_format_options(const tdm_data_options *options, tdm_format_options *out)
{
    *out = (tdm_format_options){.type = options->format,
                                .header = options->header ? TDM_HEADER_YES : TDM_HEADER_NO,
                                .columns = options->columns,
                                .documents = options->documents,
                                .field = options->field,
                                .encoding_errors = options->encoding_errors};
    const char *text = options->separator;
    TDM_FAIL_IF(text != NULL && !tdm_separator_parse(text, &out->separator), TDM_E_CONFIG,
                "data.separator: \"%s\" is not one ASCII character, nor tab, comma, semicolon, "
                "space or pipe",
                text);
    return TDM_OK;
}

/* tandem tokenize: text to tokens, a line for each line, and back. */
#include "cli/console.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/token_lines.h"
#include "cli/token_stats.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/memory.h"
#include "text/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct tokenize_values {
    bool lowercase, cased;
    const char *strip_accents, *unicode, *form;
    int64_t max_word_chars;
    bool tokens, offsets, bytes, json, pairs, special;
    const char *specials;
    int64_t max_length;
    const char *truncation;
    bool truncate_left;
    int64_t stride;
    bool overflow;
    int64_t pad;
    bool pad_left;
    int64_t pad_multiple;
    bool decode, stats;
    const char *save;
    int64_t threads;
    const char *output;
    bool force;
} tokenize_values;

typedef struct tokenizing {
    const tdm_command *command;
    const tokenize_values *values;
    tdm_tokenizer *tokenizer;
    tdm_encode_options options;
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    tdm_text_input *inputs;
    size_t inputs_capacity;
    tdm_token_lines lines;
    uint32_t *ids; /* of a line to be decoded */
    size_t ids_capacity;
    tdm_token_stats *stats; /* or NULL */
    tdm_output *output;
    int64_t done; /* lines */
} tokenizing;

/* ---- the command line ------------------------------------------------------------------------ */

/* The index in `names`, which NULL ends, of an option's value; `fallback` where it is not given. */
static tdm_status choose(const char *option, const char *value, const char *const *names,
                         int fallback, int *out)
{
    *out = value == NULL ? fallback : tdm_name_find(names, value);
    if (*out >= 0)
        return TDM_OK;
    char list[128] = "";
    for (int i = 0; names[i] != NULL; i++) {
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return tdm_fail(TDM_E_ARG, "--%s is one of %s, not \"%s\"", option, list, value);
}

/* *given: whether any of the settings was named. */
static tdm_status choose_settings(const tokenize_values *values, tdm_tokenizer_settings *settings,
                                  bool *given)
{
    static const char *const strip_names[] = {"no", "yes", "auto", NULL};
    int strip, unicode, form;
    TDM_FAIL_IF(values->lowercase && values->cased, TDM_E_ARG,
                "--lowercase and --cased contradict each other");
    TDM_TRY(choose("strip-accents", values->strip_accents, strip_names, 2, &strip));
    TDM_TRY(choose("unicode", values->unicode, tdm_unicode_mode_names, 0, &unicode));
    TDM_TRY(choose("form", values->form, tdm_unicode_form_names, 0, &form));
    *settings = tdm_tokenizer_default_settings();
    settings->lowercase = !values->cased;
    settings->strip_accents = strip == 2 ? -1 : strip;
    settings->unicode = (tdm_unicode_mode)unicode;
    settings->form = (tdm_unicode_form)form;
    if (values->max_word_chars > 0)
        settings->max_word_chars = (int)values->max_word_chars;
    *given = values->lowercase || values->cased || values->strip_accents != NULL ||
             values->unicode != NULL || values->form != NULL || values->max_word_chars > 0;
    return TDM_OK;
}

/* The file's own truncation and padding, and what the command line says. */
static tdm_status choose_options(tokenizing *work)
{
    static const char *const special_names[] = {"match", "plain", "error", NULL};
    static const char *const truncation_names[] = {"longest_first", "only_first", "only_second",
                                                   NULL};
    const tokenize_values *values = work->values;
    tdm_encode_options *options = &work->options;
    int specials, truncation;
    *options = work->tokenizer->options;
    TDM_TRY(choose("specials", values->specials, special_names, TDM_SPECIALS_MATCH, &specials));
    TDM_TRY(choose("truncation", values->truncation, truncation_names, (int)options->truncation,
                   &truncation));
    options->specials = (tdm_special_tokens)specials;
    options->truncation = (tdm_truncation)truncation;
    options->add_special_tokens = values->special;
    options->overflow = values->overflow;
    options->offsets = values->offsets || values->json || values->stats;
    options->truncate_left = options->truncate_left || values->truncate_left;
    options->pad_left = options->pad_left || values->pad_left;
    if (values->max_length >= 0)
        options->max_length = values->max_length;
    if (values->stride >= 0)
        options->stride = values->stride;
    if (values->pad_multiple > 0)
        options->pad_multiple = values->pad_multiple;
    /* How many lines are encoded in one call must not show. */
    if (options->padding == TDM_PADDING_LONGEST)
        options->padding = TDM_PADDING_NONE;
    if (values->pad >= 0) {
        options->padding = TDM_PADDING_FIXED;
        options->pad_length = values->pad;
    }
    if (values->stats) {
        options->max_length = -1;
        options->padding = TDM_PADDING_NONE;
        options->add_special_tokens = false;
    }
    return TDM_OK;
}

static tdm_status check_values(const tokenize_values *values)
{
    TDM_FAIL_IF(values->decode && (values->stats || values->json || values->pairs), TDM_E_ARG,
                "--decode writes text: --stats, --json and --pairs do not go with it");
    TDM_FAIL_IF(values->stats && (values->output != NULL || values->tokens || values->offsets),
                TDM_E_ARG,
                "--stats prints no tokens: -o, --tokens and --offsets do not go with it");
    TDM_FAIL_IF(values->bytes && !values->offsets, TDM_E_ARG,
                "--bytes says how --offsets count: give both");
    return TDM_OK;
}

/* ---- text to tokens -------------------------------------------------------------------------- */

static tdm_status make_input(const tokenizing *work, const tdm_line *line, tdm_text_input *input)
{
    *input = (tdm_text_input){.text = line->text, .bytes = line->bytes};
    if (!work->values->pairs)
        return TDM_OK;
    const char *tab = memchr(line->text, '\t', line->bytes);
    TDM_FAIL_IF(tab == NULL, TDM_E_DATA, "no tab divides the line into two texts");
    input->bytes = (size_t)(tab - line->text);
    input->pair = tab + 1;
    input->pair_bytes = line->bytes - input->bytes - 1;
    return TDM_OK;
}

/* Which line of a batch failed is found by encoding one after the other. */
static tdm_status fail_at_line(tokenizing *work, const tdm_line_batch *batch, tdm_status status)
{
    for (int64_t i = 0; i < batch->count; i++) {
        tdm_status again =
            tdm_encoder_encode(work->encoder, &work->inputs[i], 1, &work->options, work->encodings);
        if (again != TDM_OK)
            return tdm_fail_context(again, "%s:%lld", batch->name, (long long)(batch->first + i));
    }
    return status;
}

static tdm_status encode_batch(tokenizing *work, const tdm_line_batch *batch)
{
    TDM_TRY(tdm_grow(&work->inputs, &work->inputs_capacity, (size_t)batch->count,
                     sizeof *work->inputs));
    for (int64_t i = 0; i < batch->count; i++) {
        tdm_status status = make_input(work, &batch->lines[i], &work->inputs[i]);
        if (status != TDM_OK)
            return tdm_fail_context(status, "%s:%lld", batch->name, (long long)(batch->first + i));
    }
    tdm_status status = tdm_encoder_encode(work->encoder, work->inputs, batch->count,
                                           &work->options, work->encodings);
    if (status != TDM_OK)
        return fail_at_line(work, batch, status);
    if (work->stats != NULL)
        return tdm_token_stats_add(work->stats, batch, work->inputs, work->encodings);
    const tdm_token_format format = {.json = work->values->json,
                                     .tokens = work->values->tokens,
                                     .offsets = work->values->offsets,
                                     .bytes = work->values->bytes};
    return tdm_token_lines_write(&work->lines, &format, work->tokenizer, work->encodings,
                                 work->output);
}

/* ---- ids to text ----------------------------------------------------------------------------- */

static tdm_status add_id(tokenizing *work, size_t count, const char *word, size_t bytes)
{
    uint64_t id = 0;
    bool is_number = bytes <= 9;
    for (size_t i = 0; i < bytes && is_number; i++) {
        is_number = word[i] >= '0' && word[i] <= '9';
        id = 10 * id + (uint64_t)(word[i] - '0');
    }
    TDM_FAIL_IF(!is_number, TDM_E_DATA, "\"%.*s\" is no id", bytes < 40 ? (int)bytes : 40, word);
    TDM_TRY(tdm_grow(&work->ids, &work->ids_capacity, count + 1, sizeof *work->ids));
    work->ids[count] = (uint32_t)id;
    return TDM_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static tdm_status decode_line(tokenizing *work, const tdm_line *line)
{
    size_t count = 0;
    for (size_t at = 0; at < line->bytes;) {
        size_t begin = at;
        while (at < line->bytes && !is_blank(line->text[at]))
            at++;
        if (at > begin)
            TDM_TRY(add_id(work, count++, line->text + begin, at - begin));
        while (at < line->bytes && is_blank(line->text[at]))
            at++;
    }
    char *text;
    tdm_status status = tdm_tokenizer_decode(work->tokenizer, work->ids, (int64_t)count,
                                             !work->values->special, &text);
    if (status == TDM_E_ARG)
        return tdm_fail(TDM_E_DATA, "%s", tdm_error_message());
    TDM_TRY(status);
    status = tdm_output_write(work->output, text, strlen(text));
    tdm_string_free(text);
    return status == TDM_OK ? tdm_output_write(work->output, "\n", 1) : status;
}

static tdm_status decode_batch(tokenizing *work, const tdm_line_batch *batch)
{
    for (int64_t i = 0; i < batch->count; i++) {
        tdm_status status = decode_line(work, &batch->lines[i]);
        if (status == TDM_E_DATA)
            return tdm_fail_context(status, "%s:%lld", batch->name, (long long)(batch->first + i));
        TDM_TRY(status);
    }
    return TDM_OK;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static tdm_status read_lines(tokenizing *work, tdm_line_reader *reader)
{
    tdm_progress progress;
    tdm_progress_init(&progress, work->values->decode ? "decoding" : "tokenizing", 10);
    bool shown = work->stats != NULL || work->values->output != NULL;
    tdm_status status = TDM_OK;
    for (tdm_line_batch batch = {.count = 1}; batch.count > 0 && status == TDM_OK;) {
        status = atomic_load(work->command->cancel) ? tdm_fail(TDM_E_CANCELLED, "stopped")
                                                    : tdm_line_reader_next(reader, &batch);
        if (status == TDM_OK)
            status = work->values->decode ? decode_batch(work, &batch) : encode_batch(work, &batch);
        if (status == TDM_OK && tdm_line_reader_is_eager(reader) && work->output != NULL)
            status = tdm_output_flush(work->output);
        work->done += batch.count;
        if (shown)
            tdm_progress_rows(&progress, work->done, tdm_line_reader_share(reader));
    }
    tdm_progress_end(&progress);
    return status;
}

static tdm_status read_files(tokenizing *work)
{
    const tdm_strings names = tdm_command_files(work->command, 1);
    tdm_line_reader *reader;
    TDM_TRY(tdm_line_reader_create(&names, work->command->cancel, &reader));
    tdm_status status = read_lines(work, reader);
    tdm_line_reader_destroy(reader);
    return status;
}

/* The tokenizer in another file, and nothing else. */
static tdm_status save(const tokenizing *work)
{
    const tokenize_values *values = work->values;
    TDM_FAIL_IF(work->command->plain_count > 1, TDM_E_ARG,
                "--save writes the tokenizer and reads no text: name no file");
    TDM_FAIL_IF(!values->force && tdm_file_exists(values->save), TDM_E_ARG,
                "%s is there already: --force overwrites it", values->save);
    return tdm_tokenizer_save(work->tokenizer, values->save);
}

static tdm_status tokenize(tokenizing *work)
{
    tdm_tokenizer_settings settings;
    bool given = false;
    TDM_TRY(check_values(work->values));
    TDM_TRY(choose_settings(work->values, &settings, &given));
    TDM_TRY(
        tdm_tokenizer_open(work->command->plain[0], given ? &settings : NULL, &work->tokenizer));
    TDM_TRY(choose_options(work));
    if (work->values->save != NULL)
        return save(work);
    TDM_TRY(tdm_encoder_create(work->tokenizer, (int)work->values->threads, &work->encoder));
    TDM_TRY(tdm_encodings_create(&work->encodings));
    if (work->values->stats) {
        TDM_TRY(tdm_token_stats_create(work->tokenizer, &work->stats));
        TDM_TRY(read_files(work));
        return tdm_token_stats_print(work->stats, work->values->json);
    }
    TDM_TRY(tdm_output_open(work->values->output, work->values->force, &work->output));
    TDM_TRY(read_files(work));
    return tdm_output_commit(work->output);
}

static tdm_status run(const tdm_command *command)
{
    tokenizing work = {.command = command, .values = command->values};
    tdm_status status = tokenize(&work);
    tdm_output_close(work.output);
    tdm_token_stats_destroy(work.stats);
    tdm_token_lines_deinit(&work.lines);
    tdm_encodings_destroy(work.encodings);
    tdm_encoder_destroy(work.encoder);
    tdm_tokenizer_close(work.tokenizer);
    tdm_free(work.inputs);
    tdm_free(work.ids);
    return status;
}

#define FLAG(option_name, member, text)                                                            \
    {                                                                                              \
        .name = (option_name), .type = TDM_OPTION_FLAG,                                            \
        .offset = offsetof(tokenize_values, member), .help = (text)                                \
    }
#define TEXT(option_name, member, value_name, text)                                                \
    {                                                                                              \
        .name = (option_name), .type = TDM_OPTION_TEXT,                                            \
        .offset = offsetof(tokenize_values, member), .value = (value_name), .help = (text)         \
    }
#define NUMBER(option_name, member, least, most, otherwise, text)                                  \
    {                                                                                              \
        .name = (option_name), .type = TDM_OPTION_INT,                                             \
        .offset = offsetof(tokenize_values, member), .value = "N", .min = (least), .max = (most),  \
        .fallback = (otherwise), .help = (text)                                                    \
    }

static const tdm_option options[] = {
    FLAG("lowercase", lowercase,
         "of a vocabulary: lower case, without accents (so without option)"),
    FLAG("cased", cased, "of a vocabulary: letters and accents as they are"),
    TEXT("strip-accents", strip_accents, "WHETHER", "yes, no, auto: as lower case"),
    TEXT("unicode", unicode, "MODE", "rules: huggingface, google, or unicode"),
    TEXT("form", form, "FORM", "first to this normal form: none, nfc or nfkc"),
    NUMBER("max-word-chars", max_word_chars, 1, 1000000, 0, "longer words are [UNK] (100)"),
    FLAG("tokens", tokens, "tokens instead of ids"),
    FLAG("offsets", offsets, "behind each :begin:end in the line, in code points"),
    FLAG("bytes", bytes, "offsets in bytes"),
    FLAG("json", json, "an object a line: ids, tokens, offsets, words, masks"),
    FLAG("pairs", pairs, "lines are two texts with a tab between them"),
    FLAG("special", special, "add [CLS] and [SEP]; with --decode: keep special tokens"),
    TEXT("specials", specials, "HOW", "[MASK] and so on in the text: match, plain or error"),
    NUMBER("max-length", max_length, 0, INT32_MAX, -1, "tokens at most, added ones included"),
    TEXT("truncation", truncation, "HOW", "longest_first, only_first or only_second"),
    FLAG("truncate-left", truncate_left, "cut off at the front"),
    FLAG("overflow", overflow, "what is cut off follows behind tabs"),
    NUMBER("stride", stride, 0, INT32_MAX, -1, "tokens that parts overlap by"),
    NUMBER("pad", pad, 0, INT32_MAX, -1, "fill up to so many tokens with [PAD]"),
    FLAG("pad-left", pad_left, "at the front"),
    NUMBER("pad-multiple", pad_multiple, 1, 1000000, 0, "to a multiple of this"),
    FLAG("decode", decode, "the other way: ids to text"),
    FLAG("stats", stats, "how well the vocabulary fits: [UNK], tokens a word, longest words"),
    TEXT("save", save, "FILE",
         "write the tokenizer: as tokenizer.json if so named, else as vocabulary"),
    NUMBER("threads", threads, 0, 1024, 0, "threads to use; 0: one a core"),
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(tokenize_values, output),
     .value = "FILE",
     .help = "write to this file, which is whole or not there"},
    FLAG("force", force, "overwrite the file of -o or --save"),
    {0},
};

const tdm_verb tdm_verb_tokenize = {
    .name = "tokenize",
    .arguments = "VOCAB [FILE...]",
    .summary = "text to the tokens of a vocabulary, a line for each line",
    .text =
        "VOCAB is a vocabulary (vocab.txt, one token a line) or a tokenizer.json of BERT's kind,\n"
        "whose own settings, truncation and fixed padding hold. A vocabulary is taken to be in\n"
        "lower case, without accents: --cased where it is not. Files may be compressed; without "
        "one,\n"
        "or for -, standard input is answered as it is read. Special tokens that stand in a text\n"
        "are those tokens: --specials plain where a text of strangers must not make any.\n"
        "\n"
        "  tandem tokenize vocab.txt < text\n"
        "  tandem tokenize vocab.txt corpus.txt.gz --tokens --offsets -o tokens.txt\n"
        "  tandem tokenize tokenizer.json pairs.tsv --pairs --special --max-length 128 --json\n"
        "  tandem tokenize vocab.txt corpus.txt --stats\n"
        "  tandem tokenize vocab.txt ids.txt --decode\n"
        "  tandem tokenize vocab.txt --cased --save tokenizer.json",
    .options = options,
    .values_bytes = sizeof(tokenize_values),
    .min_plain = 1,
    .max_plain = -1,
    .run = run,
};

/* tandem vocab: a WordPiece vocabulary of one's own texts. */
#include "cli/console.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "core/memory.h"
#include "text/normalize.h"
#include "text/train_vocabulary.h"
#include "text/vocab_trainer.h"

#include <stdio.h>
#include <string.h>

#define INITIAL_FILE_LIMIT ((size_t)64 << 20)

typedef struct vocab_values {
    const char *output;
    int64_t size, min_frequency, limit_alphabet;
    tdm_strings initial, special;
    bool cased;
    const char *unicode;
    const char *counts;
    int64_t memory, threads;
    bool force, json;
} vocab_values;

typedef struct vocab_making {
    const tdm_command *command;
    const vocab_values *values;
    tdm_tokenizer_settings settings;
    tdm_strings specials, initial;
    size_t initial_capacity;
    tdm_progress progress;
    tdm_output *output;
    bool to_stdout;
    tdm_file_writer *counts;
    tdm_word_list words;
    tdm_word_count_report counted;
    tdm_vocabulary vocabulary;
    int64_t tokens; /* that it had when it was written */
    tdm_vocab_report trained;
    double count_seconds, train_seconds;
} vocab_making;

/* ---- the command line ------------------------------------------------------------------------ */

static tdm_status add_token(tdm_strings *tokens, size_t *capacity, const char *token, size_t bytes)
{
    TDM_TRY(tdm_grow(&tokens->items, capacity, (size_t)tokens->count + 1, sizeof *tokens->items));
    TDM_TRY(tdm_strndup(token, bytes, &tokens->items[tokens->count]));
    tokens->count++;
    return TDM_OK;
}

/* The stretches of `text` between any of the bytes in `separators`. */
static tdm_status add_initial_tokens(vocab_making *making, const char *text, const char *separators)
{
    for (text += strspn(text, separators); *text != '\0'; text += strspn(text, separators)) {
        size_t bytes = strcspn(text, separators);
        TDM_TRY(add_token(&making->initial, &making->initial_capacity, text, bytes));
        text += bytes;
    }
    return TDM_OK;
}

static tdm_status add_initial_file(vocab_making *making, const char *path)
{
    char *text;
    size_t bytes;
    TDM_TRY(tdm_file_get(path, INITIAL_FILE_LIMIT, &text, &bytes));
    tdm_status status =
        strlen(text) == bytes
            ? add_initial_tokens(making, text, "\r\n")
            : tdm_fail(TDM_E_DATA, "%s: holds NUL bytes: expected a token a line", path);
    tdm_free(text);
    return status;
}

static tdm_status add_initial(vocab_making *making)
{
    const tdm_strings *initial = &making->values->initial;
    for (int64_t i = 0; i < initial->count; i++) {
        const char *text = initial->items[i];
        if (text[0] == '@' && text[1] != '\0')
            TDM_TRY(add_initial_file(making, text + 1));
        else
            TDM_TRY(add_initial_tokens(making, text, " "));
    }
    return TDM_OK;
}

static tdm_status choose_settings(vocab_making *making)
{
    const char *wanted = making->values->unicode;
    making->settings = tdm_tokenizer_default_settings();
    making->settings.lowercase = !making->values->cased;
    if (wanted == NULL)
        return TDM_OK;
    int mode = tdm_name_find(tdm_unicode_mode_names, wanted);
    TDM_FAIL_IF(mode < 0, TDM_E_ARG, "--unicode is huggingface, google or unicode, not \"%s\"",
                wanted);
    making->settings.unicode = (tdm_unicode_mode)mode;
    return TDM_OK;
}

static bool is_json_file(const char *path)
{
    size_t bytes = path == NULL ? 0 : strlen(path);
    return bytes >= 5 && strcmp(path + bytes - 5, ".json") == 0;
}

/* Warns of initial tokens that no text will be cut into. */
static tdm_status check_initial(const vocab_making *making)
{
    tdm_normalized normalized = {0};
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < making->initial.count && status == TDM_OK; i++) {
        const char *word = making->initial.items[i];
        size_t bytes = strlen(word);
        if (bytes > TDM_CONTINUATION_BYTES &&
            memcmp(word, TDM_CONTINUATION, TDM_CONTINUATION_BYTES) == 0) {
            word += TDM_CONTINUATION_BYTES;
            bytes -= TDM_CONTINUATION_BYTES;
        }
        status = tdm_normalize(&making->settings, word, bytes, &normalized);
        if (status == TDM_OK && (normalized.word_count != 1 || normalized.bytes != bytes ||
                                 memcmp(normalized.text, word, bytes) != 0))
            tdm_warn("the initial token \"%s\" will never be found: as a text, it is \"%.*s\" in "
                     "%lld words",
                     making->initial.items[i], (int)normalized.bytes, normalized.text,
                     (long long)normalized.word_count);
    }
    tdm_normalized_deinit(&normalized);
    return status;
}

/* What cannot be written is told before the work. */
static tdm_status open_output(vocab_making *making)
{
    const vocab_values *values = making->values;
    bool has_counts = values->counts != NULL && tdm_file_exists(values->counts);
    TDM_FAIL_IF(making->command->plain_count == 0 && !has_counts, TDM_E_ARG,
                "no text is named: tandem vocab FILE... -o FILE");
    TDM_TRY(tdm_output_open(values->output, values->force, &making->output));
    making->to_stdout = tdm_output_is_stdout(making->output);
    TDM_FAIL_IF(values->json && making->to_stdout, TDM_E_ARG,
                "--json needs -o FILE: else the vocabulary itself goes to standard output");
    return TDM_OK;
}

/* ---- counting and training ------------------------------------------------------------------- */

static void tell_counting(void *context, int64_t text_bytes, int64_t words, double share)
{
    tdm_progress *progress = context;
    double seconds = tdm_clock_seconds() - progress->started;
    tdm_progress_show(progress, "%.1f MB  %s words  %.0f MB/s  %s left", 1e-6 * (double)text_bytes,
                      tdm_count_text((double)words), 1e-6 * (double)text_bytes / seconds,
                      tdm_duration_text(seconds * (1 - share) / share));
}

static void tell_training(void *context, int64_t tokens)
{
    tdm_progress_show(context, "%lld tokens", (long long)tokens);
}

static tdm_status count_words(vocab_making *making)
{
    const tdm_command *command = making->command;
    const tdm_strings names = {(char **)(uintptr_t)command->plain, command->plain_count};
    size_t memory = (size_t)making->values->memory << 20;
    tdm_word_count_options options = {
        .names = &names,
        .settings = &making->settings,
        .counts_path = making->values->counts,
        .map_bytes = memory / 2,
        .list_bytes = memory,
        .cancel = command->cancel,
        .progress = tell_counting,
        .progress_context = &making->progress,
    };
    tdm_progress_init(&making->progress, "counting", 10);
    TDM_TRY(tdm_pool_create((int)making->values->threads, &options.pool));
    tdm_status status =
        tdm_word_counts(&options, &making->counts, &making->words, &making->counted);
    tdm_pool_destroy(options.pool);
    tdm_progress_end(&making->progress);
    making->count_seconds = tdm_clock_seconds() - making->progress.started;
    return status;
}

static tdm_status train(vocab_making *making)
{
    const tdm_vocab_options options = {
        .size = making->values->size,
        .min_frequency = making->values->min_frequency,
        .limit_alphabet = making->values->limit_alphabet,
        .specials = &making->specials,
        .initial = &making->initial,
        .cancel = making->command->cancel,
        .progress = tell_training,
        .progress_context = &making->progress,
    };
    tdm_progress_init(&making->progress, "training", 10);
    tdm_status status =
        tdm_vocab_train(&making->words, &options, &making->vocabulary, &making->trained);
    tdm_progress_end(&making->progress);
    making->train_seconds = tdm_clock_seconds() - making->progress.started;
    return status;
}

static tdm_status write_tokens(const vocab_making *making)
{
    const tdm_vocabulary *vocabulary = &making->vocabulary;
    for (int64_t id = 0; id < vocabulary->size; id++) {
        TDM_TRY(tdm_output_write(making->output, vocabulary->text + vocabulary->begins[id],
                                 vocabulary->bytes[id]));
        TDM_TRY(tdm_output_write(making->output, "\n", 1));
    }
    return tdm_output_commit(making->output);
}

/* A tokenizer.json: takes the vocabulary. */
static tdm_status write_tokenizer(vocab_making *making)
{
    tdm_tokenizer *tokenizer;
    TDM_TRY(
        tdm_vocab_tokenizer(&making->settings, &making->specials, &making->vocabulary, &tokenizer));
    tdm_output_close(making->output);
    making->output = NULL;
    tdm_status status = tdm_tokenizer_save(tokenizer, making->values->output);
    tdm_tokenizer_close(tokenizer);
    return status;
}

static tdm_status write_results(vocab_making *making)
{
    making->tokens = making->vocabulary.size;
    if (is_json_file(making->values->output))
        TDM_TRY(write_tokenizer(making));
    else
        TDM_TRY(write_tokens(making));
    return making->counts == NULL ? TDM_OK : tdm_file_writer_commit(making->counts, NULL, NULL);
}

/* ---- the result ------------------------------------------------------------------------------ */

/* The share of the words that are written with the alphabet: the others will be [UNK]. */
static double coverage(const vocab_making *making)
{
    const tdm_word_count_report *counted = &making->counted;
    double unknown = (double)(making->trained.unknown_total + counted->too_long);
    return 1 - unknown / (double)(counted->total + counted->too_long);
}

static void warn(const vocab_making *making)
{
    const tdm_word_count_report *counted = &making->counted;
    const tdm_vocab_report *trained = &making->trained;
    if (counted->invalid_bytes > 0)
        tdm_warn("%lld bytes are not UTF-8, and were read as U+FFFD",
                 (long long)counted->invalid_bytes);
    if (counted->too_long > 0)
        tdm_warn("%lld words of more than %d characters were left out: they will be [UNK]",
                 (long long)counted->too_long, making->settings.max_word_chars);
    if (trained->alphabet < trained->characters)
        tdm_warn("the alphabet leaves %lld of %lld characters out: %.3g %% of the words hold one, "
                 "and will be [UNK]; --limit-alphabet %lld keeps all",
                 (long long)(trained->characters - trained->alphabet),
                 (long long)trained->characters,
                 100 * (double)trained->unknown_total / (double)making->counted.total,
                 (long long)trained->characters);
    if (making->tokens < making->values->size)
        tdm_warn("no further pair of pieces came %lld times or more: the vocabulary has %lld "
                 "tokens only",
                 (long long)(making->values->min_frequency > 1 ? making->values->min_frequency : 1),
                 (long long)making->tokens);
}

static tdm_status print_json(const vocab_making *making)
{
    const tdm_word_count_report *counted = &making->counted;
    const tdm_vocab_report *trained = &making->trained;
    return tdm_console_json(json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, "
        "s:o, s:o}",
        "file", making->values->output, "tokens", (json_int_t)making->tokens, "characters",
        (json_int_t)trained->characters, "alphabet", (json_int_t)trained->alphabet, "merges",
        (json_int_t)trained->merges, "last_count", (json_int_t)trained->last_count, "files",
        (json_int_t)counted->files, "bytes", (json_int_t)counted->text_bytes, "words",
        (json_int_t)counted->words, "total_words", (json_int_t)counted->total, "distinct_words",
        (json_int_t)counted->distinct, "unknown_words", (json_int_t)trained->unknown_total,
        "pruned_words", (json_int_t)counted->pruned_total, "too_long_words",
        (json_int_t)counted->too_long, "invalid_bytes", (json_int_t)counted->invalid_bytes,
        "temporary_files", (json_int_t)counted->spilled, "coverage",
        tdm_json_number(coverage(making)), "count_seconds", tdm_json_number(making->count_seconds),
        "train_seconds", tdm_json_number(making->train_seconds)));
}

static tdm_status print_result(const vocab_making *making)
{
    const tdm_word_count_report *counted = &making->counted;
    const tdm_vocab_report *trained = &making->trained;
    if (making->values->json)
        return print_json(making);
    tdm_text text = {0};
    TDM_TRY(tdm_text_printf(&text,
                            "tokens          %lld, the last one of a pair that came %lld times\n"
                            "words           %lld, %lld distinct\n"
                            "alphabet        %lld of %lld characters, for %.4g %% of the words\n"
                            "time            %.3g s: counting %.3g, training %.3g\n",
                            (long long)making->tokens, (long long)trained->last_count,
                            (long long)counted->total, (long long)counted->distinct,
                            (long long)trained->alphabet, (long long)trained->characters,
                            100 * coverage(making), making->count_seconds + making->train_seconds,
                            making->count_seconds, making->train_seconds));
    fputs(text.bytes, making->to_stdout ? stderr : stdout);
    tdm_text_free(&text);
    return TDM_OK;
}

static tdm_status make_vocabulary(vocab_making *making)
{
    TDM_TRY(choose_settings(making));
    TDM_TRY(tdm_vocab_specials((const char *const *)making->values->special.items,
                               making->values->special.count, &making->specials));
    TDM_TRY(add_initial(making));
    TDM_TRY(check_initial(making));
    TDM_TRY(open_output(making));
    TDM_TRY(count_words(making));
    TDM_TRY(train(making));
    TDM_TRY(write_results(making));
    warn(making);
    return print_result(making);
}

static tdm_status run(const tdm_command *command)
{
    vocab_making making = {.command = command, .values = command->values};
    tdm_status status = make_vocabulary(&making);
    tdm_output_close(making.output);
    tdm_file_writer_close(making.counts);
    tdm_word_list_deinit(&making.words);
    tdm_vocabulary_deinit(&making.vocabulary);
    tdm_strings_free(&making.specials);
    tdm_strings_free(&making.initial);
    return status;
}

static const tdm_option options[] = {
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(vocab_values, output),
     .value = "FILE",
     .help = "write to this file, a tokenizer.json where it ends so; else to standard output"},
    {.name = "size",
     .type = TDM_OPTION_INT,
     .offset = offsetof(vocab_values, size),
     .value = "N",
     .min = 1,
     .max = TDM_MAX_VOCABULARY,
     .fallback = 30000,
     .help = "tokens at most (30000)"},
    {.name = "min-frequency",
     .type = TDM_OPTION_INT,
     .offset = offsetof(vocab_values, min_frequency),
     .value = "N",
     .max = INT64_MAX,
     .fallback = 2,
     .help = "a pair of pieces that came less often becomes no token (2)"},
    {.name = "limit-alphabet",
     .type = TDM_OPTION_INT,
     .offset = offsetof(vocab_values, limit_alphabet),
     .value = "N",
     .max = 0x110000,
     .fallback = 1000,
     .help = "characters at most, the most frequent ones (1000)"},
    {.name = "initial",
     .type = TDM_OPTION_TEXTS,
     .offset = offsetof(vocab_values, initial),
     .value = "TOKENS",
     .help = "always in: tokens with blanks between, or @FILE, a token a line"},
    {.name = "special",
     .type = TDM_OPTION_TEXTS,
     .offset = offsetof(vocab_values, special),
     .value = "TOKEN",
     .help = "a further token behind [PAD] [UNK] [CLS] [SEP] [MASK]"},
    {.name = "cased",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(vocab_values, cased),
     .help = "keep capitals and accents"},
    {.name = "unicode",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(vocab_values, unicode),
     .value = "MODE",
     .help = "whose rules split words: huggingface (the default), google, unicode"},
    {.name = "counts",
     .type = TDM_OPTION_TEXT,
     .offset = offsetof(vocab_values, counts),
     .value = "FILE",
     .help = "add to the word counts of this file, and train on all that it holds then"},
    {.name = "memory",
     .type = TDM_OPTION_INT,
     .offset = offsetof(vocab_values, memory),
     .value = "MIB",
     .min = 1,
     .max = (int64_t)1 << 30,
     .fallback = 2048,
     .help = "memory to use, about; beyond it words go to temporary files (2048)"},
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = offsetof(vocab_values, threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {.name = "force",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(vocab_values, force),
     .help = "overwrite the file of -o"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = offsetof(vocab_values, json),
     .help = "with -o: print the result as one JSON object"},
    {0},
};

const tdm_verb tdm_verb_vocab = {
    .name = "vocab",
    .arguments = "FILE...",
    .summary = "train a WordPiece vocabulary on texts",
    .text =
        "Counts the words of texts (plain, .gz, .zst, globs, - for standard input) and merges the\n"
        "pieces that stand side by side most often: the rule of Hugging Face's trainer. The same "
        "texts\n"
        "give the same file, whatever their order and the number of threads.\n"
        "\n"
        "  tandem vocab corpus/*.txt.gz -o vocab.txt\n"
        "  tandem vocab corpus/*.txt.gz -o tokenizer.json --unicode google\n"
        "  tandem vocab notes.txt -o vocab.txt --size 8000 --cased --initial \"covid ##itis\"\n"
        "  tandem vocab monday.txt.zst -o vocab.txt --counts words.txt --force\n"
        "  tandem vocab -o large.txt --size 60000 --counts words.txt",
    .options = options,
    .values_bytes = sizeof(vocab_values),
    .max_plain = -1,
    .run = run,
};

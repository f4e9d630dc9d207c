/* tandem predict: what a trained model answers. */
#include "cli/predict.h"
#include "cli/verbs.h"

static tdm_status choose(const char *option, const char *value, const char *const *names,
                         int fallback, int *out)
{
    *out = value == NULL ? fallback : tdm_name_find(names, value);
    if (*out >= 0 || value == NULL)
        return TDM_OK;
    int count = 0;
    while (names[count] != NULL)
        count++;
    char advice[TDM_ADVICE_BYTES];
    return tdm_fail(TDM_E_ARG, "--%s takes one of the words that --help lists, not \"%s\"%s",
                    option, value, tdm_did_you_mean(value, names, count, advice));
}

tdm_status tdm_predict_pooling(const tdm_predict_values *values, int *out)
{
    static const char *const names[] = {"mean", "cls", NULL};
    return choose("pooling", values->pooling, names, 0, out);
}

tdm_status tdm_predict_precision(const tdm_predict_values *values, int fallback, int *out)
{
    static const char *const names[] = {"auto", "fp32", "bf16", NULL};
    return choose("precision", values->precision, names, fallback, out);
}

/* An option and the one that it belongs to; `given` where it stands alone. */
typedef struct belonging {
    const char *option, *of;
    bool given;
} belonging;

static tdm_status check(const tdm_predict_values *values)
{
    bool fill = values->fill_mask != NULL;
    const belonging belongings[] = {
        {"top", "--fill-mask", values->top > 0 && !fill},
        {"pooling", "--embed", values->pooling != NULL && !values->embed},
        {"batch-tokens", "--embed", values->batch_tokens > 0 && !values->embed},
        {"max-length", "--embed", values->max_length > 0 && !values->embed},
    };
    TDM_FAIL_IF(fill && values->embed, TDM_E_ARG,
                "--fill-mask and --embed are two questions: ask one of them");
    TDM_FAIL_IF(values->with != NULL && (fill || values->embed), TDM_E_ARG,
                "--with is of the answers to records, and goes with neither --fill-mask nor "
                "--embed");
    TDM_FAIL_IF(values->with != NULL && values->json, TDM_E_ARG,
                "--with puts columns before answers in CSV: --json does not go with it");
    TDM_FAIL_IF(values->precision != NULL && fill, TDM_E_ARG,
                "--precision does not go with --fill-mask, which is asked in fp32");
    for (size_t i = 0; i < sizeof belongings / sizeof belongings[0]; i++)
        TDM_FAIL_IF(belongings[i].given, TDM_E_ARG, "--%s is of %s: the two go together",
                    belongings[i].option, belongings[i].of);
    return TDM_OK;
}

static tdm_status run(const tdm_command *command)
{
    const tdm_predict_values *values = command->values;
    TDM_TRY(check(values));
    if (values->fill_mask != NULL)
        return tdm_predict_masks(command);
    return values->embed ? tdm_predict_vectors(command) : tdm_predict_records(command);
}

#define AT(member) offsetof(tdm_predict_values, member)

static const tdm_option options[] = {
    {.name = "with",
     .type = TDM_OPTION_TEXT,
     .offset = AT(with),
     .value = "C1,C2",
     .help = "put these columns of the record before its answer, as CSV"},
    {.name = "fill-mask",
     .type = TDM_OPTION_TEXT,
     .offset = AT(fill_mask),
     .value = "TEXT",
     .help = "guess what stands where the text says [MASK]; -: of each line of FILE..."},
    {.name = "top",
     .type = TDM_OPTION_INT,
     .offset = AT(top),
     .value = "N",
     .max = 1000,
     .help = "guesses for each mask (5)"},
    {.name = "embed",
     .type = TDM_OPTION_FLAG,
     .offset = AT(embed),
     .help = "a vector for each line, as .npy where -o is so named"},
    {.name = "pooling",
     .type = TDM_OPTION_TEXT,
     .offset = AT(pooling),
     .value = "HOW",
     .help = "the vector is the mean of all tokens' states, or that of [CLS]: mean, cls"},
    {.name = "max-length",
     .type = TDM_OPTION_INT,
     .offset = AT(max_length),
     .value = "N",
     .max = 1 << 20,
     .help = "tokens of a text at most; else what the run was trained with, or positions"},
    {.name = "precision",
     .type = TDM_OPTION_TEXT,
     .offset = AT(precision),
     .value = "WHICH",
     .help = "of matrix products: fp32, bf16, auto: bf16 where there is that; of records the "
             "run's, else fp32"},
    {.name = "batch-tokens",
     .type = TDM_OPTION_INT,
     .offset = AT(batch_tokens),
     .value = "N",
     .max = 1 << 24,
     .help = "that go through the model at a time (4096)"},
    {.name = "json",
     .type = TDM_OPTION_FLAG,
     .offset = AT(json),
     .help = "a line of JSON for each record or text"},
    {.name = "output",
     .letter = 'o',
     .type = TDM_OPTION_TEXT,
     .offset = AT(output),
     .value = "FILE",
     .help = "write to this file, which is whole or not there"},
    {.name = "force",
     .type = TDM_OPTION_FLAG,
     .offset = AT(force),
     .help = "overwrite the file of -o"},
    {.name = "checkpoint",
     .type = TDM_OPTION_TEXT,
     .offset = AT(checkpoint),
     .value = "WHICH",
     .help = "best, last, or a step; the best if there is one, else the last"},
    {.name = "threads",
     .type = TDM_OPTION_INT,
     .offset = AT(threads),
     .value = "N",
     .max = 1024,
     .help = "threads to use; 0: one a core"},
    {0},
};

const tdm_verb tdm_verb_predict = {
    .name = "predict",
    .arguments = "RUN [FILE...]",
    .summary = "what a model answers: of records, of [MASK] in a text; vectors of texts",
    .text =
        "RUN is the folder that a training wrote (output.dir). Records are in the format that it\n"
        "was trained on; labels may be missing. Every record is answered by one line, a bad one\n"
        "by an empty line. Without a file, or for -, standard input is answered as it is read.\n"
        "What stands in a line follows from what the run was trained for:\n"
        "\n"
        "  clicks                   the probability\n"
        "  classes of texts         the likeliest class and its probability, as CSV\n"
        "  any of several classes   so each one whose probability is above a half; - for none\n"
        "  numbers                  the number\n"
        "  classes of words         a word and its class, a tab between them: a line for each, "
        "and\n"
        "                           an empty one behind a record\n"
        "\n"
        "In JSON it is an object a line, with the probabilities of all classes.\n"
        "\n"
        "  tandem predict runs/deepfm_criteo requests.tsv > probabilities.txt\n"
        "  tandem predict runs/deepfm_criteo requests.tsv --with C1,C2 -o scores.csv\n"
        "  zcat requests.tsv.gz | tandem predict runs/deepfm_criteo - --checkpoint last\n"
        "  tandem predict runs/reviews reviews.tsv --json\n"
        "\n"
        "Of an encoder that was trained on masked text (task: mlm), or a folder of Hugging Face "
        "or\n"
        "google-research/bert with such a head, --fill-mask prints the likeliest tokens and their\n"
        "probabilities; in JSON [{\"token\":, \"id\":, \"probability\":}, ...], and a list of "
        "such\n"
        "lists where a text has several masks.\n"
        "\n"
        "  tandem predict runs/bert_mini --fill-mask \"the [MASK] of god\" --top 10\n"
        "  tandem predict runs/bert_mini lines.txt --fill-mask - --json\n"
        "\n"
        "Of any encoder, --embed makes a vector of each line: numbers with tabs between them, a\n"
        "list in JSON, or a file of NumPy where -o names one.\n"
        "\n"
        "  tandem predict runs/bert_mini lines.txt --embed -o vectors.npy\n"
        "  tandem predict bert-folder/ lines.txt.gz --embed --pooling cls --json",
    .options = options,
    .values_bytes = sizeof(tdm_predict_values),
    .min_plain = 1,
    .max_plain = -1,
    .run = run,
};

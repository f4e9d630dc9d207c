#include "text/text_options.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define KEYS(list) .keys = (list), .count = (int)(sizeof(list) / sizeof(list)[0])

static const char *const flags[] = {"auto", "false", "true", NULL};
static const char *const modes[] = {"auto", "huggingface", "google", "unicode", NULL};
static const char *const sequences[] = {"full_sentences", "segment_pairs", "one_per_record", NULL};
static const char *const pairs[] = {"nsp", "sop", NULL};
static const char *const batches[] = {"unpadded", "padded", NULL};
static const char *const units[] = {"token", "whole_word", "span", NULL};
static const char *const counts[] = {"exact", "bernoulli", NULL};

#define MASKING(member) offsetof(tdm_text_masking, member)

static const tdm_config_key masking_keys[] = {
    {.name = "rate",
     .type = TDM_CONFIG_FLOAT,
     .offset = MASKING(rate),
     .fallback = "0.15",
     .min = 0.001,
     .max = 1,
     .help = "share of the tokens that are to be guessed"},
    {.name = "unit",
     .type = TDM_CONFIG_CHOICE,
     .offset = MASKING(unit),
     .fallback = "token",
     .choices = units,
     .help = "what is selected as a whole; span: 1 to 10 words, 3.8 in the mean (SpanBERT)"},
    {.name = "replace",
     .type = TDM_CONFIG_FLOATS,
     .offset = MASKING(replace),
     .fallback = "[0.8, 0.1, 0.1]",
     .min = 0,
     .max = 1,
     .help = "shares of them that become [MASK], become a random token, stay"},
    {.name = "count",
     .type = TDM_CONFIG_CHOICE,
     .offset = MASKING(count),
     .fallback = "exact",
     .choices = counts,
     .help = "as many of each sequence as the rate says, or each unit with that probability"},
    {.name = "max_predictions",
     .type = TDM_CONFIG_INT,
     .offset = MASKING(max_predictions),
     .fallback = "0",
     .min = 0,
     .max = TDM_MAX_SEQUENCE_LENGTH,
     .help = "most tokens of a sequence; 0: no limit"},
    {.name = "mask_unk",
     .type = TDM_CONFIG_BOOL,
     .offset = MASKING(mask_unk),
     .fallback = "false",
     .help = "[UNK] may be selected too"},
    {.name = "at_least_one",
     .type = TDM_CONFIG_BOOL,
     .offset = MASKING(at_least_one),
     .fallback = "true",
     .help = "of every sequence"},
};

static const tdm_config_schema masking_schema = {.size = sizeof(tdm_text_masking),
                                                 KEYS(masking_keys)};

#define TEXT(member) offsetof(tdm_text_options, member)

/* The first SHARED_KEYS of them are those of labelled text too. */
static const tdm_config_key text_keys[] = {
    {.name = "tokenizer",
     .type = TDM_CONFIG_STRING,
     .offset = TEXT(tokenizer),
     .fallback = "~",
     .help = "a vocabulary (vocab.txt) or a tokenizer.json"},
    {.name = "lowercase",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(lowercase),
     .fallback = "auto",
     .choices = flags,
     .help = "auto: as a tokenizer.json says; true for a vocabulary"},
    {.name = "strip_accents",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(strip_accents),
     .fallback = "auto",
     .choices = flags,
     .help = "auto: as a tokenizer.json says; as lowercase for a vocabulary"},
    {.name = "unicode",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(unicode),
     .fallback = "auto",
     .choices = modes,
     .help = "whose rules; auto: as a tokenizer.json says; huggingface for a vocabulary"},
    {.name = "max_length",
     .type = TDM_CONFIG_INT,
     .offset = TEXT(max_length),
     .fallback = "128",
     .min = TDM_MIN_SEQUENCE_LENGTH,
     .max = TDM_MAX_SEQUENCE_LENGTH,
     .help = "tokens of a sequence, [CLS] and [SEP] included; longer documents are several, longer "
             "texts of classify are cut"},
    {.name = "batch",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(batch),
     .fallback = "unpadded",
     .choices = batches,
     .help = "sequences one behind the other, or each padded to max_length"},
    {.name = "sequences",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(sequences),
     .fallback = "full_sentences",
     .choices = sequences,
     .help = "whole sentences as many as fit, pairs of segments, or a document each"},
    {.name = "cross_documents",
     .type = TDM_CONFIG_BOOL,
     .offset = TEXT(cross_documents),
     .fallback = "true",
     .help = "full_sentences: the next document goes on behind [SEP] where one has ended"},
    {.name = "pairs",
     .type = TDM_CONFIG_CHOICE,
     .offset = TEXT(pairs),
     .fallback = "nsp",
     .choices = pairs,
     .help = "segment_pairs: is B what follows (BERT), or are the two swapped (ALBERT)?"},
    {.name = "short_seq_prob",
     .type = TDM_CONFIG_FLOAT,
     .offset = TEXT(short_seq_prob),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "share of sequences, or of documents of pairs, of random shorter length; BERT: 0.1"},
    {.name = "masking",
     .type = TDM_CONFIG_SECTION,
     .offset = TEXT(masking),
     .section = &masking_schema,
     .help = "what the model must guess, drawn anew each epoch"},
};

#define SHARED_KEYS 6

const tdm_config_schema tdm_text_schema = {.size = sizeof(tdm_text_options), KEYS(text_keys)};
const tdm_config_schema tdm_labelled_text_schema = {
    .size = sizeof(tdm_text_options), .keys = text_keys, .count = SHARED_KEYS};

/* ---- checks ---------------------------------------------------------------------------------- */

/* At the key, where the recipe has it. */
static tdm_status refuse(const tdm_config_node *section, const char *path, const char *message)
{
    const tdm_config_node *node;
    if (strncmp(path, "masking.", 8) == 0)
        node = tdm_config_get(tdm_config_get(section, "masking"), path + 8);
    else
        node = tdm_config_get(section, path);
    if (node != NULL)
        return tdm_config_fail(node, "%s", message);
    return tdm_fail(TDM_E_CONFIG, "text.%s: %s", path, message);
}

tdm_status tdm_text_options_check(const tdm_text_options *options, const tdm_config_node *section)
{
    const tdm_text_masking *masking = &options->masking;
    const tdm_floats *replace = &masking->replace;
    double sum = 0;
    for (int64_t i = 0; i < replace->count; i++)
        sum += replace->items[i];
    if (replace->count != TDM_MASK_KINDS || fabs(sum - 1) > 1e-6)
        return refuse(section, "masking.replace",
                      "expected three shares that make 1 together: [MASK], random token, kept");
    if (masking->unit == TDM_MASK_SPAN && masking->count == TDM_MASK_BERNOULLI)
        return refuse(section, "masking.count",
                      "spans are drawn until there are enough: take exact, or unit: whole_word");
    return TDM_OK;
}

tdm_sequence_options tdm_text_sequence_options(const tdm_text_options *options)
{
    return (tdm_sequence_options){.mode = options->sequences,
                                  .pairs = options->pairs,
                                  .cross_documents = options->cross_documents,
                                  .short_probability = options->short_seq_prob,
                                  .max_length = options->max_length};
}

tdm_masking_options tdm_text_masking_options(const tdm_text_options *options)
{
    const tdm_text_masking *masking = &options->masking;
    tdm_masking_options out = {.rate = masking->rate,
                               .unit = masking->unit,
                               .count = masking->count,
                               .max_predictions = masking->max_predictions,
                               .mask_unk = masking->mask_unk,
                               .at_least_one = masking->at_least_one};
    for (int i = 0; i < TDM_MASK_KINDS; i++)
        out.replace[i] = masking->replace.items[i];
    return out;
}

/* ---- the tokenizer --------------------------------------------------------------------------- */

static tdm_status check_specials(const tdm_text_options *options, const tdm_config_node *section,
                                 const tdm_tokenizer *tokenizer)
{
    for (int i = 0; i < TDM_SPECIALS; i++) {
        bool needed = (i != TDM_SPECIAL_PAD || options->batch == TDM_TEXT_PADDED) &&
                      (i != TDM_SPECIAL_MASK || options->masking.rate > 0);
        if (!needed || tokenizer->specials[i] >= 0)
            continue;
        char message[512];
        snprintf(message, sizeof message, "%.400s has no %s", options->tokenizer,
                 tdm_special_names[i]);
        return refuse(section, "tokenizer", message);
    }
    return TDM_OK;
}

tdm_status tdm_text_open_tokenizer(const tdm_text_options *options, const tdm_config_node *section,
                                   tdm_tokenizer **out)
{
    *out = NULL;
    if (options->tokenizer == NULL)
        return refuse(section, "tokenizer",
                      "name a vocabulary: text.tokenizer=vocab.txt; tandem vocab makes one");
    tdm_tokenizer_settings settings = tdm_tokenizer_default_settings();
    bool given = options->lowercase > 0 || options->strip_accents > 0 || options->unicode > 0;
    if (options->lowercase > 0)
        settings.lowercase = options->lowercase - 1 > 0;
    if (options->strip_accents > 0)
        settings.strip_accents = options->strip_accents - 1;
    if (options->unicode > 0)
        settings.unicode = (tdm_unicode_mode)(options->unicode - 1);
    tdm_tokenizer *tokenizer;
    tdm_status status =
        tdm_tokenizer_open(options->tokenizer, given ? &settings : NULL, &tokenizer);
    if (status == TDM_E_ARG && given)
        return refuse(section, "tokenizer",
                      "a tokenizer.json has settings of its own: take lowercase, strip_accents and "
                      "unicode out of the recipe");
    if (status != TDM_OK)
        return tdm_fail_context(status, "text.tokenizer");
    status = check_specials(options, section, tokenizer);
    if (status == TDM_OK)
        *out = tokenizer;
    else
        tdm_tokenizer_close(tokenizer);
    return status;
}

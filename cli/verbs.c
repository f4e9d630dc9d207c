#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

const tdm_verb *const tdm_verbs[] = {
    &tdm_verb_train,
    &tdm_verb_check,
    &tdm_verb_eval,
    &tdm_verb_predict,
    &tdm_verb_export,
    &tdm_verb_features,
    &tdm_verb_inspect,
    &tdm_verb_vocab,
    &tdm_verb_tokenize,
    &tdm_verb_synth_ctr,
    &tdm_verb_bench_features,
    &tdm_verb_bench_train,
    &tdm_verb_bench_tokenize,
    &tdm_verb_doctor,
    &tdm_verb_help_recipe,
    &tdm_verb_help,
    NULL,
};

#define MAX_VERBS 32

/* Bytes of a name's first word. */
static size_t first_word(const char *name)
{
    return strcspn(name, " ");
}

static bool names_verb(const tdm_verb *verb, int count, const char *const *words, int *used)
{
    size_t bytes = first_word(verb->name);
    if (strncmp(words[0], verb->name, bytes) != 0 || words[0][bytes] != '\0')
        return false;
    if (verb->name[bytes] == '\0') {
        *used = 1;
        return true;
    }
    *used = 2;
    return count > 1 && strcmp(words[1], verb->name + bytes + 1) == 0;
}

/* The second word of a verb of two, the first of which is `word`; else NULL. */
static const char *second_word(const tdm_verb *verb, const char *word)
{
    size_t bytes = first_word(verb->name);
    bool matches = strncmp(word, verb->name, bytes) == 0 && word[bytes] == '\0';
    return matches && verb->name[bytes] != '\0' ? verb->name + bytes + 1 : NULL;
}

/* "bench" alone, or with a word that it does not know. */
static tdm_status incomplete_verb(int count, const char *const *words)
{
    const char *seconds[MAX_VERBS];
    char list[256] = "";
    int second_count = 0;
    for (int i = 0; tdm_verbs[i] != NULL && i < MAX_VERBS; i++) {
        const char *second = second_word(tdm_verbs[i], words[0]);
        if (second == NULL)
            continue;
        seconds[second_count++] = second;
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", length > 0 ? ", " : "", second);
    }
    if (second_count == 0)
        return TDM_OK;
    char advice[TDM_ADVICE_BYTES];
    tdm_did_you_mean(count > 1 ? words[1] : "", seconds, second_count, advice);
    return tdm_fail(TDM_E_ARG, "%s needs to know what: %s%s", words[0], list, advice);
}

tdm_status tdm_verb_find(int count, const char *const *words, const tdm_verb **verb, int *used)
{
    *verb = NULL;
    *used = 0;
    TDM_FAIL_IF(count < 1, TDM_E_ARG, "say what to do: tandem --help lists the verbs");
    /* The verbs of two words come before those that are their first word alone. */
    const char *names[MAX_VERBS];
    int name_count = 0;
    for (int i = 0; tdm_verbs[i] != NULL && i < MAX_VERBS; i++) {
        if (names_verb(tdm_verbs[i], count, words, used)) {
            *verb = tdm_verbs[i];
            return TDM_OK;
        }
        names[name_count++] = tdm_verbs[i]->name;
    }
    TDM_TRY(incomplete_verb(count, words));
    char advice[TDM_ADVICE_BYTES];
    tdm_did_you_mean(words[0], names, name_count, advice);
    return tdm_fail(TDM_E_ARG, "there is no verb %s%s", words[0],
                    advice[0] != '\0' ? advice : "; tandem --help lists them");
}

tdm_status tdm_verb_group_describe(const char *word, tdm_text *text)
{
    for (int i = 0; tdm_verbs[i] != NULL; i++) {
        size_t bytes = first_word(tdm_verbs[i]->name);
        if (strncmp(word, tdm_verbs[i]->name, bytes) != 0 || word[bytes] != '\0')
            continue;
        if (text->length > 0)
            TDM_TRY(tdm_text_printf(text, "\n"));
        TDM_TRY(tdm_verb_describe(tdm_verbs[i], text));
    }
    return TDM_OK;
}

tdm_status tdm_verbs_describe(tdm_text *text)
{
    TDM_TRY(tdm_text_printf(text, "tandem " TDM_VERSION
                                  " trains click-through-rate models and BERT-style encoders.\n\n"
                                  "Usage: tandem VERB ...\n\n"));
    for (int i = 0; tdm_verbs[i] != NULL; i++)
        TDM_TRY(tdm_text_printf(text, "  %-16s%s\n", tdm_verbs[i]->name, tdm_verbs[i]->summary));
    return tdm_text_printf(
        text,
        "\nFrom nothing to a model and its predictions:\n\n"
        "  tandem synth ctr --rows 1000000 -o log.tsv\n"
        "  tandem train recipes/ctr/deepfm_criteo.yaml log.tsv output.dir=runs/first\n"
        "  tandem predict runs/first log.tsv -o scores.txt\n\n"
        "From texts to an encoder and its guesses:\n\n"
        "  tandem vocab corpus.txt.gz -o vocab.txt\n"
        "  tandem train recipes/bert/bert_mini.yaml corpus.txt.gz text.tokenizer=vocab.txt\n"
        "  tandem predict runs/bert_mini --fill-mask \"the [MASK] of god\"\n\n"
        "tandem VERB --help explains a verb by examples; tandem help recipe lists the keys of a\n"
        "recipe. Results go to standard output, messages to standard error.\n"
        "Exit codes: 0 done, 1 failed, 2 usage or recipe, 3 data, 4 device or not supported,\n"
        "130 and 143 stopped by SIGINT or SIGTERM.\n");
}

/* The command line of a verb: `--option VALUE`, flags, plain arguments, and `key.path=value` for
 * keys of the recipe. One table a verb gives parsing, errors with a did-you-mean, and help. */
#ifndef TDM_CLI_OPTIONS_H
#define TDM_CLI_OPTIONS_H

#include "core/config.h"

#include <stdatomic.h>

typedef enum tdm_option_type {
    TDM_OPTION_FLAG,  /* bool: true where it is given */
    TDM_OPTION_TEXT,  /* const char *: NULL where it is not given */
    TDM_OPTION_TEXTS, /* tdm_strings: may be given more than once; the items are borrowed */
    TDM_OPTION_INT,   /* int64_t in [min, max]; `fallback` where it is not given */
} tdm_option_type;

typedef struct tdm_option {
    const char *name; /* without the dashes */
    char letter;      /* of the short form, "-o"; 0: none */
    tdm_option_type type;
    size_t offset;     /* in the verb's struct of values */
    const char *value; /* what help calls its value: "FILE"; NULL for flags */
    int64_t min, max, fallback;
    const char *help; /* one line */
} tdm_option;

typedef struct tdm_command tdm_command;

typedef struct tdm_verb {
    const char *name;          /* "train", "synth ctr" */
    const char *arguments;     /* "RECIPE [FILE...]" */
    const char *summary;       /* one line, for the list of verbs */
    const char *text;          /* paragraphs behind the usage line, and examples */
    const tdm_option *options; /* ended by a NULL name; NULL: none */
    size_t values_bytes;       /* of the struct that options fill; 0: none */
    int min_plain, max_plain;  /* of plain arguments; -1: any number */
    bool takes_overrides;      /* key.path=value */
    tdm_status (*run)(const tdm_command *command);
} tdm_verb;

/* A command line taken apart; all texts are borrowed from argv. */
struct tdm_command {
    const tdm_verb *verb;
    const char **plain;
    int plain_count;
    const char **overrides;
    int override_count;
    void *values;              /* the verb's struct */
    bool help;                 /* --help or -h */
    const atomic_bool *cancel; /* becomes true at SIGINT or SIGTERM */
};

/* Parses the words behind the verb. `--` ends options and overrides: all behind it is plain, as is
 * "-" anywhere. TDM_E_ARG for a word that fits nothing; with --help nothing is asked for. */
TDM_MUST_CHECK tdm_status tdm_command_parse(const tdm_verb *verb, int count,
                                            const char *const *words, tdm_command *out);
void tdm_command_deinit(tdm_command *command);

/* The plain arguments from `first` on, which name files; "-" where there is none. Borrowed, and
 * only to be read. */
tdm_strings tdm_command_files(const tdm_command *command, int first);

/* Appends the verb's help: usage, text, options. */
TDM_MUST_CHECK tdm_status tdm_verb_describe(const tdm_verb *verb, tdm_text *text);

#endif

/* An input, a featurizer and a pipeline on the CPU backend, for tests of data/, features/ and
 * text/. Whatever fails, fails the test, unless the name says `try`. */
#ifndef TDM_TESTS_DATA_RIG_H
#define TDM_TESTS_DATA_RIG_H

#include "data/pipeline.h"
#include "features/ctr_featurizer.h"
#include "text/label_featurizer.h"
#include "text/text_featurizer.h"

typedef struct tdm_data_rig_options {
    const char *files[8]; /* ended by NULL */
    double weights[8];    /* of the files; the first 0: all 1 */
    const char *recipe;   /* `features`, in YAML; NULL: that of tdm_data_rig_text() */
    int format;           /* index in tdm_record_formats; 0 is criteo */
    tdm_ctr_use use;
    /* `text`, in YAML, with the tokenizer: a text featurizer, or with `labels` one of labelled
     * text; `data`, where it is there, says the format. */
    const char *text;
    tdm_label_use label_use;
    int documents;            /* of text: of tdm_documents */
    int64_t batch_tokens;     /* with it; 0: 1024 */
    int threads;              /* 0: 1 */
    int64_t batch_size;       /* 0: 16 */
    int lanes, window_blocks; /* 0: 4, 2 */
    int64_t block_bytes;      /* 0: from the input */
    int64_t max_record_bytes; /* 0: 1 MiB */
    int64_t epochs;           /* 0: 1 */
    int depth;                /* 0: 2 */
    uint64_t seed;
    tdm_selection selection;
    double hold_out;
    const char *cache_path; /* NULL: no cache */
    bool read_only_cache;   /* opened where it is there, never written */
    const tdm_position *start;
    const atomic_bool *cancel;
} tdm_data_rig_options;

typedef struct tdm_data_rig {
    tdm_data_rig_options options;
    tdm_config *config;
    tdm_pool *pool;
    tdm_backend *backend;
    tdm_input *input;
    tdm_feature_spec *spec;
    tdm_tokenizer *tokenizer;
    tdm_label_spec *labels;
    tdm_featurizer *featurizer;
    tdm_extractor *extractor;
    tdm_pipeline *pipeline; /* made by tdm_data_rig_start() */
} tdm_data_rig;

#define TDM_FORMAT_CRITEO 0
#define TDM_FORMAT_CSV    1
#define TDM_FORMAT_TSV    2
#define TDM_FORMAT_TEXT   3
#define TDM_FORMAT_JSONL  4

/* Everything up to the extractor. */
tdm_status tdm_data_rig_try_open(const tdm_data_rig_options *options, tdm_data_rig *rig);
void tdm_data_rig_open(const tdm_data_rig_options *options, tdm_data_rig *rig);
tdm_status tdm_data_rig_try_start(tdm_data_rig *rig);
void tdm_data_rig_start(tdm_data_rig *rig);
void tdm_data_rig_close(tdm_data_rig *rig);

/* ---- what a pipeline gave -------------------------------------------------------------------- */

typedef struct tdm_given {
    uint64_t hash; /* of all valid bytes of the batch */
    int64_t rows;
    int64_t epoch;
    bool epoch_end, last;
    double share;
    tdm_position after;
    int64_t windows, good; /* that begin with it, and their good records */
    int64_t bad;           /* records in its reports */
    uint64_t reports_hash; /* of all that they say */
} tdm_given;

typedef struct tdm_given_list {
    tdm_given *items;
    size_t count, capacity;
    /* Where not NULL: [epochs][id] counts how often a row with that id in field 0 came; ids are
     * identity-encoded. */
    unsigned char *seen;
    int64_t seen_ids;
} tdm_given_list;

void tdm_given_note(tdm_given_list *list, const tdm_delivery *delivery);

/* Runs the pipeline to its end, or to its first error, which is returned. */
tdm_status tdm_data_rig_try_run(tdm_data_rig *rig, tdm_given_list *list);

/* Opens, starts, runs and closes. */
void tdm_data_rig_run(const tdm_data_rig_options *options, tdm_given_list *list);
/* Takes `count` deliveries and stops in the middle of everything. */
void tdm_data_rig_take(const tdm_data_rig_options *options, size_t count, tdm_given_list *list);
void tdm_given_list_free(tdm_given_list *list);

/* The same deliveries from `from` of a on; positions are compared too where `positions`. */
void tdm_given_same(const tdm_given_list *a, size_t from, const tdm_given_list *b, bool positions);

/* ---- files ----------------------------------------------------------------------------------- */

#define TDM_FOLDER_BYTES 256
/* A new empty folder. */
void tdm_new_folder(char folder[TDM_FOLDER_BYTES]);

/* A CSV with header label,id,a,b,n,m: rows first .. first + count - 1, id the row's number. Every
 * `bad_every`-th (0: none) is broken in one of several ways. Freed with tdm_free(). */
char *tdm_data_rig_text(int64_t first, int64_t count, int bad_every);

/* Writes bytes to folder/name; .gz and .zst are compressed. Returns the path, freed with
 * tdm_free(). */
char *tdm_data_rig_put(const char *folder, const char *name, const void *bytes, size_t size);
char *tdm_data_rig_put_text(const char *folder, const char *name, const char *text);

/* Counts warnings that contain `text` from now on (NULL: any). */
void tdm_warnings_expect(const char *text);
int tdm_warnings_seen(void);

#endif

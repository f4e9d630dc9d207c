/* Training: from a recipe to a run folder. */
#ifndef TDM_TRAINER_TRAINER_H
#define TDM_TRAINER_TRAINER_H

#include "trainer/recipe.h"

/* ---- progress -------------------------------------------------------------------------------- */

typedef enum tdm_train_event {
    TDM_EVENT_STEP = 0,       /* a few times a second at most */
    TDM_EVENT_LOG = 1,        /* a line went to metrics.jsonl */
    TDM_EVENT_EVAL = 2,       /* `eval` is new */
    TDM_EVENT_CHECKPOINT = 3, /* one was saved, of `step` */
    TDM_EVENT_EPOCH = 4,      /* an epoch ended */
    TDM_EVENT_EVALUATING = 5, /* an evaluation is running; eval_share tells how far */
} tdm_train_event;

/* A stretch of a training. */
typedef struct tdm_train_pace {
    double seconds; /* without evaluations and checkpoints */
    int64_t rows;
    int64_t steps, full_steps; /* full: that found a full ring, so that the reader waited */
    double wait_seconds;       /* that steps waited for batches */
    double reading_seconds;    /* of computing that reading took, on all threads */
    double flops;              /* done; 0 where they are not counted, see step_work.h */
} tdm_train_pace;

typedef struct tdm_train_status {
    tdm_train_event event;
    int64_t step;
    int64_t max_steps;              /* 0: none */
    int64_t epoch;                  /* from 0 */
    int64_t epochs;                 /* 0: without end */
    double epoch_share;             /* of the epoch's stored bytes */
    double progress;                /* of the whole training, [0, 1] */
    int64_t rows;                   /* trained on so far, in resumed trainings too */
    double rows_per_second;         /* over the last interval */
    double flops;                   /* a second, likewise; NaN where they are not counted */
    double seconds;                 /* of this process */
    double seconds_left;            /* NaN: not known yet */
    double learning_rate;           /* of dense parameters */
    double gradient_norm;           /* before clipping */
    tdm_metrics_result window;      /* progressive, over the last log_every_steps at least */
    int64_t ring_ready, ring_depth; /* batches */
    double wait_for_batches; /* share of the last interval that the step waited for batches */
    double wait_for_step;    /* share that a full ring waited for the step */
    int64_t bad_records;
    tdm_metrics_result eval; /* the last one */
    bool has_eval;
    bool is_best;      /* EVAL: it is the best so far */
    double eval_share; /* EVALUATING */
} tdm_train_status;

/* ---- training -------------------------------------------------------------------------------- */

typedef struct tdm_train_control {
    bool resume;             /* go on from the newest good checkpoint; begin where there is none */
    const atomic_bool *stop; /* NULL: never; true: finish the step, save, TDM_E_CANCELLED */
    /* Called on the thread that trains; NULL: not. `status` is valid for the call. */
    void (*monitor)(void *context, const tdm_train_status *status);
    void *monitor_context;
    /* Called with each backend that is made, before its first op; NULL: not. It may put a table of
     * its own in the place of backend->ops. For benchmarks. */
    void (*watch)(void *context, tdm_backend *backend);
    void *watch_context;
} tdm_train_control;

typedef struct tdm_train_result {
    int64_t step;
    int64_t epoch; /* epochs that were completed */
    int64_t rows;
    double seconds;           /* of this process's part */
    double rows_per_second;   /* of steps, without evaluations and checkpoints */
    double flops;             /* a second, likewise; NaN where they are not counted */
    tdm_train_pace pace;      /* of this process's steps */
    double cut_share;         /* of the text's tokens that this process read: left out because a
                                 sequence is full; NaN where there is no text */
    tdm_metrics_result train; /* progressive, over the whole training */
    bool has_eval;
    tdm_metrics_result eval; /* the last one */
    int64_t best_step;       /* -1: none */
    double best_score;
    int64_t records, bad_records;
    int64_t encoding_errors; /* records with bytes that are not UTF-8, used or dropped */
    int64_t resumed_step;    /* -1: a training of its own */
} tdm_train_result;

/* Trains. `recipe` is completed (tdm_recipe_open_input). The run folder recipe->output.dir gets
 * what run_folder.h lists. Prints nothing: warnings go through core/log.h.
 *
 * A loss or gradient that is not finite is TDM_E_NUMERIC with the step, the rows and the first bad
 * tensor; nothing is saved then. TDM_E_CANCELLED where `stop` became true, after saving. *result
 * (may be NULL) is filled in these cases too. */
TDM_MUST_CHECK tdm_status tdm_train(tdm_recipe *recipe, const tdm_train_control *control,
                                    tdm_train_result *result);

/* ---- the dry run ----------------------------------------------------------------------------- */

/* What a training will hold, in bytes, found without allocating the large parts: of a recipe with
 * phases, in the one that takes the most memory, with that one's rows. */
typedef struct tdm_train_plan {
    int64_t parameters;            /* that are trained */
    int64_t dense_bytes;           /* values */
    int64_t gradient_bytes;        /* of dense parameters */
    int64_t sparse_bytes;          /* tables */
    int64_t moment_bytes;          /* of both */
    int64_t arena_bytes;           /* activations, their gradients, sparse gradients, outputs */
    int64_t batch_bytes;           /* of one batch */
    int64_t pipeline_bytes;        /* the ring and all that is parsed ahead */
    int64_t eval_bytes;            /* the evaluation's blocks and the exact AUC */
    int64_t eval_rows;             /* estimated; 0: no evaluation */
    int64_t metrics_bytes;         /* progressive */
    int64_t checkpoint_bytes;      /* memory while saving */
    int64_t other_bytes;           /* code, libraries, stacks */
    int64_t peak_bytes;            /* of anonymous memory, all in all */
    int64_t checkpoint_disk_bytes; /* of one checkpoint on the disk */
    int64_t rows;                  /* of an epoch, estimated; -1: not known */
    int64_t tokens;                /* of these, estimated; 0 where rows have none */
    int64_t steps;                 /* of the whole training, estimated; -1: not known */
    int threads;
    char device[256];
} tdm_train_plan;

/* Opens the inputs, reads their first blocks, and plans; where labels.classes is auto all of
 * data.train is read. Writes nothing. TDM_E_CANCELLED where `stop` (may be NULL) became true. */
TDM_MUST_CHECK tdm_status tdm_train_plan_make(tdm_recipe *recipe, const atomic_bool *stop,
                                              tdm_train_plan *out);

/* Appends the plan as a table. */
TDM_MUST_CHECK tdm_status tdm_train_plan_text(const tdm_train_plan *plan, tdm_text *text);

#endif

/* An encoder that is opened to answer for texts: a run folder of a text task, or another program's
 * model (interchange/pretrained.h). Whoever uses it puts batches together, runs them, and reads an
 * output. */
#ifndef TDM_TRAINER_ENCODER_RUN_H
#define TDM_TRAINER_ENCODER_RUN_H

#include "trainer/encoder_source.h"
#include "trainer/sequence_batch.h"

typedef struct tdm_encoder_run_options {
    const char *checkpoint; /* of a run: "best", "last" or a step; NULL: best, else the last */
    int threads;            /* 0: one a core */
    tdm_text_head head;     /* TDM_HEAD_NONE, TDM_HEAD_FILL or TDM_HEAD_MASKED */
    int64_t max_length;     /* of a sequence; 0: see tdm_encoder_run.max_length */
    int64_t batch_tokens;   /* that a batch has room for; a sequence has at least */
    int64_t predictions;    /* likewise, of a head that predicts tokens; 0: max_length */
    int precision;          /* tdm_precision; auto: bf16 where the device has it */
} tdm_encoder_run_options;

/* Everything is the run's; borrow what you need. */
typedef struct tdm_encoder_run {
    tdm_encoder_source source;
    const tdm_tokenizer *tokenizer;
    int64_t hidden;
    /* The longest sequence: of a run text.max_length; of others as many as there
     * are positions, and 512 where those are rotary. */
    int64_t max_length;
    tdm_pool *pool;
    tdm_backend *backend;
    bool bf16;
    tdm_model *model; /* allocated for inference, weights loaded */
    tdm_sequence_batch batch;
    tdm_step_scalars *device_scalars;
    tdm_step_scalars scalars; /* what the last batch left; its losses are sums */
    float *output;            /* where the device's memory is its own */
    size_t output_bytes;
} tdm_encoder_run;

/* Opens and loads: TDM_E_STATE where the path holds neither, TDM_E_CONFIG for a run of ctr and for
 * a max_length that the model cannot take, TDM_E_FORMAT naming a parameter that the weights lack,
 * as those of the head, TDM_E_UNSUPPORTED for bf16 on a device that has not that. */
TDM_MUST_CHECK tdm_status tdm_encoder_run_open(const char *path,
                                               const tdm_encoder_run_options *options,
                                               tdm_encoder_run **out);
/* NULL is allowed. */
void tdm_encoder_run_close(tdm_encoder_run *run);

/* Runs the model on `batch`, which stays as it is. Syncs. */
TDM_MUST_CHECK tdm_status tdm_encoder_run_forward(tdm_encoder_run *run);

/* What the last run left in an output of the model, its first `rows` rows, in memory of the host.
 * */
TDM_MUST_CHECK tdm_status tdm_encoder_run_output(tdm_encoder_run *run, const char *name,
                                                 int64_t rows, tdm_matrix *out);

#endif

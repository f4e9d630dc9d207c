/* What the benchmark of training tells. */
#ifndef TDM_CLI_TRAIN_FIGURES_H
#define TDM_CLI_TRAIN_FIGURES_H

#include "cli/bench.h"
#include "trainer/step_work.h"
#include "trainer/trainer.h"

typedef struct tdm_train_figures {
    tdm_train_result result;
    bool is_text;
    bool profiled; /* op_profile.h has times */
    const char *precision;
    int threads;
    int64_t batch_size;          /* of ctr */
    double bytes_per_row;        /* of ctr */
    tdm_step_work work;          /* of text: of all steps */
    tdm_product_speed *products; /* of a step, of text of a part of one; empty: there are none */
    int product_count;
} tdm_train_figures;

TDM_MUST_CHECK tdm_status tdm_train_figures_json(const tdm_train_figures *figures);
void tdm_train_figures_print(const tdm_train_figures *figures);

#endif

/* How far a long job is: one line that is written over on a terminal, plain lines now and then
 * elsewhere. */
#ifndef TDM_CLI_PROGRESS_H
#define TDM_CLI_PROGRESS_H

#include "trainer/trainer.h"

typedef struct tdm_progress {
    const char *what;     /* "predicting": the job, for plain rows */
    double every_seconds; /* between plain lines */
    double started;       /* see core/clock.h */
    double first_share;   /* at the first call; a job may begin half done */
    double last_shown;
} tdm_progress;

void tdm_progress_init(tdm_progress *progress, const char *what, double every_seconds);

/* A monitor of tdm_train(): `context` is a tdm_progress. */
void tdm_progress_train(void *context, const tdm_train_status *status);

/* Rows that were worked on so far, and the share of all work, NaN where that is not known.
 * `context` is a tdm_progress. Any job may call it as often as it likes. */
void tdm_progress_rows(void *context, int64_t rows, double share);

/* What the job is and the text behind it, where it is time for another line. */
void tdm_progress_show(tdm_progress *progress, const char *format, ...) TDM_PRINTF(2, 3);

/* Takes the line away. */
void tdm_progress_end(tdm_progress *progress);

/* "1.23 M", "45.6 k", "789"; in storage that the next seven calls leave alone. */
const char *tdm_count_text(double count);

/* "1:23:45", "12:34", "9 s"; "?" for NaN; storage as above. */
const char *tdm_duration_text(double seconds);

#endif

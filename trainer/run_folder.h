/* The run folder: all that a training leaves behind and all that predicting needs.
 *
 *   recipe.yaml       the resolved recipe; a folder that has it holds a run
 *   features.json     ctr: the feature spec and the shape of the records
 *   tokenizer.json    text: the tokenizer
 *   metrics.jsonl     a line an event, see below
 *   quarantine.txt    bad records, where the recipe keeps them
 *   checkpoints/      see checkpoint.h
 *   lock              held by the process that trains */
#ifndef TDM_TRAINER_RUN_FOLDER_H
#define TDM_TRAINER_RUN_FOLDER_H

#include "core/status.h"

#include <stdbool.h>

#define TDM_RUN_RECIPE     "recipe.yaml"
#define TDM_RUN_FEATURES   "features.json"
#define TDM_RUN_TOKENIZER  "tokenizer.json"
#define TDM_RUN_METRICS    "metrics.jsonl"
#define TDM_RUN_QUARANTINE "quarantine.txt"
#define TDM_RUN_LOCK       "lock"

/* What the first line of recipe.yaml says. */
#define TDM_RUN_FORMAT 1

typedef struct tdm_run_folder tdm_run_folder;

/* Opens a folder for training, creates it where it is missing, and locks it: TDM_E_STATE where
 * another process trains into it, or where it holds a run and `resume` is false; the message names
 * the ways on. */
TDM_MUST_CHECK tdm_status tdm_run_folder_open(const char *path, bool resume, tdm_run_folder **out);

/* Unlocks. NULL is allowed. */
void tdm_run_folder_close(tdm_run_folder *folder);

const char *tdm_run_folder_path(const tdm_run_folder *folder);

/* The path of a file in it; borrowed. `name` is one of the TDM_RUN_ names. */
const char *tdm_run_folder_file(const tdm_run_folder *folder, const char *name);

/* ---- metrics.jsonl --------------------------------------------------------------------------- */

/* Each line is a JSON object with "event", "step", "epoch" (completed ones) and "rows" (trained on
 * so far). Where it tells metrics, their keys are those that click_metrics.h, text_metrics.h,
 * class_metrics.h and regression_metrics.h list, and their rows "scored_rows".
 *
 *   "train"  progressive metrics since the line before, "learning_rate" and "gradient_norm" of the
 *            last step, and how fast: "rows_per_second", of text also "tokens_per_second" and
 *            "flops", floating-point operations a second as trainer/step_work.h counts them;
 *            "wait_for_batches", the share of the time that steps waited for the reader, and
 *            "wait_for_step", the share of steps that found all batches ready
 *   "eval"   metrics of data.eval, "bad_records" in it, "best": the best so far
 *   "epoch"  an epoch ended
 *   "end"    the training ended; progressive metrics over all of it, how fast the process that
 *            ended it was, and of text "cut_share", of the tokens that this process read: left out
 *            because their sequence was full
 *
 * What is not defined is null. "seconds" (since the training began), what is told a second, the
 * two waits and cut_share are of processes and their time; all else is a function of recipe and
 * data, so that a training that was killed and resumed leaves the same lines. */

/* Appends a line; `line` has no newline. It reaches the disk with the next sync. */
TDM_MUST_CHECK tdm_status tdm_run_folder_log(tdm_run_folder *folder, const char *line);

/* Syncs the file and tells its length. */
TDM_MUST_CHECK tdm_status tdm_run_folder_sync(tdm_run_folder *folder, int64_t *bytes);

/* Cuts the file to `bytes`, where a checkpoint left it (0: begins anew). TDM_E_FORMAT where it is
 * shorter. */
TDM_MUST_CHECK tdm_status tdm_run_folder_cut(tdm_run_folder *folder, int64_t bytes);

/* ---- reading --------------------------------------------------------------------------------- */

/* TDM_E_STATE naming what is missing unless `path` is a folder that holds a run. */
TDM_MUST_CHECK tdm_status tdm_run_folder_check(const char *path);

/* The step that eval, predict and export use: `choice` is "best", "last" or a step; NULL takes the
 * best if there is one, else the newest good one. Only a checkpoint that verifies is answered. */
TDM_MUST_CHECK tdm_status tdm_run_folder_choose(const char *path, const char *choice,
                                                int64_t *step);

#endif

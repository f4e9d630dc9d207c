/* Numbers in JSON, to the bit. JSON numbers do not carry every double, so one that is no integer is
 * written as its 64 bits in hexadecimal: "3fb999999999999a" is 0.1. */
#ifndef TDM_TRAINER_SAVED_NUMBER_H
#define TDM_TRAINER_SAVED_NUMBER_H

#include "core/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* NULL without memory. */
json_t *tdm_saved_double(double value);

/* False where `json` is not what tdm_saved_double() makes; NULL is not. */
bool tdm_saved_double_get(const json_t *json, double *out);

/* The number at `key` of an object that saved metrics are: TDM_E_FORMAT naming the key where it is
 * missing or wrong. A count is at least 0. */
TDM_MUST_CHECK tdm_status tdm_saved_count_restore(const json_t *saved, const char *key,
                                                  int64_t *out);
TDM_MUST_CHECK tdm_status tdm_saved_double_restore(const json_t *saved, const char *key,
                                                   double *out);

#endif

/* What files of JSON share beyond jansson. */
#ifndef TDM_CORE_JSON_H
#define TDM_CORE_JSON_H

#include "core/status.h"

#include <jansson.h>

/* A number; null for NaN and infinity. NULL without memory. */
json_t *tdm_json_number(double value);

/* Reads a file of at most `limit` bytes that holds one JSON value without duplicate keys; *out is
 * freed with json_decref(). TDM_E_FORMAT with "file:line: damaged: " where it does not. */
TDM_MUST_CHECK tdm_status tdm_json_file_get(const char *path, size_t limit, json_t **out);

#endif

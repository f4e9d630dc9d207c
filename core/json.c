#include "core/json.h"

#include "core/file.h"
#include "core/memory.h"

#include <math.h>

json_t *tdm_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

tdm_status tdm_json_file_get(const char *path, size_t limit, json_t **out)
{
    char *text;
    size_t bytes;
    json_error_t error;
    *out = NULL;
    TDM_TRY(tdm_file_get(path, limit, &text, &bytes));
    *out = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    tdm_free(text);
    TDM_FAIL_IF(*out == NULL, TDM_E_FORMAT, "%s:%d: damaged: %s", path, error.line, error.text);
    return TDM_OK;
}

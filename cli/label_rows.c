#include "cli/label_rows.h"

#include "core/ops.h"

/* The next class from *at on that a row of several has; false where there is none. */
static bool next_class(const tdm_label_spec *spec, const tdm_masked_batch *batch, int64_t row,
                       int64_t *at)
{
    const float *flags = (const float *)batch->labels + row * spec->classes.size;
    while (*at < spec->classes.size && flags[*at] == 0)
        (*at)++;
    return *at < spec->classes.size;
}

static uint32_t class_of(const tdm_masked_batch *batch, int64_t row)
{
    return ((const uint32_t *)batch->labels)[row];
}

static double number_of(const tdm_masked_batch *batch, int64_t row)
{
    return (double)((const float *)batch->labels)[row];
}

static tdm_status append_classes(const tdm_label_spec *spec, const tdm_masked_batch *batch,
                                 int64_t row, tdm_text *text)
{
    const char *between = " ";
    TDM_TRY(tdm_text_printf(text, ", labels"));
    for (int64_t c = 0; next_class(spec, batch, row, &c); c++) {
        size_t bytes;
        const char *name = tdm_class_name(spec, c, &bytes);
        TDM_TRY(tdm_text_printf(text, "%s%.*s", between, (int)bytes, name));
        between = ", ";
    }
    return between[0] == ' ' ? tdm_text_printf(text, " none") : TDM_OK;
}

tdm_status tdm_label_row_text(const tdm_label_spec *spec, const tdm_masked_batch *batch,
                              int64_t row, tdm_text *text)
{
    size_t bytes;
    switch (spec->type) {
    case TDM_LABEL_CLASSES: {
        const char *name = tdm_class_name(spec, class_of(batch, row), &bytes);
        return tdm_text_printf(text, ", label %.*s", (int)bytes, name);
    }
    case TDM_LABEL_MULTIPLE:
        return append_classes(spec, batch, row, text);
    case TDM_LABEL_REGRESSION:
        return tdm_text_printf(text, ", label %.9g", number_of(batch, row));
    case TDM_LABEL_TOKENS:
        break;
    }
    return TDM_OK;
}

static json_t *class_json(const tdm_label_spec *spec, int64_t number)
{
    size_t bytes;
    const char *name = tdm_class_name(spec, number, &bytes);
    return json_stringn(name, bytes);
}

void tdm_label_row_json(const tdm_label_spec *spec, const tdm_masked_batch *batch, int64_t row,
                        json_t *object)
{
    switch (spec->type) {
    case TDM_LABEL_CLASSES:
        json_object_set_new(object, "label", class_json(spec, class_of(batch, row)));
        return;
    case TDM_LABEL_MULTIPLE: {
        json_t *list = json_array();
        for (int64_t c = 0; next_class(spec, batch, row, &c); c++)
            json_array_append_new(list, class_json(spec, c));
        json_object_set_new(object, "labels", list);
        return;
    }
    case TDM_LABEL_REGRESSION:
        json_object_set_new(object, "label", json_real(number_of(batch, row)));
        return;
    case TDM_LABEL_TOKENS:
        return;
    }
}

const char *tdm_label_token_class(const tdm_label_spec *spec, const tdm_masked_batch *batch,
                                  int64_t token, size_t *bytes)
{
    *bytes = 0;
    if (spec->type != TDM_LABEL_TOKENS || class_of(batch, token) == TDM_NO_LABEL)
        return NULL;
    return tdm_class_name(spec, class_of(batch, token), bytes);
}

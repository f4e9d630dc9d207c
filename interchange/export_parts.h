/* The parts of an export. Private to this folder. */
#ifndef TDM_INTERCHANGE_EXPORT_PARTS_H
#define TDM_INTERCHANGE_EXPORT_PARTS_H

#include "interchange/export_huggingface.h"
#include "interchange/weight_names.h"

/* What is written of a model. */
typedef struct tdm_export_class {
    tdm_encoder_family family;
    const char *head; /* behind the family's name: "ForMaskedLM" */
    bool has[5];      /* by tdm_weight_group */
} tdm_export_class;

/* The class that computes the same; errors as of tdm_export_huggingface(). */
TDM_MUST_CHECK tdm_status tdm_export_class_find(const tdm_export *from, tdm_export_class *out);

/* Each writes its files into a folder. */
TDM_MUST_CHECK tdm_status tdm_export_config(const tdm_export *from, const tdm_export_class *is,
                                            const char *folder);
TDM_MUST_CHECK tdm_status tdm_export_weights(const tdm_export *from, const tdm_export_class *is,
                                             const char *folder);
TDM_MUST_CHECK tdm_status tdm_export_tokenizer(const tdm_export *from, const tdm_export_class *is,
                                               const char *folder);

/* Writes FOLDER/NAME; takes `json`, which may be NULL: memory went out. */
struct json_t;
TDM_MUST_CHECK tdm_status tdm_export_json(struct json_t *json, const char *folder,
                                          const char *name);

/* One more than the largest position. */
int64_t tdm_export_positions(const tdm_export *from);

#endif

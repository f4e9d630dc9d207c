/* What a cache is named by. */
#include "core/memory.h"
#include "data/cache.h"

#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

/* What records of text depend on; the rest of a format is part of the features' spec. */
static void hash_format(XXH3_state_t *state, const tdm_record_format *format)
{
    const char *field = format->field == NULL ? "" : format->field;
    XXH3_64bits_update(state, format->type->name, strlen(format->type->name) + 1);
    XXH3_64bits_update(state, &format->documents, sizeof format->documents);
    XXH3_64bits_update(state, &format->encoding_errors, sizeof format->encoding_errors);
    XXH3_64bits_update(state, field, strlen(field) + 1);
}

/* A cache of standard input has no identity: it belongs to whoever made the folder. */
tdm_status tdm_cache_path(const tdm_extractor *extractor, const char *folder, char **out)
{
    tdm_input *input = tdm_extractor_input(extractor);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    uint64_t spec_hash = tdm_extractor_featurizer(extractor)->spec_hash;
    uint64_t selection_hash = tdm_extractor_selection_hash(extractor);
    int64_t block_bytes = tdm_input_block_bytes(input);
    int64_t max_record_bytes = tdm_input_max_record_bytes(input);
    XXH3_64bits_update(&state, &spec_hash, sizeof spec_hash);
    XXH3_64bits_update(&state, &selection_hash, sizeof selection_hash);
    XXH3_64bits_update(&state, &block_bytes, sizeof block_bytes);
    XXH3_64bits_update(&state, &max_record_bytes, sizeof max_record_bytes);
    hash_format(&state, tdm_input_format(input));
    for (int32_t i = 0; i < tdm_input_file_count(input); i++) {
        const tdm_input_file *file = tdm_input_file_get(input, i);
        XXH3_64bits_update(&state, file->path, strlen(file->path) + 1);
        XXH3_64bits_update(&state, &file->bytes, sizeof file->bytes);
        XXH3_64bits_update(&state, &file->modified_ns, sizeof file->modified_ns);
        /* Files of other weights share no block. */
        bool other = i > 0 && file->weight != tdm_input_file_get(input, i - 1)->weight;
        XXH3_64bits_update(&state, &other, sizeof other);
    }
    return tdm_format(out, "%s/%s%016llx.cache", folder, tdm_input_is_stdin(input) ? "stdin-" : "",
                      (unsigned long long)XXH3_64bits_digest(&state));
}

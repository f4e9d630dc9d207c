/* Any bytes as settings (the first two) and a text: tdm_normalize() makes of it what the literal
 * specification does. */
#include "core/memory.h"
#include "tests/support/text_spec.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tdm_normalized normalized = {0};
    if (size < TDM_SPEC_SETTINGS_BYTES)
        return 0;
    tdm_tokenizer_settings settings = tdm_spec_settings(data);
    const char *text = (const char *)data + TDM_SPEC_SETTINGS_BYTES;
    size_t bytes = size - TDM_SPEC_SETTINGS_BYTES;
    tdm_spec_text spec = tdm_spec_normalize(&settings, text, bytes);
    require(tdm_normalize(&settings, text, bytes, &normalized) == TDM_OK);
    require(tdm_spec_difference(&spec, &normalized) == NULL);
    for (size_t i = 0; i < normalized.bytes; i++) {
        require(normalized.from[i] < normalized.to[i] && normalized.to[i] <= bytes);
        require(i == 0 || (normalized.from[i - 1] <= normalized.from[i] &&
                           normalized.to[i - 1] <= normalized.to[i]));
    }
    tdm_spec_text_free(&spec);
    tdm_normalized_deinit(&normalized);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}

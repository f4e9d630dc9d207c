/* Reads any bytes as config.json. Options that come out must be ones that a recipe could give,
 * and fit themselves. */
#include "core/file.h"
#include "core/memory.h"
#include "interchange/pretrained_config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

/* The number of an option; booleans and choices are their own. */
static double number_at(const tdm_bert_options *options, const tdm_config_key *key)
{
    const char *at = (const char *)options + key->offset;
    int64_t integer;
    double number;
    if (key->type == TDM_CONFIG_INT) {
        memcpy(&integer, at, sizeof integer);
        return (double)integer;
    }
    if (key->type != TDM_CONFIG_FLOAT)
        return key->min;
    memcpy(&number, at, sizeof number);
    return number;
}

static void check_options(const tdm_pretrained_config *config)
{
    const tdm_bert_options *options = &config->options;
    for (int i = 0; i < tdm_bert_schema.count; i++) {
        const tdm_config_key *key = &tdm_bert_schema.keys[i];
        double number = number_at(options, key);
        require(number >= key->min && (number <= key->max || key->max == 0));
    }
    require(options->hidden % options->heads == 0);
    require(config->vocabulary > 0);
    require(tdm_pretrained_config_check(config, NULL, options, 1) == TDM_OK);
}

static char folder[] = "/tmp/tandem-fuzz-XXXXXX";

static void remove_folder(void)
{
    require(tdm_folder_remove(folder) == TDM_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    if (path[0] == '\0') {
        require(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        snprintf(path, sizeof path, "%s/config.json", folder);
    }
    FILE *file = fopen(path, "wb");
    require(file != NULL);
    fwrite(data, 1, size, file);
    require(fclose(file) == 0);
    tdm_pretrained_config config;
    if (tdm_pretrained_config_read(folder, &config) == TDM_OK) {
        check_options(&config);
        tdm_pretrained_config_free(&config);
    }
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}

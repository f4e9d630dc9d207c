#include "text/train_vocabulary.h"

#include "core/memory.h"
#include "text/vocab_trainer.h"

#include <string.h>

tdm_vocabulary_options tdm_vocabulary_default_options(void)
{
    return (tdm_vocabulary_options){.settings = tdm_tokenizer_default_settings(),
                                    .size = 30000,
                                    .min_frequency = 2,
                                    .limit_alphabet = 1000,
                                    .memory_bytes = (int64_t)2 << 30};
}

tdm_status tdm_vocab_specials(const char *const *more, int64_t count, tdm_strings *out)
{
    *out = (tdm_strings){0};
    TDM_TRY(tdm_alloc((size_t)(TDM_SPECIALS + count), sizeof *out->items, &out->items));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < TDM_SPECIALS + count && status == TDM_OK; i++) {
        const char *token = i < TDM_SPECIALS ? tdm_special_names[i] : more[i - TDM_SPECIALS];
        status = tdm_strdup(token, &out->items[i]);
        out->count += status == TDM_OK;
    }
    if (status != TDM_OK)
        tdm_strings_free(out);
    return status;
}

tdm_status tdm_vocab_tokenizer(const tdm_tokenizer_settings *settings, const tdm_strings *specials,
                               tdm_vocabulary *vocabulary, tdm_tokenizer **out)
{
    tdm_tokenizer parts = {.settings = *settings, .vocabulary = *vocabulary};
    *vocabulary = (tdm_vocabulary){0};
    *out = NULL;
    tdm_status status =
        tdm_tokenizer_add_specials(&parts, (const char *const *)specials->items, specials->count);
    if (status == TDM_OK)
        return tdm_tokenizer_create(&parts, out);
    tdm_tokenizer_parts_free(&parts);
    return status;
}

static tdm_status count_words(const tdm_strings *names, const tdm_vocabulary_options *options,
                              tdm_file_writer **counts, tdm_word_list *words)
{
    tdm_word_count_options counting = {.names = names,
                                       .settings = &options->settings,
                                       .counts_path = options->counts_path,
                                       .map_bytes = (size_t)options->memory_bytes / 2,
                                       .list_bytes = (size_t)options->memory_bytes};
    tdm_word_count_report report;
    TDM_TRY(tdm_pool_create(options->threads, &counting.pool));
    tdm_status status = tdm_word_counts(&counting, counts, words, &report);
    tdm_pool_destroy(counting.pool);
    return status;
}

/* A borrowed list. */
static tdm_strings strings_of(const char *const *items, int64_t count)
{
    return (tdm_strings){.items = (char **)(uintptr_t)items, .count = count};
}

tdm_status tdm_train_vocabulary(const char *const *files, int64_t file_count,
                                const tdm_vocabulary_options *options, tdm_tokenizer **tokenizer)
{
    *tokenizer = NULL;
    const tdm_vocabulary_options defaults = tdm_vocabulary_default_options();
    if (options == NULL)
        options = &defaults;
    TDM_FAIL_IF(options->memory_bytes < 1 << 20, TDM_E_ARG,
                "memory_bytes is %lld: expected 1 MiB and more", (long long)options->memory_bytes);
    tdm_tokenizer_settings settings = options->settings;
    TDM_TRY(tdm_tokenizer_resolve_settings(&settings));
    tdm_strings names = strings_of(files, file_count), specials;
    tdm_strings initial = strings_of(options->initial, options->initial_count);
    tdm_word_list words = {0};
    tdm_vocabulary vocabulary = {0};
    tdm_vocab_report report;
    tdm_file_writer *counts = NULL;
    TDM_TRY(tdm_vocab_specials(options->special, options->special_count, &specials));
    tdm_vocab_options training = {.size = options->size,
                                  .min_frequency = options->min_frequency,
                                  .limit_alphabet = options->limit_alphabet,
                                  .specials = &specials,
                                  .initial = &initial};
    tdm_status status;
    TDM_TRY_GOTO(count_words(&names, options, &counts, &words), done);
    TDM_TRY_GOTO(tdm_vocab_train(&words, &training, &vocabulary, &report), done);
    TDM_TRY_GOTO(tdm_vocab_tokenizer(&options->settings, &specials, &vocabulary, tokenizer), done);
    if (counts != NULL)
        TDM_TRY_GOTO(tdm_file_writer_commit(counts, NULL, NULL), done);
done:
    if (status != TDM_OK) {
        tdm_tokenizer_close(*tokenizer);
        *tokenizer = NULL;
    }
    tdm_file_writer_close(counts);
    tdm_word_list_deinit(&words);
    tdm_vocabulary_deinit(&vocabulary);
    tdm_strings_free(&specials);
    return status;
}

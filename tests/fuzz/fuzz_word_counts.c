/* Any bytes as a file of word counts: what is read is written as it was, and trains a vocabulary of
 * the size that was asked for, without a token twice. */
#include "core/memory.h"
#include "data/source.h"
#include "text/vocab_trainer.h"
#include "text/word_lines.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SETTINGS "x=1"

static void require(bool condition)
{
    if (!condition)
        abort();
}

static tdm_status compare_bytes(void *context, const void *data, size_t bytes)
{
    const uint8_t **expected = context;
    require(memcmp(*expected, data, bytes) == 0);
    *expected += bytes;
    return TDM_OK;
}

/* Reads the words, and writes them again where the end was found. */
static tdm_status read_words(const char *path, const uint8_t *data, tdm_word_list *list)
{
    tdm_word_reader *reader;
    tdm_word_writer writer;
    TDM_TRY(tdm_word_reader_open(path, SETTINGS, &reader));
    require(tdm_word_writer_open(compare_bytes, &data, SETTINGS, &writer) == TDM_OK);
    tdm_status status = TDM_OK;
    for (bool ended = false; status == TDM_OK;) {
        tdm_word_entry entry;
        status = tdm_word_reader_next(reader, &entry, &ended);
        if (ended)
            break;
        if (status == TDM_OK)
            status = tdm_word_list_add(list, entry.word, entry.bytes, entry.count);
        if (status == TDM_OK)
            require(tdm_word_writer_add(&writer, &entry) == TDM_OK);
    }
    if (status == TDM_OK)
        require(tdm_word_writer_end(&writer, true) == TDM_OK);
    tdm_word_writer_deinit(&writer);
    tdm_word_reader_close(reader);
    return status;
}

static void train(const tdm_word_list *list)
{
    static char *items[] = {"[UNK]", "ab", "##ba"};
    const tdm_strings specials = {items, 1}, initial = {items + 1, 2};
    const tdm_vocab_options options = {
        .size = 400, .limit_alphabet = 50, .specials = &specials, .initial = &initial};
    tdm_vocabulary vocabulary = {0};
    tdm_vocab_report report;
    tdm_status status = tdm_vocab_train(list, &options, &vocabulary, &report);
    require(status == TDM_OK || (status == TDM_E_DATA && list->count == 0));
    require(vocabulary.size <= options.size && report.unknown_total <= list->total);
    for (int64_t id = 0; id < vocabulary.size; id++)
        require(tdm_vocabulary_find(&vocabulary, vocabulary.text + vocabulary.begins[id],
                                    vocabulary.bytes[id]) == id);
    tdm_vocabulary_deinit(&vocabulary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int descriptor = -1;
    if (size < 4 || data[0] != '#') /* compressed files are fuzz_source's */
        return 0;
    if (descriptor < 0)
        descriptor = memfd_create("counts", 0);
    require(descriptor >= 0 && ftruncate(descriptor, 0) == 0);
    require(pwrite(descriptor, data, size, 0) == (ssize_t)size);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    tdm_word_list list = {0};
    tdm_status status = read_words(path, data, &list);
    require(status == TDM_OK || status == TDM_E_DATA);
    if (status == TDM_OK)
        train(&list);
    tdm_word_list_deinit(&list);
    require(tdm_memory_stats_get().live_bytes == 0);
    return 0;
}

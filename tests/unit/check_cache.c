/* Cache files by themselves: blocks as they went in, names, damage. */
#include "core/file.h"
#include "core/memory.h"
#include "data/cache.h"
#include "data/cache_format.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"
#include "tests/support/record_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const tdm_columns_layout layout = {
    .count = 3, .columns = {{"label", TDM_F32, 1}, {"ids", TDM_U32, 3}, {"dense", TDM_F32, 2}}};

static char folder[TDM_FOLDER_BYTES];
static char *path;

static void open_folder(void)
{
    tdm_new_folder(folder);
    ck_assert_ok(tdm_format(&path, "%s/below/a.cache", folder));
}

static void close_folder(void)
{
    tdm_free(path);
    ck_assert_ok(tdm_folder_remove(folder));
}

/* A block whose every byte follows from its number. */
static void make_block(int64_t block, int64_t rows, int bad, tdm_extract *out)
{
    tdm_extract_clear(out);
    ck_assert_ok(tdm_extract_reserve(&layout, out, (size_t)rows));
    out->block = block;
    out->file = (int32_t)(block % 3);
    out->stored_bytes = 1000 + block;
    out->first_line = block % 2 == 0 ? -1 : block * 7;
    out->lines = rows + bad + 1;
    out->records = rows + bad;
    out->encoding_errors = block * 3;
    out->rows = rows;
    for (int64_t r = 0; r < rows; r++) {
        ((float *)out->columns[0])[r] = (float)(r % 2);
        for (int i = 0; i < 3; i++)
            ((uint32_t *)out->columns[1])[3 * r + i] = (uint32_t)(block * 1000 + r * 3 + i);
        for (int i = 0; i < 2; i++)
            ((float *)out->columns[2])[2 * r + i] = (float)(block - r) / 7;
        out->row_records[r] = (uint32_t)(r + bad);
    }
    ck_assert_ok(tdm_grow(&out->bad, &out->bad_capacity, (size_t)bad, sizeof *out->bad));
    for (int i = 0; i < bad; i++) {
        tdm_bad_record *record = &out->bad[out->bad_count++];
        *record = (tdm_bad_record){
            .line = i, .record = i, .file = i % 4, .column = i - 1, .kind = (tdm_bad_kind)(i % 3)};
        ck_assert_ok(tdm_format(&record->reason, "reason %d", i));
        ck_assert_ok(tdm_strndup("te\0xt", (size_t)(i % 6), &record->text));
        record->text_bytes = (size_t)(i % 6);
    }
}

static void check_same(const tdm_extract *a, const tdm_extract *b)
{
    ck_assert_int_eq(a->block, b->block);
    ck_assert_int_eq(a->file, b->file);
    ck_assert_int_eq(a->stored_bytes, b->stored_bytes);
    ck_assert_int_eq(a->first_line, b->first_line);
    ck_assert_int_eq(a->lines, b->lines);
    ck_assert_int_eq(a->records, b->records);
    ck_assert_int_eq(a->encoding_errors, b->encoding_errors);
    ck_assert_int_eq(a->rows, b->rows);
    size_t rows = (size_t)a->rows;
    static const size_t widths[] = {4, 12, 8};
    for (int c = 0; c < 3; c++)
        ck_assert(rows == 0 || memcmp(a->columns[c], b->columns[c], rows * widths[c]) == 0);
    ck_assert(rows == 0 || memcmp(a->row_records, b->row_records, rows * 4) == 0);
    ck_assert_uint_eq(a->bad_count, b->bad_count);
    for (size_t i = 0; i < a->bad_count; i++) {
        const tdm_bad_record *x = &a->bad[i], *y = &b->bad[i];
        ck_assert(x->line == y->line && x->record == y->record && x->column == y->column);
        ck_assert(x->file == y->file && x->kind == y->kind);
        ck_assert_str_eq(x->reason, y->reason);
        ck_assert_uint_eq(x->text_bytes, y->text_bytes);
        ck_assert(x->text_bytes == 0 || memcmp(x->text, y->text, x->text_bytes) == 0);
    }
}

static const int64_t block_rows[] = {10, 0, 1, 500, 3, 0, 77};
static const int block_bad[] = {0, 0, 3, 1, 12, 7, 0};
#define BLOCKS 7

static void write_cache(void)
{
    /* In any order. */
    static const int order[] = {4, 0, 6, 2, 1, 5, 3};
    tdm_cache_writer *writer;
    ck_assert_ok(tdm_cache_writer_create(path, &layout, &writer));
    tdm_extract extract = {0};
    for (int i = 0; i < BLOCKS; i++) {
        make_block(order[i], block_rows[order[i]], block_bad[order[i]], &extract);
        ck_assert_ok(tdm_cache_writer_add(writer, &extract));
        ck_assert(!tdm_file_exists(path));
    }
    ck_assert_ok(tdm_cache_writer_commit(writer, BLOCKS));
    tdm_cache_writer_close(writer);
    tdm_extract_deinit(&extract);
}

START_TEST(test_blocks_come_back_as_they_were)
{
    open_folder();
    write_cache();
    tdm_cache *cache;
    ck_assert_ok(tdm_cache_open(path, &layout, &cache));
    ck_assert_int_eq(tdm_cache_block_count(cache), BLOCKS);
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_int_eq(tdm_cache_bytes(cache), info.st_size);
    tdm_extract expected = {0}, got = {0};
    for (int round = 0; round < 3; round++) {
        for (int b = round * 3 % BLOCKS, i = 0; i < BLOCKS; i++, b = (b + 3) % BLOCKS) {
            make_block(b, block_rows[b], block_bad[b], &expected);
            ck_assert_ok(tdm_cache_read(cache, b, &got));
            check_same(&expected, &got);
        }
    }
    tdm_extract_deinit(&expected);
    tdm_extract_deinit(&got);
    tdm_cache_close(cache);
    close_folder();
}
END_TEST

/* Tokens: two bytes of an id and one of marks each, and nothing beside them. */
START_TEST(test_rows_that_are_no_records_come_back)
{
    static const tdm_columns_layout tokens = {
        .rows_are_pieces = true,
        .count = 2,
        .columns = {{"ids", TDM_U16, 1}, {"marks", TDM_U8, 1}}};
    open_folder();
    tdm_extract extract = {.records = 2, .lines = 2, .rows = 5}, got = {0};
    ck_assert_ok(tdm_extract_reserve(&tokens, &extract, 5));
    ck_assert_ptr_null(extract.row_records);
    memcpy(extract.columns[0], (uint16_t[]){7, 65535, 0, 9, 300}, 10);
    memcpy(extract.columns[1], (uint8_t[]){7, 0, 1, 3, 0}, 5);
    tdm_cache_writer *writer;
    ck_assert_ok(tdm_cache_writer_create(path, &tokens, &writer));
    ck_assert_ok(tdm_cache_writer_add(writer, &extract));
    ck_assert_ok(tdm_cache_writer_commit(writer, 1));
    tdm_cache_writer_close(writer);
    tdm_cache *cache;
    ck_assert_ok(tdm_cache_open(path, &tokens, &cache));
    ck_assert_int_eq(tdm_cache_bytes(cache),
                     (int64_t)(sizeof(tdm_cache_header) + 15 + sizeof(tdm_cache_entry) +
                               sizeof(tdm_cache_footer)));
    ck_assert_ok(tdm_cache_read(cache, 0, &got));
    ck_assert_int_eq(got.rows, 5);
    ck_assert_int_eq(got.records, 2);
    ck_assert_mem_eq(got.columns[0], extract.columns[0], 10);
    ck_assert_mem_eq(got.columns[1], extract.columns[1], 5);
    tdm_extract_deinit(&extract);
    tdm_extract_deinit(&got);
    tdm_cache_close(cache);
    close_folder();
}
END_TEST

START_TEST(test_a_writer_that_is_closed_leaves_nothing)
{
    open_folder();
    tdm_cache_writer *writer, *second;
    ck_assert_ok(tdm_cache_writer_create(path, &layout, &writer));
    ck_assert_fails(tdm_cache_writer_create(path, &layout, &second), TDM_E_STATE,
                    "another run is writing it");
    char *temporary;
    ck_assert_ok(tdm_format(&temporary, "%s.tmp", path));
    ck_assert(tdm_file_exists(temporary));
    tdm_cache_writer_close(writer);
    ck_assert(!tdm_file_exists(temporary));
    tdm_cache *cache;
    ck_assert_ok(tdm_cache_open(path, &layout, &cache));
    ck_assert_ptr_null(cache);
    /* What a killed run left behind is written over. */
    tdm_free(tdm_data_rig_put_text(folder, "below/a.cache.tmp", "left behind"));
    write_cache();
    ck_assert_ok(tdm_cache_open(path, &layout, &cache));
    ck_assert_ptr_nonnull(cache);
    tdm_cache_close(cache);
    tdm_free(temporary);
    close_folder();
}
END_TEST

START_TEST(test_other_columns_are_another_cache)
{
    open_folder();
    for (int change = 0; change < 5; change++) {
        tdm_columns_layout other = layout;
        if (change == 0)
            other.columns[1].width = 4;
        else if (change == 1)
            other.columns[0].dtype = TDM_I32;
        else if (change == 2)
            other.columns[2].name = "sparse";
        else if (change == 3)
            other.count = 2;
        else
            other.rows_are_pieces = true;
        write_cache();
        tdm_cache *cache;
        tdm_warnings_expect("of another version or of other features; it is made anew");
        ck_assert_ok(tdm_cache_open(path, &other, &cache));
        ck_assert_ptr_null(cache);
        ck_assert_int_eq(tdm_warnings_seen(), 1);
        ck_assert(!tdm_file_exists(path));
    }
    close_folder();
}
END_TEST

/* Every byte of the file flipped: opening or reading a block says so, or the byte is not used. */
START_TEST(test_every_flipped_byte_is_seen)
{
    open_folder();
    write_cache();
    char *good;
    size_t size;
    ck_assert_ok(tdm_file_get(path, 1 << 20, &good, &size));
    size_t blocks_end = size - sizeof(tdm_cache_footer) - BLOCKS * sizeof(tdm_cache_entry);
    tdm_extract expected = {0}, got = {0};
    for (size_t at = 0; at<size; at += at> 400 && at < blocks_end - 400 ? 97 : 1) {
        if (at >= 12 && at < 16) /* reserved */
            continue;
        if (at >= 24 && at < sizeof(tdm_cache_header)) /* padding */
            continue;
        good[at] ^= 1;
        tdm_free(tdm_data_rig_put(folder, "below/a.cache", good, size));
        good[at] ^= 1;
        tdm_cache *cache;
        tdm_warnings_expect("damaged cache");
        ck_assert_ok(tdm_cache_open(path, &layout, &cache));
        bool in_blocks = at >= sizeof(tdm_cache_header) && at < blocks_end;
        ck_assert_int_eq(cache != NULL, in_blocks);
        ck_assert_int_eq(tdm_warnings_seen(), !in_blocks);
        int damaged = 0;
        for (int b = 0; b < BLOCKS && cache != NULL; b++) {
            if (tdm_cache_read(cache, b, &got) == TDM_OK) {
                make_block(b, block_rows[b], block_bad[b], &expected);
                check_same(&expected, &got);
                continue;
            }
            ck_assert_ptr_nonnull(strstr(tdm_error_message(), "a.cache: damaged cache: "));
            damaged++;
        }
        ck_assert_int_eq(damaged, in_blocks);
        tdm_cache_close(cache);
    }
    tdm_extract_deinit(&expected);
    tdm_extract_deinit(&got);
    tdm_free(good);
    close_folder();
}
END_TEST

START_TEST(test_cut_files_are_made_anew)
{
    open_folder();
    write_cache();
    char *good;
    size_t size;
    ck_assert_ok(tdm_file_get(path, 1 << 20, &good, &size));
    for (size_t cut = 0; cut < size; cut += cut < 200 || cut > size - 200 ? 1 : 101) {
        tdm_free(tdm_data_rig_put(folder, "below/a.cache", good, cut));
        tdm_cache *cache;
        tdm_warnings_expect("damaged cache");
        ck_assert_ok(tdm_cache_open(path, &layout, &cache));
        ck_assert_ptr_null(cache);
        ck_assert_int_eq(tdm_warnings_seen(), 1);
        ck_assert(!tdm_file_exists(path));
    }
    tdm_free(good);
    close_folder();
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

static char *name_of(const tdm_data_rig_options *options)
{
    tdm_data_rig rig;
    char *name;
    tdm_data_rig_open(options, &rig);
    ck_assert_ok(tdm_cache_path(rig.extractor, "/c", &name));
    tdm_data_rig_close(&rig);
    ck_assert_int_eq(strncmp(name, "/c/", 3), 0);
    ck_assert_uint_eq(strlen(name), strlen("/c/0123456789abcdef.cache"));
    return name;
}

static uint64_t text_cache_name(const char *file, const tdm_format_options *format)
{
    const tdm_strings paths = {.items = (char **)(uintptr_t)&file, .count = 1};
    const tdm_input_options options = {.paths = &paths,
                                       .format = format,
                                       .block_bytes = 100,
                                       .lanes = 1,
                                       .max_record_bytes = 1024};
    tdm_pool *pool;
    tdm_input *input;
    tdm_extractor *extractor;
    char *name;
    ck_assert_ok(tdm_pool_create(1, &pool));
    ck_assert_ok(tdm_input_open(&options, &input));
    ck_assert_ok(
        tdm_extractor_create(&tdm_row_featurizer, input, pool, TDM_SELECT_ALL, 0, &extractor));
    ck_assert_ok(tdm_cache_path(extractor, "/c", &name));
    uint64_t key = strtoull(name + 3, NULL, 16);
    tdm_free(name);
    tdm_extractor_destroy(extractor);
    tdm_input_close(input);
    tdm_pool_destroy(pool);
    return key;
}

START_TEST(test_the_name_tells_of_the_format)
{
    open_folder();
    char *file = tdm_data_rig_put_text(folder, "a.txt", "a\n");
    static const tdm_format_options formats[] = {
        {.type = TDM_FORMAT_TEXT},
        {.type = TDM_FORMAT_TEXT, .documents = TDM_DOCUMENTS_FILE},
        {.type = TDM_FORMAT_TEXT, .encoding_errors = TDM_ENCODING_SKIP},
        {.type = TDM_FORMAT_JSONL},
        {.type = TDM_FORMAT_JSONL, .field = "body"}};
    uint64_t keys[5];
    for (int i = 0; i < 5; i++) {
        keys[i] = text_cache_name(file, &formats[i]);
        ck_assert_uint_eq(keys[i], text_cache_name(file, &formats[i]));
        for (int j = 0; j < i; j++)
            ck_assert_uint_ne(keys[i], keys[j]);
    }
    tdm_free(file);
    close_folder();
}
END_TEST

/* What must change the name, one at a time. */
START_TEST(test_the_name_tells_what_is_in_it)
{
    open_folder();
    char *text = tdm_data_rig_text(0, 50, 0);
    char *a = tdm_data_rig_put_text(folder, "a.csv", text);
    char *b = tdm_data_rig_put_text(folder, "b.csv", text);
    const tdm_data_rig_options base = {.files = {a}, .format = TDM_FORMAT_CSV, .block_bytes = 100};
    tdm_data_rig_options options[11];
    for (int i = 0; i < 11; i++)
        options[i] = base;
    options[1].files[0] = b;
    options[2].files[1] = b;
    options[3].block_bytes = 101;
    options[4].hold_out = 0.1;
    options[4].selection = TDM_SELECT_TRAINING;
    options[5].hold_out = 0.1;
    options[5].selection = TDM_SELECT_HELD_OUT;
    options[6].hold_out = 0.2;
    options[6].selection = TDM_SELECT_TRAINING;
    options[7].max_record_bytes = 2000;
    options[8].recipe = "features: {fields: [{column: a}]}";
    options[9].recipe = "features: {fields: [{column: a}], hash_seed: 1}";
    /* Files of other weights share no block. */
    options[10].files[1] = b;
    options[10].weights[0] = 1;
    options[10].weights[1] = 2;
    char *names[11];
    for (int i = 0; i < 11; i++) {
        names[i] = name_of(&options[i]);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(names[i], names[j]);
    }
    /* What must not. */
    tdm_data_rig_options same = base;
    same.seed = 5;
    same.threads = 3;
    same.batch_size = 64;
    same.lanes = 8;
    char *name = name_of(&same);
    ck_assert_str_eq(name, names[0]);
    tdm_free(name);
    /* Another modification time, and another length. */
    const struct timespec times[2] = {{1000, 5}, {1000, 5}};
    ck_assert_int_eq(utimensat(AT_FDCWD, a, times, 0), 0);
    name = name_of(&base);
    ck_assert_str_ne(name, names[0]);
    ck_assert_int_eq(truncate(a, 500), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, a, times, 0), 0);
    char *shorter = name_of(&base);
    ck_assert_str_ne(shorter, name);
    tdm_free(shorter);
    tdm_free(name);
    for (int i = 0; i < 11; i++)
        tdm_free(names[i]);
    tdm_free(a);
    tdm_free(b);
    tdm_free(text);
    close_folder();
}
END_TEST

TDM_CHECK_MAIN(test_blocks_come_back_as_they_were, test_rows_that_are_no_records_come_back,
               test_a_writer_that_is_closed_leaves_nothing, test_other_columns_are_another_cache,
               test_every_flipped_byte_is_seen, test_cut_files_are_made_anew,
               test_the_name_tells_what_is_in_it, test_the_name_tells_of_the_format)

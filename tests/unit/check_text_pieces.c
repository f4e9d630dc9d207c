/* Pieces of texts: nothing is lost, and they are cut behind white space. */
#include "core/memory.h"
#include "data/text_pieces.h"
#include "tests/support/check_main.h"
#include "tests/support/data_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char folder[TDM_FOLDER_BYTES];

static void set_up(void)
{
    tdm_new_folder(folder);
}

static tdm_status open_names(tdm_text_pieces **pieces, const char *first, const char *second)
{
    char *items[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second};
    const tdm_strings names = {items, second == NULL ? 1 : 2};
    return tdm_text_pieces_open(&names, 2, NULL, pieces);
}

/* All pieces of one file one after another, and how many there were. Pieces but the last end with
 * white space where `spaces`. */
static void read_file(const char *path, bool spaces, tdm_text *text, int *count)
{
    tdm_text_pieces *pieces;
    tdm_text_piece piece = {0};
    char last = ' ';
    *text = (tdm_text){0};
    *count = 0;
    ck_assert_ok(open_names(&pieces, path, NULL));
    for (;;) {
        ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
        if (piece.bytes == 0)
            break;
        ck_assert(!spaces || strchr(" \t\r\n", last) != NULL);
        last = piece.text[piece.bytes - 1];
        ck_assert_ok(tdm_grow(&text->bytes, &text->capacity, text->length + piece.bytes, 1));
        memcpy(text->bytes + text->length, piece.text, piece.bytes);
        text->length += piece.bytes;
        ++*count;
    }
    int64_t done, total;
    tdm_text_pieces_progress(pieces, &done, &total);
    ck_assert_int_eq(done, total);
    ck_assert_int_eq(tdm_text_pieces_file_count(pieces), 1);
    tdm_text_piece_deinit(&piece);
    tdm_text_pieces_close(pieces);
}

static char *make_lines(size_t bytes)
{
    char *text;
    ck_assert_ok(tdm_alloc(bytes, 1, &text));
    for (size_t i = 0; i < bytes; i++)
        text[i] = i % 97 == 96 ? '\n' : i % 7 == 6 ? ' ' : (char)('a' + i * 31 % 26);
    return text;
}

static void check_file(const char *name, const char *bytes, size_t size, bool spaces, int pieces)
{
    char *path = tdm_data_rig_put(folder, name, bytes, size);
    tdm_text text;
    int count;
    read_file(path, spaces, &text, &count);
    ck_assert_uint_eq(text.length, size);
    ck_assert(memcmp(text.bytes, bytes, size) == 0);
    ck_assert_int_eq(count, pieces);
    tdm_free(text.bytes);
    tdm_free(path);
}

START_TEST(pieces_are_the_file)
{
    set_up();
    size_t size = 3 * TDM_PIECE_BYTES + 12345;
    char *text = make_lines(size);
    check_file("a.txt", text, size, true, 4);
    check_file("a.txt.gz", text, size, true, 4);
    check_file("a.txt.zst", text, size, true, 4);
    check_file("one.txt", "word", 4, true, 1);
    check_file("whole.txt", text, TDM_PIECE_BYTES, true, 2);
    tdm_free(text);
}
END_TEST

/* A stretch without white space makes its piece longer, up to a limit. */
START_TEST(words_are_kept_whole)
{
    set_up();
    size_t size = TDM_PIECE_BYTES_MAX + 3 * TDM_PIECE_BYTES;
    char *text = make_lines(size);
    memset(text + 100, 'x', 5 * TDM_PIECE_BYTES);
    /* Up to the blank before, then a piece of eight times the size. */
    check_file("long.txt", text, 10 * TDM_PIECE_BYTES, true, 4);
    for (size_t i = 0; i < size - 1; i += 2)
        memcpy(text + i, "\xc3\xa4", 2);
    memmove(text + 1, text, size - 1);
    text[0] = 'x';
    char *path = tdm_data_rig_put(folder, "endless.txt", text, size);
    tdm_text_pieces *pieces;
    tdm_text_piece piece = {0};
    ck_assert_ok(open_names(&pieces, path, NULL));
    ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
    /* Between two characters: one of them may lie across the limit. */
    ck_assert_uint_eq(piece.bytes, TDM_PIECE_BYTES_MAX - 1);
    ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
    ck_assert_uint_eq(piece.bytes, size - TDM_PIECE_BYTES_MAX + 1);
    ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
    ck_assert_uint_eq(piece.bytes, 0);
    tdm_text_piece_deinit(&piece);
    tdm_text_pieces_close(pieces);
    tdm_free(path);
    tdm_free(text);
}
END_TEST

START_TEST(a_byte_order_mark_is_skipped)
{
    set_up();
    char *path = tdm_data_rig_put_text(folder, "mark.txt", "\xef\xbb\xbfone \xef\xbb\xbftwo\n");
    tdm_text text;
    int count;
    read_file(path, true, &text, &count);
    ck_assert_uint_eq(text.length, 11);
    ck_assert(memcmp(text.bytes, "one \xef\xbb\xbftwo\n", 11) == 0);
    tdm_free(text.bytes);
    tdm_free(path);
    path = tdm_data_rig_put_text(folder, "only.txt", "\xef\xbb\xbf");
    read_file(path, true, &text, &count);
    ck_assert_int_eq(count, 0);
    tdm_free(path);
}
END_TEST

/* ---- many files, many threads ---------------------------------------------------------------- */

#define FILES   40
#define THREADS 4

typedef struct summing {
    tdm_text_pieces *pieces;
    int64_t bytes, words;
} summing;

static void *sum_pieces(void *context)
{
    summing *sum = context;
    tdm_text_piece piece = {0};
    for (;;) {
        if (tdm_text_pieces_next(sum->pieces, &piece) != TDM_OK || piece.bytes == 0)
            break;
        sum->bytes += (int64_t)piece.bytes;
        for (size_t i = 0; i < piece.bytes; i++)
            sum->words += piece.text[i] == ' ';
    }
    tdm_text_piece_deinit(&piece);
    return NULL;
}

START_TEST(threads_share_the_files)
{
    set_up();
    char *text = make_lines(2 * TDM_PIECE_BYTES), *pattern;
    int64_t bytes = 0, words = 0;
    for (int i = 0; i < FILES; i++) {
        char name[32];
        size_t size = i == 7 ? 0 : i % 10 == 0 ? 2 * TDM_PIECE_BYTES : (size_t)i * 100 + 1;
        snprintf(name, sizeof name, "%02d.txt%s", i, i % 3 == 0 ? ".gz" : "");
        tdm_free(tdm_data_rig_put(folder, name, text, size));
        bytes += (int64_t)size;
        for (size_t b = 0; b < size; b++)
            words += text[b] == ' ';
    }
    ck_assert_ok(tdm_format(&pattern, "%s/*.txt*", folder));
    summing sums[THREADS] = {{0}};
    pthread_t threads[THREADS];
    char *items[] = {pattern};
    const tdm_strings names = {items, 1};
    tdm_text_pieces *pieces;
    ck_assert_ok(tdm_text_pieces_open(&names, 3, NULL, &pieces));
    ck_assert_int_eq(tdm_text_pieces_file_count(pieces), FILES);
    for (int i = 0; i < THREADS; i++) {
        sums[i].pieces = pieces;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, sum_pieces, &sums[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        bytes -= sums[i].bytes;
        words -= sums[i].words;
    }
    ck_assert_int_eq(bytes, 0);
    ck_assert_int_eq(words, 0);
    tdm_text_pieces_close(pieces);
    tdm_free(pattern);
    tdm_free(text);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(errors_name_the_file_and_stay)
{
    set_up();
    tdm_text_pieces *pieces;
    tdm_text_piece piece = {0};
    char *missing, *good = tdm_data_rig_put_text(folder, "good.txt", "some words\n");
    ck_assert_ok(tdm_format(&missing, "%s/missing.txt", folder));
    ck_assert_fails(open_names(&pieces, good, missing), TDM_E_IO, "missing.txt");
    ck_assert_fails(open_names(&pieces, "-", "-"), TDM_E_CONFIG, "named twice");
    char *broken = tdm_data_rig_put_text(folder, "broken.txt", "\x1f\x8bno gzip at all");
    ck_assert_ok(open_names(&pieces, broken, good));
    ck_assert_fails(tdm_text_pieces_next(pieces, &piece), TDM_E_DATA, "broken.txt");
    ck_assert_uint_eq(piece.bytes, 0);
    ck_assert_fails(tdm_text_pieces_next(pieces, &piece), TDM_E_DATA, "broken.txt");
    tdm_text_pieces_close(pieces);
    ck_assert_ok(open_names(&pieces, good, folder));
    ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
    ck_assert_fails(tdm_text_pieces_next(pieces, &piece), TDM_E_IO, "is a folder");
    tdm_text_pieces_close(pieces);
    tdm_text_piece_deinit(&piece);
    tdm_free(missing);
    tdm_free(good);
    tdm_free(broken);
}
END_TEST

START_TEST(standard_input_has_no_length)
{
    set_up();
    char *path = tdm_data_rig_put_text(folder, "in.txt", "a b c");
    ck_assert_ptr_nonnull(freopen(path, "r", stdin));
    tdm_text_pieces *pieces;
    tdm_text_piece piece = {0};
    int64_t done, total;
    ck_assert_ok(open_names(&pieces, path, "-"));
    for (int i = 0; i < 2; i++) {
        ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
        ck_assert_uint_eq(piece.bytes, 5);
    }
    ck_assert_ok(tdm_text_pieces_next(pieces, &piece));
    ck_assert_uint_eq(piece.bytes, 0);
    tdm_text_pieces_progress(pieces, &done, &total);
    ck_assert_int_eq(done, 10);
    ck_assert_int_eq(total, -1);
    tdm_text_piece_deinit(&piece);
    tdm_text_pieces_close(pieces);
    tdm_free(path);
}
END_TEST

TDM_CHECK_MAIN(pieces_are_the_file, words_are_kept_whole, a_byte_order_mark_is_skipped,
               threads_share_the_files, errors_name_the_file_and_stay, standard_input_has_no_length)

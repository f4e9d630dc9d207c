/* What the documents of a window become: nothing lost, nothing twice, and the truth about pairs. */
#include "core/config.h"
#include "core/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/text_rig.h"

#include <string.h>

#define IDS 65536

/* Where each token of a window stands; ids are told apart. */
typedef struct token_places {
    int documents;
    int document[IDS], sentence[IDS]; /* of an id; sentences count on through all documents */
    bool begins_word[IDS];
    int64_t used[IDS];
    int64_t tokens;
} token_places;

typedef struct built {
    tdm_window window;
    tdm_sequence_scratch *scratch;
    tdm_sequence_options options;
    tdm_sequence_counts counts;
    token_places *places;
} built;

static void find_places(built *rig)
{
    token_places *places = rig->places;
    int sentences = 0;
    for (int b = 0; b < rig->window.block_count; b++) {
        const tdm_extract *block = rig->window.blocks[b];
        for (int64_t t = 0; t < block->rows; t++) {
            uint16_t id = ((const uint16_t *)block->columns[0])[t];
            uint8_t marks = ((const uint8_t *)block->columns[1])[t];
            places->documents += (marks & TDM_MARK_DOCUMENT) != 0;
            sentences += (marks & TDM_MARK_SENTENCE) != 0;
            places->document[id] = places->documents;
            places->sentence[id] = sentences;
            places->begins_word[id] = (marks & TDM_MARK_WORD) != 0;
            places->tokens++;
        }
    }
}

static void open_built(built *rig)
{
    ck_assert_ok(tdm_sequence_scratch_create(&rig->scratch));
    ck_assert_ok(tdm_alloc(1, sizeof *rig->places, &rig->places));
    find_places(rig);
}

static void open_random(uint64_t seed, int blocks, int documents, built *rig)
{
    tdm_rig_random_window(seed, blocks, documents, 40, &rig->window);
    open_built(rig);
}

static void open_text(const char *text, built *rig)
{
    tdm_rig_window(&text, 1, 40, &rig->window);
    open_built(rig);
}

static void close_built(built *rig)
{
    tdm_rig_window_free(&rig->window);
    tdm_sequence_scratch_destroy(rig->scratch);
    tdm_free(rig->places);
    *rig = (built){.options = rig->options};
}

static void build(built *rig, uint64_t seed, int64_t epoch, bool shuffled)
{
    rig->window.epoch = epoch;
    ck_assert_ok(tdm_sequences_build(&rig->options, TDM_RIG_MARKS, seed, shuffled, &rig->window,
                                     rig->scratch, &rig->counts));
}

static uint32_t text_tokens(const tdm_sequence *sequence)
{
    return sequence->tokens - 1 - sequence->segment_count;
}

/* What holds for all sequences; counts how often each token is used. */
static void check_rows(built *rig)
{
    int64_t tokens = 0;
    bool good = true;
    memset(rig->places->used, 0, sizeof rig->places->used);
    for (int64_t r = 0; r < rig->window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig->window, r);
        tokens += sequence.tokens;
        good = good && rig->window.token_ends[r] == tokens && sequence.segment_count > 0 &&
               (int64_t)sequence.tokens <= rig->options.max_length;
        uint32_t sum = 0;
        for (uint32_t s = 0; s < sequence.segment_count; s++) {
            good = good && sequence.segments[s].count > 0;
            sum += sequence.segments[s].count;
        }
        good = good && sum == text_tokens(&sequence);
        for (uint32_t i = 0; good && i < sum; i++)
            rig->places->used[tdm_rig_token(&rig->window, &sequence, i)]++;
    }
    ck_assert(good);
}

/* Every token exactly once. */
static void check_all_used_once(const built *rig)
{
    bool good = true;
    for (int64_t id = 0; id < IDS; id++) {
        bool there = id >= TDM_RIG_FIRST_WORD && id < TDM_RIG_FIRST_WORD + rig->places->tokens;
        good = good && rig->places->used[id] == there;
    }
    ck_assert(good);
}

/* ---- full sentences -------------------------------------------------------------------------- */

/* A sentence that fits is in one piece, and words are never broken. */
static void check_sentences_are_whole(const built *rig)
{
    const token_places *places = rig->places;
    bool good = true;
    for (int64_t r = 0; r < rig->window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig->window, r);
        uint32_t at = 0;
        for (uint32_t s = 0; s < sequence.segment_count; s++) {
            uint16_t first = tdm_rig_token(&rig->window, &sequence, at);
            uint16_t last = (uint16_t)(first + sequence.segments[s].count - 1);
            good = good && places->document[first] == places->document[last];
            good = good && places->sentence[first - 1] != places->sentence[first];
            good = good && places->sentence[last + 1] != places->sentence[last];
            at += sequence.segments[s].count;
        }
    }
    ck_assert(good);
}

START_TEST(test_full_sentences_use_all_text_once)
{
    built rig = {.options = {.cross_documents = true}};
    open_random(1, 3, 120, &rig);
    static const int64_t lengths[] = {100, 128, 512};
    for (size_t l = 0; l < 3; l++) {
        for (int cross = 0; cross < 2; cross++) {
            for (int64_t epoch = 0; epoch < 3; epoch++) {
                rig.options.max_length = lengths[l];
                rig.options.cross_documents = cross;
                build(&rig, 7, epoch, epoch < 2);
                check_rows(&rig);
                check_all_used_once(&rig);
                check_sentences_are_whole(&rig);
                ck_assert_int_eq(rig.counts.cut_tokens, 0);
            }
        }
    }
    close_built(&rig);
}
END_TEST

START_TEST(test_documents_are_crossed_or_not)
{
    built rig = {.options = {.max_length = 512, .cross_documents = true}};
    open_random(2, 2, 60, &rig);
    build(&rig, 1, 0, true);
    check_rows(&rig);
    int64_t crossing = 0, crossed_rows = rig.window.rows;
    uint32_t full = 0;
    for (int64_t r = 0; r < rig.window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig.window, r);
        crossing += sequence.segment_count > 1;
        full += sequence.tokens > 470;
    }
    ck_assert_int_gt(crossing, rig.window.rows / 2);
    ck_assert_uint_ge(full, (uint32_t)crossed_rows - 2);
    rig.options.cross_documents = false;
    build(&rig, 1, 0, true);
    check_rows(&rig);
    for (int64_t r = 0; r < rig.window.rows; r++)
        ck_assert_uint_eq(tdm_sequence_get(&rig.window, r).segment_count, 1);
    ck_assert_int_gt(rig.window.rows, crossed_rows);
    close_built(&rig);
}
END_TEST

/* The rows of an unshuffled window, as "first+count" of each segment, ids counted from 16. */
static void check_layout(built *rig, const char *expected)
{
    tdm_text text = {0};
    build(rig, 1, 0, false);
    check_rows(rig);
    for (int64_t r = 0; r < rig->window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig->window, r);
        for (uint32_t s = 0; s < sequence.segment_count; s++)
            ck_assert_ok(tdm_text_printf(&text, "%s%u+%u",
                                         s > 0   ? " "
                                         : r > 0 ? ", "
                                                 : "",
                                         sequence.segments[s].first, sequence.segments[s].count));
    }
    ck_assert_str_eq(text.bytes == NULL ? "" : text.bytes, expected);
    tdm_text_free(&text);
}

START_TEST(test_packing_by_hand)
{
    built rig = {.options = {.max_length = 12, .cross_documents = true}};
    /* 3 + 4 fit in 10; 4 do not, and begin the next, with the document behind them. */
    open_text("w1w1w1/w2w2/w1w3\nw1w1w1", &rig);
    check_layout(&rig, "0+7, 7+4 11+3");
    close_built(&rig);
    /* A sentence of 10 fills a sequence; one of 11 is broken before its last word. */
    open_text("w5w5\nw5w3w3", &rig);
    check_layout(&rig, "0+10, 10+8, 18+3");
    close_built(&rig);
    /* A long one begins in the room that the sentence before it left: 6 tokens are there. */
    open_text("w4/w3w2w2w3w2w1", &rig);
    check_layout(&rig, "0+9, 9+8");
    close_built(&rig);
    /* A word that is longer than a sequence is broken. */
    open_text("w2/w25w1", &rig);
    check_layout(&rig, "0+2, 2+10, 12+10, 22+6");
    close_built(&rig);
    /* The [SEP] between documents needs its place: 8 + 1 + 1 more do not fit in 9. */
    open_text("w8\nw2\nw1", &rig);
    check_layout(&rig, "0+8, 8+2 10+1");
    close_built(&rig);
    rig.options = (tdm_sequence_options){.max_length = 12};
    open_text("w8\nw1\nw1", &rig);
    check_layout(&rig, "0+8, 8+1, 9+1");
    close_built(&rig);
    open_text("", &rig);
    check_layout(&rig, "");
    close_built(&rig);
}
END_TEST

START_TEST(test_one_per_record)
{
    built rig = {
        .options = {.mode = TDM_ONE_PER_RECORD, .max_length = 12, .cross_documents = true}};
    open_text("w1w1w1/w2w2\nw1\nw6/w3w2/w1", &rig);
    check_layout(&rig, "0+7, 7+1, 8+9, 17+3");
    close_built(&rig);
    open_random(3, 2, 100, &rig);
    rig.options.max_length = 4000;
    build(&rig, 1, 0, true);
    check_rows(&rig);
    check_all_used_once(&rig);
    ck_assert_int_eq(rig.window.rows, 100);
    ck_assert_int_eq(rig.counts.documents, 100);
    close_built(&rig);
}
END_TEST

START_TEST(test_short_sequences_by_probability)
{
    built rig = {.options = {.max_length = 128, .cross_documents = true, .short_probability = 0.1}};
    int64_t rows = 0, shorter = 0;
    open_random(4, 2, 200, &rig);
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        build(&rig, 1, epoch, true);
        check_rows(&rig);
        check_all_used_once(&rig);
        for (int64_t r = 0; r < rig.window.rows; r++)
            shorter += tdm_sequence_get(&rig.window, r).tokens < 64;
        rows += rig.window.rows;
    }
    /* Of random lengths from 2 to 126, of which sentences make up to 45 more, a third is below 64;
     * others are there only at the end of a window. */
    double share = (double)shorter / (double)rows;
    ck_assert_double_gt(share, 0.02);
    ck_assert_double_lt(share, 0.06);
    close_built(&rig);
}
END_TEST

/* ---- pairs ----------------------------------------------------------------------------------- */

/* First and last ids of a segment of a pair. */
static void ends_of(const built *rig, const tdm_sequence *sequence, int segment, uint16_t ends[2])
{
    uint32_t at = segment == 0 ? 0 : sequence->segments[0].count;
    ends[0] = tdm_rig_token(&rig->window, sequence, at);
    ends[1] = tdm_rig_token(&rig->window, sequence, at + sequence->segments[segment].count - 1);
}

typedef struct pair_counts {
    int64_t rows, labels;
    int64_t others_seen; /* documents that a random B came from, each once */
} pair_counts;

static void count_pairs(const built *rig, pair_counts *counts)
{
    const token_places *places = rig->places;
    bool order = rig->options.pairs == TDM_SENTENCE_ORDER;
    bool *seen;
    ck_assert_ok(tdm_alloc(IDS, sizeof *seen, &seen));
    bool good = true;
    for (int64_t r = 0; r < rig->window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig->window, r);
        uint16_t a[2], b[2];
        ends_of(rig, &sequence, 0, a);
        ends_of(rig, &sequence, 1, b);
        good = good && sequence.segment_count == 2 &&
               places->document[a[0]] == places->document[a[1]] &&
               places->document[b[0]] == places->document[b[1]];
        bool same = places->document[a[0]] == places->document[b[0]];
        if (order)
            good = good && same && (sequence.pair_label == 1 ? b[1] < a[0] : a[1] < b[0]);
        else if (sequence.pair_label == 1)
            good = good && !same;
        else
            good = good && same && a[1] < b[0];
        counts->rows++;
        counts->labels += sequence.pair_label;
        if (!same && !seen[places->document[b[0]]]) {
            seen[places->document[b[0]]] = true;
            counts->others_seen++;
        }
    }
    tdm_free(seen);
    ck_assert(good);
}

START_TEST(test_next_sentence_labels_are_true)
{
    static const int64_t lengths[] = {8, 20, 128, 512};
    built rig = {.options = {.mode = TDM_SEGMENT_PAIRS, .short_probability = 0.1}};
    open_random(5, 3, 100, &rig);
    for (size_t l = 0; l < 4; l++) {
        pair_counts counts = {0};
        rig.options.max_length = lengths[l];
        for (int64_t epoch = 0; epoch < 8; epoch++) {
            build(&rig, 3, epoch, true);
            check_rows(&rig);
            count_pairs(&rig, &counts);
        }
        /* Half, and those whose A is a sentence alone. */
        double share = (double)counts.labels / (double)counts.rows;
        ck_assert_double_gt(share, 0.5);
        ck_assert_double_lt(share, lengths[l] == 512 ? 0.75 : 0.62);
        ck_assert_int_gt(counts.others_seen, 8 * 60);
    }
    close_built(&rig);
}
END_TEST

/* A window may hold a block twice: B is not of A's twin either, and one document stays alone. */
START_TEST(test_a_block_twice_holds_the_same_documents)
{
    static const char *const texts[] = {"w1w1/w2w1w1/w3/w1w1/w2\nw2/w1/w3\n",
                                        "w1w1/w2w1w1/w3/w1w1/w2"};
    for (int t = 0; t < 2; t++) {
        built rig = {.options = {.mode = TDM_SEGMENT_PAIRS, .max_length = 12}};
        const char *const twice[] = {texts[t], texts[t]};
        tdm_rig_window(twice, 2, 40, &rig.window);
        open_built(&rig);
        rig.window.blocks[1]->block = rig.window.blocks[0]->block;
        rig.window.blocks[1]->occurrence = 1;
        int64_t labels = 0;
        bool good = true;
        for (int64_t epoch = 0; epoch < 50; epoch++) {
            build(&rig, 3, epoch, true);
            for (int64_t r = 0; r < rig.window.rows; r++) {
                tdm_sequence pair = tdm_sequence_get(&rig.window, r);
                labels += pair.pair_label;
                /* The first document has 12 tokens. */
                bool same = (pair.segments[0].first < 12) == (pair.segments[1].first < 12);
                good = good && same == (pair.pair_label == 0);
            }
        }
        ck_assert(good);
        ck_assert_int_eq(labels > 0, t == 0);
        close_built(&rig);
    }
}
END_TEST

START_TEST(test_one_document_has_no_other)
{
    static const char *const texts[] = {"w1w1/w2w1w1/w3/w1w1w1w1w1w1w1/w1/w2w2w2", "w5", "w1", ""};
    static const int64_t used[] = {0, 5, 0, 0};
    for (int pairs = 0; pairs < 2; pairs++) {
        for (int t = 0; t < 4; t++) {
            built rig = {.options = {.mode = TDM_SEGMENT_PAIRS, .pairs = pairs, .max_length = 16}};
            open_text(texts[t], &rig);
            pair_counts counts = {0};
            for (int64_t epoch = 0; epoch < 20; epoch++) {
                build(&rig, 3, epoch, true);
                check_rows(&rig);
                count_pairs(&rig, &counts);
                if (t > 0)
                    ck_assert_int_eq(rig.places->tokens - rig.counts.cut_tokens, used[t]);
            }
            if (pairs == 0)
                ck_assert_int_eq(counts.labels, 0);
            ck_assert_int_eq(counts.rows > 0, t < 2);
            close_built(&rig);
        }
    }
}
END_TEST

START_TEST(test_sentence_order_is_swapped_half_of_the_time)
{
    built rig = {
        .options = {.mode = TDM_SEGMENT_PAIRS, .pairs = TDM_SENTENCE_ORDER, .max_length = 128}};
    pair_counts counts = {0};
    open_random(6, 3, 100, &rig);
    for (int64_t epoch = 0; epoch < 30; epoch++) {
        build(&rig, 3, epoch, true);
        check_rows(&rig);
        count_pairs(&rig, &counts);
    }
    double share = (double)counts.labels / (double)counts.rows;
    ck_assert_int_gt(counts.rows, 3000);
    ck_assert_double_eq_tol(share, 0.5, 0.04);
    close_built(&rig);
}
END_TEST

/* Without what is cut off, order pairs use all text, and each piece of it once. */
START_TEST(test_what_pairs_cut_is_counted)
{
    built rig = {
        .options = {.mode = TDM_SEGMENT_PAIRS, .pairs = TDM_SENTENCE_ORDER, .max_length = 64}};
    open_random(7, 2, 100, &rig);
    build(&rig, 3, 0, true);
    check_rows(&rig);
    int64_t used = 0;
    for (int64_t id = 0; id < IDS; id++) {
        ck_assert_int_le(rig.places->used[id], 1);
        used += rig.places->used[id];
    }
    ck_assert_int_eq(used + rig.counts.cut_tokens, rig.places->tokens);
    ck_assert_int_gt(rig.counts.cut_tokens, 0);
    ck_assert_int_lt(rig.counts.cut_tokens, rig.places->tokens / 4);
    close_built(&rig);
}
END_TEST

/* What is cut off goes from both ends of the longer one, half of the time each. */
START_TEST(test_both_ends_are_cut)
{
    built rig = {
        .options = {.mode = TDM_SEGMENT_PAIRS, .pairs = TDM_SENTENCE_ORDER, .max_length = 103}};
    open_text("w90/w90", &rig);
    int64_t front = 0, back = 0;
    for (int64_t epoch = 0; epoch < 200; epoch++) {
        build(&rig, 3, epoch, true);
        check_rows(&rig);
        ck_assert_int_eq(rig.window.rows, 1);
        tdm_sequence sequence = tdm_sequence_get(&rig.window, 0);
        ck_assert_uint_eq(sequence.tokens, 103);
        ck_assert_uint_eq(sequence.segments[0].count, 50);
        for (int s = 0; s < 2; s++) {
            front += sequence.segments[s].first % 90;
            back += 40 - sequence.segments[s].first % 90;
        }
    }
    ck_assert_double_eq_tol((double)front / (double)back, 1, 0.05);
    close_built(&rig);
}
END_TEST

/* A document of one long sentence is several pairs; little of it is cut. */
START_TEST(test_long_sentences_are_several)
{
    built rig = {
        .options = {.mode = TDM_SEGMENT_PAIRS, .pairs = TDM_SENTENCE_ORDER, .max_length = 128}};
    tdm_text text = {0};
    for (int i = 0; i < 3000; i++)
        ck_assert_ok(tdm_text_printf(&text, "w%d", 1 + i % 3));
    open_text(text.bytes, &rig);
    build(&rig, 3, 0, true);
    check_rows(&rig);
    ck_assert_int_ge(rig.window.rows, 6000 / 128);
    ck_assert_int_lt(rig.counts.cut_tokens, 200);
    tdm_text_free(&text);
    close_built(&rig);
}
END_TEST

/* Each document is short as a whole or not at all: lengths are drawn once for it. */
START_TEST(test_short_documents_by_probability)
{
    built rig = {.options = {.mode = TDM_SEGMENT_PAIRS,
                             .pairs = TDM_SENTENCE_ORDER,
                             .max_length = 103,
                             .short_probability = 0.1}};
    tdm_text text = {0};
    for (int d = 0; d < 60; d++) {
        for (int i = 0; i < 500; i++)
            ck_assert_ok(tdm_text_printf(&text, "/w1"));
        ck_assert_ok(tdm_text_printf(&text, "\n"));
    }
    open_text(text.bytes, &rig);
    int64_t whole = 0, shorter = 0;
    for (int64_t epoch = 0; epoch < 30; epoch++) {
        uint32_t longest[64] = {0};
        build(&rig, 3, epoch, true);
        check_rows(&rig);
        for (int64_t r = 0; r < rig.window.rows; r++) {
            tdm_sequence sequence = tdm_sequence_get(&rig.window, r);
            int document = rig.places->document[tdm_rig_token(&rig.window, &sequence, 0)];
            if (sequence.tokens > longest[document])
                longest[document] = sequence.tokens;
        }
        for (int d = 1; d <= 60; d++) {
            whole += longest[d] == 103;
            shorter += longest[d] < 103;
        }
    }
    /* A hundredth of the short ones are as long as the others. */
    ck_assert_double_eq_tol((double)shorter / (double)(whole + shorter), 0.1, 0.025);
    tdm_text_free(&text);
    close_built(&rig);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

static uint64_t hash_rows(const built *rig)
{
    uint64_t hash = 0;
    for (int64_t r = 0; r < rig->window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig->window, r);
        hash = hash * 1099511628211u + sequence.pair_label;
        for (uint32_t i = 0; i < text_tokens(&sequence); i++)
            hash = hash * 1099511628211u + tdm_rig_token(&rig->window, &sequence, i);
    }
    return hash;
}

START_TEST(test_sequences_follow_seed_and_epoch)
{
    for (int mode = 0; mode < 3; mode++) {
        built rig = {.options = {.mode = mode, .max_length = 128, .short_probability = 0.1}};
        open_random(8, 2, 50, &rig);
        build(&rig, 1, 2, true);
        uint64_t first = hash_rows(&rig);
        build(&rig, 1, 3, true);
        ck_assert_uint_ne(hash_rows(&rig), first);
        build(&rig, 2, 2, true);
        ck_assert_uint_ne(hash_rows(&rig), first);
        build(&rig, 1, 2, true);
        ck_assert_uint_eq(hash_rows(&rig), first);
        /* Another window that is alike is ordered otherwise. */
        for (int b = 0; b < 2; b++)
            rig.window.blocks[b]->block += 2;
        build(&rig, 1, 2, true);
        ck_assert_uint_ne(hash_rows(&rig), first);
        close_built(&rig);
    }
}
END_TEST

/* Sequences of one document do not stand side by side. */
START_TEST(test_rows_are_mixed)
{
    built rig = {.options = {.max_length = 100}};
    open_random(9, 2, 60, &rig);
    build(&rig, 1, 0, true);
    int64_t together = 0;
    int before = -1;
    for (int64_t r = 0; r < rig.window.rows; r++) {
        tdm_sequence sequence = tdm_sequence_get(&rig.window, r);
        int document = rig.places->document[tdm_rig_token(&rig.window, &sequence, 0)];
        together += document == before;
        before = document;
    }
    ck_assert_int_lt(together, rig.window.rows / 8);
    close_built(&rig);
}
END_TEST

/* A record is a row, in order or mixed; its head belongs to no segment, and a pair is cut at the
 * longer text. "/" begins the second text. */
START_TEST(test_records_as_they_stand)
{
    built rig = {.options = {.mode = TDM_RECORD_TEXTS, .max_length = 10, .head = 2}};
    open_text("w1 w1 w1 w1\nw1 w1 w1 w1 w1 / w2 w1\nw1 w1 w9 w9 / w1\nw1 w1 w5 w6\n", &rig);
    tdm_extract *block = rig.window.blocks[0];
    uint8_t *marks = block->columns[1];
    for (int64_t t = 0; t < block->rows; t++) {
        if ((marks[t] & (TDM_MARK_SENTENCE | TDM_MARK_DOCUMENT)) == TDM_MARK_SENTENCE)
            marks[t] |= TDM_MARK_SECOND;
    }
    build(&rig, 1, 0, false);
    static const uint32_t expected[4][5] = {
        {4, 1, 2, 2}, {9, 2, 6, 3, 3}, {10, 2, 14, 6, 1}, {10, 1, 35, 8}};
    ck_assert_int_eq(rig.window.rows, 4);
    for (int64_t r = 0; r < 4; r++) {
        tdm_sequence row = tdm_sequence_get(&rig.window, r);
        ck_assert_uint_eq(row.tokens, expected[r][0]);
        ck_assert_uint_eq(row.segment_count, expected[r][1]);
        ck_assert_uint_eq(row.segments[0].first, expected[r][2]);
        ck_assert_uint_eq(row.segments[0].count, expected[r][3]);
        if (row.segment_count == 2)
            ck_assert_uint_eq(row.segments[1].count, expected[r][4]);
    }
    ck_assert_int_eq(rig.counts.documents, 4);
    ck_assert_int_eq(rig.counts.tokens, block->rows - 8);
    ck_assert_int_eq(rig.counts.cut_tokens, 12 + 3);
    int64_t moved = 0;
    for (int64_t epoch = 0; epoch < 8; epoch++) {
        build(&rig, 1, epoch, true);
        ck_assert_int_eq(rig.window.rows, 4);
        moved += tdm_sequence_get(&rig.window, 0).segments[0].first != 2;
    }
    ck_assert_int_gt(moved, 0);
    close_built(&rig);
}
END_TEST

TDM_CHECK_MAIN(test_records_as_they_stand, test_full_sentences_use_all_text_once,
               test_documents_are_crossed_or_not, test_packing_by_hand, test_one_per_record,
               test_short_sequences_by_probability, test_next_sentence_labels_are_true,
               test_a_block_twice_holds_the_same_documents, test_one_document_has_no_other,
               test_sentence_order_is_swapped_half_of_the_time, test_what_pairs_cut_is_counted,
               test_both_ends_are_cut, test_long_sentences_are_several,
               test_short_documents_by_probability, test_sequences_follow_seed_and_epoch,
               test_rows_are_mixed)

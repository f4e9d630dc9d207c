#include "core/memory.h"
#include "text/encoder.h"
#include "text/encodings.h"
#include "text/truncation.h"

#include <stdatomic.h>
#include <string.h>

#define INPUTS_AT_ONCE 16 /* that a thread takes */
#define MOST_PARTS     ((int64_t)1 << 24)

/* A call of tdm_encoder_encode(): the inputs become lists of tokens on all threads, then it is
 * planned which parts of them are the encodings, then those are written on all threads. */
typedef struct call {
    tdm_encoder *encoder;
    const tdm_tokenizer *tokenizer;
    const tdm_text_input *inputs;
    int64_t count;
    tdm_encode_options options;
    tdm_encodings *out;
    _Atomic int64_t next; /* input that no thread has taken */
} call;

/* ---- options --------------------------------------------------------------------------------- */

static bool adds_special(const call *this)
{
    return this->options.add_special_tokens && !this->tokenizer->no_template;
}

static int64_t added_count(const call *this, bool has_pair)
{
    if (!adds_special(this))
        return 0;
    return has_pair ? 3 : 2;
}

static tdm_status check_range(const tdm_encode_options *options)
{
    TDM_FAIL_IF((unsigned)options->specials > TDM_SPECIALS_ERROR ||
                    (unsigned)options->truncation > TDM_TRUNCATE_ONLY_SECOND ||
                    (unsigned)options->padding > TDM_PADDING_FIXED,
                TDM_E_ARG, "specials, truncation or padding of the options has no such value");
    TDM_FAIL_IF(options->max_length < -1, TDM_E_ARG, "max_length is %lld, not -1 or more",
                (long long)options->max_length);
    TDM_FAIL_IF(options->stride < 0, TDM_E_ARG, "stride is %lld, below 0",
                (long long)options->stride);
    TDM_FAIL_IF(options->pad_length < 0 || options->pad_multiple < 0 ||
                    options->pad_length > INT32_MAX || options->pad_multiple > INT32_MAX,
                TDM_E_ARG, "pad_length and pad_multiple are numbers from 0 to %d", INT32_MAX);
    return TDM_OK;
}

static tdm_status check_special_tokens(const call *this)
{
    const int64_t *specials = this->tokenizer->specials;
    TDM_FAIL_IF(
        adds_special(this) && (specials[TDM_SPECIAL_CLS] < 0 || specials[TDM_SPECIAL_SEP] < 0),
        TDM_E_ARG, "the vocabulary has no %s, which would be added: encode without special tokens",
        tdm_special_names[specials[TDM_SPECIAL_CLS] < 0 ? TDM_SPECIAL_CLS : TDM_SPECIAL_SEP]);
    TDM_FAIL_IF(this->options.padding != TDM_PADDING_NONE && specials[TDM_SPECIAL_PAD] < 0,
                TDM_E_ARG, "the vocabulary has no %s to pad with",
                tdm_special_names[TDM_SPECIAL_PAD]);
    return TDM_OK;
}

static tdm_status check_options(const call *this)
{
    const tdm_encode_options *options = &this->options;
    TDM_TRY(check_range(options));
    TDM_TRY(check_special_tokens(this));
    bool has_pair = false;
    for (int64_t i = 0; i < this->count; i++) {
        const tdm_text_input *input = &this->inputs[i];
        TDM_FAIL_IF(input->bytes > INT32_MAX || input->pair_bytes > INT32_MAX, TDM_E_ARG,
                    "input %lld: a text of 2 GiB or more: split it", (long long)i);
        has_pair = has_pair || input->pair != NULL;
    }
    int64_t added = added_count(this, has_pair);
    TDM_FAIL_IF(options->max_length >= 0 && options->max_length < added, TDM_E_ARG,
                "max_length is %lld, but %lld special tokens are added",
                (long long)options->max_length, (long long)added);
    int64_t room = options->max_length - added_count(this, false);
    TDM_FAIL_IF(options->overflow && options->max_length >= 0 && options->stride > 0 &&
                    options->stride >= room,
                TDM_E_ARG, "stride is %lld, but a sequence holds only %lld tokens of the text",
                (long long)options->stride, (long long)room);
    return TDM_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static tdm_status encode_input(call *this, tdm_encoder_lane *lane, int index, int64_t i)
{
    const tdm_text_input *input = &this->inputs[i];
    tdm_encoded_input *encoded = &this->encoder->inputs[i];
    *encoded = (tdm_encoded_input){.lane = index, .begin = lane->tokens.count};
    TDM_TRY(tdm_encode_text(lane, input->text, input->bytes, &this->options));
    encoded->text_count = lane->tokens.count - encoded->begin;
    if (input->pair == NULL)
        return TDM_OK;
    TDM_TRY(tdm_encode_text(lane, input->pair, input->pair_bytes, &this->options));
    encoded->pair_count = lane->tokens.count - encoded->begin - encoded->text_count;
    return TDM_OK;
}

/* Inputs are taken in order, so a lane's first error is the one of its lowest input. */
static void encode_on_lane(void *context, int64_t index)
{
    call *this = context;
    tdm_encoder_lane *lane = &this->encoder->lanes[index];
    lane->tokens.count = 0;
    lane->error = (tdm_error){0};
    for (;;) {
        int64_t begin = atomic_fetch_add(&this->next, INPUTS_AT_ONCE);
        for (int64_t i = begin; i < begin + INPUTS_AT_ONCE && i < this->count; i++) {
            tdm_status status = encode_input(this, lane, (int)index, i);
            if (status == TDM_OK)
                continue;
            tdm_error_keep(&lane->error, status);
            lane->failed_input = i;
            return;
        }
        if (begin >= this->count)
            return;
    }
}

/* Where there is one input, all know which one it is. */
static tdm_status at_input(const call *this, int64_t input, tdm_status status)
{
    return this->count > 1 ? tdm_fail_context(status, "input %lld", (long long)input) : status;
}

/* Raises the error of the lowest input. */
static tdm_status first_error(const call *this)
{
    const tdm_encoder *encoder = this->encoder;
    const tdm_encoder_lane *first = NULL;
    for (int i = 0; i < encoder->lane_count; i++) {
        const tdm_encoder_lane *lane = &encoder->lanes[i];
        if (lane->error.status != TDM_OK &&
            (first == NULL || lane->failed_input < first->failed_input))
            first = lane;
    }
    return first == NULL ? TDM_OK
                         : at_input(this, first->failed_input, tdm_error_raise(&first->error));
}

static tdm_status encode_inputs(call *this)
{
    tdm_encoder *encoder = this->encoder;
    TDM_TRY(tdm_grow(&encoder->inputs, &encoder->inputs_capacity, (size_t)this->count,
                     sizeof *encoder->inputs));
    tdm_pool_for(encoder->pool, encoder->lane_count, encode_on_lane, this);
    return first_error(this);
}

/* ---- planning -------------------------------------------------------------------------------- */

static tdm_status add_plan(call *this, int64_t input, tdm_text_range text, tdm_text_range pair)
{
    tdm_encodings *out = this->out;
    TDM_TRY(
        tdm_grow(&out->plans, &out->plans_capacity, (size_t)out->count + 1, sizeof *out->plans));
    size_t used = text.end - text.begin + pair.end - pair.begin +
                  (size_t)added_count(this, this->inputs[input].pair != NULL);
    out->plans[out->count++] =
        (tdm_encoding_plan){.input = input, .parts = {text, pair}, .count = used, .used = used};
    return TDM_OK;
}

/* The windows of a text (0) or pair (1); only the first one where overflow is not wanted. */
static tdm_status make_windows(call *this, int which, int64_t count, int64_t length, int64_t *made)
{
    tdm_encoder *encoder = this->encoder;
    bool cut = length < count;
    int64_t stride = this->options.overflow ? this->options.stride : 0;
    TDM_FAIL_IF(cut && length > 0 && stride >= length, TDM_E_ARG,
                "stride is %lld, but %lld tokens are left of the %s text", (long long)stride,
                (long long)length, which == 0 ? "first" : "second");
    int64_t most = !cut || length == 0 ? 2 : 2 + (count - length) / (length - stride);
    TDM_TRY(tdm_grow(&encoder->windows[which], &encoder->windows_capacity[which], (size_t)most,
                     sizeof *encoder->windows[which]));
    *made = tdm_truncation_windows(count, length, stride, this->options.truncate_left,
                                   encoder->windows[which]);
    if (!this->options.overflow)
        *made = 1;
    return TDM_OK;
}

/* What overflows comes in the order of Hugging Face's Encoding::merge_with: each further window of
 * the text with those of the pair, then the first one with the pair's further ones. */
static tdm_status plan_input(call *this, int64_t input)
{
    const tdm_encoded_input *encoded = &this->encoder->inputs[input];
    bool has_pair = this->inputs[input].pair != NULL;
    int64_t counts[2] = {(int64_t)encoded->text_count, (int64_t)encoded->pair_count};
    int64_t lengths[2], made[2];
    int64_t limit = this->options.max_length;
    int64_t budget = limit < 0 ? -1 : limit - added_count(this, has_pair);
    TDM_TRY(tdm_truncation_lengths(this->options.truncation, budget, has_pair, counts, lengths));
    for (int which = 0; which < 2; which++)
        TDM_TRY(make_windows(this, which, counts[which], lengths[which], &made[which]));
    TDM_FAIL_IF(made[0] * made[1] > MOST_PARTS, TDM_E_ARG,
                "%lld parts of the first text with %lld of the second are too many: truncate one "
                "text only, or to a larger max_length",
                (long long)made[0], (long long)made[1]);
    tdm_text_range *const *windows = this->encoder->windows;
    TDM_TRY(add_plan(this, input, windows[0][0], windows[1][0]));
    for (int64_t t = 1; t < made[0]; t++) {
        for (int64_t p = 0; p < made[1]; p++)
            TDM_TRY(add_plan(this, input, windows[0][t], windows[1][p]));
    }
    for (int64_t p = 1; p < made[1]; p++)
        TDM_TRY(add_plan(this, input, windows[0][0], windows[1][p]));
    return TDM_OK;
}

static size_t padded_length(const call *this)
{
    const tdm_encode_options *options = &this->options;
    if (options->padding == TDM_PADDING_NONE)
        return 0;
    size_t length = (size_t)options->pad_length;
    if (options->padding == TDM_PADDING_LONGEST) {
        length = 0;
        for (int64_t i = 0; i < this->out->count; i++) {
            if (this->out->plans[i].used > length)
                length = this->out->plans[i].used;
        }
    }
    size_t multiple = options->pad_multiple > 0 ? (size_t)options->pad_multiple : 1;
    return (length + multiple - 1) / multiple * multiple;
}

static tdm_status plan_encodings(call *this)
{
    for (int64_t i = 0; i < this->count; i++) {
        tdm_status status = plan_input(this, i);
        if (status != TDM_OK)
            return at_input(this, i, status);
    }
    size_t length = padded_length(this), tokens = 0;
    for (int64_t i = 0; i < this->out->count; i++) {
        tdm_encoding_plan *plan = &this->out->plans[i];
        plan->begin = tokens;
        if (plan->count < length)
            plan->count = length;
        tokens += plan->count;
    }
    return tdm_encodings_reserve(this->out, tokens);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct added_token {
    uint32_t id;
    uint8_t type_id, attention;
} added_token;

static void put_added(tdm_encodings *out, size_t at, added_token token)
{
    out->ids[at] = token.id;
    out->type_ids[at] = token.type_id;
    out->attention[at] = token.attention;
    out->special[at] = 1;
    out->sequences[at] = -1;
    out->words[at] = -1;
    if (out->offsets)
        out->bytes[at] = out->chars[at] = (tdm_text_range){0};
}

static void put_part(const call *this, size_t at, const tdm_encoding_plan *plan, int which)
{
    tdm_encodings *out = this->out;
    const tdm_encoded_input *encoded = &this->encoder->inputs[plan->input];
    const tdm_text_tokens *tokens = &this->encoder->lanes[encoded->lane].tokens;
    tdm_text_range part = plan->parts[which];
    size_t count = part.end - part.begin;
    size_t from = encoded->begin + (which == 1 ? encoded->text_count : 0) + part.begin;
    if (count == 0)
        return;
    memcpy(out->ids + at, tokens->ids + from, count * sizeof *out->ids);
    memcpy(out->words + at, tokens->words + from, count * sizeof *out->words);
    memset(out->type_ids + at, which, count);
    memset(out->attention + at, 1, count);
    memset(out->special + at, 0, count);
    memset(out->sequences + at, which, count);
    if (!out->offsets)
        return;
    memcpy(out->bytes + at, tokens->bytes + from, count * sizeof *out->bytes);
    memcpy(out->chars + at, tokens->chars + from, count * sizeof *out->chars);
}

static void write_encoding(void *context, int64_t index)
{
    const call *this = context;
    tdm_encodings *out = this->out;
    const tdm_encoding_plan *plan = &out->plans[index];
    const int64_t *specials = this->tokenizer->specials;
    bool special = adds_special(this);
    size_t padding = plan->count - plan->used;
    size_t at = plan->begin + (this->options.pad_left ? padding : 0);
    size_t pad_at = this->options.pad_left ? plan->begin : plan->begin + plan->used;
    if (special)
        put_added(out, at++, (added_token){(uint32_t)specials[TDM_SPECIAL_CLS], 0, 1});
    for (int which = 0; which < (this->inputs[plan->input].pair != NULL ? 2 : 1); which++) {
        put_part(this, at, plan, which);
        at += plan->parts[which].end - plan->parts[which].begin;
        if (special)
            put_added(out, at++,
                      (added_token){(uint32_t)specials[TDM_SPECIAL_SEP], (uint8_t)which, 1});
    }
    for (size_t i = 0; i < padding; i++)
        put_added(out, pad_at + i,
                  (added_token){(uint32_t)specials[TDM_SPECIAL_PAD], this->tokenizer->pad_type, 0});
}

tdm_status tdm_encoder_encode(tdm_encoder *encoder, const tdm_text_input *inputs, int64_t count,
                              const tdm_encode_options *options, tdm_encodings *encodings)
{
    call this = {.encoder = encoder,
                 .tokenizer = encoder->tokenizer,
                 .inputs = inputs,
                 .count = count,
                 .options = options != NULL ? *options : tdm_encode_default_options(),
                 .out = encodings};
    encodings->count = 0;
    encodings->offsets = this.options.offsets;
    TDM_TRY(check_options(&this));
    tdm_status status = encode_inputs(&this);
    if (status == TDM_OK)
        status = plan_encodings(&this);
    if (status != TDM_OK) {
        encodings->count = 0;
        return status;
    }
    tdm_pool_for(encoder->pool, encodings->count, write_encoding, &this);
    return TDM_OK;
}

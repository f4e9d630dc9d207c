#include "trainer/fill_mask.h"

#include "core/memory.h"
#include "text/tokenizer.h"

#include <math.h>
#include <string.h>

struct tdm_mask_filler {
    tdm_encoder_run *run;
    tdm_encoder *encoder;
    tdm_encodings *encodings;
    uint32_t mask;
    int64_t top;
    int64_t *text_masks; /* [texts of the batch] */
    size_t text_masks_capacity;
    int64_t texts;           /* in the batch */
    tdm_mask_guess *guesses; /* [masks of the batch, top] */
    size_t guesses_capacity;
    tdm_matrix logits; /* of the batch */
    tdm_status (*answer)(void *context, const tdm_mask_answer *answer);
    void *context;
};

tdm_status tdm_mask_filler_create(tdm_encoder_run *run, int64_t top, tdm_mask_filler **out)
{
    const tdm_tokenizer *tokenizer = run->tokenizer;
    int64_t mask = tokenizer->specials[TDM_SPECIAL_MASK];
    tdm_mask_filler *filler;
    *out = NULL;
    TDM_FAIL_IF(mask < 0, TDM_E_CONFIG, "%s: has no token %s for what is to be guessed",
                run->source.from.tokenizer_path, tdm_special_names[TDM_SPECIAL_MASK]);
    TDM_TRY(tdm_alloc(1, sizeof *filler, &filler));
    filler->run = run;
    filler->mask = (uint32_t)mask;
    filler->top = top < tdm_tokenizer_size(tokenizer) ? top : tdm_tokenizer_size(tokenizer);
    tdm_status status = tdm_encoder_create(tokenizer, 1, &filler->encoder);
    if (status == TDM_OK)
        status = tdm_encodings_create(&filler->encodings);
    if (status == TDM_OK)
        *out = filler;
    else
        tdm_mask_filler_destroy(filler);
    return status;
}

void tdm_mask_filler_destroy(tdm_mask_filler *filler)
{
    if (filler == NULL)
        return;
    tdm_encodings_destroy(filler->encodings);
    tdm_encoder_destroy(filler->encoder);
    tdm_free(filler->text_masks);
    tdm_free(filler->guesses);
    tdm_free(filler);
}

/* ---- guesses --------------------------------------------------------------------------------- */

static double sum_exponentials(const float *logits, int64_t count, float largest)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += exp((double)(logits[i] - largest));
    return sum;
}

/* The largest logits first, in the place of probabilities; of equal ones the lower id. */
static void find_top(const float *logits, int64_t count, tdm_mask_guess *guesses, int64_t top)
{
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++) {
        if (found == top && logits[i] <= guesses[top - 1].probability)
            continue;
        int64_t at = found < top ? found++ : top - 1;
        for (; at > 0 && guesses[at - 1].probability < logits[i]; at--)
            guesses[at] = guesses[at - 1];
        guesses[at] = (tdm_mask_guess){.id = (uint32_t)i, .probability = logits[i]};
    }
}

static void guess(void *context, int64_t index)
{
    const tdm_mask_filler *filler = context;
    const tdm_matrix *matrix = &filler->logits;
    const float *logits = (const float *)matrix->data + index * matrix->stride;
    tdm_mask_guess *guesses = filler->guesses + index * filler->top;
    find_top(logits, matrix->columns, guesses, filler->top);
    float largest = guesses[0].probability;
    double sum = sum_exponentials(logits, matrix->columns, largest);
    for (int64_t i = 0; i < filler->top; i++)
        guesses[i].probability = (float)(exp((double)(guesses[i].probability - largest)) / sum);
}

/* Answers the texts in the batch and empties it. */
static tdm_status run_batch(tdm_mask_filler *filler)
{
    tdm_encoder_run *run = filler->run;
    int64_t masks = run->batch.predictions;
    if (filler->texts == 0)
        return TDM_OK;
    TDM_TRY(tdm_encoder_run_forward(run));
    TDM_TRY(tdm_encoder_run_output(run, "logits", masks, &filler->logits));
    TDM_TRY(tdm_grow(&filler->guesses, &filler->guesses_capacity, (size_t)(masks * filler->top),
                     sizeof *filler->guesses));
    tdm_pool_for(run->pool, masks, guess, filler);
    const tdm_mask_guess *next = filler->guesses;
    for (int64_t t = 0; t < filler->texts; t++) {
        const tdm_mask_answer answer = {
            .masks = filler->text_masks[t], .top = filler->top, .guesses = next};
        TDM_TRY(filler->answer(filler->context, &answer));
        next += answer.masks * answer.top;
    }
    filler->texts = 0;
    tdm_sequence_batch_empty(&run->batch);
    return TDM_OK;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static tdm_status check_text(const tdm_mask_filler *filler, const tdm_encoding *encoding,
                             int64_t masks)
{
    size_t bytes;
    const char *mask = tdm_tokenizer_token(filler->run->tokenizer, filler->mask, &bytes);
    TDM_FAIL_IF(masks == 0, TDM_E_DATA,
                "there is no %.*s in the text, which is how this vocabulary writes what is to be "
                "guessed",
                (int)bytes, mask);
    TDM_FAIL_IF(encoding->count > filler->run->max_length, TDM_E_DATA,
                "the text has %lld tokens, and the model takes %lld", (long long)encoding->count,
                (long long)filler->run->max_length);
    return TDM_OK;
}

static tdm_status add_text(tdm_mask_filler *filler, const tdm_encoding *encoding)
{
    tdm_sequence_batch *batch = &filler->run->batch;
    int64_t masks = 0;
    for (int64_t i = 0; i < encoding->count; i++)
        masks += encoding->ids[i] == filler->mask;
    TDM_TRY(check_text(filler, encoding, masks));
    if (!tdm_sequence_batch_has_room(batch, encoding->count, masks))
        TDM_TRY(run_batch(filler));
    TDM_TRY(tdm_grow(&filler->text_masks, &filler->text_masks_capacity, (size_t)filler->texts + 1,
                     sizeof *filler->text_masks));
    filler->text_masks[filler->texts++] = masks;
    uint32_t *ids = tdm_sequence_batch_add(batch, encoding->count, encoding->count);
    memcpy(ids, encoding->ids, (size_t)encoding->count * sizeof *ids);
    for (int64_t i = 0; i < encoding->count; i++) {
        if (encoding->ids[i] == filler->mask)
            tdm_sequence_batch_predict(batch, i, 0);
    }
    return TDM_OK;
}

static tdm_status add_texts(tdm_mask_filler *filler, int64_t count, int64_t *failed)
{
    for (int64_t i = 0; i < count; i++) {
        tdm_encoding encoding = tdm_encodings_get(filler->encodings, i);
        tdm_status status = add_text(filler, &encoding);
        if (status == TDM_E_DATA) {
            tdm_error error = {0};
            tdm_error_keep(&error, status);
            TDM_TRY(run_batch(filler));
            *failed = i;
            return tdm_error_raise(&error);
        }
        TDM_TRY(status);
    }
    return run_batch(filler);
}

tdm_status tdm_mask_filler_fill(tdm_mask_filler *filler, const tdm_text_input *texts, int64_t count,
                                tdm_status (*answer)(void *context, const tdm_mask_answer *answer),
                                void *context, int64_t *failed)
{
    tdm_encode_options options = tdm_encode_default_options();
    options.offsets = false;
    *failed = -1;
    filler->answer = answer;
    filler->context = context;
    filler->texts = 0;
    tdm_sequence_batch_empty(&filler->run->batch);
    TDM_TRY(tdm_encoder_encode(filler->encoder, texts, count, &options, filler->encodings));
    return add_texts(filler, count, failed);
}

/* Guesses for the [MASK]s of texts, by an encoder's head of masked tokens. */
#ifndef TDM_TRAINER_FILL_MASK_H
#define TDM_TRAINER_FILL_MASK_H

#include "trainer/encoder_run.h"

typedef struct tdm_mask_guess {
    uint32_t id;
    float probability; /* of all tokens */
} tdm_mask_guess;

/* The answer to a text; valid for the call. */
typedef struct tdm_mask_answer {
    int64_t masks;                 /* at least 1 */
    int64_t top;                   /* guesses for each */
    const tdm_mask_guess *guesses; /* [masks, top], the likely ones first */
} tdm_mask_answer;

typedef struct tdm_mask_filler tdm_mask_filler;

/* `run` is borrowed and has TDM_HEAD_FILL; its batch is the filler's. `top` is cut to what the
 * vocabulary has. TDM_E_CONFIG for a vocabulary that has no token for masks. */
TDM_MUST_CHECK tdm_status tdm_mask_filler_create(tdm_encoder_run *run, int64_t top,
                                                 tdm_mask_filler **out);
/* NULL is allowed. */
void tdm_mask_filler_destroy(tdm_mask_filler *filler);

/* Calls `answer` for each text in order. TDM_E_DATA for a text without a mask and for one that is
 * too long: *failed is its index then, and those before it are answered. */
TDM_MUST_CHECK tdm_status tdm_mask_filler_fill(tdm_mask_filler *filler, const tdm_text_input *texts,
                                               int64_t count,
                                               tdm_status (*answer)(void *context,
                                                                    const tdm_mask_answer *answer),
                                               void *context, int64_t *failed);

#endif

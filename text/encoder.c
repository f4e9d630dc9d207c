#include "text/encoder.h"

#include "core/memory.h"

tdm_encode_options tdm_encode_default_options(void)
{
    return (tdm_encode_options){.add_special_tokens = true, .max_length = -1, .offsets = true};
}

static void lane_deinit(tdm_encoder_lane *lane)
{
    tdm_word_ids_destroy(lane->words);
    tdm_token_list_deinit(&lane->ids);
    tdm_normalized_deinit(&lane->normalized);
    tdm_char_index_deinit(&lane->chars);
    tdm_free(lane->pieces);
    tdm_free(lane->tokens.ids);
    tdm_free(lane->tokens.words);
    tdm_free(lane->tokens.bytes);
    tdm_free(lane->tokens.chars);
}

void tdm_encoder_destroy(tdm_encoder *encoder)
{
    if (encoder == NULL)
        return;
    tdm_pool_destroy(encoder->pool);
    for (int i = 0; encoder->lanes != NULL && i < encoder->lane_count; i++)
        lane_deinit(&encoder->lanes[i]);
    tdm_free(encoder->lanes);
    tdm_free(encoder->inputs);
    tdm_free(encoder->windows[0]);
    tdm_free(encoder->windows[1]);
    tdm_free(encoder);
}

tdm_status tdm_encoder_create(const tdm_tokenizer *tokenizer, int threads, tdm_encoder **encoder)
{
    *encoder = NULL;
    TDM_FAIL_IF(threads < 0 || threads > 1024, TDM_E_ARG, "threads is %d, not 0 .. 1024", threads);
    tdm_encoder *made;
    TDM_TRY(tdm_alloc(1, sizeof *made, &made));
    made->tokenizer = tokenizer;
    tdm_status status;
    TDM_TRY_GOTO(tdm_pool_create(threads, &made->pool), fail);
    made->lane_count = tdm_pool_threads(made->pool);
    TDM_TRY_GOTO(tdm_alloc((size_t)made->lane_count, sizeof *made->lanes, &made->lanes), fail);
    for (int i = 0; i < made->lane_count; i++)
        made->lanes[i].tokenizer = tokenizer;
    *encoder = made;
    return TDM_OK;
fail:
    tdm_encoder_destroy(made);
    return status;
}

tdm_status tdm_encoder_lane_ids(tdm_encoder_lane *lane, const char *text, size_t bytes)
{
    lane->ids.count = 0;
    if (lane->words == NULL)
        TDM_TRY(tdm_word_ids_create(lane->tokenizer, &lane->words));
    return tdm_word_ids_append(lane->words, text, bytes, &lane->ids);
}

tdm_status tdm_encoder_ids(tdm_encoder *encoder, const char *text, size_t bytes,
                           const uint32_t **ids, int64_t *count)
{
    tdm_encoder_lane *lane = &encoder->lanes[0];
    TDM_TRY(tdm_encoder_lane_ids(lane, text, bytes));
    *ids = lane->ids.ids;
    *count = lane->ids.count;
    return TDM_OK;
}

#include "models/encoder.h"
#include "tests/support/check_main.h"

/* Token by token and layer by layer. */
static double count_contexts(const tdm_bert_options *options, int64_t length)
{
    double all = 0;
    for (int64_t layer = 0; layer < options->layers; layer++) {
        bool local = options->local_window > 0 && layer % options->global_every != 0;
        for (int64_t i = 0; i < length; i++) {
            for (int64_t j = 0; j < length; j++) {
                int64_t apart = i < j ? j - i : i - j;
                all += !local || apart <= options->local_window;
            }
        }
    }
    return all / (double)options->layers;
}

START_TEST(contexts_are_what_tokens_see)
{
    static const int64_t windows[] = {0, 1, 2, 5, 19, 20, 64};
    for (size_t w = 0; w < sizeof windows / sizeof windows[0]; w++) {
        for (int64_t every = 1; every <= 4; every++) {
            tdm_bert_options options = {
                .layers = 7, .local_window = windows[w], .global_every = every};
            for (int64_t length = 1; length <= 40; length++)
                ck_assert_double_eq_tol(tdm_bert_contexts(&options, length),
                                        count_contexts(&options, length), 1e-9);
        }
    }
}
END_TEST

/* bert_mini: 6 operations a weight and token, 12 n² hidden of attention in a layer, and the
 * head. */
START_TEST(work_is_that_of_the_products)
{
    tdm_bert_options options = {.layers = 4, .hidden = 256, .heads = 4};
    tdm_model_inputs inputs = {.vocabulary = 30522, .max_length = 128, .head = TDM_HEAD_MASKED};
    tdm_encoder_work work = tdm_bert_work(&options, &inputs);
    ck_assert_double_eq(work.per_token, 6.0 * 4 * 12 * 256 * 256);
    ck_assert_double_eq(work.per_token_and_context, 12.0 * 4 * 256);
    ck_assert_double_eq(work.per_prediction, 6.0 * 256 * (30522 + 256));
    ck_assert_double_eq(tdm_bert_contexts(&options, 128), 128 * 128);
}
END_TEST

TDM_CHECK_MAIN(contexts_are_what_tokens_see, work_is_that_of_the_products)

#include "models/encoder.h"

tdm_encoder_work tdm_bert_work(const tdm_bert_options *options, const tdm_model_inputs *inputs)
{
    double hidden = (double)options->hidden, layers = (double)options->layers;
    double intermediate = options->intermediate > 0 ? (double)options->intermediate : 4.0 * hidden;
    double mlp = (options->gated ? 3.0 : 2.0) * hidden * intermediate;
    tdm_encoder_work work = {
        .per_token = 6.0 * layers * (4.0 * hidden * hidden + mlp),
        .per_token_and_context = 12.0 * layers * hidden,
    };
    double head = 6.0 * hidden * (double)inputs->classes;
    switch (inputs->head) {
    case TDM_HEAD_MASKED:
    case TDM_HEAD_FILL:
        work.per_prediction = 6.0 * hidden * ((double)inputs->vocabulary + hidden);
        break;
    case TDM_HEAD_CLASSES:
    case TDM_HEAD_LABELS:
    case TDM_HEAD_REGRESSION:
        work.per_sequence = head + 6.0 * hidden * hidden;
        break;
    case TDM_HEAD_TOKEN_CLASSES:
        work.per_token += head;
        break;
    case TDM_HEAD_NONE:
        break;
    }
    return work;
}

/* Σ over the tokens of a sequence of how many lie within `window` to either side, itself
 * included. */
static double count_seen(int64_t length, int64_t window)
{
    double n = (double)length, w = (double)window;
    if (window >= length - 1)
        return n * n;
    return n + w * (w + 1) + 2 * w * (n - w - 1);
}

double tdm_bert_contexts(const tdm_bert_options *options, int64_t length)
{
    int64_t window = options->local_window, every = options->global_every;
    int64_t global = options->layers;
    if (window > 0)
        global = (options->layers + every - 1) / every;
    double share = (double)global / (double)options->layers;
    return share * count_seen(length, length) + (1 - share) * count_seen(length, window);
}

/* libtandem: load a trained run folder and predict with it.
 *
 *     tdm_predictor *predictor;
 *     if (tdm_predictor_open("runs/deepfm_criteo", NULL, &predictor) != TDM_OK)
 *         fprintf(stderr, "%s\n", tdm_error_message());
 *
 * Functions return TDM_OK or an error; tdm_error_message() then says what went wrong, on the
 * calling thread. The library never prints, exits or aborts.
 *
 * A program that handles signals must install its handlers with SA_ONSTACK (and an alternate
 * stack), or block the signals on threads that predict: oneDNN 2.6 uses memory below the stack
 * pointer, which a handler on the same stack would overwrite. */
#ifndef TANDEM_TANDEM_H
#define TANDEM_TANDEM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TDM_API        __attribute__((visibility("default")))
#define TDM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TDM_API
#define TDM_MUST_CHECK
#endif

#define TDM_VERSION "0.1.0"

/* name, number, text. Numbers never change; new ones are appended. */
#define TDM_STATUS_LIST(X)                                                                         \
    X(OK, 0, "ok")                                                                                 \
    X(E_NOMEM, 1, "out of memory")                                                                 \
    X(E_ARG, 2, "invalid argument")                                                                \
    X(E_IO, 3, "input or output failed")                                                           \
    X(E_DATA, 4, "bad data")                                                                       \
    X(E_FORMAT, 5, "damaged or foreign file")                                                      \
    X(E_VERSION, 6, "made by a newer version")                                                     \
    X(E_CONFIG, 7, "bad recipe")                                                                   \
    X(E_UNSUPPORTED, 8, "not supported")                                                           \
    X(E_DEVICE, 9, "device failed")                                                                \
    X(E_NUMERIC, 10, "not a finite number")                                                        \
    X(E_STATE, 11, "not possible in this state")                                                   \
    X(E_CANCELLED, 12, "stopped")

typedef enum tdm_status {
#define TDM_STATUS_ENUM(name, number, text) TDM_##name = number,
    TDM_STATUS_LIST(TDM_STATUS_ENUM)
#undef TDM_STATUS_ENUM
} tdm_status;

/* A short text for a status; never NULL. */
TDM_API const char *tdm_status_text(tdm_status status);

/* The detail of the last error on this thread; "" where there was none. Valid until the next call
 * into the library on this thread. */
TDM_API const char *tdm_error_message(void);

/* A model that predicts. Use one from one thread at a time. */
typedef struct tdm_predictor tdm_predictor;

typedef struct tdm_predictor_options {
    /* "best", "last" or a step; NULL: best if there is one, else the last */
    const char *checkpoint;
    int threads; /* 0: one a core */
} tdm_predictor_options;

/* Opens the run folder `run`, which a training of clicks made (task: ctr; TDM_E_UNSUPPORTED for
 * others). `options` may be NULL. The caller owns *predictor and frees it with
 * tdm_predictor_close(). */
TDM_API TDM_MUST_CHECK tdm_status tdm_predictor_open(const char *run,
                                                     const tdm_predictor_options *options,
                                                     tdm_predictor **predictor);

/* Predicts records given as text in the run's own format (for separated columns without a header
 * line, in the order that the training data had; the label may be left out where the format
 * allows). probabilities[r] answers record r, in order; NaN for a bad record. At most `capacity`
 * records are answered; *count is how many `text` held. TDM_E_ARG if that is more than `capacity`.
 */
TDM_API TDM_MUST_CHECK tdm_status tdm_predictor_predict(tdm_predictor *predictor, const char *text,
                                                        size_t text_bytes, float *probabilities,
                                                        int64_t capacity, int64_t *count);

TDM_API void tdm_predictor_close(tdm_predictor *predictor);

#ifdef __cplusplus
}
#endif
#endif

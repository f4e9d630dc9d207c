#include "cpu/kernels_attention.h"

#include <string.h>

extern const tdm_kernels tdm_kernels_baseline;
#if defined(__x86_64__)
extern const tdm_kernels tdm_kernels_avx2;
extern const tdm_kernels tdm_kernels_avx512;
extern const tdm_attention_kernels tdm_attention_avx512_bf16;
#endif

typedef struct kernels_choice {
    const tdm_kernels *kernels;
    bool supported;
} kernels_choice;

/* Widest first. */
static int list_kernels(kernels_choice choices[3])
{
    int count = 0;
#if defined(__x86_64__)
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    choices[count++] = (kernels_choice){&tdm_kernels_avx512, avx512};
    choices[count++] = (kernels_choice){&tdm_kernels_avx2, avx2};
#endif
    choices[count++] = (kernels_choice){&tdm_kernels_baseline, true};
    return count;
}

const tdm_kernels *tdm_kernels_best(void)
{
    kernels_choice choices[3];
    int count = list_kernels(choices);
    for (int i = 0; i < count; i++) {
        if (choices[i].supported)
            return choices[i].kernels;
    }
    return &tdm_kernels_baseline;
}

const tdm_kernels *tdm_kernels_named(const char *name)
{
    kernels_choice choices[3];
    int count = list_kernels(choices);
    for (int i = 0; i < count; i++) {
        if (choices[i].supported && strcmp(choices[i].kernels->name, name) == 0)
            return choices[i].kernels;
    }
    return NULL;
}

const tdm_attention_kernels *tdm_attention_kernels_bf16(void)
{
#if defined(__x86_64__)
    if (tdm_kernels_named("avx512") != NULL && __builtin_cpu_supports("avx512bf16"))
        return &tdm_attention_avx512_bf16;
#endif
    return NULL;
}

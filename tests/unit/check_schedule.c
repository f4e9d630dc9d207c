#include "tests/support/check_main.h"

#include "trainer/schedule.h"

#include <math.h>
#include <string.h>

static double factor(int type, int64_t warmup, double final, int64_t step, double progress)
{
    const tdm_schedule_options options = {.type = type, .warmup_steps = warmup, .final = final};
    return tdm_schedule_factor(&options, step, progress);
}

/* Of step `step` of `steps`. */
static double factor_of(const tdm_schedule_options *options, int64_t step, int64_t steps)
{
    return tdm_schedule_factor(options, step, (double)(step - 1) / (double)steps);
}

START_TEST(constant)
{
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 0, 0, 1, 0), 1.0);
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 0, 0, 1000, 1), 1.0);
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 4, 0.5, 1, 0), 0.25);
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 4, 0.5, 3, 0.3), 0.75);
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 4, 0.5, 4, 0.4), 1.0);
    ck_assert_double_eq(factor(TDM_SCHEDULE_CONSTANT, 4, 0.5, 5, 0.5), 1.0);
}
END_TEST

START_TEST(warmup_ends_where_decay_begins)
{
    for (int type = TDM_SCHEDULE_LINEAR; type <= TDM_SCHEDULE_COSINE; type++) {
        ck_assert_double_eq(factor(type, 10, 0.1, 1, 0.0), 0.1);
        ck_assert_double_eq(factor(type, 10, 0.1, 9, 0.08), 0.9);
        ck_assert_double_eq(factor(type, 10, 0.1, 10, 0.09), 1.0);
        ck_assert_double_eq(factor(type, 10, 0.1, 11, 0.10), 1.0);
        ck_assert_double_lt(factor(type, 10, 0.1, 12, 0.11), 1.0);
    }
}
END_TEST

START_TEST(linear_with_max_steps)
{
    const int64_t steps = 200, warmup = 20;
    for (int64_t step = warmup + 1; step <= steps; step++) {
        double expected = 1.0 - 0.9 * (double)(step - 1 - warmup) / (double)(steps - warmup);
        double got =
            factor(TDM_SCHEDULE_LINEAR, warmup, 0.1, step, (double)(step - 1) / (double)steps);
        ck_assert_double_eq_tol(got, expected, 1e-14);
    }
    ck_assert_double_eq(factor(TDM_SCHEDULE_LINEAR, 0, 0, 1, 0), 1.0);
    ck_assert_double_eq_tol(factor(TDM_SCHEDULE_LINEAR, 0, 0, 51, 0.25), 0.75, 1e-15);
    ck_assert_double_eq(factor(TDM_SCHEDULE_LINEAR, warmup, 0.1, 201, 1.0), 0.1);
}
END_TEST

START_TEST(cosine_with_max_steps)
{
    const int64_t steps = 200, warmup = 20;
    for (int64_t step = warmup + 1; step <= steps; step++) {
        double angle = acos(-1.0) * (double)(step - 1 - warmup) / (double)(steps - warmup);
        double got =
            factor(TDM_SCHEDULE_COSINE, warmup, 0.2, step, (double)(step - 1) / (double)steps);
        ck_assert_double_eq_tol(got, 0.2 + 0.8 * 0.5 * (1.0 + cos(angle)), 1e-14);
    }
    ck_assert_double_eq_tol(factor(TDM_SCHEDULE_COSINE, 0, 0, 101, 0.5), 0.5, 1e-15);
    ck_assert_double_eq(factor(TDM_SCHEDULE_COSINE, warmup, 0.2, 201, 1.0), 0.2);
}
END_TEST

/* Progress by bytes is uneven, and may stand still or reach its end early. */
START_TEST(odd_progress_stays_in_range)
{
    for (int64_t step = 1; step < 60; step++) {
        for (int tenths = -1; tenths <= 11; tenths++) {
            double got = factor(TDM_SCHEDULE_LINEAR, 20, 0.25, step, (double)tenths / 10.0);
            ck_assert_double_ge(got, step < 20 ? (double)step / 20.0 : 0.25);
            ck_assert_double_le(got, 1.0);
        }
    }
    ck_assert_double_eq(factor(TDM_SCHEDULE_LINEAR, 20, 0.25, 21, 1.0), 1.0);
    ck_assert_double_eq(factor(TDM_SCHEDULE_LINEAR, 20, 0.25, 22, 1.0), 0.25);
    ck_assert_double_eq(factor(TDM_SCHEDULE_LINEAR, 0, 0.25, 9, 0.0), 1.0);
}
END_TEST

START_TEST(wsd_with_max_steps)
{
    const tdm_schedule_options options = {
        .type = TDM_SCHEDULE_WSD, .warmup_steps = 20, .decay_share = 0.25, .final = 0.1};
    const int64_t steps = 200;
    for (int64_t step = 1; step <= steps; step++) {
        double expected = step < 20 ? (double)step / 20.0 : 1.0;
        if (step - 1 > 150)
            expected = 1.0 - 0.9 * sqrt((double)(step - 1 - 150) / 50.0);
        ck_assert_double_eq_tol(factor_of(&options, step, steps), expected, 1e-14);
    }
    ck_assert_double_eq(factor_of(&options, 21, steps), 1.0);
    ck_assert_double_eq(factor_of(&options, 151, steps), 1.0);
    ck_assert_double_lt(factor_of(&options, 152, steps), 0.9);
    ck_assert_double_eq(factor_of(&options, 201, steps), 0.1);
}
END_TEST

/* The decay that would begin within the warm-up begins at its end. */
START_TEST(wsd_behind_a_long_warmup)
{
    const tdm_schedule_options options = {
        .type = TDM_SCHEDULE_WSD, .warmup_steps = 50, .decay_share = 0.75};
    for (int64_t step = 50; step <= 100; step++) {
        double share = step <= 51 ? 0.0 : (double)(step - 51) / 50.0;
        ck_assert_double_eq_tol(factor_of(&options, step, 100), 1.0 - sqrt(share), 1e-12);
    }
}
END_TEST

START_TEST(warmup_share_of_every_type)
{
    const int64_t steps = 200;
    for (int type = TDM_SCHEDULE_CONSTANT; type <= TDM_SCHEDULE_WSD; type++) {
        const tdm_schedule_options options = {
            .type = type, .warmup_share = 0.125, .final = 0.25, .decay_share = 0.5};
        for (int64_t step = 1; step <= 26; step++)
            ck_assert_double_eq_tol(factor_of(&options, step, steps), (double)(step - 1) / 25.0,
                                    1e-15);
        double later = factor_of(&options, 113, steps), end = factor_of(&options, 201, steps);
        double behind = (112.0 - 25.0) / 175.0;
        const double expected[] = {1.0, 1.0 - 0.75 * behind,
                                   0.25 + 0.375 * (1.0 + cos(acos(-1.0) * behind)),
                                   1.0 - 0.75 * sqrt(0.12)};
        ck_assert_double_eq_tol(later, expected[type], 1e-14);
        ck_assert_double_eq(end, type == TDM_SCHEDULE_CONSTANT ? 1.0 : 0.25);
    }
}
END_TEST

START_TEST(a_warmup_longer_than_the_training)
{
    for (int type = TDM_SCHEDULE_CONSTANT; type <= TDM_SCHEDULE_WSD; type++) {
        const tdm_schedule_options steps = {.type = type, .warmup_steps = 1000, .decay_share = 0.5};
        const tdm_schedule_options share = {.type = type, .warmup_share = 1.0};
        for (int64_t step = 1; step <= 100; step++) {
            ck_assert_double_eq(factor_of(&steps, step, 100), (double)step / 1000.0);
            ck_assert_double_eq(factor_of(&share, step, 100), (double)(step - 1) / 100.0);
        }
        ck_assert_double_eq(tdm_schedule_factor(&share, 101, 1.0), 1.0);
    }
}
END_TEST

START_TEST(final_of_0_and_1)
{
    for (int type = TDM_SCHEDULE_LINEAR; type <= TDM_SCHEDULE_WSD; type++) {
        tdm_schedule_options options = {.type = type, .decay_share = 0.1, .final = 1.0};
        for (int64_t step = 1; step <= 101; step++)
            ck_assert_double_eq(factor_of(&options, step, 100), 1.0);
        options.final = 0.0;
        ck_assert_double_eq_tol(factor_of(&options, 101, 100), 0.0, 1e-16);
        ck_assert_double_gt(factor_of(&options, 100, 100), 0.0);
    }
}
END_TEST

/* Progress by bytes is uneven, and may stand still, or reach its end early. */
START_TEST(odd_progress_of_shares_stays_in_range)
{
    const tdm_schedule_options options = {
        .type = TDM_SCHEDULE_WSD, .warmup_share = 0.3, .decay_share = 0.3, .final = 0.25};
    for (int64_t step = 1; step < 60; step++) {
        for (int tenths = -1; tenths <= 11; tenths++) {
            double got = tdm_schedule_factor(&options, step, (double)tenths / 10.0);
            ck_assert_double_ge(got, tenths < 3 ? 0.0 : 0.25);
            ck_assert_double_le(got, 1.0);
        }
    }
}
END_TEST

START_TEST(resolving)
{
    tdm_schedule_options options = {.type = TDM_SCHEDULE_WSD, .warmup_share = 0.9};
    ck_assert_ok(tdm_schedule_resolve(NULL, &options));
    ck_assert_double_eq(options.decay_share, 0.1);
    options = (tdm_schedule_options){.type = TDM_SCHEDULE_WSD, .warmup_share = 0.95};
    ck_assert_fails(tdm_schedule_resolve(NULL, &options), TDM_E_CONFIG,
                    "schedule.warmup_share: with decay_share it is more than the whole training");
    options = (tdm_schedule_options){.warmup_steps = 1, .warmup_share = 0.5};
    ck_assert_fails(tdm_schedule_resolve(NULL, &options), TDM_E_CONFIG,
                    "schedule.warmup_share: warmup_steps is set too");
    options = (tdm_schedule_options){.type = TDM_SCHEDULE_LINEAR, .decay_share = 0.5};
    ck_assert_fails(tdm_schedule_resolve(NULL, &options), TDM_E_CONFIG,
                    "schedule.decay_share: only wsd has one");
    options = (tdm_schedule_options){.type = TDM_SCHEDULE_COSINE, .warmup_steps = 7};
    ck_assert_ok(tdm_schedule_resolve(NULL, &options));
    ck_assert_double_eq(options.decay_share, 0.0);
}
END_TEST

START_TEST(what_needs_progress)
{
    tdm_schedule_options options = {.type = TDM_SCHEDULE_CONSTANT, .warmup_steps = 5};
    ck_assert(!tdm_schedule_needs_progress(&options));
    options.warmup_share = 0.5;
    ck_assert(tdm_schedule_needs_progress(&options));
    options = (tdm_schedule_options){.type = TDM_SCHEDULE_WSD};
    ck_assert(tdm_schedule_needs_progress(&options));
}
END_TEST

TDM_CHECK_MAIN(constant, warmup_ends_where_decay_begins, linear_with_max_steps,
               cosine_with_max_steps, odd_progress_stays_in_range, wsd_with_max_steps,
               wsd_behind_a_long_warmup, warmup_share_of_every_type,
               a_warmup_longer_than_the_training, final_of_0_and_1,
               odd_progress_of_shares_stays_in_range, resolving, what_needs_progress)

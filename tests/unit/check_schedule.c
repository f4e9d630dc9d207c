#include "tests/support/check_main.h"

#include "trainer/schedule.h"

#include <math.h>
#include <string.h>

static double factor(int type, int64_t warmup, double final, int64_t step, double progress)
{
    const tdm_schedule_options options = {type, warmup, final};
    return tdm_schedule_factor(&options, step, progress);
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

TDM_CHECK_MAIN(constant, warmup_ends_where_decay_begins, linear_with_max_steps,
               cosine_with_max_steps, odd_progress_stays_in_range)

#include "tests/support/same_batches.h"

#include "core/file.h"
#include "core/memory.h"
#include "tests/support/check_main.h"

void tdm_check_same_batches(tdm_data_rig_options options, const char *folder)
{
    static const int threads[] = {1, 2, 4};
    char *cache;
    ck_assert_ok(tdm_format(&cache, "%s/same.cache", folder));
    tdm_given_list reference = {0};
    tdm_data_rig_run(&options, &reference);
    ck_assert_uint_gt(reference.count, 10);
    for (size_t t = 0; t < 3; t++) {
        /* without the cache, writing it, reading it */
        for (int use = 0; use < 3; use++) {
            tdm_given_list list = {0};
            options.threads = threads[t];
            options.depth = 2 + (int)t;
            options.cache_path = use == 0 ? NULL : cache;
            tdm_data_rig_run(&options, &list);
            tdm_given_same(&reference, 0, &list, true);
            tdm_given_list_free(&list);
        }
        ck_assert_ok(tdm_file_remove(cache));
    }
    tdm_given_list_free(&reference);
    tdm_free(cache);
}

void tdm_check_resumes(tdm_data_rig_options options)
{
    tdm_given_list whole = {0};
    tdm_data_rig_run(&options, &whole);
    for (size_t n = 0; n + 1 < whole.count; n++) {
        tdm_given_list first = {0}, rest = {0};
        options.start = NULL;
        options.threads = 1 + (int)(n % 3);
        options.depth = 2 + (int)(n % 4);
        tdm_data_rig_take(&options, n + 1, &first);
        options.start = &first.items[n].after;
        tdm_data_rig_run(&options, &rest);
        tdm_given_same(&whole, n + 1, &rest, true);
        tdm_given_list_free(&first);
        tdm_given_list_free(&rest);
    }
    tdm_given_list_free(&whole);
}

void tdm_check_reuse(const tdm_data_rig_options *options)
{
    tdm_data_rig rig;
    tdm_data_rig_open(options, &rig);
    tdm_data_rig_start(&rig);
    int64_t before = 0, after = 0;
    for (bool last = false; !last;) {
        tdm_delivery *delivery;
        ck_assert_ok(tdm_pipeline_next(rig.pipeline, &delivery));
        last = delivery->last;
        if (delivery->epoch_end && delivery->epoch == 15)
            before = tdm_memory_stats_get().allocations;
        if (delivery->epoch_end && delivery->epoch == 22)
            after = tdm_memory_stats_get().allocations;
        tdm_pipeline_release(rig.pipeline, delivery);
    }
    tdm_data_rig_close(&rig);
    ck_assert_int_gt(before, 0);
    ck_assert_int_eq(after, before);
}

static tdm_status try_all(const tdm_data_rig_options *options, tdm_given_list *list)
{
    tdm_data_rig rig;
    tdm_status status = tdm_data_rig_try_open(options, &rig);
    if (status == TDM_OK)
        status = tdm_data_rig_try_start(&rig);
    if (status == TDM_OK)
        status = tdm_data_rig_try_run(&rig, list);
    tdm_memory_fail_at(0, false);
    tdm_data_rig_close(&rig);
    return status;
}

void tdm_check_out_of_memory(const tdm_data_rig_options *options)
{
    tdm_given_list whole = {0};
    tdm_data_rig_run(options, &whole);
    int64_t live = tdm_memory_stats_get().live_bytes, n = 1;
    for (bool failed = true; failed && n < 20000; n++) {
        tdm_given_list list = {0};
        ck_assert_ok(tdm_grow(&list.items, &list.capacity, whole.count + 1, sizeof *list.items));
        tdm_memory_fail_at(n, false);
        tdm_status status = try_all(options, &list);
        failed = status != TDM_OK;
        if (failed)
            ck_assert_int_eq(status, TDM_E_NOMEM);
        else
            tdm_given_same(&whole, 0, &list, true);
        tdm_given_list_free(&list);
        ck_assert_int_eq(tdm_memory_stats_get().live_bytes, live);
    }
    ck_assert_int_gt(n, 100);
    ck_assert_int_lt(n, 20000);
    tdm_given_list_free(&whole);
}

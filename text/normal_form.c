#include "text/normal_form.h"

#include "core/memory.h"

#include <string.h>
#include <unicode/unorm2.h>

tdm_status tdm_characters_push(tdm_characters *characters, uint32_t code_point, uint32_t from,
                               uint32_t to)
{
    TDM_TRY(tdm_grow(&characters->items, &characters->capacity, characters->count + 1,
                     sizeof *characters->items));
    characters->items[characters->count++] =
        (tdm_character){.code_point = code_point, .from = from, .to = to};
    return TDM_OK;
}

void tdm_characters_deinit(tdm_characters *characters)
{
    tdm_free(characters->items);
    *characters = (tdm_characters){0};
}

/* Stable, and linear however many marks there are. The room behind the characters is used. */
static tdm_status sort_run(tdm_characters *characters, size_t begin, size_t end)
{
    size_t count = end - begin, places[256] = {0};
    TDM_TRY(tdm_grow(&characters->items, &characters->capacity, characters->count + count,
                     sizeof *characters->items));
    tdm_character *run = characters->items + begin;
    tdm_character *sorted = characters->items + characters->count;
    for (size_t i = 0; i < count; i++)
        places[run[i].combining_class]++;
    for (size_t class = 0, place = 0; class < 256; class ++) {
        size_t next = place + places[class];
        places[class] = place;
        place = next;
    }
    for (size_t i = 0; i < count; i++)
        sorted[places[run[i].combining_class]++] = run[i];
    memcpy(run, sorted, count * sizeof *run);
    return TDM_OK;
}

/* Canonical order of the characters from `begin` on. */
static tdm_status sort_marks(tdm_characters *characters, size_t begin)
{
    for (size_t i = begin; i < characters->count; i++) {
        bool sorted = true;
        size_t end = i;
        while (end < characters->count && characters->items[end].combining_class != 0) {
            sorted = sorted && (end == i || characters->items[end - 1].combining_class <=
                                                characters->items[end].combining_class);
            end++;
        }
        if (!sorted)
            TDM_TRY(sort_run(characters, i, end));
        if (end > i)
            i = end - 1;
    }
    return TDM_OK;
}

static tdm_status push_decomposition(tdm_unicode_mode mode, const uint32_t *parts, int count,
                                     tdm_characters *out)
{
    for (int i = 0; i < count; i++) {
        TDM_TRY(tdm_characters_push(out, parts[i], 0, 0));
        tdm_character *character = &out->items[out->count - 1];
        character->combining_class = tdm_unicode_combining_class(mode, parts[i]);
        character->added = i > 0;
    }
    return TDM_OK;
}

tdm_status tdm_characters_decompose(tdm_unicode_mode mode, const tdm_characters *in,
                                    tdm_characters *out)
{
    uint32_t parts[TDM_MAX_DECOMPOSITION];
    out->count = 0;
    for (size_t i = 0; i < in->count; i++) {
        int count = tdm_unicode_decompose(mode, in->items[i].code_point, parts);
        TDM_TRY(push_decomposition(mode, parts, count, out));
    }
    TDM_TRY(sort_marks(out, 0));
    const tdm_character *place = in->items;
    for (size_t i = 0; i < out->count; i++) {
        const tdm_character *source = out->items[i].added ? &out->items[i - 1] : place++;
        out->items[i].from = source->from;
        out->items[i].to = source->to;
    }
    return TDM_OK;
}

/* ---- composition ----------------------------------------------------------------------------- */

/* Canonical composition (Unicode, section 3.11) of the characters from `begin` on. */
static void compose_from(const UNormalizer2 *form, tdm_characters *characters, size_t begin)
{
    tdm_character *starter = NULL;
    size_t count = begin;
    int last_class = 0;
    for (size_t i = begin; i < characters->count; i++) {
        tdm_character *next = &characters->items[i];
        if (starter != NULL && (last_class == 0 || last_class < next->combining_class)) {
            UChar32 pair =
                unorm2_composePair(form, (UChar32)starter->code_point, (UChar32)next->code_point);
            if (pair >= 0) {
                starter->code_point = (uint32_t)pair;
                continue;
            }
        }
        characters->items[count] = *next;
        last_class = next->combining_class;
        if (last_class == 0)
            starter = &characters->items[count];
        count++;
    }
    characters->count = count;
}

/* Whether what lies before and what lies behind can never meet. */
static bool is_boundary(const UNormalizer2 *normalizer, uint32_t before, uint32_t behind)
{
    return unorm2_hasBoundaryBefore(normalizer, (UChar32)behind) ||
           unorm2_hasBoundaryAfter(normalizer, (UChar32)before);
}

static tdm_status compose_segment(tdm_unicode_form form, const UNormalizer2 *normalizer,
                                  const tdm_character *in, size_t count, tdm_characters *out)
{
    uint32_t parts[TDM_MAX_DECOMPOSITION];
    size_t begin = out->count;
    for (size_t i = 0; i < count; i++) {
        int part_count = form == TDM_FORM_NFC
                             ? tdm_unicode_decompose(TDM_UNICODE_CURRENT, in[i].code_point, parts)
                             : tdm_unicode_decompose_compatibly(in[i].code_point, parts);
        TDM_TRY(push_decomposition(TDM_UNICODE_CURRENT, parts, part_count, out));
    }
    TDM_TRY(sort_marks(out, begin));
    compose_from(normalizer, out, begin);
    tdm_character *result = out->items + begin;
    size_t result_count = out->count - begin;
    bool changed = result_count != count;
    for (size_t i = 0; i < count && !changed; i++)
        changed = result[i].code_point != in[i].code_point;
    for (size_t i = 0; i < result_count; i++) {
        result[i].from = in[changed ? 0 : i].from;
        result[i].to = in[changed ? count - 1 : i].to;
    }
    return TDM_OK;
}

tdm_status tdm_characters_compose(tdm_unicode_form form, const tdm_characters *in,
                                  tdm_characters *out)
{
    UErrorCode error = U_ZERO_ERROR;
    const UNormalizer2 *normalizer =
        form == TDM_FORM_NFC ? unorm2_getNFCInstance(&error) : unorm2_getNFKCInstance(&error);
    TDM_FAIL_IF(U_FAILURE(error), TDM_E_UNSUPPORTED, "ICU lacks its normalisation data: %s",
                u_errorName(error));
    out->count = 0;
    for (size_t i = 0, end; i < in->count; i = end) {
        for (end = i + 1; end < in->count; end++)
            if (is_boundary(normalizer, in->items[end - 1].code_point, in->items[end].code_point))
                break;
        TDM_TRY(compose_segment(form, normalizer, in->items + i, end - i, out));
    }
    return TDM_OK;
}

#include "trainer/batch_parts.h"

#include "core/memory.h"
#include "models/encoder.h"

#include <string.h>

/* What the elements of a tensor are of. */
typedef enum tensor_kind {
    OF_ROWS = 0,
    OF_TOKENS = 1,
    OF_PREDICTIONS = 2,
} tensor_kind;

/* The featurizers' tensors that a part has. */
static const struct {
    const char *name;
    tensor_kind kind;
} copied[] = {
    {"ids", OF_TOKENS},       {"types", OF_TOKENS},
    {"positions", OF_TOKENS}, {"mask_labels", OF_PREDICTIONS},
    {"lengths", OF_ROWS},     {"pair_labels", OF_ROWS},
    {"labels", OF_ROWS}, /* or tokens: its size tells */
};
#define COPIED ((int)(sizeof copied / sizeof copied[0]))

typedef struct tensor_copy {
    int from, to;
    tensor_kind kind;
    size_t bytes; /* of an element of its kind */
} tensor_copy;

/* Where rows, tokens and predictions of a batch begin or end. */
typedef struct batch_cursor {
    int64_t at[3];
} batch_cursor;

struct tdm_batch_parts {
    tdm_batch_layout from, part;
    bool whole; /* a batch is its own part */
    tdm_backend *backend;
    bool host_memory;
    unsigned char *host;   /* a part */
    unsigned char *device; /* the same; NULL where the device reads the host's memory */
    tensor_copy copies[COPIED];
    int copy_count;
    const tdm_batch *batch;
    const unsigned char *data;
    batch_cursor next;
};

/* ---- layouts --------------------------------------------------------------------------------- */

static int64_t elements_of(const tdm_batch_layout *layout, const char *name)
{
    int tensor = tdm_batch_layout_find(layout, name);
    return tensor < 0 ? 0 : tdm_shape_elements(&layout->tensors[tensor].shape);
}

static bool is_padded(const tdm_batch_layout *layout)
{
    return tdm_batch_layout_find(layout, "lengths") >= 0;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void add_vector(tdm_batch_layout *layout, const char *name, tdm_dtype dtype, int64_t count)
{
    tdm_batch_layout_add(layout, name, dtype, (tdm_shape){1, {count}});
}

/* A share of what a batch has, and never less than one sequence needs. */
static int64_t share_of(int64_t whole, int64_t tokens, int64_t all_tokens, int64_t least)
{
    int64_t share = whole * tokens / all_tokens + least;
    return smaller(share, whole);
}

/* Of tokens they have as many elements as there are ids, whatever their shape. */
static void add_labels(const tdm_batch_layout *from, int64_t all_tokens, int64_t tokens,
                       tdm_batch_layout *out)
{
    int labels = tdm_batch_layout_find(from, "labels");
    if (labels < 0)
        return;
    const tdm_batch_tensor *tensor = &from->tensors[labels];
    tdm_shape shape = tensor->shape;
    if (tensor->dtype == TDM_U32 && tdm_shape_elements(&shape) == all_tokens)
        shape = (tdm_shape){1, {tokens}};
    else
        shape.sizes[0] = out->batch_size;
    tdm_batch_layout_add(out, "labels", tensor->dtype, shape);
}

static void add_predictions(const tdm_batch_layout *from, int64_t tokens, int64_t all_tokens,
                            int64_t max_length, tdm_batch_layout *out)
{
    int64_t all = elements_of(from, "mask_positions");
    if (all == 0)
        return;
    int64_t most = share_of(all, tokens, all_tokens, max_length);
    add_vector(out, "mask_positions", TDM_U32, most);
    add_vector(out, "mask_labels", TDM_U32, most);
    add_vector(out, "mask_count", TDM_I64, 1);
    add_vector(out, "mask_parts", TDM_I64, (most + TDM_MASKED_PART - 1) / TDM_MASKED_PART);
    if (tdm_batch_layout_find(from, "pair_labels") >= 0)
        add_vector(out, "pair_labels", TDM_U32, out->batch_size);
}

tdm_status tdm_batch_part_layout(const tdm_batch_layout *from, int64_t tokens, int64_t max_length,
                                 tdm_batch_layout *out)
{
    int64_t all_tokens = elements_of(from, "ids");
    bool padded = is_padded(from);
    if (tokens == 0)
        tokens = all_tokens;
    TDM_FAIL_IF(tokens < max_length, TDM_E_CONFIG,
                "train.micro_batch_tokens: %lld is less than text.max_length, %lld",
                (long long)tokens, (long long)max_length);
    tokens = smaller(tokens, all_tokens);
    int64_t rows = share_of(from->batch_size, tokens, all_tokens, 1);
    if (padded) {
        rows = tokens / max_length;
        tokens = rows * max_length;
    }
    tdm_batch_layout_init(out, rows);
    out->max_tokens = tokens;
    add_vector(out, "ids", TDM_U32, tokens);
    add_vector(out, "types", TDM_U32, tokens);
    add_vector(out, "positions", TDM_U32, tokens);
    add_vector(out, "token_rows", TDM_U32, tokens);
    add_vector(out, "token_count", TDM_I64, 1);
    if (padded) {
        add_vector(out, "lengths", TDM_I32, rows);
        add_vector(out, "first_tokens", TDM_U32, rows);
    } else {
        add_vector(out, "cu_seqlens", TDM_I32, rows + 1);
    }
    add_predictions(from, tokens, all_tokens, max_length, out);
    add_labels(from, all_tokens, tokens, out);
    return TDM_OK;
}

/* ---- creating -------------------------------------------------------------------------------- */

static void list_copies(tdm_batch_parts *parts)
{
    for (int i = 0; i < COPIED; i++) {
        tensor_copy copy = {.from = tdm_batch_layout_find(&parts->from, copied[i].name),
                            .to = tdm_batch_layout_find(&parts->part, copied[i].name),
                            .kind = copied[i].kind};
        if (copy.from < 0 || copy.to < 0)
            continue;
        const tdm_batch_tensor *to = &parts->part.tensors[copy.to];
        if (copy.kind == OF_ROWS && to->shape.sizes[0] == parts->part.max_tokens)
            copy.kind = OF_TOKENS;
        int64_t count = copy.kind == OF_TOKENS ? parts->part.max_tokens : to->shape.sizes[0];
        copy.bytes = (size_t)(tdm_shape_elements(&to->shape) / count) * tdm_dtype_size(to->dtype);
        parts->copies[parts->copy_count++] = copy;
    }
}

static tdm_status allocate(tdm_batch_parts *parts)
{
    const tdm_backend_type *type = parts->backend->type;
    tdm_backend_properties properties;
    TDM_TRY(type->properties(parts->backend, &properties));
    parts->host_memory = properties.host_memory;
    if (parts->whole)
        return TDM_OK;
    TDM_TRY(type->host_alloc(parts->backend, parts->part.bytes, &parts->host));
    if (!parts->host_memory)
        TDM_TRY(type->alloc(parts->backend, parts->part.bytes, &parts->device));
    return TDM_OK;
}

tdm_status tdm_batch_parts_create(const tdm_batch_layout *from, const tdm_batch_layout *part,
                                  tdm_backend *backend, tdm_batch_parts **out)
{
    tdm_batch_parts *parts;
    *out = NULL;
    TDM_TRY(tdm_alloc(1, sizeof *parts, &parts));
    parts->from = *from;
    parts->part = *part;
    parts->backend = backend;
    parts->whole = tdm_batch_layout_find(part, "token_rows") < 0;
    tdm_status status = allocate(parts);
    if (status != TDM_OK) {
        tdm_batch_parts_destroy(parts);
        return status;
    }
    if (!parts->whole)
        list_copies(parts);
    *out = parts;
    return TDM_OK;
}

void tdm_batch_parts_destroy(tdm_batch_parts *parts)
{
    if (parts == NULL)
        return;
    const tdm_backend_type *type = parts->backend->type;
    if (parts->host != NULL)
        type->host_free(parts->backend, parts->host);
    if (parts->device != NULL)
        type->free(parts->backend, parts->device);
    tdm_free(parts);
}

int64_t tdm_batch_parts_bytes(const tdm_batch_layout *part, bool host_memory)
{
    bool whole = tdm_batch_layout_find(part, "token_rows") < 0;
    return whole ? 0 : (int64_t)part->bytes * (host_memory ? 1 : 2);
}

/* ---- cutting --------------------------------------------------------------------------------- */

static const void *from_data(const tdm_batch_parts *parts, const char *name)
{
    int tensor = tdm_batch_layout_find(&parts->from, name);
    return tensor < 0 ? NULL : tdm_batch_data(parts->batch, tensor);
}

static void *part_data(const tdm_batch_parts *parts, const char *name)
{
    int tensor = tdm_batch_layout_find(&parts->part, name);
    return tensor < 0 ? NULL : parts->host + parts->part.tensors[tensor].offset;
}

void tdm_batch_parts_begin(tdm_batch_parts *parts, const tdm_batch *batch,
                           const unsigned char *data)
{
    parts->batch = batch;
    parts->data = data;
    parts->next = (batch_cursor){{0}};
}

/* The cursor behind a row. */
static batch_cursor pass_row(const tdm_batch_parts *parts, batch_cursor cursor)
{
    const int32_t *begins = from_data(parts, "cu_seqlens");
    const int32_t *positions = from_data(parts, "mask_positions");
    int64_t row = cursor.at[OF_ROWS]++;
    if (begins == NULL)
        cursor.at[OF_TOKENS] += elements_of(&parts->from, "ids") / parts->from.batch_size;
    else
        cursor.at[OF_TOKENS] = begins[row + 1];
    if (positions == NULL)
        return cursor;
    int64_t count = *(const int64_t *)from_data(parts, "mask_count");
    int64_t *at = &cursor.at[OF_PREDICTIONS];
    while (*at < count && positions[*at] < cursor.at[OF_TOKENS])
        ++*at;
    return cursor;
}

static bool fits(const tdm_batch_parts *parts, const batch_cursor *begin, const batch_cursor *end)
{
    int64_t predictions = elements_of(&parts->part, "mask_positions");
    return end->at[OF_ROWS] - begin->at[OF_ROWS] <= parts->part.batch_size &&
           end->at[OF_TOKENS] - begin->at[OF_TOKENS] <= parts->part.max_tokens &&
           end->at[OF_PREDICTIONS] - begin->at[OF_PREDICTIONS] <= predictions;
}

/* As many rows as fit. */
static batch_cursor find_end(const tdm_batch_parts *parts, batch_cursor begin)
{
    batch_cursor end = begin;
    while (end.at[OF_ROWS] < parts->batch->rows) {
        batch_cursor behind = pass_row(parts, end);
        if (!fits(parts, &begin, &behind))
            break;
        end = behind;
    }
    return end;
}

static void copy_tensors(const tdm_batch_parts *parts, const batch_cursor *begin,
                         const batch_cursor *end)
{
    static const int common[] = {TDM_BATCH_WEIGHT, TDM_BATCH_SAMPLE, TDM_BATCH_OCCURRENCE};
    int64_t row = begin->at[OF_ROWS], rows = end->at[OF_ROWS] - row;
    for (int i = 0; i < 3; i++) {
        size_t bytes = tdm_dtype_size(parts->from.tensors[common[i]].dtype);
        memcpy(parts->host + parts->part.tensors[common[i]].offset,
               (const char *)tdm_batch_data(parts->batch, common[i]) + (size_t)row * bytes,
               (size_t)rows * bytes);
    }
    for (int i = 0; i < parts->copy_count; i++) {
        const tensor_copy *copy = &parts->copies[i];
        int64_t first = begin->at[copy->kind], count = end->at[copy->kind] - first;
        memcpy(parts->host + parts->part.tensors[copy->to].offset,
               (const char *)tdm_batch_data(parts->batch, copy->from) + (size_t)first * copy->bytes,
               (size_t)count * copy->bytes);
    }
}

static void fill_rows(uint32_t *rows, int64_t begin, int64_t end, int64_t row)
{
    for (int64_t t = begin; t < end; t++)
        rows[t] = (uint32_t)row;
}

/* Where sequences lie among the part's tokens, and of which each token is. */
static void write_spans(const tdm_batch_parts *parts, const batch_cursor *begin, int64_t rows,
                        int64_t tokens)
{
    const int32_t *begins = from_data(parts, "cu_seqlens");
    uint32_t *token_rows = part_data(parts, "token_rows");
    int64_t first_token = begin->at[OF_TOKENS];
    if (begins == NULL) {
        uint32_t *first_tokens = part_data(parts, "first_tokens");
        int64_t length = parts->part.max_tokens / parts->part.batch_size;
        for (int64_t r = 0; r < rows; r++) {
            first_tokens[r] = (uint32_t)(r * length);
            fill_rows(token_rows, r * length, (r + 1) * length, r);
        }
        return;
    }
    int32_t *cu_seqlens = part_data(parts, "cu_seqlens");
    begins += begin->at[OF_ROWS];
    for (int64_t r = 0; r < rows; r++) {
        cu_seqlens[r] = (int32_t)(begins[r] - first_token);
        fill_rows(token_rows, begins[r] - first_token, begins[r + 1] - first_token, r);
    }
    for (int64_t r = rows; r <= parts->part.batch_size; r++)
        cu_seqlens[r] = (int32_t)tokens;
}

static void write_predictions(const tdm_batch_parts *parts, const batch_cursor *begin,
                              int64_t count)
{
    const int32_t *positions = from_data(parts, "mask_positions");
    uint32_t *to = part_data(parts, "mask_positions");
    int64_t *part_counts = part_data(parts, "mask_parts");
    if (positions == NULL)
        return;
    positions += begin->at[OF_PREDICTIONS];
    for (int64_t i = 0; i < count; i++)
        to[i] = (uint32_t)(positions[i] - begin->at[OF_TOKENS]);
    *(int64_t *)part_data(parts, "mask_count") = count;
    for (int64_t p = 0; p < elements_of(&parts->part, "mask_parts"); p++) {
        int64_t left = count - p * TDM_MASKED_PART;
        part_counts[p] = left < 0 ? 0 : smaller(left, TDM_MASKED_PART);
    }
}

static void cut(const tdm_batch_parts *parts, const batch_cursor *begin, const batch_cursor *end)
{
    int64_t rows = end->at[OF_ROWS] - begin->at[OF_ROWS];
    int64_t tokens = end->at[OF_TOKENS] - begin->at[OF_TOKENS];
    *(int64_t *)(void *)(parts->host + parts->part.tensors[TDM_BATCH_ROWS].offset) = rows;
    *(int64_t *)part_data(parts, "token_count") = tokens;
    copy_tensors(parts, begin, end);
    write_spans(parts, begin, rows, tokens);
    write_predictions(parts, begin, end->at[OF_PREDICTIONS] - begin->at[OF_PREDICTIONS]);
}

static tdm_status give_part(tdm_batch_parts *parts, const unsigned char **data)
{
    const tdm_backend_type *type = parts->backend->type;
    *data = parts->host;
    if (parts->host_memory)
        return TDM_OK;
    *data = parts->device;
    return type->copy_in(parts->backend, parts->device, parts->host, parts->part.bytes, NULL);
}

tdm_status tdm_batch_parts_next(tdm_batch_parts *parts, const unsigned char **data,
                                tdm_row_range *rows)
{
    batch_cursor begin = parts->next;
    *data = NULL;
    if (begin.at[OF_ROWS] >= parts->batch->rows)
        return TDM_OK;
    if (parts->whole) {
        parts->next.at[OF_ROWS] = parts->batch->rows;
        *data = parts->data;
    } else {
        /* The part before is still being read where the device runs behind. */
        if (begin.at[OF_ROWS] > 0)
            TDM_TRY(parts->backend->type->stream_sync(parts->backend, NULL));
        parts->next = find_end(parts, begin);
        cut(parts, &begin, &parts->next);
        TDM_TRY(give_part(parts, data));
    }
    *rows = (tdm_row_range){begin.at[OF_ROWS], parts->next.at[OF_ROWS]};
    return TDM_OK;
}

#include "cpu/distinct_tiles.h"

#include "cpu/backend_cpu.h"

#define TILE_ELEMENTS 8192

static int64_t ids_of_tile(const tdm_embedding_field *field)
{
    return field->dim < TILE_ELEMENTS ? TILE_ELEMENTS / field->dim : 1;
}

int64_t tdm_distinct_tiles(const tdm_embedding_field *fields, int field_count,
                           const tdm_distinct_ids *distinct)
{
    int64_t tiles = 0;
    for (int f = 0; f < field_count; f++)
        tiles += tdm_cpu_tiles(distinct->counts[fields[f].index], ids_of_tile(&fields[f]));
    return tiles;
}

tdm_distinct_tile tdm_distinct_tile_get(const tdm_embedding_field *fields,
                                        const tdm_distinct_ids *distinct, int64_t index)
{
    for (const tdm_embedding_field *field = fields;; field++) {
        int64_t count = distinct->counts[field->index], size = ids_of_tile(field);
        int64_t tiles = tdm_cpu_tiles(count, size);
        if (index < tiles)
            return (tdm_distinct_tile){field, index * size,
                                       tdm_cpu_min(size, count - index * size)};
        index -= tiles;
    }
}

/* The distinct rows of a batch, cut into tiles. A distinct id belongs to one tile, so what is
 * computed for it does not depend on where tiles end. */
#ifndef TDM_CPU_DISTINCT_TILES_H
#define TDM_CPU_DISTINCT_TILES_H

#include "core/ops.h"

typedef struct tdm_distinct_tile {
    const tdm_embedding_field *field;
    int64_t begin, count; /* distinct ids of the field */
} tdm_distinct_tile;

/* Tiles of all fields. */
int64_t tdm_distinct_tiles(const tdm_embedding_field *fields, int field_count,
                           const tdm_distinct_ids *distinct);

/* Tile `index`, below tdm_distinct_tiles(). */
tdm_distinct_tile tdm_distinct_tile_get(const tdm_embedding_field *fields,
                                        const tdm_distinct_ids *distinct, int64_t index);

#endif

/* Initial values: drawn on the pool into a staging buffer of bounded size, and copied in from
 * there. */
#include "models/model_state.h"

#include "core/rng.h"

#include <math.h>

#define STAGING_BYTES ((size_t)8 << 20)
#define TILE_ELEMENTS 16384

typedef struct draw_job {
    tdm_philox_key key;
    tdm_init init;
    int64_t first_row; /* of the piece */
    int64_t rows;
    int64_t columns;
    int64_t tile_rows;
    bool padding_row; /* row 0 of the parameter is zero */
    float *out;
} draw_job;

/* Four of N(0, 1) (Box and Muller, 1958). */
static void draw_normals(const tdm_philox_words *words, double normals[4])
{
    for (int i = 0; i < 4; i += 2) {
        double radius = sqrt(-2.0 * log(((double)words->words[i] + 0.5) * 0x1p-32));
        double angle = 6.283185307179586 * ((double)words->words[i + 1] * 0x1p-32);
        normals[i] = radius * cos(angle);
        normals[i + 1] = radius * sin(angle);
    }
}

/* Elements [column, column + 4) of a row; those outside the bound are drawn again, from the words
 * of the next try. */
static void draw_truncated_normals(const draw_job *job, int64_t row, int64_t column, float out[4])
{
    int missing = 4;
    bool drawn[4] = {false};
    for (uint32_t try = 0; missing > 0; try++) {
        tdm_philox_words words = tdm_random4(job->key, (uint64_t)row, try, (uint32_t)(column / 4));
        double normals[4];
        draw_normals(&words, normals);
        for (int i = 0; i < 4; i++) {
            if (drawn[i] || fabs(normals[i]) >= 2.0)
                continue;
            out[i] = (float)(normals[i] * 0.5 * (double)job->init.bound);
            drawn[i] = true;
            missing--;
        }
    }
}

static void draw_uniforms(const draw_job *job, int64_t row, int64_t column, float out[4])
{
    tdm_philox_words words = tdm_random4(job->key, (uint64_t)row, 0, (uint32_t)(column / 4));
    for (int i = 0; i < 4; i++)
        out[i] = job->init.bound * (2 * tdm_uniform(words.words[i]) - 1);
}

static void draw_row(const draw_job *job, int64_t row, float *out)
{
    if (job->padding_row && row == 0) {
        for (int64_t column = 0; column < job->columns; column++)
            out[column] = 0;
        return;
    }
    for (int64_t column = 0; column < job->columns; column += 4) {
        float drawn[4] = {1, 1, 1, 1};
        if (job->init.type == TDM_INIT_UNIFORM)
            draw_uniforms(job, row, column, drawn);
        else if (job->init.type == TDM_INIT_NORMAL)
            draw_truncated_normals(job, row, column, drawn);
        int64_t left = job->columns - column;
        for (int64_t i = 0; i < 4 && i < left; i++)
            out[column + i] = drawn[i];
    }
}

static void draw_tile(void *context, int64_t tile)
{
    const draw_job *job = context;
    int64_t begin = tile * job->tile_rows;
    int64_t end = begin + job->tile_rows < job->rows ? begin + job->tile_rows : job->rows;
    for (int64_t row = begin; row < end; row++)
        draw_row(job, job->first_row + row, job->out + row * job->columns);
}

static int64_t parameter_columns(const tdm_parameter *parameter)
{
    return parameter->shape.sizes[parameter->shape.rank - 1];
}

static tdm_status draw_parameter(tdm_model *model, const tdm_parameter *parameter, float *staging,
                                 size_t staging_bytes)
{
    tdm_backend *backend = model->backend;
    int64_t columns = parameter_columns(parameter);
    int64_t rows = tdm_shape_elements(&parameter->shape) / columns;
    int64_t piece_rows = (int64_t)(staging_bytes / sizeof(float)) / columns;
    draw_job job = {
        .key = tdm_philox_make_key(model->setup.seed, TDM_PURPOSE_INIT,
                                   tdm_layer_word(parameter->name)),
        .init = parameter->init,
        .columns = columns,
        .tile_rows = columns < TILE_ELEMENTS ? TILE_ELEMENTS / columns : 1,
        .padding_row = parameter->sparse,
        .out = staging,
    };
    float *values = tdm_model_values(model, parameter);
    for (int64_t first = 0; first < rows; first += piece_rows) {
        job.first_row = first;
        job.rows = rows - first < piece_rows ? rows - first : piece_rows;
        int64_t tiles = (job.rows + job.tile_rows - 1) / job.tile_rows;
        tdm_pool_for(backend->pool, tiles, draw_tile, &job);
        TDM_TRY(backend->type->copy_in(backend, values + first * columns, staging,
                                       (size_t)(job.rows * columns) * sizeof(float), NULL));
        TDM_TRY(backend->type->stream_sync(backend, NULL));
    }
    return TDM_OK;
}

static tdm_status zero_parameter(tdm_model *model, const tdm_parameter *parameter)
{
    size_t bytes = (size_t)tdm_shape_elements(&parameter->shape) * sizeof(float);
    return model->backend->type->zero(model->backend, tdm_model_values(model, parameter), bytes,
                                      NULL);
}

/* Room for the longest row of all. */
static size_t staging_size(const tdm_model *model)
{
    size_t bytes = STAGING_BYTES;
    for (int i = 0; i < model->plan->parameters.count; i++) {
        size_t row = (size_t)parameter_columns(&model->plan->parameters.items[i]) * sizeof(float);
        if (row > bytes)
            bytes = row;
    }
    return bytes;
}

tdm_status tdm_model_init(tdm_model *model)
{
    const tdm_plan *plan = model->plan;
    tdm_backend *backend = model->backend;
    size_t staging_bytes = staging_size(model);
    float *staging = NULL;
    tdm_status status;
    TDM_FAIL_IF(!model->allocated, TDM_E_STATE, "the model's memory is not allocated");
    TDM_TRY(backend->type->host_alloc(backend, staging_bytes, &staging));
    for (int i = 0; i < plan->parameters.count; i++) {
        const tdm_parameter *parameter = &plan->parameters.items[i];
        if (parameter->init.type == TDM_INIT_ZERO)
            TDM_TRY_GOTO(zero_parameter(model, parameter), done);
        else
            TDM_TRY_GOTO(draw_parameter(model, parameter, staging, staging_bytes), done);
    }
    status = backend->type->stream_sync(backend, NULL);
done:
    backend->type->host_free(backend, staging);
    return status;
}

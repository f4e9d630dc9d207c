#include "core/memory.h"
#include "data/input_internal.h"
#include "data/paths.h"
#include "data/utf8.h"

#include <stdlib.h>
#include <string.h>

static tdm_status add_file(tdm_input *input, const char *path, double weight)
{
    /* JSON files, which name the inputs, hold UTF-8 only. */
    if (!tdm_utf8_valid(path, strlen(path))) {
        char name[512];
        tdm_printable(path, name, sizeof name);
        return tdm_fail(TDM_E_CONFIG, "%s: the name of the file is not UTF-8: rename it", name);
    }
    TDM_TRY(tdm_grow(&input->files, &input->file_capacity, (size_t)input->file_count + 1,
                     sizeof *input->files));
    tdm_input_file *file = &input->files[input->file_count];
    memset(file, 0, sizeof *file);
    TDM_TRY(tdm_strdup(path, &file->path));
    file->weight = weight;
    input->weighted = input->weighted || weight != 1;
    input->file_count++;
    return TDM_OK;
}

static tdm_status add_files(tdm_input *input, const tdm_input_options *options)
{
    tdm_strings paths;
    int64_t *origins;
    TDM_TRY(tdm_paths_expand(options->paths, &paths, &origins));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < paths.count && status == TDM_OK; i++)
        status = add_file(input, paths.items[i],
                          options->weights == NULL ? 1 : options->weights[origins[i]]);
    tdm_strings_free(&paths);
    tdm_free(origins);
    return status;
}

static int64_t choose_block_bytes(const tdm_input *input, const tdm_input_options *options)
{
    if (options->block_bytes > 0)
        return options->block_bytes;
    int64_t bytes = input->stored_bytes / ((int64_t)options->lanes * 16);
    if (bytes > TDM_BLOCK_BYTES_MAX || tdm_input_is_stdin(input))
        return TDM_BLOCK_BYTES_MAX;
    return bytes < TDM_BLOCK_BYTES_MIN ? TDM_BLOCK_BYTES_MIN : bytes;
}

/* Numbers the blocks of the files; those that have room in a block together share it. */
static void number_blocks(tdm_input *input)
{
    int64_t room = -1; /* in the last block, for the files behind it; -1: it takes none */
    size_t parts = 0;
    for (int32_t i = 0; i < input->file_count; i++) {
        tdm_input_file *file = &input->files[i];
        if (file->bytes <= room && file->weight == input->files[i - 1].weight) {
            file->first_block = input->block_count - 1;
            file->block_count = 1;
            room -= file->bytes;
            parts++;
        } else {
            file->first_block = input->block_count;
            file->block_count = (file->bytes + input->block_bytes - 1) / input->block_bytes;
            input->block_count += file->block_count;
            room = file->block_count == 1 ? input->block_bytes - file->bytes : -1;
            parts = 1;
        }
        if (parts > input->most_parts)
            input->most_parts = parts;
    }
}

static tdm_status plan_blocks(tdm_input *input, const tdm_input_options *options)
{
    input->seekable = true;
    for (int32_t i = 0; i < input->file_count; i++) {
        input->stored_bytes += input->files[i].bytes;
        input->seekable = input->seekable && input->files[i].seekable;
    }
    input->block_bytes = choose_block_bytes(input, options);
    input->block_count = -1;
    if (!input->seekable)
        return TDM_OK;
    input->block_count = 0;
    number_blocks(input);
    TDM_TRY(tdm_alloc((size_t)input->block_count, sizeof *input->block_lines, &input->block_lines));
    for (int64_t i = 0; i < input->block_count; i++)
        input->block_lines[i] = -1;
    return TDM_OK;
}

static tdm_status open_files(tdm_input *input, const tdm_input_options *options)
{
    TDM_TRY(add_files(input, options));
    TDM_TRY(tdm_alloc((size_t)input->file_count, sizeof *input->once, &input->once));
    TDM_TRY(tdm_input_look_at_files(input, options));
    bool any_bytes = false;
    for (int32_t i = 0; i < input->file_count; i++) {
        any_bytes = any_bytes || input->files[i].bytes > 0 || !input->files[i].seekable;
        input->reads_once = input->reads_once || input->once[i].source != NULL;
    }
    TDM_FAIL_IF(!any_bytes || input->format == NULL, TDM_E_DATA, "%s: is empty%s",
                input->files[0].path, input->file_count > 1 ? ", and so are all other files" : "");
    return plan_blocks(input, options);
}

tdm_status tdm_input_open(const tdm_input_options *options, tdm_input **out)
{
    *out = NULL;
    tdm_input *input;
    TDM_TRY(tdm_alloc(1, sizeof *input, &input));
    input->format = options->saved_format;
    input->max_record_bytes = options->max_record_bytes;
    input->cancel = options->cancel;
    input->eager = options->eager;
    tdm_status status = open_files(input, options);
    if (status != TDM_OK) {
        tdm_input_close(input);
        return status;
    }
    *out = input;
    return TDM_OK;
}

void tdm_input_close(tdm_input *input)
{
    if (input == NULL)
        return;
    for (int32_t i = 0; i < input->file_count; i++) {
        tdm_free(input->files[i].path);
        tdm_file_layout_deinit(&input->files[i].layout);
        if (input->once != NULL) {
            tdm_source_close(input->once[i].source);
            tdm_free(input->once[i].head);
        }
    }
    if (input->owns_format)
        tdm_record_format_destroy(input->format);
    tdm_free(input->files);
    tdm_free(input->block_lines);
    tdm_free(input->once);
    tdm_free(input);
}

const tdm_record_format *tdm_input_format(const tdm_input *input)
{
    return input->format;
}

int32_t tdm_input_file_count(const tdm_input *input)
{
    return input->file_count;
}

const tdm_input_file *tdm_input_file_get(const tdm_input *input, int32_t file)
{
    return &input->files[file];
}

bool tdm_input_seekable(const tdm_input *input)
{
    return input->seekable;
}

bool tdm_input_weighted(const tdm_input *input)
{
    return input->weighted;
}

bool tdm_input_cancelled(const tdm_input *input)
{
    return input->cancel != NULL && atomic_load(input->cancel);
}

bool tdm_input_is_stdin(const tdm_input *input)
{
    return input->reads_once;
}

int64_t tdm_input_block_bytes(const tdm_input *input)
{
    return input->block_bytes;
}

int64_t tdm_input_max_record_bytes(const tdm_input *input)
{
    return input->max_record_bytes;
}

int64_t tdm_input_block_count(const tdm_input *input)
{
    return input->block_count;
}

int64_t tdm_input_stored_bytes(const tdm_input *input)
{
    return input->stored_bytes;
}

int64_t tdm_input_epoch_bytes(const tdm_input *input)
{
    double bytes = 0;
    for (int32_t i = 0; i < input->file_count; i++)
        bytes += input->files[i].weight * (double)input->files[i].bytes;
    return (int64_t)bytes;
}

/* tar_public.c: stk_tar_* of <stoker/dataset.h>: groups members into samples, on top of tar_write.h. */
#include "allocate.h"
#include "error.h"
#include "tar_write.h"
#include <inttypes.h>
#include <stoker/dataset.h>
#include <string.h>

struct stk_tar_writer {
    stki_output *output;
    char *last; /* key of the previous sample; NULL: none */
    int64_t done;
    stk_status failed;
};

stk_status stk_tar_create(const char *path, stk_tar_writer **out, stk_error *err)
{
    stk_tar_writer *w;
    stk_status status = stki_check_given(path, "path", err);

    if (status == STK_OK)
        status = stki_check_given(out, "out", err);
    if (status != STK_OK)
        return status;
    w = stki_zalloc(sizeof *w);
    if (!w)
        return stki_fail_memory(err, sizeof *w, path);
    status = stki_output_create(path, &w->output, err);
    if (status != STK_OK)
        stki_free(w);
    else
        *out = w;
    return status;
}

static stk_status check_file(const stk_tar_writer *w, const stk_tar_file *files, int index, stk_error *err)
{
    const char *path = stki_output_path(w->output);
    const stk_tar_file *file = &files[index];
    stk_status status = stki_check_given(file->extension, "extension", err);

    if (status == STK_OK)
        status = stki_tar_check_extension(file->extension, path, err);
    if (status == STK_OK && file->size < 0)
        status = stki_fail_at(err, STK_E_BAD_ARG,
                              (stki_place){path, w->done, -1, STKI_TEXT("%" PRId64, file->size), "at least 0"},
                              "invalid size of the .%s file", file->extension);
    if (status == STK_OK && file->size > 0)
        status = stki_check_given(file->bytes, "bytes", err);
    for (int i = 0; i < index && status == STK_OK; i++)
        if (!strcmp(files[i].extension, file->extension))
            status = stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, w->done, -1, NULL, NULL},
                                  "two files of the sample have the extension .%s", file->extension);
    return status;
}

static stk_status check_sample(const stk_tar_writer *w, const char *key, const stk_tar_file *files, int file_count,
                               stk_error *err)
{
    const char *path = stki_output_path(w->output);
    stk_status status = stki_check_given(key, "key", err);

    if (status == STK_OK && file_count < 1)
        status =
            stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, w->done, -1, STKI_TEXT("%d", file_count), "at least 1"},
                         "a sample without files");
    if (status == STK_OK)
        status = stki_check_given(files, "files", err);
    if (status == STK_OK)
        status = stki_tar_check_key(key, path, w->done, err);
    if (status == STK_OK && w->last && !strcmp(w->last, key))
        status = stki_fail_at(err, STK_E_BAD_ARG, (stki_place){path, w->done, -1, key, "another key"},
                              "two consecutive samples with the same key would be read as one");
    for (int i = 0; i < file_count && status == STK_OK; i++)
        status = check_file(w, files, i, err);
    return status;
}

static stk_status append(stk_tar_writer *w, const char *key, const stk_tar_file *files, int file_count, stk_error *err)
{
    stk_status status = check_sample(w, key, files, file_count, err);
    char *last;

    if (status != STK_OK)
        return status;
    last = stki_strdup(key);
    if (!last)
        return stki_fail_memory(err, (int64_t)strlen(key) + 1, "a key");
    stki_free(w->last);
    w->last = last;
    for (int i = 0; i < file_count && status == STK_OK; i++) {
        status = stki_tar_put_header(w->output, key, files[i].extension, files[i].size, err);
        if (status == STK_OK)
            status = stki_output_lend(w->output, files[i].bytes, files[i].size, err);
        if (status == STK_OK)
            status = stki_tar_put_tail(w->output, err);
    }
    w->done++;
    return status != STK_OK ? status : stki_output_settle(w->output, err);
}

static stk_status fail_earlier(const stk_tar_writer *w, stk_error *err)
{
    return stki_fail_at(err, w->failed, (stki_place){stki_output_path(w->output), -1, -1, NULL, NULL},
                        "an earlier call failed, so the file cannot be finished");
}

stk_status stk_tar_append(stk_tar_writer *w, const char *key, const stk_tar_file *files, int file_count, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status != STK_OK)
        return status;
    return w->failed != STK_OK ? fail_earlier(w, err) : (w->failed = append(w, key, files, file_count, err));
}

stk_status stk_tar_commit(stk_tar_writer *w, stk_error *err)
{
    stk_status status = stki_check_given(w, "writer", err);

    if (status != STK_OK)
        return status;
    status = w->failed != STK_OK ? fail_earlier(w, err) : stki_tar_put_end(w->output, err);
    if (status == STK_OK) {
        status = stki_output_commit(w->output, err);
        w->output = NULL;
    }
    stk_tar_abort(w);
    return status;
}

void stk_tar_abort(stk_tar_writer *w)
{
    if (!w)
        return;
    stki_output_abort(w->output);
    stki_free(w->last);
    stki_free(w);
}

/* prep_inputs.c: see prep_inputs.h. The file `inputs` of the work folder has two 64-bit numbers per file, in the order
 * of the data set's files: the size (-1: no such file) and the modification time in ns. */
#include "prep_inputs.h"
#include "allocate.h"
#include "error.h"
#include "output.h"
#include "prep_file.h"
#include "stamp.h"
#include <inttypes.h>
#include <string.h>

/* Returns the path of the next file of the data set, possibly in `buffer`; NULL: no more. Advances *shard and *sample.
 */
static const char *next_file(const stki_prep_run *run, int *field, int *shard, int64_t *sample,
                             char buffer[STKI_RECORD_PATH])
{
    const stki_dataset *dataset = run->core->dataset;

    for (; *field < dataset->field_count; ++*field, *shard = 0) {
        if (run->core->config->fields[*field].synthetic)
            continue;
        for (; *shard < dataset->fields[*field].shard_count; ++*shard, *sample = 0) {
            const stki_reader *reader = dataset->fields[*field].shards[*shard];

            if (*sample < (reader->ops->path ? reader->count : 1))
                return stki_reader_path(reader, (*sample)++, buffer);
        }
    }
    return NULL;
}

struct input {
    int64_t size, mtime_ns;
};

static struct input look_at(const char *path)
{
    stki_stamp stamp;

    return stki_stamp_take(path, &stamp, NULL) == STK_OK ? (struct input){stamp.size, stamp.mtime_ns}
                                                         : (struct input){-1, 0};
}

static int64_t count_files(const stki_prep_run *run)
{
    char buffer[STKI_RECORD_PATH];
    int64_t count = 0, sample = 0;
    int field = 0, shard = 0;

    while (next_file(run, &field, &shard, &sample, buffer))
        count++;
    return count;
}

stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err)
{
    const int64_t count = count_files(run);
    char *path = stki_format("%s/inputs", run->work), buffer[STKI_RECORD_PATH];
    struct input *inputs = stki_zalloc_array(count + 1, sizeof *inputs);
    const char *file;
    stki_output *output;
    int64_t sample = 0;
    int field = 0, shard = 0;
    stk_status status =
        path && inputs ? STK_OK : stki_fail_memory(err, count * (int64_t)sizeof *inputs, "the list of inputs");

    for (int64_t i = 0; status == STK_OK && (file = next_file(run, &field, &shard, &sample, buffer)); i++)
        inputs[i] = look_at(file);
    if (status == STK_OK)
        status = stki_output_create(path, &output, err); /* tasks that start together write the same content */
    if (status == STK_OK) {
        status = stki_output_append(output, inputs, count * (int64_t)sizeof *inputs, err);
        if (status == STK_OK)
            status = stki_output_commit(output, err);
        else
            stki_output_abort(output);
    }
    stki_free(inputs);
    stki_free(path);
    return status;
}

static const char *input_text(const struct input *input, char *buffer, int size)
{
    return input->size < 0 ? "no such file" : stki_stamp_text(buffer, size, input->size, input->mtime_ns);
}

static stk_status fail_changed(const stki_prep_run *run, const char *file, const struct input *now,
                               const struct input *then, stk_error *err)
{
    char found[96], expected[96];

    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){file, -1, -1, input_text(now, found, sizeof found), input_text(then, expected, sizeof expected)},
        "the input has changed since the job was begun in %s: start again with --restart, or put back the file as it "
        "was, with its time",
        run->work);
}

static stk_status compare(const stki_prep_run *run, const char *inputs, int64_t count, stk_error *err)
{
    char buffer[STKI_RECORD_PATH];
    int64_t sample = 0, i = 0;
    const char *file;
    int field = 0, shard = 0;

    for (; (file = next_file(run, &field, &shard, &sample, buffer)) && i < count; i++) {
        const struct input now = look_at(file);
        struct input then;

        memcpy(&then, inputs + i * (int64_t)sizeof then, sizeof then);
        if (now.size != then.size || now.mtime_ns != then.mtime_ns)
            return fail_changed(run, file, &now, &then, err);
    }
    if (i == count && !file)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){run->work, -1, -1, STKI_TEXT("%" PRId64 " files", count_files(run)), STKI_TEXT("%" PRId64, count)},
        "the inputs have changed since the job was begun: start again with --restart");
}

stk_status stki_prep_inputs_check(const stki_prep_run *run, stk_error *err)
{
    char *path = stki_format("%s/inputs", run->work), *inputs = NULL;
    int64_t bytes = 0;
    stk_status status = path ? STK_OK : stki_fail_memory(err, 256, "a path");

    if (status == STK_OK && stki_prep_exists(path)) {
        status = stki_prep_read_file(path, &inputs, &bytes, err);
        if (status == STK_OK)
            status = compare(run, inputs, bytes / (int64_t)sizeof(struct input), err);
    }
    stki_free(inputs);
    stki_free(path);
    return status;
}

void stki_prep_inputs_fingerprint(const stki_prep_run *run, stki_u128 *print)
{
    char buffer[STKI_RECORD_PATH];
    int64_t sample = 0;
    const char *file;
    int field = 0, shard = 0;

    while ((file = next_file(run, &field, &shard, &sample, buffer)) != NULL) {
        const struct input now = look_at(file);

        stki_fingerprint_number(print, now.size);
        stki_fingerprint_number(print, now.mtime_ns);
    }
}

/* ---- inputs of a complete output ---- */

static stk_status check_times(const stki_prep_run *run, const char *output, stk_error *err)
{
    const struct input made = look_at(output);
    char buffer[STKI_RECORD_PATH], found[96], expected[96];
    int64_t sample = 0;
    const char *file;
    int field = 0, shard = 0;

    while ((file = next_file(run, &field, &shard, &sample, buffer)) != NULL) {
        const struct input now = look_at(file);

        if (now.mtime_ns > made.mtime_ns)
            return stki_fail_at(err, STK_E_MISMATCH,
                                (stki_place){file, -1, -1, input_text(&now, found, sizeof found),
                                             STKI_TEXT("a file older than %s, %s", output,
                                                       input_text(&made, expected, sizeof expected))},
                                "the input has changed since the output was made of it: --force makes it again; touch "
                                "%s if the input is the same",
                                output);
    }
    return STK_OK;
}

/* The first key that differs between two descriptions of an input. The hash of its names comes last, because it is the
 * least informative. NULL: no difference. */
static const char *differing_key(const json_t *now, const json_t *made)
{
    static const char *const keys[] = {"path", "bytes", "files", "samples", "format", "names", NULL};
    int i = 0;

    for (; keys[i]; i++) {
        const json_t *a = json_object_get(now, keys[i]), *b = json_object_get(made, keys[i]);

        if (a != b && !json_equal(a, b)) /* a key may be missing in both */
            break;
    }
    return !keys[i] && json_is_object(now) != json_is_object(made) ? keys[0] : keys[i];
}

static const char *value_text(const json_t *input, const char *key, char *buffer, int size)
{
    const json_t *value = json_object_get(input, key);

    if (strcmp(key, "names") == 0)
        return "files of other names or sizes";
    if (json_is_integer(value))
        return stki_text(buffer, size, "%" JSON_INTEGER_FORMAT " %s", json_integer_value(value), key);
    return json_is_string(value) ? json_string_value(value) : "no such input";
}

static stk_status compare_input(const json_t *now, const json_t *made, const char *output, stk_error *err)
{
    const char *key = differing_key(now, made);
    char found[40], expected[40];

    if (!key)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){json_string_value(json_object_get(now ? now : made, "path")), -1, -1,
                     value_text(now, key, found, sizeof found),
                     strcmp(key, "names") == 0 ? NULL : value_text(made, key, expected, sizeof expected)},
        "the input has changed since %s was made of it: --force makes it again", output);
}

stk_status stki_prep_inputs_same(const stki_prep_run *run, const json_t *made, const char *output, stk_error *err)
{
    json_t *now = json_array();
    stk_status status =
        now ? stki_prep_describe_inputs(run, false, now, err) : stki_fail_memory(err, 256, "the list of inputs");

    for (size_t i = 0; status == STK_OK && (i < json_array_size(now) || i < json_array_size(made)); i++)
        status = compare_input(json_array_get(now, i), json_array_get(made, i), output, err);
    json_decref(now);
    return status == STK_OK ? check_times(run, output, err) : status;
}

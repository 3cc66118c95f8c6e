/* prep_inputs.c: see prep_inputs.h. The file `inputs` of the work folder has two 64-bit numbers per file, in the order
 * of the data set's files: the size (-1: no such file) and the modification time in ns. */
#include "prep_inputs.h"
#include "allocate.h"
#include "digest.h"
#include "error.h"
#include "file.h"
#include "output.h"
#include "path.h"
#include "prep_file.h"
#include "stamp.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* A position in the list of the data set's files. */
struct files {
    int field, shard;
    int64_t sample;
    const stki_reader *reader; /* reader of the file that was returned */
    char buffer[STKI_RECORD_PATH];
};

/* Returns the path of the next file of the data set, possibly in at->buffer; NULL: no more. */
static const char *next_file(const stki_prep_run *run, struct files *at)
{
    const stki_dataset *dataset = run->core->dataset;

    for (; at->field < dataset->field_count; at->field++, at->shard = 0) {
        if (run->core->config->fields[at->field].synthetic)
            continue;
        for (; at->shard < dataset->fields[at->field].shard_count; at->shard++, at->sample = 0) {
            at->reader = dataset->fields[at->field].shards[at->shard];
            if (at->sample < (at->reader->ops->path ? at->reader->count : 1))
                return stki_reader_path(at->reader, at->sample++, at->buffer);
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

/* Uses the state of the open file, because its path may refer to another file by now. */
static struct input look_at_opened(const struct files *at, const char *path)
{
    const stki_file *file = at->reader->ops->path ? NULL : at->reader->file;

    return file && strcmp(file->path, path) == 0 ? (struct input){file->size, file->mtime_ns} : look_at(path);
}

static int64_t count_files(const stki_prep_run *run)
{
    struct files at = {0};
    int64_t count = 0;

    while (next_file(run, &at))
        count++;
    return count;
}

stk_status stki_prep_inputs_write(const stki_prep_run *run, stk_error *err)
{
    const int64_t count = count_files(run);
    char *path = stki_format("%s/inputs", run->work);
    struct input *inputs = stki_zalloc_array(count + 1, sizeof *inputs);
    const char *file;
    stki_output *output;
    struct files at = {0};
    stk_status status =
        path && inputs ? STK_OK : stki_fail_memory(err, count * (int64_t)sizeof *inputs, "the list of inputs");

    for (int64_t i = 0; status == STK_OK && (file = next_file(run, &at)); i++)
        inputs[i] = look_at_opened(&at, file);
    if (status == STK_OK)
        status = stki_output_create(path, &output, err); /* tasks that start at the same time write the same content */
    if (status == STK_OK)
        status = stki_output_end(output, stki_output_append(output, inputs, count * (int64_t)sizeof *inputs, err), err);
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
        "the input has changed since the job was started in %s: start again with the option restart, or restore the "
        "file with its modification time",
        run->work);
}

static stk_status compare(const stki_prep_run *run, const char *inputs, int64_t count, stk_error *err)
{
    struct files at = {0};
    int64_t i = 0;
    const char *file;

    for (; (file = next_file(run, &at)) && i < count; i++) {
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
        "the inputs have changed since the job was started: start again with the option restart");
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

/* ---- seen by this process ---- */

void stki_inputs_seen_fini(stki_inputs_seen *seen)
{
    stki_free(seen->places);
    *seen = (stki_inputs_seen){0};
}

static stki_input_seen *place_of(const stki_inputs_seen *seen, uint64_t name)
{
    uint64_t at = name & (uint64_t)(seen->room - 1);

    while (seen->places[at].name && seen->places[at].name != name)
        at = (at + 1) & (uint64_t)(seen->room - 1);
    return &seen->places[at];
}

/* Ensures that half of the table remains free. */
static stk_status make_room(stki_inputs_seen *seen, stk_error *err)
{
    stki_inputs_seen larger = {.count = seen->count, .room = seen->room > 0 ? 2 * seen->room : 64};

    if (2 * (seen->count + 1) <= seen->room)
        return STK_OK;
    larger.places = stki_zalloc_array(larger.room, sizeof *larger.places);
    if (!larger.places)
        return stki_fail_memory(err, larger.room * (int64_t)sizeof *larger.places, "the list of inputs");
    for (int64_t i = 0; i < seen->room; i++)
        if (seen->places[i].name)
            *place_of(&larger, seen->places[i].name) = seen->places[i];
    stki_free(seen->places);
    *seen = larger;
    return STK_OK;
}

static stk_status see(stki_inputs_seen *seen, const char *file, const struct input *now, stk_error *err)
{
    const uint64_t sum = stki_digest_64(file, (int64_t)strlen(file)), name = sum ? sum : 1;
    stki_input_seen *place;
    char found[96], expected[96];
    stk_status status = make_room(seen, err);

    if (status != STK_OK)
        return status;
    place = place_of(seen, name);
    if (!place->name) {
        *place = (stki_input_seen){name, now->size, now->mtime_ns};
        seen->count++;
    }
    if (place->size == now->size && place->mtime_ns == now->mtime_ns)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){file, -1, -1, input_text(now, found, sizeof found),
                     input_text(&(struct input){place->size, place->mtime_ns}, expected, sizeof expected)},
        "the input has changed since the job first read it: run the job again");
}

stk_status stki_prep_inputs_see(const stki_prep_run *run, bool opened, stki_u128 *print, stk_error *err)
{
    struct files at = {0};
    const char *file;
    stk_status status = STK_OK;

    while (status == STK_OK && (file = next_file(run, &at)) != NULL) {
        const struct input now = opened ? look_at_opened(&at, file) : look_at(file);

        if (print) {
            stki_fingerprint_number(print, now.size);
            stki_fingerprint_number(print, now.mtime_ns);
        }
        status = see(run->seen, file, &now, err);
    }
    return status;
}

/* ---- inputs of a complete output ---- */

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Returns a file that was written or renamed after the output was made, judging by its times; NULL: there is none. */
static const char *newer_file(const stki_prep_run *run, const char *output, struct files *at)
{
    struct stat made, now;
    const char *file;

    if (stat(output, &made) != 0)
        return NULL;
    while ((file = next_file(run, at)) != NULL)
        if (stat(file, &now) == 0 && (is_later(&now.st_mtim, &made.st_mtim) || is_later(&now.st_ctim, &made.st_mtim)))
            break;
    return file;
}

/* Returns the first key that differs between two descriptions of an input. The hash of its names comes last, because it
 * is the least informative. NULL: no difference. */
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
        return "files with different names or sizes";
    if (json_is_integer(value))
        return stki_text(buffer, size, "%" JSON_INTEGER_FORMAT " %s", json_integer_value(value), key);
    return json_is_string(value) ? json_string_value(value) : "no such input";
}

/* Returns the path of an input, which the manifest `output` stores relative to its own folder. */
static const char *path_text(const json_t *input, const char *output, char *buffer, int size)
{
    const char *path = json_string_value(json_object_get(input, "path"));

    return path ? stki_text(buffer, size, "%.*s%s", *path == '/' ? 0 : (int)(stki_base_name(output) - output), output,
                            path)
                : NULL;
}

static stk_status compare_input(const json_t *now, const json_t *made, const char *output, stk_error *err)
{
    const char *key = differing_key(now, made);
    char found[40], expected[40], path[sizeof err->file];

    if (!key)
        return STK_OK;
    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){path_text(now ? now : made, output, path, sizeof path), -1, -1,
                     value_text(now, key, found, sizeof found),
                     strcmp(key, "names") == 0 ? NULL : value_text(made, key, expected, sizeof expected)},
        "the input has changed since %s was made from it: the option force rebuilds it", output);
}

/* STK_END: the old contents are not known. */
static stk_status compare_contents(const json_t *now, const json_t *made, const char *output, stk_error *err)
{
    static const char *const keys[] = {"xxh3", "contents"};
    char path[sizeof err->file];

    for (int i = 0; i < 2; i++) {
        const json_t *found = json_object_get(now, keys[i]), *expected = json_object_get(made, keys[i]);

        if (expected)
            return json_equal(found, expected)
                       ? STK_OK
                       : stki_fail_at(
                             err, STK_E_MISMATCH,
                             (stki_place){path_text(made, output, path, sizeof path), -1, -1, json_string_value(found),
                                          json_string_value(expected)},
                             "%s: the contents have changed since %s was made from them: the option force rebuilds it",
                             keys[i], output);
    }
    return STK_END;
}

static stk_status fail_modified(const stki_prep_run *run, const json_t *input, const json_t *now, const json_t *made,
                                const char *output, stk_error *err)
{
    const int64_t bytes = json_integer_value(json_object_get(input, "bytes"));
    const bool one = json_is_integer(now) && json_is_integer(made);
    struct files at = {0};
    const char *file = one ? NULL : newer_file(run, output, &at);
    char found[96], expected[96], path[sizeof err->file];

    return stki_fail_at(
        err, STK_E_MISMATCH,
        (stki_place){file ? file : path_text(input, output, path, sizeof path), -1, -1,
                     one ? stki_stamp_text(found, sizeof found, bytes, json_integer_value(now)) : NULL,
                     one ? stki_stamp_text(expected, sizeof expected, bytes, json_integer_value(made)) : NULL},
        "the input has changed since %s was made from it: the option force rebuilds it%s", output,
        run->job->format ? "; with prep.inputs: digests, a file with the same contents is accepted" : "");
}

/* Contents are only read if necessary. */
static stk_status compare_times(const stki_prep_run *run, const json_t *now, const json_t *manifest, const char *output,
                                stk_error *err)
{
    const json_t *made = json_object_get(manifest, "inputs"),
                 *times = json_object_get(json_object_get(manifest, "run"), "inputs_modified");
    struct files at = {0};
    /* For the output of a version that did not record times. */
    const bool unchanged = json_array_size(times) < json_array_size(made) && !newer_file(run, output, &at);
    json_t *summed = NULL;
    stk_status status = STK_OK;

    for (size_t i = 0; status == STK_OK && i < json_array_size(made); i++) {
        const json_t *a = json_array_get(json_object_get(now, "modified"), i), *b = json_array_get(times, i);

        if (b && json_equal(a, b))
            continue;
        if (!summed && run->job->prep.inputs == STKI_INPUTS_DIGESTS)
            status = stki_prep_describe_inputs(run, true, &summed, err);
        if (status == STK_OK)
            status = compare_contents(json_array_get(json_object_get(summed, "inputs"), i), json_array_get(made, i),
                                      output, err);
        if (status == STK_END)
            status = !b && unchanged ? STK_OK : fail_modified(run, json_array_get(made, i), a, b, output, err);
    }
    json_decref(summed);
    return status;
}

stk_status stki_prep_inputs_same(const stki_prep_run *run, const json_t *manifest, const char *output, stk_error *err)
{
    const json_t *made = json_object_get(manifest, "inputs"), *inputs;
    json_t *now = NULL;
    stk_status status = stki_prep_describe_inputs(run, false, &now, err);

    inputs = json_object_get(now, "inputs");
    for (size_t i = 0; status == STK_OK && (i < json_array_size(inputs) || i < json_array_size(made)); i++)
        status = compare_input(json_array_get(inputs, i), json_array_get(made, i), output, err);
    if (status == STK_OK)
        status = compare_times(run, now, manifest, output, err);
    json_decref(now);
    return status;
}

/* ranks_read.c: one rank, started by a launcher. It reads a synthetic data set and records what it saw, so that
 * ranks.sh can compare that with what all ranks together should see.
 *
 *     ranks_read FOLDER STEPS [KEY=VALUE...]
 *
 * Resumes from FOLDER/state if that exists. STEPS 0 reads to the end. Writes a line "EPOCH SAMPLE" for each sample to
 * FOLDER/rank-R.PID, and prints "RANK WORLD SOURCE STEPS DIGEST". Rank 0 saves its state as FOLDER/state.new, the
 * others save theirs as FOLDER/state.R. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/stoker.h>
#include <string.h>
#include <unistd.h>

static const char config[] = "{dataset: {fields: {x: {synthetic: {count: 1003, shape: [3]}}}}, loader: "
                             "{global_batch_size: 24, order: random, seed: "
                             "8, num_epochs: 2, num_workers: 2, last_batch: pad}}";

static int fail(const stk_error *err)
{
    fprintf(stderr, "ranks_read: %s\n", err->message);
    return 1;
}

int main(int argc, char **argv)
{
    char path[1024];
    stk_loader *loader;
    stk_batch *batch;
    stk_status status = STK_OK;
    stk_digest_info digest;
    stk_error err = {0};
    const json_t *ranks;
    json_t *options;
    long steps, done = 0;
    int rank;
    FILE *out;

    if (argc < 3)
        return 2;
    steps = strtol(argv[2], NULL, 10);
    if (stk_loader_open_text(config, NULL, (const char *const *)argv + 3, argc - 3, &loader, &err) != STK_OK)
        return fail(&err);
    options = json_loads(stk_loader_options_json(loader), 0, NULL);
    ranks = json_object_get(json_object_get(options, "plan"), "ranks");
    rank = (int)json_integer_value(json_object_get(ranks, "rank"));
    snprintf(path, sizeof path, "%s/state", argv[1]);
    if (access(path, R_OK) == 0 && stk_loader_restore_file(loader, path, &err) != STK_OK)
        return fail(&err);
    snprintf(path, sizeof path, "%s/rank-%d.%d", argv[1], rank, (int)getpid());
    out = fopen(path, "w");
    if (!out)
        return 1;
    while ((steps == 0 || done < steps) && (status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        for (int64_t r = 0; r < stk_batch_rows(batch); r++)
            if (stk_batch_mask(batch)[r])
                fprintf(out, "%lld %lld\n", (long long)stk_batch_epoch(batch), (long long)stk_batch_indices(batch)[r]);
        stk_batch_release(batch);
        done++;
    }
    if (fclose(out) != 0 || status < 0)
        return fail(&err);
    if (stk_loader_digest(loader, &digest, &err) != STK_OK)
        snprintf(digest.text, sizeof digest.text, "none");
    printf("%d %lld %s %ld %s\n", rank, (long long)json_integer_value(json_object_get(ranks, "world_size")),
           json_string_value(json_object_get(ranks, "source")), done, digest.text);
    snprintf(path, sizeof path, "%s/state.%s", argv[1], rank == 0 ? "new" : (char[]){(char)('0' + rank), '\0'});
    if (stk_loader_save_file(loader, path, &err) != STK_OK)
        return fail(&err);
    json_decref(options);
    stk_loader_destroy(loader);
    return 0;
}

/* loadbench_config.c: the option table of the section `bench`, and the rules between its options. The file is read
 * twice, here for this section and by the library for its own: the library ignores ours. */
#include "loadbench_config.h"
#include "allocate.h"
#include "clock.h"
#include "error.h"
#include "loadbench_consumer.h"
#include <stoker/loader.h>
#include <string.h>
#include <unistd.h>

#define DAY (24 * 3600 * 1e9)

/* The places of those rows whose absence matters. */
enum { RAMP = 2, RUN_TIME = 3, ROW_COUNT = 9 };

static const stki_option rows[ROW_COUNT] = {
    STKI_ENUM(struct lb_bench, consumer, null, lb_consumer_words,
              "Who takes the batches: null counts them, touch reads every byte, device keeps a stream of "
              "loader.device busy for a step each"),
    STKI_TIME(struct lb_bench, step_time, 1ms, 0, DAY, "Consumer device: how long a step takes the device"),
    [RAMP] = STKI_TIME(struct lb_bench, ramp, 0.5s, 0, DAY,
                       "Time before the measurement begins; 0 where epochs or batches is given"),
    [RUN_TIME] = STKI_TIME(struct lb_bench, run_time, 3s, 0, 365 * DAY,
                           "Time of each measurement, 0 for no limit; no limit where epochs or batches is given"),
    STKI_INT(struct lb_bench, epochs, 0, 0, 1000000000, "epochs", "Whole epochs to measure, 0 for no limit"),
    STKI_INT(struct lb_bench, batches, 0, 0, 1000000000000, "batches", "Batches to measure, 0 for no limit"),
    STKI_INT(struct lb_bench, repeats, 3, 1, LB_REPEATS, "repeats",
             "Measurements, each with a loader of its own; the result is their median"),
    STKI_BOOL(struct lb_bench, limit, true, "Measure this machine's memory beside the loader, after each repeat"),
    STKI_TIME(struct lb_bench, limit_time, 0.1s, 1e6, 60e9, "Time of each of the memory measurements"),
};
const stki_option_table lb_bench_table = STKI_OPTION_TABLE("bench", rows);

/* Epochs and batches say by themselves when to stop, and at which batch to begin. */
static void settle(struct lb_bench *bench, const bool *seen)
{
    const bool counted = bench->epochs > 0 || bench->batches > 0;

    if (counted && !seen[RUN_TIME])
        bench->run_time = 0;
    if (counted && !seen[RAMP])
        bench->ramp = 0;
}

static stk_status copy_sets(const char *const *sets, int count, struct lb_config *out, stk_error *err)
{
    out->loader_sets = stki_zalloc_array(count + LB_MORE_SETS, sizeof *out->loader_sets);
    if (!out->loader_sets)
        return stki_fail_memory(err, count, "the assignments");
    for (int i = 0; i < count; i++)
        out->loader_sets[out->loader_set_count++] = sets[i];
    if (out->endless)
        out->loader_sets[out->loader_set_count++] = "loader.num_epochs=0";
    return STK_OK;
}

static char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return stki_format("%.*s", dot && dot > name ? (int)(dot - name) : (int)strlen(name), name);
}

/* A digest is of whole epochs, or of so many batches. */
static stk_status read_bench(struct lb_config *out, bool digest, stk_error *err)
{
    const stki_node *root = stki_document_root(out->document), *section = stki_node_get(root, "bench"), *num_epochs;
    bool seen[ROW_COUNT] = {false};
    stk_status status;

    stki_options_defaults(&lb_bench_table, &out->bench);
    status = stki_options_read(&lb_bench_table, section, &out->bench, seen, err);
    if (status != STK_OK)
        return status;
    num_epochs = stki_node_get(stki_node_get(root, "loader"), "num_epochs");
    out->endless = !num_epochs;
    if (digest && (!num_epochs || strcmp(num_epochs->text, "0") == 0) && out->bench.batches == 0 &&
        out->bench.epochs == 0)
        out->bench.epochs = 1;
    settle(&out->bench, seen);
    if (digest) /* time would cut the stream at another batch each time */
        out->bench.run_time = out->bench.ramp = 0;
    if (out->endless && out->bench.run_time == 0 && out->bench.epochs == 0 && out->bench.batches == 0)
        return stki_fail_node(err, section ? section : root,
                              "nothing ends this run: give bench.run_time, bench.epochs, bench.batches or "
                              "loader.num_epochs");
    return STK_OK;
}

stk_status lb_config_open(const char *path, const char *const *sets, int set_count, bool digest, struct lb_config *out,
                          stk_error *err)
{
    memset(out, 0, sizeof *out);
    out->path = path;
    out->name = name_of(path);
    if (!out->name)
        return stki_fail_memory(err, 64, "a name");
    stk_status status = stki_document_open(path, &out->document, err);
    for (int i = 0; i < set_count && status == STK_OK; i++)
        status = stki_document_set(out->document, sets[i], err);
    if (status == STK_OK) {
        stki_document_newest(out->document);
        status = stk_loader_check_file(path, sets, set_count, err);
    }
    if (status == STK_OK)
        status = read_bench(out, digest, err);
    return status == STK_OK ? copy_sets(sets, set_count, out, err) : status;
}

void lb_config_close(struct lb_config *config)
{
    stki_free(config->name);
    stki_free(config->loader_sets);
    stki_document_destroy(config->document);
    memset(config, 0, sizeof *config);
}

char *lb_path_beside(const char *path, const char *beside)
{
    const char *slash = strrchr(beside, '/');

    if (path[0] == '/' || !slash)
        return stki_strdup(path);
    return stki_format("%.*s/%s", (int)(slash - beside), beside, path);
}

char *lb_path_place(const char *path)
{
    char folder[4096];
    const char *from = path[0] == '/' || !getcwd(folder, sizeof folder) ? "" : folder;
    char *out = stki_format("%s/%s", from, path);
    size_t used = 0;

    for (const char *part = out; part && *part;) { /* rewritten in place: the result is never longer */
        const size_t length = strcspn(part, "/");
        const char *next = part + length + (part[length] == '/');
        if (length == 2 && part[0] == '.' && part[1] == '.') {
            while (used > 0 && out[--used] != '/')
                continue;
        } else if (length > 0 && !(length == 1 && part[0] == '.')) {
            out[used++] = '/';
            memmove(out + used, part, length);
            used += length;
        }
        part = next;
    }
    if (out)
        out[used] = '\0';
    return out;
}

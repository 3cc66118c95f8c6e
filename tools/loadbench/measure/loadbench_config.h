/* loadbench_config.h: the config of a run. The section `bench` is loadbench's own; all other sections are the
 * loader's. */
#ifndef LOADBENCH_CONFIG_H
#define LOADBENCH_CONFIG_H

#include "document.h"
#include "option.h"

enum { LB_REPEATS = 1000, LB_MORE_SETS = 8 /* room after the assignments of --set for those that loadbench adds */ };

/* The section `bench`. Times are in ns. run_time, epochs, batches and samples: 0 means no limit. */
struct lb_bench {
    int consumer;                                                                   /* index into lb_consumers */
    int preset;                                                                     /* index into lb_presets */
    int cache;                                                                      /* an lb_cache */
    int64_t step_time, ramp, run_time, epochs, batches, samples, repeats, interval; /* interval -1: automatic */
    bool limit;
    int64_t limit_time;
    double au_required; /* required accelerator utilization */
};

extern const stki_option_table lb_bench_table;

struct lb_source;

struct lb_config {
    const char *path;         /* borrowed */
    struct lb_source *source; /* measured instead of the config's loader; borrowed; NULL: none */
    char *name;               /* name of the file, without folder and extension */
    stki_document *document;  /* with the assignments of --set applied */
    const char **loader_sets; /* assignments for the loader: those of --set, then those added for measuring */
    int loader_set_count, given_set_count; /* number of all assignments; number of those of --set */
    bool endless;                          /* loader.num_epochs was not given, so the run does not end with the data */
    bool limit_time_unused;                /* limit_time was given, but limits are not measured */
    bool ramp_left_out;                    /* ramp was given, but is ignored because of cache: cold */
    char batch_set[64];    /* the preset's batch size as an assignment; "": no preset, or the config sets it */
    const char *intervals; /* file for interval records; NULL: none. Set by the caller */
    struct lb_bench bench;
};

/* Reads and checks the whole config without opening data. With `digest`, the run has no time limit and by default ends
 * after one epoch. */
stk_status lb_config_open(const char *path, const char *const *sets, int set_count, bool digest, struct lb_config *out,
                          stk_error *err);
/* Creates the config of a source that is not a loader. It has only the section `bench`, set by the assignments. `name`
 * is borrowed and takes the place of the path. */
stk_status lb_config_open_source(struct lb_source *source, const char *name, const char *const *sets, int set_count,
                                 struct lb_config *out, stk_error *err);
void lb_config_close(struct lb_config *config);
/* Prints the effective config in config syntax: the loader's sections as written, and `bench` with all options. */
stk_status lb_config_show(const struct lb_config *config, FILE *to, stk_error *err);

/* Returns the absolute path without ".", ".." and repeated slashes, and without resolving links; free it with
 * stki_free. NULL: out of memory. */
char *lb_path_place(const char *path);

#endif

/* loadbench_config.h: the config of a run: loadbench's own section `bench`, and the rest, which is the loader's. */
#ifndef LOADBENCH_CONFIG_H
#define LOADBENCH_CONFIG_H

#include "document.h"
#include "option.h"

enum { LB_REPEATS = 1000, LB_MORE_SETS = 8 /* room behind those of --set */ };

/* The section `bench`. Times in ns; 0 of run_time, epochs, batches: not limited by that. */
struct lb_bench {
    int consumer;                                                                   /* index into lb_consumers */
    int preset;                                                                     /* index into lb_presets */
    int cache;                                                                      /* an lb_cache */
    int64_t step_time, ramp, run_time, epochs, batches, samples, repeats, interval; /* interval -1: chosen */
    bool limit;
    int64_t limit_time;
    double au_required; /* the least accelerator utilisation that passes */
};

extern const stki_option_table lb_bench_table;

struct lb_source;

struct lb_config {
    const char *path;         /* the caller's */
    struct lb_source *source; /* what is measured instead of the loader of a config, the caller's; NULL: that loader */
    char *name;               /* of the file, without folder and ending */
    stki_document *document;  /* with everything of --set */
    const char **loader_sets; /* the assignments for the loader: those of --set, and what a measurement needs */
    int loader_set_count, given_set_count; /* those of --set come first */
    bool endless;                          /* loader.num_epochs was not given, so the data does not end the run */
    bool limit_time_unused;                /* it was asked for, and limits are not measured */
    bool ramp_left_out;                    /* it was asked for, and makes no sense with cache: cold */
    char batch_set[64];    /* the preset's batch size as an assignment; "": the config has one, or there is no preset */
    const char *intervals; /* the file that interval records go to; NULL: none. Set by the caller */
    struct lb_bench bench;
};

/* Reads and checks the whole config, without opening any data. `digest`: the run ends with whole epochs or a number of
 * batches, not by time: one epoch where the config names none. */
stk_status lb_config_open(const char *path, const char *const *sets, int set_count, bool digest, struct lb_config *out,
                          stk_error *err);
/* The config of a source that is not a loader: the section `bench` alone, with the assignments. `name` is the caller's
 * and takes the place of the path. */
stk_status lb_config_open_source(struct lb_source *source, const char *name, const char *const *sets, int set_count,
                                 struct lb_config *out, stk_error *err);
void lb_config_close(struct lb_config *config);
/* The config as it is in effect, as a config: the sections as written, `bench` complete. */
stk_status lb_config_show(const struct lb_config *config, FILE *to, stk_error *err);

/* Absolute and without ".", ".." and doubled slashes, as written: no link is followed. NULL: no memory. */
char *lb_path_place(const char *path);

#endif

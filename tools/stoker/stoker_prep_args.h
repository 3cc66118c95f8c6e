/* stoker_prep_args.h: the command line of `stoker prep`. */
#ifndef STOKER_PREP_ARGS_H
#define STOKER_PREP_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stoker/status.h>

struct st_prep_args {
    const char *file; /* path of the job */
    const char **sets;
    int set_count;
    bool dry_run, show_config, force, restart, merge, no_space_check, json_progress, quiet, help, help_options;
    const char *task; /* "i/N" as written; NULL: not given */
    long long tasks;  /* 0: not given */
    bool ignore_launcher;

    char *workers_set; /* assignment made from --workers or --jobs; one of `sets` */
};

/* Fills *out. Call st_prep_args_fini even after a failure. */
stk_status st_prep_args_read(int argc, char **argv, struct st_prep_args *out, stk_error *err);
void st_prep_args_fini(struct st_prep_args *args);
void st_prep_args_help(void);

#endif

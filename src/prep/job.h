/* job.h: a preparation job as written: its document, the option tables of `prep` and `output`, and the config of the
 * loader that produces its rows. No function here accesses data. */
#ifndef STKI_JOB_H
#define STKI_JOB_H

#include "config.h"
#include "sink.h"
#include <stoker/prep.h>

enum stki_job_inputs { STKI_INPUTS_SIZES, STKI_INPUTS_DIGESTS };
enum stki_job_on_error { STKI_JOB_FAIL, STKI_JOB_SKIP };

/* `prep`, without the loader's options */
typedef struct stki_prep_section {
    int on_error, inputs;
    int64_t piece_bytes;
    int64_t max_errors; /* -1: unlimited */
    double max_error_fraction;
    const stki_node *filter;
    const char *temporary;
} stki_prep_section;

/* `output`, without the keys of the format */
typedef struct stki_output_section {
    const char *path, *format;
    const stki_node *fields;
    int64_t shard_rows, shard_bytes; /* 0: one data set */
} stki_output_section;

typedef struct stki_job {
    /* the sources of the job, for reading it again */
    char *file, *text, *base_dir;
    char **sets;
    int set_count;

    stki_document *document; /* owns all nodes and strings below */
    stki_prep_section prep;
    stki_output_section output;
    const stki_node *stats;      /* NULL: not requested */
    json_t *requested;           /* as JSON, before any step was resolved by a pass; NULL: there was no pass */
    json_t *counted;             /* results of passes before the writing one, by field; NULL: none */
    const stki_sink_ops *format; /* NULL: no output, only statistics */
    void *format_options;        /* format->options_bytes bytes; NULL: none */
    char *path;                  /* resolved path of the output */
    char *stem;                  /* the same without the extension: NAME of NAME.manifest.json */
    char *ending;                /* ".beton"; "" if the path has none */
    char *work;                  /* the work folder */
} stki_job;

/* `sets` are copied. Exactly one of file and text must be given. */
stk_status stki_job_read(const char *file, const char *text, const char *base_dir, const char *const *sets,
                         int set_count, stki_job *job, stk_error *err);
void stki_job_fini(stki_job *job); /* a zeroed job is allowed */
/* Creates the config of the loader that produces the rows. `edit` (may be NULL) may change its document before it is
 * read. */
stk_status stki_job_loader(const stki_job *job,
                           stk_status (*edit)(void *context, stki_document *document, stk_error *err), void *context,
                           stki_loader_config **out, stk_error *err);
/* Reads the job again with these assignments in addition to its own. */
stk_status stki_job_settle(stki_job *job, char *const *sets, int count, stk_error *err);
/* Returns everything that determines the output's bytes as a new JSON object, {"PATH": VALUE} (option_print.h), with
 * paths as written. NULL: out of memory. */
json_t *stki_job_json(const stki_job *job);
/* Describes the first difference, such as "prep.seed: 7 instead of 1". Returns false if there is none. */
bool stki_job_differs(const json_t *a, const json_t *b, char *text, int size);

/* The sections of a job other than its data set, each followed by its subsections; NULL-terminated. */
extern const stki_option_table *const stki_job_sections[];

/* Returns the map of a field in output.fields; NULL: there is none. */
const stki_node *stki_job_field(const stki_job *job, const char *name);

#endif

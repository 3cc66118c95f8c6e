/* job.h: a preparation job as it is written: its document, the option tables of `prep` and `output`, and the config of
 * the loader that makes its rows. Nothing here touches data. */
#ifndef STKI_JOB_H
#define STKI_JOB_H

#include "config.h"
#include "sink.h"
#include <stoker/prep.h>

enum stki_job_inputs { STKI_INPUTS_SIZES, STKI_INPUTS_DIGESTS };
enum stki_job_on_error { STKI_JOB_FAIL, STKI_JOB_SKIP };

/* `prep`, without the options that are the loader's */
typedef struct stki_prep_section {
    int on_error, inputs;
    int64_t piece_bytes;
    int64_t max_errors; /* -1: unlimited */
    double max_error_fraction;
    const stki_node *filter;
    const char *temporary;
} stki_prep_section;

/* `output`, but for the keys of the format */
typedef struct stki_output_section {
    const char *path, *format;
    const stki_node *fields;
    int64_t shard_rows, shard_bytes; /* 0: one data set */
} stki_output_section;

typedef struct stki_job {
    /* what the job was opened from, to read it again */
    char *file, *text, *base_dir;
    char **sets;
    int set_count;

    stki_document *document; /* owns all nodes and texts below */
    stki_prep_section prep;
    stki_output_section output;
    const stki_node *stats;      /* NULL: none asked for */
    json_t *requested;           /* as JSON, before a pass settled any step; NULL: there was none */
    json_t *counted;             /* what passes before the writing one have found, by field; NULL: there was none */
    const stki_sink_ops *format; /* NULL: there is no output, statistics alone are wanted */
    void *format_options;        /* format->options_bytes of them; NULL: it has none */
    char *path;                  /* of the output, resolved */
    char *stem;                  /* the same without the format's ending: NAME of NAME.manifest.json */
    char *ending;                /* ".beton"; "" where the path has none */
    char *work;                  /* the work folder */
} stki_job;

/* `sets` are copied. Exactly one of file and text is given. */
stk_status stki_job_read(const char *file, const char *text, const char *base_dir, const char *const *sets,
                         int set_count, stki_job *job, stk_error *err);
void stki_job_fini(stki_job *job); /* fine on a zeroed one */
/* A new config of the loader that makes the rows. `edit` (NULL: none) may change its document before it is read. */
stk_status stki_job_loader(const stki_job *job,
                           stk_status (*edit)(void *context, stki_document *document, stk_error *err), void *context,
                           stki_loader_config **out, stk_error *err);
/* Reads the job again with these assignments added to its own. */
stk_status stki_job_settle(stki_job *job, char *const *sets, int count, stk_error *err);
/* What decides the output's bytes, {"PATH": VALUE} (option_print.h), with paths as they are written: new JSON. NULL: no
 * memory. */
json_t *stki_job_json(const stki_job *job);
/* Where the two first differ, "prep.seed: 7 instead of 1", into `text`; false: they don't. */
bool stki_job_differs(const json_t *a, const json_t *b, char *text, int size);

/* The sections of a job beside its data set, each with those inside it; ended by NULL. */
extern const stki_option_table *const stki_job_sections[];

/* The map of a field under output.fields; NULL: there is none. */
const stki_node *stki_job_field(const stki_job *job, const char *name);

#endif

/* core.h: the running part of a loader, shared by the handle, its workers and every lease. It is reference-counted: the
 * handle, each worker thread and each leased batch hold one reference. Memory that is used by a worker stuck in a
 * system call, or by a batch that is still held after close, therefore remains valid. Releasing the last reference
 * frees the core.
 *
 *     loader.c  the public calls          batch.c  queries on a leased batch
 *     core.c    create and destroy        fill.c   positions -> rows: the work of the ring's workers (row_maker.h)
 *     worker.c  start and stop threads    slot.c   the memory of one batch
 *     core_files.c  opens paths as readers
 *     core_order.c the samples, their order and the steps
 *     watch.c   detects files that changed after opening   feed.c   moves batches to a device */
#ifndef STKI_CORE_H
#define STKI_CORE_H

#include "config.h"
#include "descriptor.h"
#include "field_classes.h"
#include "manifest.h"
#include "option_print.h"
#include "order.h"
#include "order_quality.h"
#include "plan.h"
#include "progress.h"
#include "read_clock.h"
#include "resample.h"
#include "ring.h"
#include "slot.h"
#include "state.h"
#include "views.h"
#include "watch.h"
#include <stdio.h>
#include <stoker/loader.h>

enum { STKI_REASONS = 64 }; /* size of failed_for: failed samples are counted per status */

enum { STKI_WINDOW_TOGETHER = 256 }; /* maximum number of samples of a window converted in one call */

/* The activity of a worker. MAPPED is the conversion of memory-mapped samples, which may block on page faults. */
enum stki_stage {
    STKI_STAGE_IDLE,
    STKI_STAGE_ORDER,
    STKI_STAGE_READ,
    STKI_STAGE_MAPPED,
    STKI_STAGE_CONVERT,
    STKI_STAGE_FINISH
};

/* The state of a worker, or of the consumer's thread if it does a worker's work. Only that thread writes the clocks;
 * the alignment keeps them off the cache lines of the other workers. */
typedef struct stki_worker {
    _Alignas(128) stki_core *core;
    int number;
    stki_thread *thread;
    stk_batch *batch; /* the batch being worked on */
    stki_scratch scratch;
    stki_scratch mixed;            /* two rows of f32 */
    stki_resampler *resamplers;    /* one per plan */
    const void **pointers;         /* one per row of a tile */
    const stki_convert **converts; /* one per row of a tile */
    stki_ring_clocks clocks;
    stki_counter order_ns, read_ns, convert_ns, bytes_read, bytes_written;
    stki_read_clocks parts; /* breakdown of read_ns */
    stki_watch watch;       /* the files that the current tile reads */
    /* The worker's current activity, for stall reports. A seqlock: the worker sets since_ns to -1, then the other
     * members, then since_ns to the current time. If since_ns is the same before and after a reader reads the other
     * members, they are consistent. The path belongs to the data set, which the core keeps alive. */
    _Atomic(const char *) path; /* NULL: no file, and `record` is a step */
    stki_counter record;
    _Atomic int stage;
    stki_counter since_ns;
    int64_t read_at; /* when the clock was last read: the beginning of the interval being measured */
} stki_worker;

struct stki_core {
    int64_t fork_generation;
    int64_t opened_ns;

    /* constant after create */
    stki_loader_config *config; /* holds the effective values */
    stki_dataset *dataset;
    struct stki_open_container { /* only while opening the data set */
        const char *format;
        const struct stki_source *source;
        struct stki_container *container;
        bool arranged; /* its samples were reordered to match another field, so no other field may use it */
    } * containers;
    int container_count, *container_places; /* container_places: a hash table keyed by path (core_files.c) */
    struct stki_reader_opts *together;      /* options of all fields that read the files being opened, or NULL */
    int together_count;
    int source_count; /* number of mixed data sets; 0: a single data set */
    struct stki_core_source {
        const char *name; /* belongs to the config */
        double weight;
        int64_t first, count, share; /* number of its first sample among those of all data sets; number of samples;
                                        positions in an epoch */
    } * sources;
    stki_field_classes *classes; /* one per field */
    uint8_t *left_out; /* one flag per sample, set if unknown_class: skip excludes it; only while opening files */
    int64_t left_out_room;
    stki_manifest *lists; /* manifests named in the config; only while opening files */
    int list_count;
    bool in_place, over_samples; /* in_place: the readers return windows as samples; over_samples: a window consists of
                                    several samples (sample_windows.h) */
    const stki_field *bucket_field;  /* the field whose lengths loader.bucket_by sorts by; NULL: none */
    struct stki_source_names *names; /* file names; only while opening files (core_files.c) */
    stki_u128 pairing;               /* hash of the orders in which files were paired; 0: none */
    stki_order *order;
    stki_order_quality quality; /* for order: block */
    stki_batching batching;
    int64_t steps; /* per epoch */
    int64_t end;   /* steps of all epochs; INT64_MAX: endless */
    int64_t max_rows;
    int plan_count;
    stki_field_plan *plans;
    int view_count;
    stki_view *views;
    int tensor_count; /* tensors per batch */
    struct stki_batch_tensor *tensors;
    stki_slot_layout layout;
    int slot_count;
    stk_batch **slots;
    stki_ring *ring;
    stki_progress *progress;
    stki_print print;                     /* the lines by which saved positions are compared */
    int worker_count;                     /* number of threads; 0: inline */
    bool helps;                           /* the consumer may help (help.h) */
    int worker_slots;                     /* max(worker_count, 1), plus 1 if `helps` */
    stki_worker *workers;                 /* worker_slots entries */
    int64_t rows_per_tile, tiles_per_row; /* at least one of the two is 1: a tile is several rows, or part of a row */
    bool measures, streams; /* measures: a field has rows of varying length, which phase 0 measures; streams: a
                               conversion uses non-temporal stores */
    stk_device *device;     /* target of the batches; NULL: they stay in host memory */
    stk_device *pin;        /* device whose pinned memory holds the slots; NULL: ordinary memory */
    int pinned_slots;       /* how many of the slots are in pinned memory */
    char pin_reason[224];   /* why slots are pinned, or why not */
    int64_t device_slot_bytes;
    struct stki_feed *feed; /* NULL: no device */
    void (*destroy_feed)(struct stki_feed *feed);
    bool (*feed_has_passed)(const struct stki_feed *feed, int64_t deadline_ns);

    stki_counter failed_samples; /* does not count rows lost because their partner failed */
    const _Atomic bool *leave;   /* the loader's `cancelled`; NULL with a device, whose thread may outlive it */
    bool settles;                /* some failed samples are skipped or replaced (failed.h) */
    FILE *error_list;            /* NULL: none */
    stki_counter failed_for[STKI_REASONS], skipped,
        substituted;   /* these three count delivered batches only; failed_for is indexed by -status, [0]: any other
                          status; `skipped` includes rows lost because their partner failed */
    char apart[128];   /* keeps the members above, which are read for every tile, off the cache line of `refs` */
    stki_counter refs; /* changed for every batch */
};

/* Takes ownership of the config, even on failure. */
stk_status stki_core_create(stki_loader_config *config, stki_core **out, stk_error *err);
void stki_core_retain(stki_core *core);
/* If streams still use its memory at the deadline, a thread frees it when they have finished. NULL is allowed. */
void stki_core_release_by(stki_core *core, int64_t deadline_ns);
void stki_core_release(stki_core *core); /* never waits for streams */

/* core_order.c: sets `order`, `batching`, `steps` and `max_rows` for an open data set. */
stk_status stki_core_make_order(stki_core *core, stk_error *err);

/* loader.c: opens a loader from a config. Takes ownership of the config, even on failure. */
stk_status stki_loader_open_config(stki_loader_config *config, stk_loader **out, stk_error *err);

/* fill.c: the callbacks of the ring. */
extern const stki_ring_work stki_fill_work; /* context: the core */
/* Records an error for a row, unless that row or an earlier one already has an error. Thread-safe. */
void stki_row_fails(stki_worker *worker, int64_t row, const stk_error *error);
/* Like stki_row_fails, for a row whose partner's sample failed: the row is lost too, but does not count as a failed
 * sample. */
void stki_row_fails_with_partner(stki_worker *worker, int64_t row, const stk_error *error);
/* digest_rows.c: computes what the batch's rows contribute to the digest of the stream (loader.digest). */
stki_u128 stki_digest_rows(const stki_core *core, const stk_batch *batch);

/* explain.c: describes in plain text what the loader will do. */
void stki_explain(const stki_core *core, FILE *to);

/* worker.c */
stk_status stki_workers_start(stki_core *core, stk_error *err);
/* Stops and joins the workers. Returns the number of workers abandoned at the timeout. */
int stki_workers_stop(stki_core *core, int64_t timeout_ns);
/* Without workers: the calling thread does the ring's work until the next batch is ready or the deadline has passed. */
void stki_core_work(const stki_core *core, int64_t deadline_ns);
/* A snapshot of a worker's activity. */
typedef struct stki_doing {
    enum stki_stage stage;
    int part;         /* part of a read: enum stki_read_work; -1: none */
    const char *path; /* NULL: no file, and `record` is the step over all epochs */
    int64_t record, ns;
} stki_doing;

void stki_worker_look(const stki_worker *worker, stki_doing *out);
/* Writes "worker 2: reading images.npy record 17 for 3.2 s; …", at most `size` bytes. */
void stki_workers_report(const stki_core *core, char *to, int size);

/* fingerprint.c: the lines of `print`, and a hash of the lines whose path begins with `section` ("dataset", "loader"),
 * excluding the lines that only affect which samples fail. */
stk_status stki_core_print(const stki_core *core, stki_print *print, stk_error *err);
stki_u128 stki_core_fingerprint(const stki_core *core, const char *section);

#endif

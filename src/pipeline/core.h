/* core.h: the running part of a loader, shared by the handle, its workers and every lease. It is counted: the handle,
 * each worker thread and each batch that is out hold one reference, so that a worker stuck in a system call, or a batch
 * held after close, keeps exactly what it needs, and whoever is last frees it.
 *
 *     loader.c  the public calls          batch.c  what a lease can be asked
 *     core.c    create and destroy        fill.c   positions -> rows: what the ring's workers do (row_maker.h)
 *     worker.c  threads and their stop    slot.c   the memory of one batch
 *     core_files.c  from paths to readers
 *     core_order.c  which samples, in which order and steps
 *     watch.c   were the files still what was opened?   feed.c   the way of a batch to a device
 */
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

enum { STKI_REASONS = 64 }; /* statuses that failed samples are counted by */

enum { STKI_WINDOW_TOGETHER = 256 }; /* samples of a window that are converted in one call */

/* What a worker is doing. CONVERT of mapped samples (MAPPED) waits for their pages. */
enum stki_stage {
    STKI_STAGE_IDLE,
    STKI_STAGE_ORDER,
    STKI_STAGE_READ,
    STKI_STAGE_MAPPED,
    STKI_STAGE_CONVERT,
    STKI_STAGE_FINISH
};

/* One worker (or the caller's thread, inline). Clocks are written by it alone, padded apart from the neighbours'. */
typedef struct stki_worker {
    _Alignas(128) stki_core *core;
    int number;
    stki_thread *thread;
    stk_batch *batch; /* that it works on */
    stki_scratch scratch;
    stki_scratch mixed;            /* two rows of f32 */
    stki_resampler *resamplers;    /* one a plan */
    const void **pointers;         /* of a tile's rows */
    const stki_convert **converts; /* of the same */
    stki_ring_clocks clocks;
    stki_counter order_ns, read_ns, convert_ns, bytes_read, bytes_written;
    stki_read_clocks parts; /* of read_ns */
    stki_watch watch;       /* of the files it reads */
    /* What it is doing, for stall reports: written in this order, since_ns first as -1 and at last as the time, so that
     * who finds it unchanged behind the others has read what belongs together. The path belongs to the data set, which
     * the core keeps. */
    _Atomic(const char *) path; /* NULL: no file; the record is then a step */
    stki_counter record;
    _Atomic int stage;
    stki_counter since_ns;
} stki_worker;

struct stki_core {
    stki_counter refs;
    int64_t fork_generation;
    int64_t opened_ns;

    /* fixed after create */
    stki_loader_config *config; /* with effective values */
    stki_dataset *dataset;
    struct stki_open_container { /* only while the data set is opened */
        const char *format;
        const struct stki_source *source;
        struct stki_container *container;
        bool arranged; /* its samples are in the order of another field's: for one field only */
    } * containers;
    int container_count, *container_places; /* a hash table by path (core_files.c) */
    int source_count;                       /* data sets that are mixed; 0: there is one */
    struct stki_core_source {
        const char *name; /* belongs to the config */
        double weight;
        int64_t first, count, share; /* of its samples in the whole; samples; positions of an epoch */
    } * sources;
    stki_field_classes *classes; /* of each field */
    uint8_t *left_out;           /* a flag a sample: unknown_class: skip leaves it out; while files are opened */
    int64_t left_out_room;
    stki_manifest *lists; /* of the manifests that the config names, while files are opened */
    int list_count;
    bool in_place, over_samples; /* windows are samples that readers give, or are made of samples (sample_windows.h) */
    const stki_field *bucket_field;  /* whose lengths loader.bucket_by sorts by; NULL: none */
    struct stki_source_names *names; /* of files, while they are opened (core_files.c) */
    stki_u128 pairing;               /* of the orders that files were put in to go with others; 0: none */
    stki_order *order;
    stki_order_quality quality; /* of order: block */
    stki_batching batching;
    int64_t steps; /* of an epoch */
    int64_t end;   /* steps of all epochs; INT64_MAX: endless */
    int64_t max_rows;
    int plan_count;
    stki_field_plan *plans;
    int view_count;
    stki_view *views;
    int tensor_count; /* of a batch */
    struct stki_batch_tensor *tensors;
    stki_slot_layout layout;
    int slot_count;
    stk_batch **slots;
    stki_ring *ring;
    stki_progress *progress;              /* of the consumer */
    stki_print print;                     /* what a saved position is compared by */
    int worker_count;                     /* threads; 0: inline */
    bool helps;                           /* the consumer may work too (help.h) … */
    int worker_slots;                     /* … behind the threads; at least 1 */
    stki_worker *workers;                 /* worker_slots */
    int64_t rows_per_tile, tiles_per_row; /* one of them is 1: a tile is some rows, or a part of one */
    bool measures, streams;               /* measures: rows of some field have lengths */
    stk_device *device;                   /* where the batches go; NULL: they stay where they are */
    stk_device *pin;                      /* in whose pinned memory the slots are; NULL: ordinary memory */
    int pinned_slots;                     /* of slot_count */
    char pin_reason[160];                 /* why they are, or are not */
    int64_t device_slot_bytes;
    struct stki_feed *feed; /* NULL: no device */
    void (*destroy_feed)(struct stki_feed *feed);

    stki_counter failed_samples; /* without rows that are lost with their partner */
    const _Atomic bool *leave; /* the loader's: true when it was cancelled; NULL with a device, whose thread may stay */
    bool settles;              /* some failed samples are left out or replaced (failed.h) */
    FILE *error_list;          /* NULL: none */
    stki_counter failed_for[STKI_REASONS], skipped, substituted; /* of delivered batches; [0]: other reasons; skipped
                                                                     also counts rows lost with their partner */
};

/* Takes over the config (also when it fails). */
stk_status stki_core_create(stki_loader_config *config, stki_core **out, stk_error *err);
void stki_core_retain(stki_core *core);
void stki_core_release(stki_core *core); /* NULL is fine */

/* core_order.c: `order` and `batching`, `steps` and `max_rows`, of an open data set. */
stk_status stki_core_make_order(stki_core *core, stk_error *err);

/* loader.c: a loader from a config, which it takes over (also when it fails). */
stk_status stki_loader_open_config(stki_loader_config *config, stk_loader **out, stk_error *err);

/* fill.c: the work the ring calls for. */
extern const stki_ring_work stki_fill_work; /* its context is the core */
/* The row gets this error, unless a row before it has one or it has one already. Any thread. */
void stki_row_fails(stki_worker *worker, int64_t row, const stk_error *error);
/* The same where it is the sample of the row's partner that failed: the row is lost with it, but is no failed sample.
 */
void stki_row_fails_with_partner(stki_worker *worker, int64_t row, const stk_error *error);
/* digest_rows.c: what the batch's rows add to the digest of the stream (loader.digest). */
stki_u128 stki_digest_rows(const stki_core *core, const stk_batch *batch);

/* explain.c: what the loader is going to do, for people. */
void stki_explain(const stki_core *core, FILE *to);

/* worker.c */
stk_status stki_workers_start(stki_core *core, stk_error *err);
/* Stops and joins. Returns how many had to be abandoned. */
int stki_workers_stop(stki_core *core, int64_t timeout_ns);
/* The calling thread does the work of the ring until the deadline or the next batch: there are no workers. */
void stki_core_work(const stki_core *core, int64_t deadline_ns);
/* What a worker is doing now. */
typedef struct stki_doing {
    enum stki_stage stage;
    int part;         /* of a read: enum stki_read_work; -1: none of them */
    const char *path; /* NULL: no file; the record is then the step, over all epochs */
    int64_t record, ns;
} stki_doing;

void stki_worker_look(const stki_worker *worker, stki_doing *out);
/* "worker 2: reading images.npy record 17 for 3.2 s; …", at most `size` bytes. */
void stki_workers_report(const stki_core *core, char *to, int size);

/* fingerprint.c: the lines of `print`, and a hash of those whose path begins with `section` ("dataset", "loader") but
 * for those about failed samples. */
stk_status stki_core_print(const stki_core *core, stki_print *print, stk_error *err);
stki_u128 stki_core_fingerprint(const stki_core *core, const char *section);

#endif

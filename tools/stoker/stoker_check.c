/* stoker_check.c: see stoker_check.h. Threads claim runs of records, member by member. A run is a chunk or page that is
 * best read as a whole, or about a megabyte. A member is opened by the thread that finds no runs left in the previous
 * one, while the others wait, and released when its last run is done.
 *
 * A record is good if its values could be hashed, which reads every byte, the hash matches the stored checksum, if any,
 * and the file has not changed since it was opened. */
#include "stoker_check.h"
#include "allocate.h"
#include "error.h"
#include "grow.h"
#include "source.h"
#include "stoker_pool.h"
#include "thread.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RUN_BYTES (INT64_C(1) << 20)
#define SPARSE_BYTES (INT64_C(1) << 30)

enum { SPARSE_TIMES = 16 };

/* A member whose records are being read. */
struct part {
    int64_t member;
    stki_reader *reader; /* NULL: see `whole` */
    stk_tensor whole;    /* the only record of an array without axes */
    int64_t count, next, first_sum;
    bool has_sums;
    stki_counter bytes; /* bytes of values read so far */
    int users;          /* number of runs in progress, plus 1 while this is the current part */
};

struct run {
    struct part *part;
    int64_t first, last, filled; /* `filled`: number of fill values among the records */
};

struct crew {
    struct st_check *check;
    stki_mutex lock; /* guards the members below, check->bad and check->members */
    struct part *current;
    int64_t next_member;
    bool failed;
    stk_error error;
};

/* ---- the list of bad records ---- */

/* Takes ownership of the message. If the list is full or memory is short, the record is not listed. */
static void add_bad(struct st_bad_list *list, int64_t member, int64_t record, stk_status status, char *message)
{
    if (list->count < ST_MOST_LISTED &&
        stki_grow(&list->items, &list->room, list->count + 1, sizeof *list->items, "", NULL) == STK_OK)
        list->items[list->count++] = (struct st_bad){member, record, status, message};
    else
        stki_free(message);
}

static void note_bad(struct st_bad_list *list, const struct part *part, int64_t record, const stk_error *error)
{
    list->total++;
    add_bad(list, part->member, record, error->status, stki_strdup(error->message));
}

static void clear_bad(struct st_bad_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        stki_free(list->items[i].message);
    list->count = list->total = 0;
}

static int by_place(const void *a, const void *b)
{
    const struct st_bad *x = a, *y = b;

    return x->member != y->member   ? (x->member < y->member ? -1 : 1)
           : x->record != y->record ? (x->record < y->record ? -1 : 1)
                                    : 0;
}

/* ---- members ---- */

static void part_free(struct part *part)
{
    stki_reader_destroy(part->reader);
    stk_tensor_release(&part->whole);
    stki_free(part);
}

static const stki_reader_opts *opts_of(const struct st_check *check, int64_t member)
{
    return check->members[member].plain ? check->plain : check->opts;
}

static stk_status open_whole(const struct st_check *check, struct part *part, stk_error *err)
{
    const stki_container *c = check->container;
    stki_array array;
    stk_status status = stki_container_array(c, part->member, opts_of(check, part->member), &array, err);

    if (status != STK_OK)
        return status;
    status = stki_array_tensor(&array, c->path, &part->whole, err);
    stki_array_release(&array);
    part->count = 1;
    return status;
}

static void describe(const struct st_check *check, const struct part *part, struct st_checked *result)
{
    stki_reader of_one = {.dtype = part->whole.dtype};

    stki_sums_how(part->reader ? part->reader : &of_one, opts_of(check, part->member), result->how);
    result->count = part->count;
    result->read = true;
}

static stk_status find_sums(const struct st_check *check, struct part *part, struct st_checked *result, stk_error *err)
{
    stk_status status;

    if (!check->sums)
        return STK_OK;
    status = stki_sums_find(check->sums, check->container->members[part->member].name, result->how, part->count,
                            &part->first_sum, err);
    if (status == STK_E_NOT_FOUND && !check->sums_required)
        return STK_OK;
    part->has_sums = result->has_sums = status == STK_OK;
    return status;
}

static stk_status open_member(const struct st_check *check, struct part *part, stk_error *err)
{
    const stki_member *m = &check->container->members[part->member];
    struct st_checked *result = &check->members[part->member];
    stk_status status;

    result->plain =
        check->plain && stki_source_check_member(check->opts, check->container, part->member, NULL) != STK_OK;
    if (m->kind == STKI_MEMBER_ARRAY && m->ndim == 0) {
        status = open_whole(check, part, err);
    } else {
        status =
            stki_container_reader(check->container, part->member, opts_of(check, part->member), &part->reader, err);
        part->count = status != STK_OK ? 0 : part->reader->count;
    }
    if (status != STK_OK)
        return status;
    describe(check, part, result);
    status = find_sums(check, part, result, err);
    if (status == STK_OK && check->keep) {
        result->sums = stki_zalloc_array(part->count + 1, sizeof *result->sums);
        if (!result->sums)
            status = stki_fail_memory(err, part->count * 8, "checksums");
    }
    return status;
}

/* Whether the member is checked. Members without values are not, except those that stoker cannot read. */
static bool is_wanted(const struct st_check *check, int64_t member)
{
    const stki_member *m = &check->container->members[member];

    return (check->only < 0 || member == check->only) && (m->kind != STKI_MEMBER_OTHER || m->status != STK_OK);
}

/* Makes the next readable member the current one. Returns false if there is none. */
static bool next_part(struct crew *crew)
{
    struct st_check *check = crew->check;
    const stki_container *c = check->container;

    while (crew->next_member < c->member_count) {
        int64_t member = crew->next_member++;
        struct part *part;
        stk_error error;

        if (!is_wanted(check, member))
            continue;
        part = stki_zalloc(sizeof *part);
        if (!part) {
            crew->failed = true;
            (void)stki_fail_memory(&crew->error, sizeof *part, "a member");
            return false;
        }
        part->member = member;
        if (open_member(check, part, &error) == STK_OK) {
            part->users = 1;
            crew->current = part;
            return true;
        }
        check->members[member].refused = error.status;
        check->members[member].why = stki_strdup(error.message);
        part_free(part);
    }
    return false;
}

static void let_go(struct part *part)
{
    if (--part->users == 0)
        part_free(part);
}

static int64_t end_of_run(const struct part *part)
{
    const stki_reader *r = part->reader;
    int64_t length = 1, low = 0, high;

    if (!r)
        return part->count;
    if (r->unit_first) { /* the first unit that starts after `next` */
        for (high = r->unit_count; low < high;) {
            int64_t middle = low + (high - low) / 2;

            if (r->unit_first[middle] > part->next)
                high = middle;
            else
                low = middle + 1;
        }
        return r->unit_first[low];
    }
    if (r->unit_length > 0)
        length = r->unit_length - part->next % r->unit_length;
    else if (r->max_bytes < RUN_BYTES)
        length = RUN_BYTES / (r->max_bytes > 16 ? r->max_bytes : 16);
    return length < part->count - part->next ? part->next + length : part->count;
}

/* Returns the end of the run of fill values that starts at record `i`, or `i` if that is not a fill value. Fill values
 * need no check, and there can be any number of them. */
static int64_t filled_until(const struct st_check *check, const struct part *part, int64_t i)
{
    const stki_reader *r = part->reader;

    return r && r->ops->filled_until && !part->has_sums && !check->keep ? r->ops->filled_until(r, i) : i;
}

/* Whether the records read so far have many times more bytes than the file stores: a small file can have large records
 * that consist mostly of fill values. */
static bool is_too_sparse(const struct part *part)
{
    const int64_t stored = part->reader ? part->reader->stored_bytes : 0, bytes = stki_counted(&part->bytes);

    return stored > 0 && bytes >= SPARSE_BYTES && bytes / SPARSE_TIMES >= stored;
}

/* Ends the check of a member that would take too long. */
static bool give_up_sparse(struct st_check *check, struct part *part)
{
    struct st_checked *result = &check->members[part->member];
    stk_error error;

    if (!is_too_sparse(part))
        return false;
    if (!result->refused) {
        result->refused = stki_fail_at(
            &error, STK_E_LIMIT,
            (stki_place){check->container->path, -1, -1, STKI_TEXT("more than %d times the stored size", SPARSE_TIMES),
                         STKI_TEXT("%" PRId64 " bytes, the stored size", part->reader->stored_bytes)},
            "%s: consists almost entirely of fill values, so only a part of it was checked",
            check->container->members[part->member].name);
        result->why = stki_strdup(error.message);
    }
    part->next = part->count;
    return true;
}

/* Skips records without bytes, and fill values. */
static bool skip_unstored(struct st_check *check, struct part *part)
{
    const stki_reader *r = part->reader;
    int64_t next = part->next;

    if (r && r->max_bytes == 0 && !r->variable && !part->has_sums && !check->keep) {
        part->next = part->count;
    } else {
        part->next = filled_until(check, part, next);
        check->members[part->member].filled += part->next - next;
    }
    stki_count(&check->records, part->next - next);
    return part->next > next;
}

static bool claim(struct crew *crew, struct run *out)
{
    bool found = false;

    stki_lock(&crew->lock);
    while (!found && !crew->failed) {
        struct part *part = crew->current;

        if (part && part->next < part->count) {
            if (give_up_sparse(crew->check, part) || skip_unstored(crew->check, part))
                continue;
            *out = (struct run){part, part->next, end_of_run(part), 0};
            part->next = out->last;
            part->users++;
            found = true;
            continue;
        }
        crew->current = NULL;
        if (part)
            let_go(part);
        if (!next_part(crew))
            break;
    }
    stki_unlock(&crew->lock);
    return found;
}

/* ---- records ---- */

static stk_status check_values(struct st_check *check, const struct part *part, int64_t record, const stk_tensor *t,
                               stk_error *err)
{
    uint64_t sum = stki_sums_of(t);

    stki_count(&check->bytes, stk_tensor_nbytes(t));
    stki_count((stki_counter *)(uintptr_t)&part->bytes, stk_tensor_nbytes(t));
    if (check->keep)
        check->members[part->member].sums[record] = sum;
    return part->has_sums ? stki_sums_check(check->sums, part->first_sum, record, sum,
                                            part->reader ? part->reader->path : check->container->path, err)
                          : STK_OK;
}

static stk_status check_record(struct st_check *check, const struct part *part, int64_t record, stki_scratch *scratch,
                               stk_error *err)
{
    stk_tensor sample;
    stk_status status;

    if (!part->reader)
        return check_values(check, part, record, &part->whole, err);
    status = part->reader->ops->read(part->reader, record, NULL, scratch, &sample, err);
    if (status != STK_OK)
        return status;
    status = check_values(check, part, record, &sample, err);
    stki_reader_done(part->reader, &sample);
    return status;
}

static stk_status intact(const struct part *part, const stki_file *file, int64_t record, stk_error *err)
{
    return part->reader && part->reader->file ? stki_reader_intact(part->reader, record, err)
                                              : stki_file_intact(file, record, err);
}

/* After record `i` failed with `status`, returns the end of the records that fail for the same reason. These need not
 * be read once enough bad records are listed. With checksums, every record is compared on its own. */
static int64_t failed_until(const struct st_check *check, const struct run *run, int64_t i, stk_status status,
                            const struct st_bad_list *bad)
{
    const stki_reader *r = run->part->reader;
    int64_t last;

    if (!r || !r->ops->fails_until || status != STK_E_CORRUPT || run->part->has_sums || check->keep ||
        stki_counted(&check->bad_count) + bad->total < ST_MOST_LISTED)
        return i + 1;
    last = r->ops->fails_until(r, i);
    return last < run->last ? last : run->last;
}

static void check_run(struct st_check *check, struct run *run, stki_scratch *scratch, struct st_bad_list *bad)
{
    const struct part *part = run->part;
    const stki_file *file = part->reader ? part->reader->file : stki_array_file(&part->whole);
    stk_error error;

    for (int64_t i = run->first, next; i < run->last && !is_too_sparse(part); i = next) {
        next = filled_until(check, part, i);
        next = next < run->last ? next : run->last;
        run->filled += next - i;
        if (next > i)
            continue;
        next = i + 1;
        if (check_record(check, part, i, scratch, &error) == STK_OK)
            continue;
        note_bad(bad, part, i, &error);
        next = failed_until(check, run, i, error.status, bad);
        bad->total += next - i - 1;
    }
    if (file && stki_file_intact(file, run->first, NULL) != STK_OK) { /* the change of the file caused these errors */
        clear_bad(bad);
        for (int64_t i = run->first; i < run->last; i++)
            if (intact(part, file, i, &error) != STK_OK || check_record(check, part, i, scratch, &error) != STK_OK)
                note_bad(bad, part, i, &error);
    }
    stki_count(&check->records, run->last - run->first);
    stki_count(&check->bad_count, bad->total);
}

static void finish_run(struct crew *crew, const struct run *run, struct st_bad_list *bad)
{
    struct st_check *check = crew->check;

    stki_lock(&crew->lock);
    check->members[run->part->member].bad += bad->total;
    check->members[run->part->member].filled += run->filled;
    (void)give_up_sparse(check, run->part);
    check->bad.total += bad->total;
    for (int64_t i = 0; i < bad->count; i++) {
        add_bad(&check->bad, bad->items[i].member, bad->items[i].record, bad->items[i].status, bad->items[i].message);
        bad->items[i].message = NULL; /* ownership has been transferred */
    }
    let_go(run->part);
    stki_unlock(&crew->lock);
    clear_bad(bad);
}

/* The body of each thread. */
static stk_status work(void *context, void *task, int64_t part, int worker, stk_error *err)
{
    struct crew *crew = context;
    struct st_bad_list bad = {0};
    stki_scratch scratch;
    struct run run;

    (void)task, (void)part, (void)worker, (void)err;
    stki_scratch_init(&scratch);
    while (claim(crew, &run)) {
        check_run(crew->check, &run, &scratch, &bad);
        finish_run(crew, &run, &bad);
    }
    stki_scratch_fini(&scratch);
    stki_free(bad.items);
    return STK_OK;
}

/* ---- whole check ---- */

static int64_t expected_records(const struct st_check *check)
{
    const stki_container *c = check->container;
    int64_t count = 0;

    for (int64_t i = 0; i < c->member_count; i++) {
        const stki_member *m = &c->members[i];

        if (!is_wanted(check, i) || m->status != STK_OK)
            continue;
        count += m->kind == STKI_MEMBER_RECORDS            ? m->count
                 : m->shape && check->opts->axis < m->ndim ? m->shape[check->opts->axis]
                                                           : 1;
    }
    return count;
}

static void show_progress(void *context)
{
    const struct st_check *check = ((const struct crew *)context)->check;

    if (check->progress)
        check->progress(check);
}

stk_status st_check_run(struct st_check *check, stk_error *err)
{
    struct crew crew = {.check = check};
    stk_status status;

    check->members = stki_zalloc_array(check->container->member_count + 1, sizeof *check->members);
    if (!check->members)
        return stki_fail_memory(err, check->container->member_count * (int64_t)sizeof *check->members, "members");
    check->expected_records = expected_records(check);
    stki_mutex_init(&crew.lock);
    status = st_pool_run(check->threads, check->threads, work, show_progress, &crew, err);
    if (crew.current)
        let_go(crew.current);
    stki_mutex_fini(&crew.lock);
    if (check->bad.count > 1)
        qsort(check->bad.items, (size_t)check->bad.count, sizeof *check->bad.items, by_place);
    if (status == STK_OK && crew.failed) {
        *err = crew.error;
        status = crew.error.status;
    }
    return status;
}

void st_check_fini(struct st_check *check)
{
    clear_bad(&check->bad);
    stki_free(check->bad.items);
    for (int64_t i = 0; check->members && i < check->container->member_count; i++) {
        stki_free(check->members[i].sums);
        stki_free(check->members[i].why);
    }
    stki_free(check->members);
}

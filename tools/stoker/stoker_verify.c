/* stoker_verify.c: `stoker verify FILE [NAME]`: reads and checks every record, and writes checksums of them. */
#include "allocate.h"
#include "args.h"
#include "clock.h"
#include "container.h"
#include "error.h"
#include "format.h"
#include "live_line.h"
#include "source.h"
#include "stoker_args.h"
#include "stoker_check.h"
#include "stoker_json.h"
#include "stoker_manifest.h"
#include "stoker_shown.h"
#include "stoker_tool.h"
#include "text_build.h"
#include "text_json.h"
#include "thread.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTIONS = 6, SHOWN = 20, MOST_THREADS = 1024 };

struct verify {
    bool json, write_sums, inputs, help;
    const char *source, *threads;
    const char *words[2];
    int word_count;
    stki_reader_opts opts;
    int64_t started_ns;
    const char *sums; /* "none", "checked" or "written" */
    bool failed;
};

static void options_of(struct verify *v, struct arg_option *options)
{
    const struct arg_option table[OPTIONS] = {
        {"--threads", "N", "number of reading threads; by default one per processor", NULL, &v->threads, NULL},
        {"--json", NULL, "print one JSON object, with at most 10000 of the bad records", &v->json, NULL, NULL},
        {"--write-sums", NULL, "write the XXH3 checksum of each record to FILE.sums", &v->write_sums, NULL, NULL},
        {"--inputs", NULL, "with a manifest: also check the files that the job read", &v->inputs, NULL, NULL},
        {"--source", "{...}", "properties that the file does not record, as in `source` of a config", NULL, &v->source,
         NULL},
        {"--help", NULL, "print this text", &v->help, NULL, NULL},
    };

    memcpy(options, table, sizeof table);
}

static int help(void)
{
    struct verify none = {0};
    struct arg_option options[OPTIONS];

    options_of(&none, options);
    fputs("Usage: stoker verify FILE [NAME] [OPTIONS]\n"
          "       stoker verify NAME.manifest.json [--inputs] [OPTIONS]\n"
          "\n"
          "Reads and checks every record of every member, or of NAME: checksums of the format, decoding,\n"
          "bounds, and the checksums in FILE.sums if it exists. With a preparation job's manifest, checks that all\n"
          "files exist and are unchanged.\n"
          "\n"
          "  stoker verify train.beton\n"
          "  stoker verify train.npy --write-sums\n"
          "  stoker verify images/ --threads=8 --json\n"
          "  stoker verify train.manifest.json\n"
          "\n",
          stdout);
    arg_help(options, OPTIONS, 20, stdout);
    fputs("\nExit status: 0 all records are good, 1 some are bad or the file cannot be read, 2 the command is wrong.\n",
          stdout);
    return stoker_finish_output("verify", STOKER_FINE);
}

/* ---- progress ---- */

static int64_t progress_from; /* start of st_check_run */
static bool progress_shown;

static void show_progress(const struct st_check *check)
{
    int64_t done = stki_counted(&check->records), bad = stki_counted(&check->bad_count);
    double seconds = (double)(stki_now_ns() - progress_from) * 1e-9;

    progress_shown = true;
    fprintf(stderr, "\r\033[K%" PRId64 " of %" PRId64 " records, %.0f MB/s", done, check->expected_records,
            (double)stki_counted(&check->bytes) / 1e6 / seconds);
    if (bad > 0)
        fprintf(stderr, ", %" PRId64 " bad", bad);
}

/* ---- results ---- */

/* Whether the status of a member means that it has no values or that stoker does not support it. Neither is an
 * error. */
static bool only_declined(stk_status status)
{
    return status == STK_E_UNSUPPORTED || status == STK_E_UNSAFE;
}

static bool fails(const struct st_check *check, const struct st_checked *m)
{
    return m->bad > 0 || (m->refused && (check->only >= 0 || !only_declined(m->refused)));
}

static json_t *member_json(const struct st_check *check, int64_t i)
{
    const struct st_checked *m = &check->members[i];
    json_t *j = json_pack("{s:o}", "name", stki_text_json(check->container->members[i].name));

    if (m->read) {
        json_object_set_new(j, "records", json_integer(m->count));
        json_object_set_new(j, "bad", json_integer(m->bad));
        if (m->filled > 0)
            json_object_set_new(j, "never_written", json_integer(m->filled));
        json_object_set_new(j, "read_as", json_string(m->how));
        json_object_set_new(j, "sums_checked", json_boolean(m->has_sums));
    }
    if (m->refused)
        json_object_set_new(j, fails(check, m) ? "error" : "not_checked",
                            st_error_json(m->refused, m->why ? m->why : ""));
    return j;
}

static void show_json(const struct verify *v, const struct st_check *check)
{
    json_t *members = json_array(), *bad = json_array(), *warnings = json_array();

    for (int i = 0; i < check->container->warning_count; i++)
        json_array_append_new(warnings, stki_text_json(check->container->warnings[i]));
    for (int64_t i = 0; i < check->container->member_count; i++)
        if (check->members[i].read || check->members[i].refused)
            json_array_append_new(members, member_json(check, i));
    for (int64_t i = 0; i < check->bad.count; i++) {
        const struct st_bad *b = &check->bad.items[i];
        json_t *j = st_error_json(b->status, b->message ? b->message : "");

        json_object_set_new(j, "member", stki_text_json(check->container->members[b->member].name));
        json_object_set_new(j, "record", json_integer(b->record));
        json_array_append_new(bad, j);
    }
    st_json_print(json_pack("{s:o, s:s, s:I, s:I, s:I, s:f, s:i, s:s, s:o, s:o, s:o}", "file",
                            stki_text_json(check->container->path), "format", check->container->ops->format, "records",
                            (json_int_t)stki_counted(&check->records), "bad_records", (json_int_t)check->bad.total,
                            "bytes_of_values", (json_int_t)stki_counted(&check->bytes), "seconds",
                            (double)(stki_now_ns() - v->started_ns) * 1e-9, "threads", check->threads, "sums", v->sums,
                            "members", members, "bad", bad, "warnings", warnings));
}

static const char *named(const char *name)
{
    return *name ? st_shown(name) : "the array";
}

static void show_text(const struct verify *v, const struct st_check *check)
{
    const stki_container *c = check->container;
    int64_t shown = check->bad.count < SHOWN ? check->bad.count : SHOWN;
    double seconds = (double)(stki_now_ns() - v->started_ns) * 1e-9;
    int64_t unreadable = 0, records = stki_counted(&check->records), members = 0;
    stki_text_build size = {0};
    char *text;

    for (int i = 0; i < c->warning_count; i++)
        printf("note: %s\n", st_shown(c->warnings[i]));
    for (int64_t i = 0; i < c->member_count; i++) {
        const struct st_checked *m = &check->members[i];

        unreadable += m->refused && fails(check, m);
        members += m->read;
        if (m->refused)
            printf("%s: %s: %s: %s\n", fails(check, m) ? "bad" : "not checked", named(c->members[i].name),
                   stk_status_name(m->refused), m->why ? m->why : "");
        else if (m->read && check->sums && !m->has_sums)
            printf("note: %s has no checksums\n", named(c->members[i].name));
        if (m->filled > 0)
            printf("note: %s: %" PRId64 " of %" PRId64 " records were never written and are fill values\n",
                   named(c->members[i].name), m->filled, m->count);
        if (m->plain)
            printf("note: %s was read without the options of --source, which it does not accept\n",
                   named(c->members[i].name));
    }
    for (int64_t i = 0; i < shown; i++) {
        const struct st_bad *b = &check->bad.items[i];

        printf("bad: %s%s%s: %s\n", st_shown(c->members[b->member].name), *c->members[b->member].name ? ": " : "",
               stk_status_name(b->status), b->message ? b->message : "");
    }
    if (check->bad.total > shown)
        printf("and %" PRId64 " more (--json has %s)\n", check->bad.total - shown,
               check->bad.total > check->bad.count ? "some of them" : "all");
    stki_put_size(&size, stki_counted(&check->bytes));
    text = stki_text_take(&size);
    printf("%s: %s: %" PRId64 " record%s", st_shown(c->path), c->ops->format, records, records == 1 ? "" : "s");
    if (members > 1)
        printf(" in %" PRId64 " members", members);
    printf(", %" PRId64 " bad", check->bad.total);
    if (unreadable > 0)
        printf(", %" PRId64 " member%s not readable", unreadable, unreadable == 1 ? "" : "s");
    printf("; %s%s of values in %.2f s, %d thread%s; sums: %s\n", text ? text : "",
           stki_counted(&check->bytes) < 1024 ? " bytes" : "", seconds, check->threads, check->threads == 1 ? "" : "s",
           v->sums);
    stki_free(text);
}

static int refuse(void *context, const stk_error *err)
{
    const struct verify *v = context;

    if (v->json)
        st_json_print(json_pack("{s:o}", "error", st_error_json(err->status, err->message)));
    return stoker_finish_output("verify", stoker_complain("verify", err, STOKER_FAILED));
}

/* ---- command ---- */

static stk_status write_sums(const struct st_check *check, stk_error *err)
{
    const stki_container *c = check->container;
    stki_sums_member *members = stki_zalloc_array(c->member_count + 1, sizeof *members);
    int64_t count = 0;
    stk_status status;

    if (!members)
        return stki_fail_memory(err, c->member_count * (int64_t)sizeof *members, "members");
    for (int64_t i = 0; i < c->member_count; i++)
        if (check->members[i].read)
            members[count++] = (stki_sums_member){c->members[i].name, check->members[i].how, check->members[i].count,
                                                  check->members[i].sums};
    status = stki_sums_write(c->path, members, count, err);
    stki_free(members);
    return status;
}

/* Whether anything failed, or nothing could be checked; sets *err. */
static bool has_failed(const struct st_check *check, stk_error *err)
{
    bool failed = check->bad.total > 0, read = false, refused = false;

    for (int64_t i = 0; i < check->container->member_count; i++) {
        failed = failed || fails(check, &check->members[i]);
        read = read || check->members[i].read;
        refused = refused || check->members[i].refused;
    }
    if (failed)
        (void)stki_fail(err, STK_E_CORRUPT, "%s: %s", check->container->path,
                        check->bad.total ? "there are bad records" : "a member cannot be read");
    else if (!read && refused)
        (void)stki_fail(err, STK_E_UNSUPPORTED, "%s: nothing could be checked", check->container->path);
    return failed || (!read && refused);
}

static int report(struct verify *v, struct st_check *check)
{
    stk_error err;
    bool failed = has_failed(check, &err);

    if (v->write_sums && check->bad.total == 0) { /* covers every member that could be read */
        stk_error write_error;
        bool written = write_sums(check, &write_error) == STK_OK;

        v->sums = written ? "written" : "none";
        if (!written) {
            failed = true;
            err = write_error;
        }
    }
    if (v->json)
        show_json(v, check);
    else
        show_text(v, check);
    return stoker_finish_output("verify", failed ? stoker_complain("verify", &err, STOKER_FAILED) : STOKER_FINE);
}

static stk_status open_sums(struct verify *v, const stki_container *c, bool required, stki_sums **out, stk_error *err)
{
    *out = NULL;
    v->sums = "none";
    if (v->write_sums || (!required && !stki_sums_exist(c->path)))
        return STK_OK;
    v->sums = "checked";
    return stki_sums_open(c->path, out, err);
}

/* The options of --source must apply to at least one member. */
static stk_status check_source(const stki_container *c, const stki_reader_opts *opts, stk_error *err)
{
    stk_error first;
    stk_status status = STK_OK;

    for (int64_t i = 0; i < c->member_count; i++) {
        stk_error own;
        const stk_status taken = stki_source_check_member(opts, c, i, &own);

        if (taken == STK_OK)
            return STK_OK;
        if (status == STK_OK) {
            status = taken;
            first = own;
        }
    }
    if (status != STK_OK && err)
        *err = first;
    return status;
}

static int verify(struct verify *v, int threads)
{
    const stki_reader_opts plain = {.verify = true};
    struct st_check check = {.opts = &v->opts, .only = -1, .threads = threads, .keep = v->write_sums};
    stki_container *container;
    stki_sums *sums = NULL;
    stk_error err;
    stk_status status;
    int code;

    v->started_ns = stki_now_ns();
    check.sums_required = v->opts.sums;
    v->opts.sums = false; /* because st_check_run checks them */
    v->opts.verify = true;
    status = stki_container_open(v->words[0], &v->opts, &container, &err);
    if (status != STK_OK)
        return refuse(v, &err);
    check.container = container;
    if (v->opts.name) {
        status = st_args_find(container, &v->opts, &check.only, &err);
    } else {
        check.plain = &plain;
        status = check_source(container, &v->opts, &err);
    }
    if (status == STK_OK)
        status = open_sums(v, container, check.sums_required, &sums, &err);
    if (status == STK_OK) {
        check.sums = sums;
        check.progress = live_is_terminal(STDERR_FILENO) ? show_progress : NULL;
        progress_from = stki_now_ns();
        status = st_check_run(&check, &err);
        if (progress_shown)
            live_line_clear();
    }
    code = status != STK_OK ? refuse(v, &err) : report(v, &check);
    st_check_fini(&check);
    stki_sums_close(sums);
    stki_container_release(container);
    return code;
}

static stk_status read_threads(const char *text, int *out, stk_error *err)
{
    long long threads = stki_cpu_count();
    const stk_status status = text ? arg_number("--threads", text, 1, MOST_THREADS, &threads, err) : STK_OK;

    *out = (int)threads;
    return status;
}

/* Rejects options that only apply to a manifest. */
static stk_status check_manifest_words(const struct verify *v, stk_error *err)
{
    if (!st_is_manifest(v->words[0]))
        return v->inputs ? stki_fail(err, STK_E_CONFIG,
                                     "--inputs requires a manifest: found %s, expected NAME.manifest.json", v->words[0])
                         : STK_OK;
    if (v->word_count > 1 || v->write_sums || v->source)
        return stki_fail(err, STK_E_CONFIG, "%s: a manifest is checked as a whole: remove %s", v->words[0],
                         v->word_count > 1 ? v->words[1]
                         : v->write_sums   ? "--write-sums"
                                           : "--source");
    return STK_OK;
}

int stoker_verify(int argc, char **argv)
{
    struct verify v = {0};
    struct arg_option options[OPTIONS];
    stki_document *document = NULL;
    stk_error err;
    stk_status status;
    int threads = 1, code;

    options_of(&v, options);
    status = arg_read(argc, argv, options, OPTIONS, NULL, v.words, 2, &v.word_count, &err);
    if (status == STK_OK && v.help)
        return help();
    if (status == STK_OK && v.word_count == 0)
        status = stki_fail(&err, STK_E_CONFIG, "missing file; see --help");
    if (status == STK_OK)
        status = read_threads(v.threads, &threads, &err);
    if (status == STK_OK)
        status = st_args_source(v.source, &document, &v.opts, &err);
    if (status == STK_OK)
        status = check_manifest_words(&v, &err);
    if (status != STK_OK) {
        stki_document_destroy(document);
        return stoker_complain("verify", &err, STOKER_USE);
    }
    stoker_begin_apart(refuse, &v);
    if (st_is_manifest(v.words[0])) {
        stki_document_destroy(document);
        return st_manifest_verify(v.words[0], v.inputs, threads, v.json);
    }
    if (v.word_count > 1)
        v.opts.name = v.words[1];
    code = verify(&v, threads);
    stki_document_destroy(document);
    return code;
}

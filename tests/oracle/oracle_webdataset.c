/* oracle_webdataset.c: tar archives, compared with what Python's tarfile and webdataset read: samples, keys, and the
 * bytes of every file. The files are also read through the reader of each extension. */
#include "file.h"
#include "format.h"
#include "oracle.h"
#include "sha256.h"
#include "source_opts.h"
#include "tar.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int extension_named(const stki_tar_index *index, const char *name)
{
    for (int i = 0; i < index->extension_count; i++)
        if (!strcmp(index->extensions[i].name, name))
            return i;
    return -1;
}

static void check_file(struct outcome *o, const stki_webdataset *set, int64_t sample, const char *name,
                       const json_t *expected)
{
    const stki_tar_entry *entry;
    int extension = extension_named(&set->index, name);
    char *bytes, digest[65];

    if (extension < 0) {
        oracle_wrong(o, "no file has the extension %s", name);
        return;
    }
    o->status = stki_tar_index_find(&set->index, set->file, sample, extension, &entry, &o->err);
    if (o->status)
        return;
    if (entry->size != json_integer_value(json_array_get(expected, 0)))
        oracle_wrong(o, "sample %" PRId64 ", %s: found %" PRId64 " bytes", sample, name, entry->size);
    bytes = malloc((size_t)entry->size + 1);
    o->status = stki_tar_index_read(&set->index, set->file, entry, 0, bytes, entry->size, &o->err);
    stkt_sha256_of(bytes, (size_t)entry->size, digest);
    free(bytes);
    if (!o->status && strcmp(digest, json_string_value(json_array_get(expected, 1))))
        oracle_wrong(o, "sample %" PRId64 ", %s: found sha256 %s", sample, name, digest);
}

static void check_sample(struct outcome *o, const stki_webdataset *set, int64_t sample, const json_t *item)
{
    const stki_tar_index *index = &set->index;
    const char *key = oracle_text(item, "key");
    int64_t from = index->key_at[sample], bytes = index->key_at[sample + 1] - from;
    json_t *files = json_object_get(item, "files");
    const char *name;
    json_t *expected;

    if (bytes != (int64_t)strlen(key) || memcmp(index->keys + from, key, strlen(key)) != 0)
        oracle_wrong(o, "sample %" PRId64 ": found key %.*s, expected %s", sample, (int)bytes, index->keys + from, key);
    if (index->first[sample + 1] - index->first[sample] != json_object_size(files))
        oracle_wrong(o, "sample %" PRId64 ": found %u files", sample, index->first[sample + 1] - index->first[sample]);
    json_object_foreach(files, name, expected) if (!o->status && !o->wrong[0])
        check_file(o, set, sample, name, expected);
}

/* The readers of extensions that are delivered as raw bytes must return the same bytes. */
static void check_reader(struct outcome *o, const stki_webdataset *set, int extension, const stki_reader_opts *opts,
                         const json_t *items)
{
    const char *name = set->index.extensions[extension].name;
    stki_scratch scratch;
    stki_reader *reader = NULL;

    if (stki_tar_kind_of(name) != STKI_TAR_BYTES)
        return;
    o->status = stki_container_reader(&set->base, extension, opts, &reader, &o->err);
    stki_scratch_init(&scratch);
    for (int64_t i = 0; !o->status && !o->wrong[0] && i < reader->count; i++) {
        const json_t *expected = json_object_get(json_object_get(json_array_get(items, (size_t)i), "files"), name);
        char digest[65];
        int64_t count;

        if (oracle_record(o, reader, i, &scratch, digest, &count)) {
            if (!expected || strcmp(digest, json_string_value(json_array_get(expected, 1))))
                oracle_wrong(o, "record %" PRId64 " of %s: found sha256 %s", i, name, digest);
        } else if (!expected && o->status == STK_E_NOT_FOUND) {
            o->status = STK_OK; /* this sample has no such file */
        }
    }
    stki_scratch_fini(&scratch);
    stki_reader_destroy(reader);
}

static void check_whole(struct outcome *o, const char *path, const json_t *items, const stki_reader_opts *opts)
{
    stki_container *container = NULL;
    const stki_webdataset *set;

    o->status = stki_container_open(path, opts, &container, &o->err);
    if (o->status)
        return;
    set = (const void *)container;
    if (set->index.sample_count != (int64_t)json_array_size(items))
        oracle_wrong(o, "found %" PRId64 " samples", set->index.sample_count);
    for (int64_t i = 0; !o->status && !o->wrong[0] && i < set->index.sample_count; i++)
        check_sample(o, set, i, json_array_get(items, (size_t)i));
    for (int i = 0; !o->status && !o->wrong[0] && i < set->index.extension_count; i++)
        check_reader(o, set, i, opts, items);
    stki_container_release(container);
}

void oracle_webdataset(struct outcome *o, const char *path, const json_t *entry)
{
    static const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    /* a compressed archive must be recognized and rejected without a stated format */
    bool gzip = strstr(path, ".gz") != NULL;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !o->wrong[0]; i++) {
        stki_reader_opts opts = *stkt_source("{index_cache: none}");

        opts.access = modes[i];
        opts.format = gzip ? NULL : "webdataset";
        if (strcmp(oracle_text(entry, "expect"), "ok"))
            oracle_read_all(o, path, &opts);
        else
            check_whole(o, path, json_object_get(entry, "items"), &opts);
        oracle_judge(o, entry, path, modes[i] == STKI_ACCESS_MMAP ? "mapped" : "positionally");
    }
}

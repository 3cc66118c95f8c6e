/* tar_cache.c: stores the index of a tar archive in a file that can be used from its mapping:
 *
 *     0     header, 112 bytes: magic, version, extensions X, the archive's size and time, samples N, entries E, bytes
 *           of keys K, files skipped, links, others, runs R, the archive's end, bytes beyond it, XXH3 of the whole
 *           index with this field set to 0
 *     112   E entries of 32 bytes
 *           R runs of sparse members of 24 bytes
 *           N + 1 i64: offsets of keys
 *           N + 1 u32: first entries of samples; zeros to a multiple of 8
 *           X extensions of 256 bytes: name (232), i64 files, smallest and largest size
 *           K bytes of keys
 *
 * An index is valid only for an archive with exactly this size and modification time. If the checksum is wrong, the
 * index is built again. Its numbers are nevertheless checked when they are used, because a checksum does not protect
 * against manipulation. */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "output.h"
#include "path.h"
#include "tar.h"
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { VERSION = 5 };
#define MAGIC UINT64_C(0x5854414b4f545300) /* "\0STOKATX" */

struct header {
    uint64_t magic;
    uint32_t version, extensions;
    int64_t archive_bytes, archive_mtime_ns;
    int64_t samples, entries, key_bytes, skipped;
    int64_t links, others, runs, end, beyond;
    uint64_t sum;
};

/* Offsets of the parts. */
struct parts {
    int64_t entries, runs, key_at, first, extensions, keys, end;
};

static bool place(const struct header *h, struct parts *out)
{
    int64_t bytes;

    if (h->samples < 0 || h->entries < 0 || h->entries >= UINT32_MAX || h->samples > h->entries || h->key_bytes < 0 ||
        h->extensions > STKI_TAR_EXTENSIONS || h->runs < 0 || h->runs >= UINT32_MAX)
        return false; /* with these limits, only the size of the keys could overflow below */
    out->entries = sizeof *h;
    out->runs = out->entries + h->entries * (int64_t)sizeof(stki_tar_entry);
    out->key_at = out->runs + h->runs * (int64_t)sizeof(stki_tar_run);
    out->first = out->key_at + (h->samples + 1) * (int64_t)sizeof(int64_t);
    bytes = (h->samples + 1) * (int64_t)sizeof(uint32_t);
    out->extensions = out->first + stki_round_up(bytes, 8);
    out->keys = out->extensions + (int64_t)h->extensions * (int64_t)sizeof(stki_tar_extension);
    return stki_add(out->keys, h->key_bytes, &out->end);
}

/* ---- loading ---- */

static bool belongs(const struct header *h, const stki_file *archive)
{
    return h->magic == MAGIC && h->version == VERSION && h->archive_bytes == archive->size &&
           h->archive_mtime_ns == archive->mtime_ns;
}

/* Hashes the header without its checksum; NULL: out of memory. */
static XXH3_state_t *begin_sum(struct header h)
{
    XXH3_state_t *state = XXH3_createState();

    h.sum = 0;
    if (state) {
        XXH3_64bits_reset(state);
        XXH3_64bits_update(state, &h, sizeof h);
    }
    return state;
}

static bool sum_is_right(const struct header *h, const char *bytes, int64_t size)
{
    XXH3_state_t *state = begin_sum(*h);
    bool right = false;

    if (state) {
        XXH3_64bits_update(state, bytes + sizeof *h, (size_t)size - sizeof *h);
        right = XXH3_64bits_digest(state) == h->sum;
    }
    XXH3_freeState(state);
    return right;
}

static bool names_end(const stki_tar_extension *extensions, int count)
{
    for (int i = 0; i < count; i++)
        if (extensions[i].name[STKI_TAR_EXTENSION_NAME - 1] != '\0')
            return false;
    return true;
}

/* Parses the index in `bytes`, which `out` already owns. Returns false if it is invalid or belongs to another
 * archive. */
static bool take(const char *bytes, int64_t size, const stki_file *archive, stki_tar_index *out)
{
    struct header h;
    struct parts parts;

    if (size < (int64_t)sizeof h)
        return false;
    memcpy(&h, bytes, sizeof h);
    if (!belongs(&h, archive) || !place(&h, &parts) || parts.end != size || !sum_is_right(&h, bytes, size))
        return false;
    out->sample_count = h.samples;
    out->entry_count = h.entries;
    out->key_bytes = h.key_bytes;
    out->skipped = h.skipped;
    out->links = h.links;
    out->others = h.others;
    out->end = h.end;
    out->beyond = h.beyond;
    out->run_count = h.runs;
    out->runs = (const void *)(bytes + parts.runs);
    out->entries = (const void *)(bytes + parts.entries);
    out->key_at = (const void *)(bytes + parts.key_at);
    out->first = (const void *)(bytes + parts.first);
    out->keys = bytes + parts.keys;
    out->extensions = (const void *)(bytes + parts.extensions);
    out->extension_count = (int)h.extensions;
    out->source = "kept";
    return names_end(out->extensions, out->extension_count);
}

bool stki_tar_cache_load(const char *path, const stki_file *archive, stki_tar_index *out)
{
    const void *bytes;

    *out = (stki_tar_index){0};
    if (stki_file_open(path, STKI_ACCESS_AUTO, STKI_PATTERN_RANDOM, &out->kept, NULL) != STK_OK)
        return false;
    bytes = out->kept->map;
    if (!bytes && out->kept->size > 0) {
        out->blocks[0] = stki_zalloc(out->kept->size);
        if (!out->blocks[0] || stki_file_read(out->kept, 0, out->blocks[0], out->kept->size, NULL) != STK_OK) {
            stki_tar_index_fini(out);
            return false;
        }
        bytes = out->blocks[0];
    }
    if (take(bytes, out->kept->size, archive, out))
        return true;
    stki_tar_index_fini(out);
    return false;
}

/* ---- storing ---- */

static stk_status set_sum(struct header *h, const stki_tar_index *index, stk_error *err)
{
    static const char zeros[8];
    int64_t first = (h->samples + 1) * (int64_t)sizeof *index->first;
    XXH3_state_t *state = begin_sum(*h);

    if (!state)
        return stki_fail_memory(err, 1024, "the checksum of an index");
    XXH3_64bits_update(state, index->entries, (size_t)h->entries * sizeof *index->entries);
    XXH3_64bits_update(state, index->runs, (size_t)h->runs * sizeof *index->runs);
    XXH3_64bits_update(state, index->key_at, (size_t)(h->samples + 1) * sizeof *index->key_at);
    XXH3_64bits_update(state, index->first, (size_t)first);
    XXH3_64bits_update(state, zeros, (size_t)(stki_round_up(first, 8) - first));
    XXH3_64bits_update(state, index->extensions, h->extensions * sizeof *index->extensions);
    XXH3_64bits_update(state, index->keys, (size_t)h->key_bytes);
    h->sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return STK_OK;
}

static stk_status write_parts(stki_output *output, const struct header *h, const stki_tar_index *index, stk_error *err)
{
    stk_status status = stki_output_append(output, h, sizeof *h, err);

    if (status == STK_OK)
        status = stki_output_append(output, index->entries, h->entries * (int64_t)sizeof *index->entries, err);
    if (status == STK_OK)
        status = stki_output_append(output, index->runs, h->runs * (int64_t)sizeof *index->runs, err);
    if (status == STK_OK)
        status = stki_output_append(output, index->key_at, (h->samples + 1) * (int64_t)sizeof *index->key_at, err);
    if (status == STK_OK)
        status = stki_output_append(output, index->first, (h->samples + 1) * (int64_t)sizeof *index->first, err);
    if (status == STK_OK)
        status = stki_output_pad(output, 8, err);
    if (status == STK_OK)
        status = stki_output_append(output, index->extensions,
                                    index->extension_count * (int64_t)sizeof *index->extensions, err);
    return status != STK_OK ? status : stki_output_append(output, index->keys, h->key_bytes, err);
}

stk_status stki_tar_cache_store(const char *path, const stki_file *archive, const stki_tar_index *index, stk_error *err)
{
    struct header h = {.magic = MAGIC,
                       .version = VERSION,
                       .extensions = (uint32_t)index->extension_count,
                       .archive_bytes = archive->size,
                       .archive_mtime_ns = archive->mtime_ns,
                       .samples = index->sample_count,
                       .entries = index->entry_count,
                       .key_bytes = index->key_bytes,
                       .skipped = index->skipped,
                       .links = index->links,
                       .others = index->others,
                       .runs = index->run_count,
                       .end = index->end,
                       .beyond = index->beyond};
    stki_output *output;
    stk_status status = set_sum(&h, index, err);

    if (status != STK_OK)
        return status;
    status = stki_output_create(path, &output, err);
    if (status != STK_OK)
        return status;
    status = write_parts(output, &h, index, err);
    return stki_output_end(output, status, err);
}

/* ---- location ---- */

/* The name of the index contains a hash of the archive's path, because archives with the same name may share an index
 * folder. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

char *stki_tar_cache_path(const char *archive, const char *where)
{
    char whole[PATH_MAX];

    if (!where)
        return stki_format("%s.stoker-index", archive);
    return stki_format("%s/%s.%016" PRIx64 ".stoker-index", where, stki_base_name(archive),
                       hash_of(realpath(archive, whole) ? whole : archive));
}

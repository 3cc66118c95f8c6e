/* loadbench_bounds.c: see loadbench_bounds.h. Bytes per sample are those of the repeats, so that a loader that reads
 * only a part of each sample is compared with the limit for that part. */
#include "loadbench_bounds.h"
#include "allocate.h"
#include "error.h"
#include "loadbench_apart.h"
#include "loadbench_consumer.h"
#include "loadbench_result.h"
#include "loadbench_stop.h"
#include "loadbench_table.h"
#include "text_json.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const lb_bound_words[] = {
    [LB_BOUND_MEMORY] = "memory",
    [LB_BOUND_WRITE] = "write",
    [LB_BOUND_CACHED] = "page_cache",
    [LB_BOUND_DISK] = "disk",
    [LB_BOUND_DECODE] = "decode",
    [LB_BOUND_INFLATE] = "inflate",
    [LB_BOUND_INFLATE_ONCE] = "inflate_once",
    [LB_BOUND_BUS] = "bus",
    [LB_BOUND_STEP] = "step",
};

/* ---- measuring ---- */

static const struct lb_field *largest_field(const struct lb_facts *facts)
{
    const struct lb_field *largest = &facts->fields[0];

    for (int i = 1; i < facts->field_count; i++)
        if (facts->fields[i].sample_bytes > largest->sample_bytes || facts->fields[i].varies)
            largest = &facts->fields[i];
    return largest;
}

/* Returns the keys of a field's `source` that select its images, and `decode: none`, as JSON. NULL: out of memory. */
static char *bytes_source(const struct lb_config *config, const char *field)
{
    const stki_node *fields = stki_node_get(stki_node_get(stki_document_root(config->document), "dataset"), "fields");
    const stki_node *source = stki_node_get(stki_node_get(fields, field), "source");
    json_t *kept = json_object();
    static const char *const keys[] = {"name", "format", "index_cache"};
    char *text;

    for (size_t i = 0; source && source->kind == STKI_NODE_MAP && i < sizeof keys / sizeof keys[0]; i++) {
        const stki_node *node = stki_node_get(source, keys[i]);
        if (node)
            json_object_set_new(kept, keys[i], stki_node_json(node));
    }
    json_object_set_new(kept, "decode", json_string("none"));
    text = json_dumps(kept, 0);
    json_decref(kept);
    return text;
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; word && *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* Returns the name of the data set in its file, which is owned by `config` or is `field` itself. */
static const char *member_name(const struct lb_config *config, const char *field)
{
    const stki_node *fields = stki_node_get(stki_node_get(stki_document_root(config->document), "dataset"), "fields");
    const stki_node *name = stki_node_get(stki_node_get(stki_node_get(fields, field), "source"), "name");

    return name && name->kind == STKI_NODE_SCALAR ? name->text : field;
}

static int worker_count(const struct lb_result *result)
{
    const struct lb_run *run = &result->runs[result->run_count - 1];

    return run->stats.workers > 0 ? (int)run->stats.workers : 1;
}

struct codecs {
    struct codec_limit decode, inflate;
};

/* `about_run` is a struct lb_result, `out` a struct codecs. */
static stk_status measure_codecs(const void *about_run, void *out, stk_error *err)
{
    static const char *const images[] = {"images", "image", "jpeg", "beton", "tar", "webdataset", "list", NULL};
    static const char *const hdf5[] = {"hdf5", NULL};
    const struct lb_result *result = about_run;
    struct codecs *codecs = out;
    const struct lb_field *field = largest_field(&result->facts);
    const json_t *about = lb_effective_field(&result->facts.effective, field->name), *path;
    const json_t *list = json_object_get(about, "path");
    const char *format = json_string_value(json_object_get(about, "format"));
    char **paths = calloc(json_array_size(list) + 1, sizeof *paths);
    char *source = bytes_source(result->config, field->name);
    struct codec_ask ask = {.threads = worker_count(result),
                            .time_ns = result->config->bench.limit_time,
                            .most_bytes = lb_memory_available() / 16,
                            .name = field->name,
                            .stop = &lb_stop_asked};
    struct lb_pages pages;
    stk_status status = lb_pages_note(&result->facts.data, &pages, err);
    size_t i;

    if (status == STK_OK && (!paths || !source))
        status = stki_fail_memory(err, 4096, "the names of the files");
    json_array_foreach(list, i, path)
    {
        if (paths && (paths[ask.path_count] = stki_text_of_json(path)) != NULL)
            ask.path_count++;
    }
    ask.paths = (const char *const *)paths;
    ask.source = source;
    snprintf(codecs->decode.missing, sizeof codecs->decode.missing, "no images");
    snprintf(codecs->inflate.missing, sizeof codecs->inflate.missing, "no chunks compressed with deflate");
    if (status == STK_OK && ask.path_count > 0 && is_one_of(format, images)) {
        status = codec_jpeg(&ask, &codecs->decode, err);
    } else if (status == STK_OK && ask.path_count > 0 && is_one_of(format, hdf5)) {
        ask.name = member_name(result->config, field->name);
        status = codec_inflate(&ask, &codecs->inflate, err);
    }
    lb_pages_put_back(&pages);
    free(source);
    for (i = 0; paths && paths[i]; i++)
        stki_free(paths[i]);
    free(paths);
    return status;
}

static stk_status measure_reads(const void *about_run, void *out, stk_error *err)
{
    const struct lb_result *result = about_run;

    return lb_read_limit_measure(&result->facts.data, worker_count(result), result->config->bench.limit_time, out, err);
}

void lb_once_measure(struct lb_result *result)
{
    struct lb_once *once = &result->once;
    struct codecs codecs = {0};
    stk_error err;

    if (lb_apart(measure_codecs, result, &codecs, sizeof codecs, &err) != STK_OK) {
        codecs = (struct codecs){0};
        snprintf(codecs.decode.missing, sizeof codecs.decode.missing, "%.255s", err.message);
        snprintf(codecs.inflate.missing, sizeof codecs.inflate.missing, "%.255s", err.message);
    }
    once->decode = codecs.decode;
    once->inflate = codecs.inflate;
    if (lb_apart(measure_reads, result, &once->read, sizeof once->read, &err) != STK_OK) {
        once->read = (struct lb_read_limit){0};
        snprintf(once->read.cached_missing, sizeof once->read.cached_missing, "%.255s", err.message);
        snprintf(once->read.cold_missing, sizeof once->read.cold_missing, "%.255s", err.message);
    }
    once->measured = true;
}

/* ---- limits ---- */

/* Sums over all repeats, so that the cost of a sample is its mean over all of them. `made` counts the samples that
 * workers completed, including those in slots that have not been delivered yet. */
struct sums {
    double samples, made, batches, read, written, device, disk, file;
    double unpacked, packed; /* total bytes of chunks: decompressed, and used by samples */
};

static struct sums sum_runs(const struct lb_result *result)
{
    struct sums sums = {0};

    for (int i = 0; i < result->run_count; i++) {
        const struct lb_run *run = &result->runs[i];
        const double made = run->made_batches > 0 ? lb_ratio((double)run->made_batches, (double)run->batches) : 1;
        sums.made += (double)run->samples * made;
        sums.samples += (double)run->samples;
        sums.batches += (double)run->batches;
        sums.read += (double)run->stats.bytes_read;
        sums.written += (double)run->stats.bytes_written;
        sums.device += (double)run->stats.device_bytes;
        sums.unpacked += (double)run->stats.unpacked_bytes;
        sums.packed += (double)run->stats.packed_bytes;
        sums.disk += run->usage.disk_bytes > 0 ? (double)run->usage.disk_bytes : 0;
    }
    if (sums.samples > 0) {
        sums.read /= sums.made;
        sums.written /= sums.made;
        sums.device /= sums.samples;
        sums.disk /= sums.made;
    }
    /* stored bytes of a sample, or the bytes read if the loader reads only a part of it */
    sums.file = lb_ratio((double)result->facts.data.bytes, (double)result->facts.samples);
    if (sums.read > 0 && sums.read < sums.file)
        sums.file = sums.read;
    return sums;
}

static void STK_PRINTF(5, 6)
    add(struct lb_bound *out, int *count, enum lb_bound_kind kind, double samples_per_s, const char *format, ...)
{
    va_list args;

    if (!(samples_per_s > 0))
        return;
    out[*count] = (struct lb_bound){.kind = kind, .samples_per_s = samples_per_s, .applies = true};
    va_start(args, format);
    vsnprintf(out[*count].basis, sizeof out[*count].basis, format, args);
    va_end(args);
    ++*count;
}

static void add_memory(const struct lb_result *result, const struct sums *sums, struct lb_bound *out, int *count)
{
    const struct lb_limit_summary limits = lb_result_limits(result);
    double writes[LB_REPEATS];
    int n = 0;

    if (result->limit_count == 0)
        return;
    for (; n < result->limit_count && n < LB_REPEATS; n++)
        writes[n] = result->limits[n].write.bytes_per_s;
    const double write = lb_summarize(writes, n).median, moved = sums->read + sums->written;
    add(out, count, LB_BOUND_MEMORY, lb_ratio(limits.gather_bytes_per_s.median, moved),
        "gather: %s GB/s read and written, %sB per sample", LB_NUMBER(limits.gather_bytes_per_s.median / 1e9),
        LB_SHORT(moved));
    add(out, count, LB_BOUND_WRITE, lb_ratio(write, sums->written), "%s GB/s written, %sB per sample",
        LB_NUMBER(write / 1e9), LB_SHORT(sums->written));
}

/* A run may decompress a chunk several times, so its limit is computed for the number of decompressions that it did.
 * The limit if each chunk were decompressed once is reported separately. If the cache holds chunks of an earlier epoch,
 * there is less to decompress, or nothing, in which case this is not a limit. */
static void add_inflate(const struct codec_limit *alone, const struct sums *sums, struct lb_bound *out, int *count)
{
    const double unpacked = sums->packed > 0 ? fmax(sums->unpacked / sums->packed, 1e-9) : 1;
    const bool again = unpacked >= LB_UNPACKED_AGAIN, kept = unpacked < 1 / LB_UNPACKED_AGAIN;
    const double times = again || (kept && sums->unpacked >= 0.01 * sums->packed) ? unpacked : 1;
    const char *const rate = LB_SHORT(alone->bytes_per_s);
    const int before = *count;

    if (kept && sums->unpacked < 0.01 * sums->packed)
        add(out, count, LB_BOUND_INFLATE, alone->samples_per_s,
            "%s alone, %sB/s decompressed; the cache held all chunks", codec_deflate_version(), rate);
    else if (again || kept)
        add(out, count, LB_BOUND_INFLATE, alone->samples_per_s / times,
            "%s alone, %sB/s decompressed from %d chunk%s, each %s times as in this run", codec_deflate_version(), rate,
            alone->items, alone->items == 1 ? "" : "s", LB_SHORT(times));
    else
        add(out, count, LB_BOUND_INFLATE, alone->samples_per_s, "%s alone, %sB/s decompressed from %d chunk%s",
            codec_deflate_version(), rate, alone->items, alone->items == 1 ? "" : "s");
    if (*count > before)
        out[before].unpacked = times;
    if (*count > before && kept)
        out[before].applies = sums->unpacked >= 0.01 * sums->packed;
    if (again)
        add(out, count, LB_BOUND_INFLATE_ONCE, alone->samples_per_s,
            "the same if each chunk were decompressed once, as with order: block or a larger loader.cache_bytes");
    if (*count > before + 1)
        out[before + 1].applies = false;
}

static void add_once(const struct lb_result *result, const struct sums *sums, struct lb_bound *out, int *count)
{
    const struct lb_once *once = &result->once;
    const struct lb_read_limit *read = &once->read;

    if (!once->measured)
        return;
    add(out, count, LB_BOUND_CACHED, lb_ratio(read->cached_bytes_per_s, sums->file),
        "the files from the page cache: %s GB/s, %sB per sample", LB_NUMBER(read->cached_bytes_per_s / 1e9),
        LB_SHORT(sums->file));
    if (read->cold_bytes_per_s > 0) {
        const bool applies = sums->disk > 0.5 * sums->file;
        const double bytes = applies ? sums->disk : sums->file; /* sums->disk counts whole pages */
        add(out, count, LB_BOUND_DISK, lb_ratio(read->cold_bytes_per_s, bytes),
            "the files from the disk: %s GB/s, %sB per sample", LB_NUMBER(read->cold_bytes_per_s / 1e9),
            LB_SHORT(bytes));
        if (*count > 0 && out[*count - 1].kind == LB_BOUND_DISK)
            out[*count - 1].applies = applies;
    }
    add(out, count, LB_BOUND_DECODE, once->decode.samples_per_s, "%s alone, %d image%s, %sB each", codec_jpeg_version(),
        once->decode.items, once->decode.items == 1 ? "" : "s",
        LB_SHORT(lb_ratio((double)once->decode.packed_bytes, once->decode.items)));
    add_inflate(&once->inflate, sums, out, count);
}

static int compare(const void *a, const void *b)
{
    const struct lb_bound *x = a, *y = b;
    return (x->samples_per_s > y->samples_per_s) - (x->samples_per_s < y->samples_per_s);
}

int lb_result_bounds(const struct lb_result *result, struct lb_bound *out)
{
    const struct sums sums = sum_runs(result);
    const struct lb_device_summary device = lb_result_device(result);
    const struct lb_bench *bench = &result->config->bench;
    const bool steps = bench->consumer == LB_CONSUMER_STEP || bench->consumer == LB_CONSUMER_DEVICE;
    const double rate = lb_result_samples_per_s(result);
    int count = 0;

    add_memory(result, &sums, out, &count);
    add_once(result, &sums, out, &count);
    if (result->transfer_count > 0)
        add(out, &count, LB_BOUND_BUS, lb_ratio(device.pinned_bytes_per_s.median, sums.device),
            "pinned copies: %sB/s, %sB per sample", LB_SHORT(device.pinned_bytes_per_s.median), LB_SHORT(sums.device));
    if (steps && bench->step_time > 0)
        add(out, &count, LB_BOUND_STEP, lb_ratio(lb_ratio(sums.samples, sums.batches), (double)bench->step_time / 1e9),
            "steps of %s ms, %s samples each", LB_NUMBER((double)bench->step_time / 1e6),
            LB_NUMBER(lb_ratio(sums.samples, sums.batches)));
    for (int i = 0; i < count; i++)
        out[i].share_percent = 100 * lb_ratio(rate, out[i].samples_per_s);
    qsort(out, (size_t)count, sizeof *out, compare);
    return count;
}

const char *lb_bound_excess(const struct lb_bound *binding, bool quiet)
{
    if (!binding || binding->share_percent <= 110)
        return "";
    if (binding->kind == LB_BOUND_DECODE || binding->kind == LB_BOUND_MEMORY)
        return quiet ? "more than the limit: the loader avoids work that the limit includes (it decodes only a part of "
                       "each image, or writes less than it reads)"
                     : "more than the limit: other programs used the processors while it was measured, or the loader "
                       "avoids work that the limit includes (it decodes only a part of each image, or writes less than "
                       "it reads)";
    return quiet ? "more than the limit: something on this machine changed between the run and the measurement of the "
                   "limit"
                 : "more than the limit: other programs used the processors while it was measured";
}

const struct lb_bound *lb_bound_binding(const struct lb_bound *bounds, int count)
{
    for (int i = 0; i < count; i++)
        if (bounds[i].applies)
            return &bounds[i];
    return NULL;
}

/* hdf5_describe.c: parses the messages of a data set's object header. See hdf5_parse.h. Supports the data sets that can
 * be read without the library: numbers whose layout is contiguous, compact, or chunked with an index that hdf5_index.h
 * supports and filters that hdf5_filter.c supports. Everything else is read by the library.
 *
 *     dataspace (IV.A.2.b): version 1: u8 1, u8 axes, u8 flags, 5 bytes; version 2: u8 2, u8 axes, u8 flags, u8 kind
 *         (0 scalar, 1 simple, 2 null); then u64 sizes, and u64 largest sizes if flags & 1
 *     datatype (IV.A.2.d): u8 class | version << 4, u24 bits, u32 bytes, properties of the class; a shared one
 *         (IV.A.2, "Shared Message"): u8 2 or 3, u8 2, u64 address of the object header of a committed datatype
 *     fill value (IV.A.2.f): version 1, 2: u8, u8 space, u8 time (1: never), u8 defined, u32 bytes and value
 *         (version 2: if defined); version 3: u8 3, u8 flags (time in bits 2 and 3, 0x10 undefined, 0x20 defined),
 *         u32 bytes, value; old (IV.A.2.e): u32 bytes, value
 *     layout (IV.A.2.i): u8 3 or 4, u8 class; 0 compact: u16 bytes, data; 1 contiguous: u64 address, u64 bytes;
 *         2 chunked: see hdf5_index.c
 *     filters (IV.A.2.l): u8 version, u8 count, (version 1: 6 bytes); each u16 id, u16 bytes of its name (version 2:
 *         if id >= 256), u16 flags, u16 values, name, u32 values, (version 1: u32 if their number is odd) */
#include "allocate.h"
#include "checked.h"
#include "error.h"
#include "hdf5_dataset.h"
#include "hdf5_parse.h"
#include <inttypes.h>
#include <string.h>

/* ---- datatypes ---- */

enum { FIXED = 0, FLOAT = 1, BITS = 4, OPAQUE = 5, COMPOUND = 6, ENUMERATED = 8, ARRAY = 10, NESTED = 3 };

struct type {
    int class, version;
    uint32_t bits;
    int64_t bytes;
};

static struct type type_head(stki_hdf5_cursor *c)
{
    const int first = (int)stki_hdf5_take(c, 1);
    struct type t = {.class = first & 15, .version = first >> 4, .bits = (uint32_t)stki_hdf5_take(c, 3)};

    t.bytes = (int64_t)stki_hdf5_take(c, 4);
    c->bad = c->bad || t.version < 1 || t.version > 3 || t.bytes == 0; /* newer versions are read by the library */
    return t;
}

static bool read_fixed(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    const uint64_t offset = stki_hdf5_take(c, 2), precision = stki_hdf5_take(c, 2);

    out->dtype = stki_hdf5_whole_dtype(t->bytes, t->class == FIXED && (t->bits & 8));
    out->swapped = t->bytes > 1 && (t->bits & 1);
    return offset == 0 && precision == 8 * (uint64_t)t->bytes && out->dtype != STK_DTYPE_NONE;
}

static bool read_float(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    const uint64_t offset = stki_hdf5_take(c, 2), precision = stki_hdf5_take(c, 2);
    stki_hdf5_float f = {.size = t->bytes, .sign = t->bits >> 8 & 0xFF};
    const bool implied = (t->bits >> 4 & 3) == 2, vax = (t->bits & 0x40) != 0;
    int64_t mantissa_at;

    f.exponent_at = (int64_t)stki_hdf5_take(c, 1);
    f.exponent_bits = (int64_t)stki_hdf5_take(c, 1);
    mantissa_at = (int64_t)stki_hdf5_take(c, 1);
    f.mantissa_bits = (int64_t)stki_hdf5_take(c, 1);
    f.bias = (int64_t)stki_hdf5_take(c, 4);
    out->dtype = stki_hdf5_float_dtype(&f);
    out->swapped = t->bytes > 1 && (t->bits & 1);
    return offset == 0 && precision == 8 * (uint64_t)t->bytes && mantissa_at == 0 && implied && !vax &&
           out->dtype != STK_DTYPE_NONE;
}

/* Reads a NUL-terminated string, which is padded to a multiple of 8 bytes if `padded` is set; NULL: it is not
 * terminated. */
static const char *text_of(stki_hdf5_cursor *c, bool padded)
{
    const char *text = (const char *)c->at;
    const char *end = c->bad || c->left == 0 ? NULL : memchr(text, '\0', (size_t)c->left);
    const int64_t bytes = end ? end - text + 1 : -1;

    return stki_hdf5_skip(c, end && padded ? stki_round_up(bytes, 8) : bytes) ? text : NULL;
}

/* Reads an enumeration. h5py stores bool as an enumeration of FALSE and TRUE. */
static bool read_enum(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    const int count = (int)(t->bits & 0xFFFF);
    const struct type base = type_head(c);
    const char *names[2] = {"", ""};
    const unsigned char *values;

    if (base.class != FIXED || !read_fixed(c, &base, out) || base.bytes != t->bytes)
        return false;
    for (int i = 0; i < count; i++) {
        const char *name = text_of(c, t->version < 3);

        if (!name)
            return false;
        if (i < 2)
            names[i] = name;
    }
    values = stki_hdf5_skip(c, count * base.bytes);
    for (int i = 0; values && count == 2 && base.bytes == 1 && i < 2; i++)
        if (!strcmp(names[i], "FALSE") && values[i] == 0 && !strcmp(names[1 - i], "TRUE") && values[1 - i] == 1)
            out->dtype = STK_BOOL;
    return values != NULL;
}

/* Reads a complex number: a compound of two floats of the same type, r and i. */
static bool read_complex(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    stki_hdf5_type parts[2] = {{0}, {0}};

    if ((t->bits & 0xFFFF) != 2 || (t->bytes != 8 && t->bytes != 16))
        return false;
    for (int i = 0; i < 2; i++) {
        const char *name = text_of(c, t->version < 3);
        const uint64_t offset = stki_hdf5_take(c, t->version < 3 ? 4 : 1);
        struct type part;

        if (t->version == 1 && (stki_hdf5_take(c, 1) != 0 || !stki_hdf5_skip(c, 3 + 4 + 4 + 16)))
            return false; /* array members are not supported */
        part = type_head(c);
        if (!name || strcmp(name, i ? "i" : "r") != 0 || offset != (i ? (uint64_t)t->bytes / 2 : 0) ||
            part.class != FLOAT || part.bytes != t->bytes / 2 || !read_float(c, &part, &parts[i]))
            return false;
    }
    out->swapped = parts[0].swapped;
    out->dtype = t->bytes == 8 ? STK_C64 : STK_C128;
    return parts[0].dtype == (t->bytes == 8 ? STK_F32 : STK_F64) && parts[1].dtype == parts[0].dtype &&
           parts[1].swapped == parts[0].swapped;
}

static bool read_simple(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    switch (t->class) {
    case FIXED:
    case BITS:
        return read_fixed(c, t, out);
    case FLOAT:
        return read_float(c, t, out);
    case COMPOUND:
        return read_complex(c, t, out);
    case ENUMERATED:
        return read_enum(c, t, out);
    default:
        return false;
    }
}

static bool read_array(stki_hdf5_cursor *c, const struct type *t, stki_hdf5_type *out)
{
    const int rank = (int)stki_hdf5_take(c, 1);
    struct type base;
    int64_t bytes;

    (void)stki_hdf5_skip(c, t->version < 3 ? 3 : 0);
    if (rank < 1 || rank > STK_MAX_DIMS)
        return false;
    for (int i = 0; i < rank; i++)
        out->inner[i] = (int64_t)stki_hdf5_take(c, 4);
    (void)stki_hdf5_skip(c, t->version < 3 ? 4 * rank : 0);
    base = type_head(c);
    out->inner_ndim = rank;
    bytes = base.bytes;
    for (int i = 0; i < rank; i++)
        if (!stki_mul(bytes, out->inner[i], &bytes))
            return false;
    return bytes == t->bytes && read_simple(c, &base, out);
}

bool stki_hdf5_type_parse(stki_hdf5_cursor c, stki_hdf5_type *out)
{
    const struct type t = type_head(&c);

    *out = (stki_hdf5_type){.dtype = STK_DTYPE_NONE, .raw = true, .bytes = t.bytes};
    if (t.class == OPAQUE) {
        out->dtype = STK_U8;
        out->inner_ndim = 1;
        out->inner[0] = t.bytes;
        return !c.bad;
    }
    return (t.class == ARRAY ? read_array(&c, &t, out) : read_simple(&c, &t, out)) && !c.bad;
}

/* Parses the datatype to which a shared message refers, which is in the object header of a committed datatype. */
static bool parse_committed(const stki_hdf5_super *super, stki_hdf5_cursor c, stki_hdf5_type *out)
{
    const int version = (int)stki_hdf5_take(&c, 1), kind = (int)stki_hdf5_take(&c, 1);
    const uint64_t address = stki_hdf5_take(&c, 8);
    const stki_hdf5_message *message;
    stki_hdf5_header header;
    bool several = false, fine;

    if (c.bad || (version != 2 && version != 3) || kind != 2 ||
        stki_hdf5_header_read(super, address, &header, NULL) != STK_OK)
        return false;
    message = stki_hdf5_header_find(&header, STKI_HDF5_DATATYPE, &several);
    fine = message && !several && !message->shared && stki_hdf5_type_parse(message->data, out);
    stki_hdf5_header_fini(&header);
    return fine;
}

/* ---- dataspaces ---- */

bool stki_hdf5_space_parse(stki_hdf5_cursor c, stki_hdf5_space *out)
{
    const int version = (int)stki_hdf5_take(&c, 1);
    int flags, kind;

    out->rank = (int)stki_hdf5_take(&c, 1);
    flags = (int)stki_hdf5_take(&c, 1);
    kind = version == 2 ? (int)stki_hdf5_take(&c, 1) : out->rank > 0;
    (void)stki_hdf5_skip(&c, version == 2 ? 0 : 5);
    if ((version != 1 && version != 2) || flags > 1 || kind != (out->rank > 0) || out->rank > STK_MAX_DIMS)
        return false;
    for (int i = 0; i < out->rank; i++) {
        const uint64_t size = stki_hdf5_take(&c, 8);

        if (size > INT64_MAX)
            return false;
        out->shape[i] = out->largest[i] = (int64_t)size;
    }
    for (int i = 0; i < out->rank && flags; i++) {
        const uint64_t largest = stki_hdf5_take(&c, 8);

        out->largest[i] = largest > INT64_MAX ? -1 : (int64_t)largest;
        if (out->largest[i] >= 0 && out->largest[i] < out->shape[i])
            return false;
    }
    return !c.bad;
}

/* ---- the other messages ---- */

static bool read_filters(stki_hdf5_cursor c, stki_hdf5_pipeline *out)
{
    static const char *const names[] = {NULL, "deflate", "shuffle", "fletcher32"};
    const int version = (int)stki_hdf5_take(&c, 1);

    out->count = (int)stki_hdf5_take(&c, 1);
    (void)stki_hdf5_skip(&c, version == 1 ? 6 : 0);
    if ((version != 1 && version != 2) || out->count > STKI_HDF5_MAX_FILTERS)
        return false;
    for (int i = 0; i < out->count; i++) {
        stki_hdf5_filter *filter = &out->filters[i];
        int64_t name_bytes = 0, values;
        const unsigned char *name;

        *filter = (stki_hdf5_filter){.id = (int)stki_hdf5_take(&c, 2)};
        if (version == 1 || filter->id >= 256)
            name_bytes = (int64_t)stki_hdf5_take(&c, 2);
        (void)stki_hdf5_take(&c, 2);
        values = (int64_t)stki_hdf5_take(&c, 2);
        name = stki_hdf5_skip(&c, version == 1 ? stki_round_up(name_bytes, 8) : name_bytes);
        if (c.bad)
            return false;
        if (name_bytes > 0)
            stki_text(filter->name, sizeof filter->name, "%.*s", (int)name_bytes, (const char *)name);
        else if (filter->id < (int)(sizeof names / sizeof names[0]) && names[filter->id])
            stki_text(filter->name, sizeof filter->name, "%s", names[filter->id]);
        for (int64_t k = 0; k < values; k++) {
            const unsigned value = (unsigned)stki_hdf5_take(&c, 4);
            filter->value = k == 0 ? value : filter->value;
        }
        (void)stki_hdf5_skip(&c, version == 1 && values % 2 ? 4 : 0);
    }
    return !c.bad && stki_hdf5_pipeline_known(out);
}

/* Reads the fill value. Sets *bytes to 0 if it is undefined or is never written, in which case elements read as
 * zeros. */
static bool read_fill(stki_hdf5_cursor c, int type, const unsigned char **value, int64_t *bytes)
{
    const int version = type == STKI_HDF5_OLD_FILL ? 0 : (int)stki_hdf5_take(&c, 1);
    bool defined = true, never = false;

    if (version == 1 || version == 2) {
        (void)stki_hdf5_take(&c, 1);
        never = stki_hdf5_take(&c, 1) == 1;
        defined = stki_hdf5_take(&c, 1) != 0 || version == 1;
    } else if (version == 3) {
        const int flags = (int)stki_hdf5_take(&c, 1);

        never = (flags >> 2 & 3) == 1;
        defined = (flags & 0x20) != 0;
        c.bad = c.bad || (flags & 0xC0) || (flags & 0x30) == 0x30;
    } else if (version != 0) {
        return false;
    }
    *bytes = defined ? (int64_t)stki_hdf5_take(&c, 4) : 0;
    if (*bytes > INT32_MAX) /* version 1 marks an undefined value this way */
        *bytes = 0;
    *value = stki_hdf5_skip(&c, *bytes);
    *bytes = never ? 0 : *bytes;
    return !c.bad;
}

static bool read_chunks(stki_hdf5_dataset *d, stki_hdf5_cursor c, int version, const int64_t *largest)
{
    stki_hdf5_grid *grid = &d->grid;
    int axes, wide = 4, kind = 0;

    if (version == 4 && (stki_hdf5_take(&c, 1) & 1))
        return false; /* unfiltered edge chunks are not supported */
    axes = (int)stki_hdf5_take(&c, 1);
    if (version == 4)
        wide = (int)stki_hdf5_take(&c, 1);
    else
        (void)stki_hdf5_take(&c, 8);
    if (axes != d->rank + 1 || d->rank < 1 || wide < 1 || wide > 8)
        return false;
    *grid = (stki_hdf5_grid){.ndim = d->rank, .item_bytes = d->type.bytes, .filtered = d->pipeline.count > 0};
    for (int i = 0; i < axes; i++) {
        const uint64_t size = stki_hdf5_take(&c, wide);

        if (size < 1 || size > UINT32_MAX || (i == d->rank && size != (uint64_t)d->type.bytes))
            return false;
        if (i < d->rank) {
            grid->chunk[i] = (int64_t)size;
            grid->shape[i] = d->shape[i];
            grid->largest[i] = largest[i];
        }
    }
    if (version == 4)
        kind = (int)stki_hdf5_take(&c, 1);
    d->layout = STKI_HDF5_CHUNKED;
    return !c.bad && (version == 3 || (kind >= 1 && kind <= 5)) &&
           stki_hdf5_grid_measure(grid, d->path, NULL) == STK_OK && grid->chunk_bytes <= UINT32_MAX;
}

static bool read_layout(stki_hdf5_dataset *d, const stki_hdf5_super *super, stki_hdf5_cursor c, const int64_t *largest,
                        int64_t bytes)
{
    const int version = (int)stki_hdf5_take(&c, 1), class = (int)stki_hdf5_take(&c, 1);
    uint64_t address;
    const unsigned char *data;

    d->offset = -1;
    if (version != 3 && version != 4)
        return false;
    switch (class) {
    case 0:
        d->layout = STKI_HDF5_COMPACT;
        if (stki_hdf5_take(&c, 2) != (uint64_t)bytes || !(data = stki_hdf5_skip(&c, bytes)))
            return false;
        d->compact = stki_zalloc(bytes + 1);
        if (d->compact)
            memcpy(d->compact, data, (size_t)bytes);
        return d->compact != NULL;
    case 1:
        d->layout = STKI_HDF5_CONTIGUOUS;
        address = stki_hdf5_take(&c, 8);
        if (stki_hdf5_take(&c, 8) != (uint64_t)bytes || c.bad)
            return false;
        if (bytes > 0 && address != STKI_HDF5_UNDEFINED &&
            (address > INT64_MAX || !stki_add(super->base, (int64_t)address, &d->offset)))
            return false;
        return true;
    case 2:
        return read_chunks(d, c, version, largest);
    default:
        return false;
    }
}

/* ---- whole header ---- */

static bool read_messages(stki_hdf5_dataset *d, const stki_hdf5_super *super, const stki_hdf5_header *header)
{
    static const int types[] = {STKI_HDF5_DATASPACE, STKI_HDF5_DATATYPE, STKI_HDF5_LAYOUT,
                                STKI_HDF5_PIPELINE,  STKI_HDF5_FILL,     STKI_HDF5_OLD_FILL};
    const stki_hdf5_message *found[6];
    bool several = stki_hdf5_header_find(header, STKI_HDF5_EXTERNAL_FILES, &several) != NULL;
    const unsigned char *value = NULL;
    stki_hdf5_space space;
    int64_t bytes, fill_bytes = 0;

    for (int i = 0; i < 6; i++) {
        found[i] = stki_hdf5_header_find(header, types[i], &several);
        several = several || (found[i] && found[i]->shared && types[i] != STKI_HDF5_DATATYPE);
    }
    if (several || !found[0] || !found[1] || !found[2] || !stki_hdf5_space_parse(found[0]->data, &space) ||
        !(found[1]->shared ? parse_committed(super, found[1]->data, &d->type)
                           : stki_hdf5_type_parse(found[1]->data, &d->type)))
        return false;
    d->rank = space.rank;
    d->ndim = d->rank + d->type.inner_ndim;
    if (d->ndim > STK_MAX_DIMS)
        return false;
    memcpy(d->shape, space.shape, sizeof space.shape);
    bytes = d->type.bytes;
    for (int i = 0; i < d->ndim; i++) {
        if (i >= d->rank)
            d->shape[i] = d->type.inner[i - d->rank];
        else if (!stki_mul(bytes, d->shape[i], &bytes))
            return false;
    }
    if (found[3] && !read_filters(found[3]->data, &d->pipeline))
        return false;
    if (!read_layout(d, super, found[2]->data, space.largest, bytes))
        return false;
    if (d->layout != STKI_HDF5_CHUNKED)
        d->pipeline = (stki_hdf5_pipeline){0};
    d->pipeline.chunk_bytes = d->grid.chunk_bytes;
    if (found[4] ? !read_fill(found[4]->data, STKI_HDF5_FILL, &value, &fill_bytes)
                 : found[5] && !read_fill(found[5]->data, STKI_HDF5_OLD_FILL, &value, &fill_bytes))
        return false;
    d->fill = stki_zalloc(d->type.bytes);
    if (d->fill && fill_bytes > 0 && fill_bytes == d->type.bytes)
        memcpy(d->fill, value, (size_t)fill_bytes);
    return d->fill && (fill_bytes == 0 || fill_bytes == d->type.bytes);
}

stk_status stki_hdf5_describe(const stki_hdf5_super *super, uint64_t header, stki_hdf5_dataset *out, stk_error *err)
{
    stki_hdf5_dataset d = *out;
    stki_hdf5_header h;
    stk_status status = stki_hdf5_header_read(super, header, &h, err);

    if (status != STK_OK)
        return status;
    if (!read_messages(&d, super, &h) || stki_file_known_changed(super->file)) {
        stki_free(d.fill);
        stki_free(d.compact);
        status = stki_hdf5_unsupported(super, header, "an unsupported data set", err);
    } else {
        d.header = header;
        *out = d;
    }
    stki_hdf5_header_fini(&h);
    return status;
}

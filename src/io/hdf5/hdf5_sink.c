/* hdf5_sink.c: see hdf5_sink.h. A driver for the virtual file layer of libhdf5. Bytes that the library reads back come
 * from the file under its temporary name. */
#include "hdf5_sink.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct driver_info {
    stki_hdf5_sink *sink;
};

static stki_hdf5_sink *sink_of(const H5FD_t *file)
{
    return (stki_hdf5_sink *)(uintptr_t)file;
}

static H5FD_t *sink_open(const char *name, unsigned flags, hid_t access, haddr_t largest)
{
    const struct driver_info *info = H5Pget_driver_info(access);

    (void)flags, (void)largest;
    if (!info)
        return NULL;
    info->sink->fd = open(name, O_RDONLY | O_CLOEXEC);
    return &info->sink->file;
}

static herr_t sink_close(H5FD_t *file)
{
    if (sink_of(file)->fd >= 0)
        (void)close(sink_of(file)->fd);
    return 0;
}

static herr_t sink_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t sink_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return sink_of(file)->allocated;
}

static herr_t sink_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    sink_of(file)->allocated = end;
    return 0;
}

static haddr_t sink_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return (haddr_t)sink_of(file)->end;
}

static herr_t sink_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t count, void *to)
{
    size_t got = 0;

    (void)type, (void)transfer;
    while (got < count) {
        ssize_t n = pread(sink_of(file)->fd, (char *)to + got, count - got, (off_t)(at + got));
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    memset((char *)to + got, 0, count - got); /* bytes after the end are read as zeros */
    return 0;
}

stk_status stki_hdf5_sink_write(stki_hdf5_sink *sink, int64_t offset, const void *bytes, int64_t count, stk_error *err)
{
    stk_status status = stki_output_write_at(sink->output, offset, bytes, count, err);

    if (status == STK_OK && offset + count > sink->end)
        sink->end = offset + count;
    return status;
}

static herr_t sink_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t count, const void *from)
{
    stki_hdf5_sink *sink = sink_of(file);

    (void)type, (void)transfer;
    if (sink->status == STK_OK)
        sink->status = stki_hdf5_sink_write(sink, (int64_t)at, from, (int64_t)count, &sink->err);
    return 0;
}

/* Extends the file to the end of the space allocated by the library. */
static herr_t sink_truncate(H5FD_t *file, hid_t transfer, hbool_t closing)
{
    stki_hdf5_sink *sink = sink_of(file);

    (void)transfer, (void)closing;
    if (sink->status == STK_OK && sink->allocated > (haddr_t)sink->end)
        sink->status = stki_hdf5_sink_write(sink, (int64_t)sink->allocated - 1, "", 1, &sink->err);
    return 0;
}

static const H5FD_class_t sink_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)600, /* the range for private drivers */
#endif
    .name = "stoker",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(struct driver_info),
    .open = sink_open,
    .close = sink_close,
    .query = sink_query,
    .get_eoa = sink_get_eoa,
    .set_eoa = sink_set_eoa,
    .get_eof = sink_get_eof,
    .read = sink_read,
    .write = sink_write,
    .truncate = sink_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t stki_hdf5_sink_create(stki_hdf5_sink *sink, hid_t access)
{
    /* Never unregistered: libhdf5 uses the driver after dropping the file's reference while closing it. */
    static hid_t driver = -1;
    struct driver_info info = {sink};

    if (driver < 0 || H5Iis_valid(driver) <= 0) /* the program may have closed the library */
        driver = H5FDregister(&sink_class);
    if (driver < 0 || H5Pset_driver(access, driver, &info) < 0)
        return -1;
    return H5Fcreate(stki_output_temporary(sink->output), H5F_ACC_TRUNC, H5P_DEFAULT, access);
}

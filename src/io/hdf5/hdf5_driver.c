/* hdf5_driver.c: see hdf5_driver.h. A read-only driver for the virtual file layer of libhdf5. */
#include "hdf5_driver.h"
#include "allocate.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct opened {
    H5FD_t file; /* the library's struct; must be the first member */
    int fd;
    haddr_t allocated, end;
    dev_t device;
    ino_t inode;
};

static struct opened *opened_of(const H5FD_t *file)
{
    return (struct opened *)(uintptr_t)file;
}

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t largest)
{
    struct opened *o;
    struct stat about;
    int fd;

    (void)access, (void)largest;
    if (flags & (H5F_ACC_RDWR | H5F_ACC_TRUNC | H5F_ACC_EXCL))
        return NULL;
    fd = open(name, O_RDONLY | O_CLOEXEC);
    o = fd < 0 || fstat(fd, &about) ? NULL : stki_zalloc(sizeof *o);
    if (!o) {
        if (fd >= 0)
            (void)close(fd);
        if (fd < 0)
            (void)H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_FILE, H5E_CANTOPENFILE, "%s",
                           strerror(errno));
        else
            (void)H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_RESOURCE, H5E_NOSPACE,
                           "out of memory");
        return NULL;
    }
    o->fd = fd;
    o->end = (haddr_t)about.st_size;
    o->device = about.st_dev;
    o->inode = about.st_ino;
    return &o->file;
}

static herr_t driver_close(H5FD_t *file)
{
    (void)close(opened_of(file)->fd);
    stki_free(opened_of(file));
    return 0;
}

/* Compares device and inode, so that the library recognizes a file that is opened by several names. */
static int driver_compare(const H5FD_t *file1, const H5FD_t *file2)
{
    const struct opened *a = opened_of(file1), *b = opened_of(file2);

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->inode < b->inode ? -1 : a->inode > b->inode;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return opened_of(file)->allocated;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    opened_of(file)->allocated = end;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return opened_of(file)->end;
}

/* As in the library's own drivers, bytes after the end read as zeros; hdf5_intact.c detects truncated files. */
static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t count, void *to)
{
    size_t got = 0;

    (void)type, (void)transfer;
    while (got < count) {
        ssize_t n = pread(opened_of(file)->fd, (char *)to + got, count - got, (off_t)(at + got));

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            (void)H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_IO, H5E_READERROR, "%s",
                           strerror(errno));
            return -1;
        }
        if (n == 0)
            break;
        got += (size_t)n;
    }
    memset((char *)to + got, 0, count - got);
    return 0;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t transfer, haddr_t at, size_t count, const void *from)
{
    (void)file, (void)type, (void)transfer, (void)at, (void)count, (void)from;
    return -1;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)601, /* the range for private drivers */
#endif
    .name = "stoker-read",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_compare,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

static hid_t driver = -1; /* guarded by the lock of hdf5_library.c */
static ssize_t own_files;

hid_t stki_hdf5_driver_access(void)
{
    hid_t access;

    if (driver < 0 || H5Iis_valid(driver) <= 0) { /* the program may have closed the library */
        driver = H5FDregister(&driver_class);
        own_files = 0;
    }
    access = driver < 0 ? -1 : H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_driver(access, driver, NULL) < 0) {
        (void)H5Pclose(access);
        access = -1;
    }
    return access;
}

static bool is_same(hid_t file, const struct stat *about)
{
    ssize_t length = H5Fget_name(file, NULL, 0);
    char *name = length > 0 ? stki_zalloc(length + 1) : NULL;
    struct stat its;
    bool same = name && H5Fget_name(file, name, (size_t)length + 1) == length && !stat(name, &its) &&
                its.st_dev == about->st_dev && its.st_ino == about->st_ino;

    stki_free(name);
    return same;
}

static bool is_ours(hid_t file)
{
    hid_t access = H5Fget_access_plist(file);
    bool ours = access >= 0 && H5Pget_driver(access) == driver;

    if (access >= 0)
        (void)H5Pclose(access);
    return ours;
}

bool stki_hdf5_driver_open_elsewhere(const char *path)
{
    ssize_t count = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_FILE);
    struct stat about;
    bool found = false;
    hid_t *files;

    if (count <= own_files || stat(path, &about))
        return false;
    files = stki_zalloc_array(count, sizeof *files);
    count = files ? H5Fget_obj_ids(H5F_OBJ_ALL, H5F_OBJ_FILE, (size_t)count, files) : 0;
    for (ssize_t i = 0; i < count && !found; i++)
        found = !is_ours(files[i]) && is_same(files[i], &about);
    stki_free(files);
    return found;
}

void stki_hdf5_driver_opened(void)
{
    own_files++;
}

void stki_hdf5_driver_closed(void)
{
    own_files -= own_files > 0;
}

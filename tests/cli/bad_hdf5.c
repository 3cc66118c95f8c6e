/* bad_hdf5.c: a libhdf5 that does with every file what the real one does with a few damaged ones: BAD_HDF5_DOES=crash,
 * or spin, which never ends; or die, as where a system is out of memory; or later, which crashes when the program ends.
 * For LD_PRELOAD. */
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("default"))) hid_t H5Fopen(const char *path, unsigned flags, hid_t access)
{
    const char *does = getenv("BAD_HDF5_DOES");
    volatile unsigned turns = 0;

    (void)path, (void)flags, (void)access;
    while (does && !strcmp(does, "spin"))
        turns++;
    if (does && !strcmp(does, "die"))
        (void)raise(SIGKILL);
    if (does && !strcmp(does, "later")) {
        (void)atexit(abort);
        return -1;
    }
    abort();
}

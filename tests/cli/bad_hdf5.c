/* bad_hdf5.c: replaces functions of libhdf5 (LD_PRELOAD) with ones that fail as the real ones do on a few damaged
 * files. BAD_HDF5_DOES selects the failure:
 *     crash     opening a file aborts
 *     spin      opening a file never returns
 *     die       opening a file kills the process, as the kernel does when memory runs out
 *     later     opening a file fails, and the program aborts when it exits
 *     slow      every read takes half a second of CPU time; the values are whatever the buffer holds */
#include <dlfcn.h>
#include <hdf5.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int does(const char *what)
{
    const char *asked = getenv("BAD_HDF5_DOES");

    return asked && !strcmp(asked, what);
}

__attribute__((visibility("default"))) herr_t H5Dread(hid_t set, hid_t type, hid_t memory, hid_t space, hid_t plist,
                                                      void *to)
{
    const clock_t begin = clock();

    (void)set, (void)type, (void)memory, (void)space, (void)plist, (void)to;
    while (clock() - begin < CLOCKS_PER_SEC / 2)
        ;
    return 0;
}

__attribute__((visibility("default"))) hid_t H5Fopen(const char *path, unsigned flags, hid_t access)
{
    hid_t (*real)(const char *, unsigned, hid_t);
    volatile unsigned turns = 0;

    while (does("spin"))
        turns++;
    if (does("die"))
        (void)raise(SIGKILL);
    if (does("later")) {
        (void)atexit(abort);
        return -1;
    }
    if (!does("slow"))
        abort();
    *(void **)&real = dlsym(RTLD_NEXT, "H5Fopen");
    return real(path, flags, access);
}

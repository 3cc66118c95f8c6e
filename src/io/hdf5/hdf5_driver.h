/* hdf5_driver.h: the driver with which libhdf5 opens files for reading. It never locks files, regardless of
 * HDF5_USE_FILE_LOCKING, and ignores HDF5_DRIVER. Called between stki_hdf5_enter and leave. */
#ifndef STKI_HDF5_DRIVER_H
#define STKI_HDF5_DRIVER_H

#include "hdf5_library.h"

/* Returns an access property list for H5Fopen, which the caller closes; negative: failure. */
hid_t stki_hdf5_driver_access(void);
/* Whether this process has opened the file with another driver. It must then be opened with that driver too, because
 * the library keeps written data in memory. */
bool stki_hdf5_driver_open_elsewhere(const char *path);
/* These functions count the files that are open with this driver, so that files opened with another one can be
 * detected. */
void stki_hdf5_driver_opened(void);
void stki_hdf5_driver_closed(void);

#endif

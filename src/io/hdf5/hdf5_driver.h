/* hdf5_driver.h: how libhdf5 opens files for reading here: by a driver of its own, which never locks a file, whatever
 * HDF5_USE_FILE_LOCKING says, and takes no notice of HDF5_DRIVER. Inside stki_hdf5_enter and leave. */
#ifndef STKI_HDF5_DRIVER_H
#define STKI_HDF5_DRIVER_H

#include "hdf5_library.h"

/* Properties for H5Fopen, to be closed; negative: it failed. */
hid_t stki_hdf5_driver_access(void);
/* Has this process opened the file otherwise? Then it has to be opened as there, since the library keeps what is
 * written in memory. */
bool stki_hdf5_driver_open_elsewhere(const char *path);
/* Files opened by the driver are counted, so that the others are noticed. */
void stki_hdf5_driver_opened(void);
void stki_hdf5_driver_closed(void);

#endif

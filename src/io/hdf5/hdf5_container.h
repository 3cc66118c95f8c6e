/* hdf5_container.h: HDF5 files as containers, for the table of formats. */
#ifndef STKI_HDF5_CONTAINER_H
#define STKI_HDF5_CONTAINER_H

#include "container.h"
#include "writer.h"

extern const stki_source_group stki_hdf5_source;
bool stki_hdf5_matches(const char *head, int64_t length);
stk_status stki_hdf5_container_open(const char *path, const stki_reader_opts *opts, stki_container **out,
                                    stk_error *err);
stk_status stki_hdf5_writer(const char *path, const stki_writer_opts *opts, stki_writer **out, stk_error *err);

#endif

/* safetensors.h: .safetensors files. */
#ifndef STKI_SAFETENSORS_H
#define STKI_SAFETENSORS_H

#include "container.h"

stk_status stki_safetensors_container(const char *path, const stki_reader_opts *opts, stki_container **out,
                                      stk_error *err);
/* Opens the container over an open file. Takes ownership of the file, even on failure. */
stk_status stki_safetensors_of_file(stki_file *file, const stki_reader_opts *opts, stki_container **out,
                                    stk_error *err);

#endif

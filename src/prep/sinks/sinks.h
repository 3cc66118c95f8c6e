/* sinks.h: the formats that a preparation job can write, one source file each. */
#ifndef STKI_SINKS_H
#define STKI_SINKS_H

#include "sink.h"

extern const stki_sink_ops stki_sink_npy, stki_sink_raw, stki_sink_npz, stki_sink_hdf5, stki_sink_beton, stki_sink_pt,
    stki_sink_safetensors, stki_sink_tar, stki_sink_tokens;

#endif

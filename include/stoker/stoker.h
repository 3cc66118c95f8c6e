/* stoker.h: includes all public headers. */
#ifndef STOKER_STOKER_H
#define STOKER_STOKER_H

#include <stoker/create.h>
#include <stoker/dataset.h>
#include <stoker/device.h>
#include <stoker/dlpack.h>
#include <stoker/loader.h>
#include <stoker/ops.h>
#include <stoker/prep.h>
#include <stoker/print.h>
#include <stoker/profile.h>
#include <stoker/quant.h>
#include <stoker/scalar.h>
#include <stoker/sparse.h>
#include <stoker/status.h>
#include <stoker/tensor.h>
#include <stoker/version.h>

#endif

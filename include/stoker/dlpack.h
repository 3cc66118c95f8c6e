/* dlpack.h: tensors handed to and taken from other libraries without a copy, as DLPack describes them. Two forms: the
 * one of version 0.6, struct DLManagedTensor of <dlpack/dlpack.h>, and the versioned one of version 1, struct
 * DLManagedTensorVersioned. The latter is laid out here as stk_dlpack_versioned, for users whose header is older: a
 * pointer to one may be cast to a pointer to the other. (Source of the layout: include/dlpack/dlpack.h of
 * github.com/dmlc/dlpack, versions 1.0 and 1.1.)
 *
 * Lifetime: an export holds a reference to the tensor's storage until its deleter is called, which any thread may do,
 * once. An import calls the deleter when the last view of it goes.
 */
#ifndef STOKER_DLPACK_H
#define STOKER_DLPACK_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;          /* of <dlpack/dlpack.h>, version 0.6 */
struct DLManagedTensorVersioned; /* of <dlpack/dlpack.h>, version 1; laid out as stk_dlpack_versioned */

enum {
    STK_DLPACK_MAJOR = 1, /* what is exported; any 1.x is taken */
    STK_DLPACK_MINOR = 1,
    STK_DLPACK_READ_ONLY = 1 << 0, /* flags */
    STK_DLPACK_IS_COPIED = 1 << 1
};

typedef struct stk_dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits; /* of an element */
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: row-major */
    uint64_t byte_offset;
} stk_dlpack_tensor;

typedef struct stk_dlpack_versioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct stk_dlpack_versioned *self);
    uint64_t flags;
    stk_dlpack_tensor tensor;
} stk_dlpack_versioned;

/* Only memory that a counted storage owns is handed out. STK_E_UNSUPPORTED: a borrowed tensor or a mapping of a file
 * (clone it first), the other byte order, a dtype that the version does not have (0.6 has no 8-bit floats; bool becomes
 * u8), a host device (DLPack has none like it), and, for 0.6, which cannot say so, a read-only tensor. Work that is
 * queued on a tensor of a GPU is not waited for: its taker's stream must wait for an event behind it. STK_E_BAD_STRIDE:
 * strides that are no whole number of elements. Negative strides are exported as they are; not everybody takes them. */
STK_API stk_status stk_tensor_to_dlpack(const stk_tensor *tensor, struct DLManagedTensor **out, stk_error *err);
STK_API stk_status stk_tensor_to_dlpack_versioned(const stk_tensor *tensor, struct DLManagedTensorVersioned **out,
                                                  stk_error *err);

/* Takes the structure over; after a failure it is still the caller's. Memory that CUDA pinned is the CPU's and says
 * that it is pinned. STK_E_UNSUPPORTED: another version, an element type or a device kind that stoker does not have.
 * STK_E_BAD_DEVICE: the device is not here. STK_E_BAD_ARG: no data. */
STK_API stk_status stk_tensor_from_dlpack(struct DLManagedTensor *managed, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, stk_tensor *out,
                                                    stk_error *err);

#ifdef __cplusplus
}
#endif
#endif

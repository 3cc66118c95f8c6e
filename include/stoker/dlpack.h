/* dlpack.h: zero-copy exchange of tensors with other libraries through DLPack. There are two structs: DLManagedTensor
 * of version 0.6, and DLManagedTensorVersioned of version 1. The latter is also declared here as stk_dlpack_versioned,
 * for programs with an older <dlpack/dlpack.h>: a pointer to either struct may be cast to a pointer to the other.
 * (Source of the layout: include/dlpack/dlpack.h of github.com/dmlc/dlpack, versions 1.0 and 1.1.)
 *
 * Lifetime: an export holds a reference to the tensor's storage until its deleter is called. The consumer must call the
 * deleter once, from any thread. The deleter of an imported tensor is called when its last view is released.
 */
#ifndef STOKER_DLPACK_H
#define STOKER_DLPACK_H

#include <stoker/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

struct DLManagedTensor;          /* from <dlpack/dlpack.h>, version 0.6 */
struct DLManagedTensorVersioned; /* from <dlpack/dlpack.h>, version 1; same layout as stk_dlpack_versioned */

enum {
    STK_DLPACK_MAJOR = 1, /* version of exported structs; structs of any version 1.x can be imported */
    STK_DLPACK_MINOR = 1,
    STK_DLPACK_READ_ONLY = 1 << 0, /* bits of `flags` */
    STK_DLPACK_IS_COPIED = 1 << 1
};

typedef struct stk_dlpack_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits; /* kind (DLDataTypeCode) and size of an element */
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

/* Exports a tensor whose memory is owned by a reference-counted storage. STK_E_UNSUPPORTED: a borrowed tensor or a view
 * of a mapped file (clone it first), the opposite byte order, a dtype that the DLPack version does not have (0.6 has no
 * 8-bit floats; bool becomes u8), the host device (DLPack has no such device), or, for 0.6, which has no flag for it, a
 * read-only tensor. The export does not wait for queued work that uses a GPU tensor: the consumer's stream must wait
 * for an event recorded after that work. STK_E_BAD_STRIDE: a stride is not a multiple of the element size. Negative
 * strides are exported unchanged; not every library accepts them. */
STK_API stk_status stk_tensor_to_dlpack(const stk_tensor *tensor, struct DLManagedTensor **out, stk_error *err);
STK_API stk_status stk_tensor_to_dlpack_versioned(const stk_tensor *tensor, struct DLManagedTensorVersioned **out,
                                                  stk_error *err);

/* Imports a tensor and takes ownership of the structure; on failure the caller keeps it. Memory pinned by CUDA becomes
 * a pinned CPU tensor. STK_E_UNSUPPORTED: another major version, or an element type or device type that stoker does not
 * have. STK_E_BAD_DEVICE: there is no such device. STK_E_BAD_ARG: the data is NULL although there are elements, the
 * shape is NULL although there are axes, or byte_offset exceeds INT64_MAX. */
STK_API stk_status stk_tensor_from_dlpack(struct DLManagedTensor *managed, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_from_dlpack_versioned(struct DLManagedTensorVersioned *managed, stk_tensor *out,
                                                    stk_error *err);

#ifdef __cplusplus
}
#endif
#endif

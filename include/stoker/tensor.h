/* tensor.h: strided tensors. A stk_tensor is a plain value: an address, a shape, signed byte strides, a dtype, a device
 * and a counted reference to the storage that owns the memory, or NULL. Views copy no elements: they retain the storage
 * of their base and have a different address, shape or strides. The semantics are torch's, plus negative strides
 * (flip).
 *
 * Ownership: a tensor returned by a function here must be released once with stk_tensor_release. Copying the struct
 * does not add a reference (stk_tensor_retain does). A tensor whose `storage` is NULL is borrowed: releasing it has no
 * effect, and the function that returned it says how long it is valid.
 *
 * Threads: different threads may use different tensors of one storage; reference counts are atomic. A tensor struct may
 * be used by one thread at a time.
 *
 * Negative dimensions and indices count from the end. On failure `out` is unchanged; on success it is overwritten, not
 * released first.
 *
 * Errors that any function here may return:
 *
 *     STK_E_BAD_SHAPE    a size is negative, or the size in bytes does not fit in 63 bits
 *     STK_E_UNSUPPORTED  more than STK_MAX_DIMS axes
 *     STK_E_BAD_DTYPE    an invalid dtype
 *     STK_E_BAD_DIM      a dimension is out of range or repeated
 *     STK_E_BAD_INDEX    an index is out of range
 *     STK_E_BAD_ARG      a tensor to be written is read-only
 *     STK_E_MEMORY       out of memory
 */
#ifndef STOKER_TENSOR_H
#define STOKER_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stoker/device.h>
#include <stoker/scalar.h>
#include <stoker/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STK_MAX_DIMS 32

/* X(number, identifier, short name, long name, bytes per element). The numbers are stable: files may contain them. */
#define STK_DTYPE_LIST(X)                                 \
    X(1, STK_BOOL, "bool", "bool", 1)                     \
    X(2, STK_U8, "u8", "uint8", 1)                        \
    X(3, STK_I8, "i8", "int8", 1)                         \
    X(4, STK_U16, "u16", "uint16", 2)                     \
    X(5, STK_I16, "i16", "int16", 2)                      \
    X(6, STK_U32, "u32", "uint32", 4)                     \
    X(7, STK_I32, "i32", "int32", 4)                      \
    X(8, STK_U64, "u64", "uint64", 8)                     \
    X(9, STK_I64, "i64", "int64", 8)                      \
    X(10, STK_F16, "f16", "float16", 2)                   \
    X(11, STK_BF16, "bf16", "bfloat16", 2)                \
    X(12, STK_F32, "f32", "float32", 4)                   \
    X(13, STK_F64, "f64", "float64", 8)                   \
    X(14, STK_C64, "c64", "complex64", 8)                 \
    X(15, STK_C128, "c128", "complex128", 16)             \
    X(16, STK_F8_E4M3FN, "f8_e4m3fn", "float8_e4m3fn", 1) \
    X(17, STK_F8_E5M2, "f8_e5m2", "float8_e5m2", 1)

typedef enum stk_dtype {
    STK_DTYPE_NONE = 0,
#define STK_X(number, identifier, short_name, long_name, size) identifier = number,
    STK_DTYPE_LIST(STK_X)
#undef STK_X
        STK_DTYPE_END
} stk_dtype;

/* Bytes per element; 0 for a value outside the list. */
STK_API int64_t stk_dtype_size(stk_dtype dtype);
/* "u8" and "uint8". Static; "none" for a value outside the list. */
STK_API const char *stk_dtype_name(stk_dtype dtype);
STK_API const char *stk_dtype_long_name(stk_dtype dtype);
/* Accepts both kinds of name. STK_DTYPE_NONE: unknown. */
STK_API stk_dtype stk_dtype_find(const char *name);

typedef struct stk_storage stk_storage;

enum {
    STK_TENSOR_READONLY = 1u << 0, /* functions that would write to the tensor fail with STK_E_BAD_ARG */
    /* Elements are in the opposite byte order. Views, copies, casts and printing accept such a tensor; most other
     * functions fail with STK_E_UNSUPPORTED. */
    STK_TENSOR_SWAPPED = 1u << 1,
    /* Page-locked ordinary memory. May be set on a borrowed tensor whose memory the caller has pinned. */
    STK_TENSOR_PINNED = 1u << 2
};

typedef struct stk_tensor {
    void *data;           /* address of the element at index 0, 0, … */
    stk_storage *storage; /* owner of the memory; NULL: borrowed */
    stk_device *device;   /* NULL means the CPU */
    stk_dtype dtype;
    int32_t ndim;
    uint32_t flags;
    uint32_t reserved;             /* used by the library while storages are recorded (profile.h), otherwise 0 */
    int64_t shape[STK_MAX_DIMS];   /* size of each axis, >= 0; the first ndim are set */
    int64_t strides[STK_MAX_DIMS]; /* bytes from one index to the next, may be negative; the first ndim are set */
} stk_tensor;

/* ---- storage ---- */

/* Allocates `bytes` on `device` (NULL: CPU), 64-byte aligned, uninitialized, with one reference. */
STK_API stk_status stk_storage_create(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err);
/* Wraps the caller's memory; `free_fn(context)`, which is required, is called once, by the thread that drops the last
 * reference. */
STK_API stk_status stk_storage_wrap(stk_device *device, void *data, int64_t bytes, void (*free_fn)(void *context),
                                    void *context, stk_storage **out, stk_error *err);
STK_API void stk_storage_retain(stk_storage *storage);
STK_API void stk_storage_release(stk_storage *storage); /* NULL is allowed */
STK_API void *stk_storage_data(const stk_storage *storage);
STK_API int64_t stk_storage_bytes(const stk_storage *storage);
STK_API int64_t stk_storage_refs(const stk_storage *storage);
STK_API stk_device *stk_storage_device(const stk_storage *storage);

/* ---- creation and release ---- */

/* Allocate row-major tensors on `device` (NULL: CPU). stk_tensor_empty leaves the elements uninitialized,
 * stk_tensor_zeros sets them to 0. */
STK_API stk_status stk_tensor_empty(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                    stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_zeros(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                    stk_tensor *out, stk_error *err);
/* A borrowed CPU tensor over the caller's memory, which must stay valid. Strides are in bytes (NULL: row-major). */
STK_API stk_status stk_tensor_borrow(void *data, stk_dtype dtype, int ndim, const int64_t *shape,
                                     const int64_t *strides, stk_tensor *out, stk_error *err);
/* A tensor over part of a storage; the tensor retains the storage. Strides are in bytes (NULL: row-major).
 * STK_E_BAD_STORAGE: an element is outside the storage. */
STK_API stk_status stk_tensor_from_storage(stk_storage *storage, int64_t offset_bytes, stk_dtype dtype, int ndim,
                                           const int64_t *shape, const int64_t *strides, stk_tensor *out,
                                           stk_error *err);
STK_API void stk_tensor_retain(const stk_tensor *tensor);
/* Releases the tensor and clears the struct, so that a second call has no effect. NULL is allowed. */
STK_API void stk_tensor_release(stk_tensor *tensor);

/* ---- queries ---- */

STK_API int64_t stk_tensor_numel(const stk_tensor *tensor);
STK_API int64_t stk_tensor_nbytes(const stk_tensor *tensor); /* number of elements times element size */
/* The largest power of two (at most 4096) that divides the address and the stride of every axis longer than 1. */
STK_API int64_t stk_tensor_alignment(const stk_tensor *tensor);

/* Strides and offset in elements. STK_E_BAD_STRIDE: one of them is not a whole number of elements, as in a view of one
 * member of an array of structures. `strides` (ndim numbers) and `offset` (of the first element, from the start of the
 * storage) may be NULL. */
STK_API stk_status stk_tensor_element_strides(const stk_tensor *tensor, int64_t *strides, int64_t *offset,
                                              stk_error *err);
/* Bytes from the start of the storage to the first element; 0 for a borrowed tensor. */
STK_API int64_t stk_tensor_offset_bytes(const stk_tensor *tensor);
/* The same for the element at `index`, which has `ndim` numbers. STK_E_BAD_DIM: `ndim` is not the number of axes of the
 * tensor. */
STK_API stk_status stk_tensor_offset_of(const stk_tensor *tensor, int ndim, const int64_t *index, int64_t *out_bytes,
                                        stk_error *err);
/* Reads one element. The kind of the scalar follows from the dtype; unsigned integers up to 32 bits are STK_SCALAR_INT.
 */
STK_API stk_status stk_tensor_get(const stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar *out,
                                  stk_error *err);
/* Writes one element. STK_E_BAD_VALUE as in stk_tensor_fill. */
STK_API stk_status stk_tensor_set(stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar value, stk_error *err);

/* ---- views ---- */

/* The same elements, in row-major order, with a different shape. One size may be -1; it is computed from the others.
 * STK_E_BAD_SHAPE: the shape has a different number of elements. STK_E_BAD_VIEW: the strides do not allow this view. */
STK_API stk_status stk_tensor_view(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                   stk_error *err);
/* Like stk_tensor_view, but returns a row-major copy if the strides do not allow a view. */
STK_API stk_status stk_tensor_reshape(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                      stk_error *err);
/* Merges the axes first to last; copies if stk_tensor_reshape would. */
STK_API stk_status stk_tensor_flatten(const stk_tensor *tensor, int first, int last, stk_tensor *out, stk_error *err);
/* Axis i of the result is axis dims[i] of the tensor; `dims` lists every dimension once. */
STK_API stk_status stk_tensor_permute(const stk_tensor *tensor, const int *dims, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_transpose(const stk_tensor *tensor, int dim0, int dim1, stk_tensor *out, stk_error *err);
/* Python's slice: negative start and end count from the end, and both are clamped. STK_E_BAD_STEP: step is below 1.
 * INT64_MIN start: from the beginning; INT64_MAX end: to the end. */
STK_API stk_status stk_tensor_slice(const stk_tensor *tensor, int dim, int64_t start, int64_t end, int64_t step,
                                    stk_tensor *out, stk_error *err);
/* The elements at one index of an axis, which is removed. */
STK_API stk_status stk_tensor_select(const stk_tensor *tensor, int dim, int64_t index, stk_tensor *out, stk_error *err);
/* The `length` indices of an axis that begin at `start`. The range is not clamped: STK_E_BAD_INDEX if it exceeds the
 * axis. */
STK_API stk_status stk_tensor_narrow(const stk_tensor *tensor, int dim, int64_t start, int64_t length, stk_tensor *out,
                                     stk_error *err);
/* Reverses an axis by negating its stride. */
STK_API stk_status stk_tensor_flip(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);
/* Repeats axes of size 1 with stride 0. A size of -1 keeps the size of the axis; new axes are added in front.
 * STK_E_BAD_BROADCAST: a size other than 1 would have to change. */
STK_API stk_status stk_tensor_expand(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                     stk_error *err);
/* Removes the axis if its size is 1; otherwise the shape is unchanged. */
STK_API stk_status stk_tensor_squeeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);
/* Removes all axes of size 1. */
STK_API stk_status stk_tensor_squeeze_all(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
/* Inserts an axis of size 1, which becomes dimension `dim` of the result. */
STK_API stk_status stk_tensor_unsqueeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);

/* An arbitrary view of the storage, regardless of the tensor's shape. Strides and offset (from the start of the
 * storage) are in bytes; STK_SAME_OFFSET: the tensor's own offset. Strides must not be negative (STK_E_BAD_STRIDE); a
 * tensor without elements may have any offset of 0 or more. STK_E_BAD_STORAGE: an element is outside the storage, or
 * the tensor is borrowed and has no storage to check against. */
#define STK_SAME_OFFSET INT64_MIN
STK_API stk_status stk_tensor_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape,
                                         const int64_t *strides, int64_t offset_bytes, stk_tensor *out, stk_error *err);
/* Replaces the two dimensions by their diagonal, which becomes the last one; offset > 0 is above the main diagonal. */
STK_API stk_status stk_tensor_diagonal(const stk_tensor *tensor, int64_t offset, int dim0, int dim1, stk_tensor *out,
                                       stk_error *err);
/* Expands both tensors to their common shape. STK_E_BAD_BROADCAST: there is none. */
STK_API stk_status stk_tensor_broadcast(const stk_tensor *a, const stk_tensor *b, stk_tensor *out_a, stk_tensor *out_b,
                                        stk_error *err);

/* ---- layout ---- */

typedef enum stk_layout {
    STK_LAYOUT_ROW_MAJOR = 0,     /* the last axis is contiguous: C, NumPy, torch */
    STK_LAYOUT_CHANNELS_LAST = 1, /* four axes: shape N, C, H, W over memory in the order N, H, W, C */
    STK_LAYOUT_COLUMN_MAJOR = 2,  /* the first axis is contiguous: Fortran */
    STK_LAYOUT_KEEP = 3 /* the copy has the strides of the original if that is dense, otherwise it is row-major */
} stk_layout;

/* Whether the tensor is row-major. Axes of size 1 are ignored; a tensor without elements is contiguous. */
STK_API bool stk_tensor_is_contiguous(const stk_tensor *tensor);
STK_API bool stk_tensor_is_channels_last(const stk_tensor *tensor);
/* Whether the tensor has the given layout (KEEP: whether it is dense, that is, covers a block of memory exactly once).
 * A tensor may have several layouts at once. docs/reference/tensor.md has the exact definitions. */
STK_API bool stk_tensor_has_layout(const stk_tensor *tensor, stk_layout layout);
/* Creates an uninitialized tensor in the given layout (not KEEP). STK_E_BAD_DIM: channels-last requires four axes. */
STK_API stk_status stk_tensor_empty_as(stk_dtype dtype, int ndim, const int64_t *shape, stk_layout layout,
                                       stk_device *device, stk_tensor *out, stk_error *err);

/* ---- copies ----
 * The source may be in the opposite byte order (STK_TENSOR_SWAPPED); the copy is in native byte order and writable.
 */

/* The tensor itself (retained) if it is row-major and in native byte order, otherwise a row-major copy. */
STK_API stk_status stk_tensor_contiguous(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
/* Always a row-major copy in new memory. */
STK_API stk_status stk_tensor_clone(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
/* Like the two functions above, but for any layout. STK_E_BAD_ARG: stk_tensor_contiguous_as does not accept KEEP. */
STK_API stk_status stk_tensor_contiguous_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out,
                                            stk_error *err);
STK_API stk_status stk_tensor_clone_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out, stk_error *err);
/* The tensor itself (retained) if it already has the dtype, otherwise a row-major copy. docs/reference/tensor.md has
 * the rules: real to integer truncates and saturates, NaN becomes 0; integers wrap; f16 and bf16 are cast via f32. */
STK_API stk_status stk_tensor_to(const stk_tensor *tensor, stk_dtype dtype, stk_tensor *out, stk_error *err);
/* The tensor itself (retained) if it is already on the device, otherwise a copy in the layout KEEP. */
STK_API stk_status stk_tensor_to_device(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err);
/* Copies the elements of `src`, broadcast to the shape of `dst` and cast to its dtype, also across devices.
 * STK_E_BAD_BROADCAST: the shape of `src` does not broadcast to that of `dst`. STK_E_BAD_OVERLAP: several elements of
 * `dst` have the same address, or dst and src overlap but are not the same view (not detected for views with gaps). */
STK_API stk_status stk_tensor_copy(stk_tensor *dst, const stk_tensor *src, stk_error *err);

/* ---- devices and streams ----
 * Operations on a device tensor are queued in the calling thread's current stream for that device
 * (stk_stream_set_current); if there is none, they are complete when the call returns. As in torch, to use a tensor in
 * a stream other than the one in which it was created, make that stream wait for an event, and call
 * stk_tensor_record_stream before releasing the tensor.
 */

/* torch's .to(device, non_blocking=…), in `stream`, which must belong to one of the two devices (STK_E_BAD_DEVICE);
 * NULL: the calling thread's current stream. non_blocking from pinned memory: the copy is queued when the call returns,
 * and the source must not change until the stream has executed it. non_blocking to the CPU: the result is pinned and
 * may be read after the stream has executed the copy. All other copies that involve ordinary memory are complete when
 * the call returns: those from pageable sources, from sources that the host must rearrange or cast first, and between
 * two devices. */
STK_API stk_status stk_tensor_to_device_on(const stk_tensor *tensor, stk_device *device, stk_stream *stream,
                                           bool non_blocking, stk_tensor *out, stk_error *err);
/* stk_tensor_copy in a stream, by the same rules. */
STK_API stk_status stk_tensor_copy_on(stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                                      stk_error *err);
/* A new uninitialized row-major CPU tensor in memory pinned for `device`. STK_E_BAD_DEVICE: the CPU has no pinned
 * memory.
 */
STK_API stk_status stk_tensor_empty_pinned(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                           stk_tensor *out, stk_error *err);
/* The tensor itself (retained) if it is pinned, otherwise a copy in pinned memory in the layout KEEP. STK_E_BAD_DEVICE:
 * the tensor is not on the CPU. */
STK_API stk_status stk_tensor_pin(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err);
STK_API bool stk_tensor_is_pinned(const stk_tensor *tensor);
/* Marks the tensor's memory as used in `stream`: once released, it is reused only after that stream has executed the
 * work queued by then. Copies do this themselves. Has no effect on memory that the library does not own.
 * STK_E_BAD_DEVICE: the stream belongs to another device. */
STK_API stk_status stk_tensor_record_stream(const stk_tensor *tensor, stk_stream *stream, stk_error *err);

/* ---- filling ---- */

/* Sets every element to a value. STK_E_BAD_VALUE: the value does not fit the dtype (for an integer dtype, a real value
 * is truncated first; infinities and NaN fit real dtypes). */
STK_API stk_status stk_tensor_fill(stk_tensor *tensor, stk_scalar value, stk_error *err);
STK_API stk_status stk_tensor_zero(stk_tensor *tensor, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* tensor.h: strided tensors. A stk_tensor is a plain value: an address, a shape, signed byte strides, a dtype, a device
 * and a counted reference to the storage that owns the memory, or none. Views copy no elements: they retain the storage
 * of their base and rewrite address, shape and strides. torch's semantics, with negative strides (flip) besides.
 *
 * Ownership: whoever receives a tensor from a function here calls stk_tensor_release on it once; copying the struct
 * does not count (stk_tensor_retain does). A tensor whose `storage` is NULL is borrowed: releasing it is harmless, and
 * the function that gave it says until when it may be used. Threads: different threads may use different tensors of one
 * storage; reference counts are atomic. One tensor struct belongs to one thread at a time. Dimensions and indices may
 * be negative, counted from the end. On failure `out` is untouched; on success it is overwritten, not released first.
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

/* X(number, identifier, short name, long name, bytes an element). Numbers are stable: files and states may hold them.
 */
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

/* Bytes an element; 0 for a value outside the list. */
STK_API int64_t stk_dtype_size(stk_dtype dtype);
/* "u8" and "uint8". Static; "none" for a value outside the list. */
STK_API const char *stk_dtype_name(stk_dtype dtype);
STK_API const char *stk_dtype_long_name(stk_dtype dtype);
/* Accepts both kinds of name. STK_DTYPE_NONE: unknown. */
STK_API stk_dtype stk_dtype_find(const char *name);

typedef struct stk_storage stk_storage;

enum {
    STK_TENSOR_READONLY = 1u << 0, /* writing is refused */
    STK_TENSOR_SWAPPED = 1u << 1,  /* elements are in the other byte order; only copies and casts take such a tensor */
    STK_TENSOR_PINNED = 1u << 2    /* page-locked ordinary memory; set it on a borrowed tensor over memory you pinned */
};

typedef struct stk_tensor {
    void *data;           /* address of the element at index 0, 0, … */
    stk_storage *storage; /* owner of the memory, or NULL: borrowed */
    stk_device *device;   /* NULL means the CPU */
    stk_dtype dtype;
    int32_t ndim;
    uint32_t flags;
    uint32_t reserved;             /* the library's: names it while holders are recorded (profile.h), else 0 */
    int64_t shape[STK_MAX_DIMS];   /* elements, each >= 0; the first ndim are set */
    int64_t strides[STK_MAX_DIMS]; /* bytes from one index to the next, any sign; the first ndim are set */
} stk_tensor;

/* ---- storage ---------------------------------------------------------------------------------------------------- */

/* `bytes` of fresh memory on `device` (NULL: CPU), 64-byte aligned, not initialised. One reference. */
STK_API stk_status stk_storage_create(stk_device *device, int64_t bytes, stk_storage **out, stk_error *err);
/* Wraps memory owned by somebody else; `free_fn(context)` runs once, when the last reference goes, on that thread. */
STK_API stk_status stk_storage_wrap(stk_device *device, void *data, int64_t bytes, void (*free_fn)(void *context),
                                    void *context, stk_storage **out, stk_error *err);
STK_API void stk_storage_retain(stk_storage *storage);
STK_API void stk_storage_release(stk_storage *storage); /* NULL is fine */
STK_API void *stk_storage_data(const stk_storage *storage);
STK_API int64_t stk_storage_bytes(const stk_storage *storage);
STK_API int64_t stk_storage_refs(const stk_storage *storage);
STK_API stk_device *stk_storage_device(const stk_storage *storage);

/* ---- making and letting go -------------------------------------------------------------------------------------- */

/* Fresh row-major memory on `device` (NULL: CPU), not initialised / zeroed. */
STK_API stk_status stk_tensor_empty(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                    stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_zeros(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                    stk_tensor *out, stk_error *err);
/* A borrowed CPU tensor over the caller's memory; strides in bytes, NULL: row-major. The caller keeps the memory alive.
 */
STK_API stk_status stk_tensor_borrow(void *data, stk_dtype dtype, int ndim, const int64_t *shape,
                                     const int64_t *strides, stk_tensor *out, stk_error *err);
/* A tensor over part of a storage, which it retains; offset in bytes. STK_E_BAD_STORAGE: it would reach outside. */
STK_API stk_status stk_tensor_from_storage(stk_storage *storage, int64_t offset_bytes, stk_dtype dtype, int ndim,
                                           const int64_t *shape, const int64_t *strides, stk_tensor *out,
                                           stk_error *err);
STK_API void stk_tensor_retain(const stk_tensor *tensor);
/* Lets go and empties the struct, so that a second call does nothing. NULL is fine. */
STK_API void stk_tensor_release(stk_tensor *tensor);

/* ---- asking ------------------------------------------------------------------------------------------------------ */

STK_API int64_t stk_tensor_numel(const stk_tensor *tensor);
STK_API int64_t stk_tensor_nbytes(const stk_tensor *tensor); /* numel times element size */
/* Largest power of two (at most 4096) that divides the address and every stride of an axis longer than 1. */
STK_API int64_t stk_tensor_alignment(const stk_tensor *tensor);

/* In elements. STK_E_BAD_STRIDE: a stride, or the offset, is not a whole number of elements, as in a view of one member
 * of an array of structures. `strides` (ndim numbers) and `offset` (of the first element, from the start of the
 * storage) may be NULL. */
STK_API stk_status stk_tensor_element_strides(const stk_tensor *tensor, int64_t *strides, int64_t *offset,
                                              stk_error *err);
/* Bytes from the start of the storage to the first element; 0 for a borrowed tensor. */
STK_API int64_t stk_tensor_offset_bytes(const stk_tensor *tensor);
/* The same to the element at `index`, `ndim` numbers, negative ones from the end. STK_E_BAD_DIM: not as many as axes.
 */
STK_API stk_status stk_tensor_offset_of(const stk_tensor *tensor, int ndim, const int64_t *index, int64_t *out_bytes,
                                        stk_error *err);
/* One element. Its kind is that of the dtype; unsigned whole numbers up to 32 bits come as STK_SCALAR_INT. */
STK_API stk_status stk_tensor_get(const stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar *out,
                                  stk_error *err);
/* STK_E_BAD_VALUE as stk_tensor_fill. */
STK_API stk_status stk_tensor_set(stk_tensor *tensor, int ndim, const int64_t *index, stk_scalar value, stk_error *err);

/* ---- views ------------------------------------------------------------------------------------------------------- */

STK_API stk_status stk_tensor_view(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                   stk_error *err);
/* The view where the strides allow one, else a row-major copy. */
STK_API stk_status stk_tensor_reshape(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                      stk_error *err);
/* Axes first to last become one; a copy where reshape makes one. */
STK_API stk_status stk_tensor_flatten(const stk_tensor *tensor, int first, int last, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_permute(const stk_tensor *tensor, const int *dims, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_transpose(const stk_tensor *tensor, int dim0, int dim1, stk_tensor *out, stk_error *err);
/* Python's slice: negative start and end count from the end, both clamp. step >= 1. INT64_MIN start: from the
 * beginning; INT64_MAX end: to the end. */
STK_API stk_status stk_tensor_slice(const stk_tensor *tensor, int dim, int64_t start, int64_t end, int64_t step,
                                    stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_select(const stk_tensor *tensor, int dim, int64_t index, stk_tensor *out, stk_error *err);
/* Does not clamp. */
STK_API stk_status stk_tensor_narrow(const stk_tensor *tensor, int dim, int64_t start, int64_t length, stk_tensor *out,
                                     stk_error *err);
STK_API stk_status stk_tensor_flip(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_expand(const stk_tensor *tensor, int ndim, const int64_t *shape, stk_tensor *out,
                                     stk_error *err);
STK_API stk_status stk_tensor_squeeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);
/* Every axis of size 1 goes. */
STK_API stk_status stk_tensor_squeeze_all(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
STK_API stk_status stk_tensor_unsqueeze(const stk_tensor *tensor, int dim, stk_tensor *out, stk_error *err);

/* Any view of the storage; the tensor's own shape does not matter. Strides and offset (from the start of the storage)
 * in bytes; STK_SAME_OFFSET: the tensor's own. Strides must not be negative (STK_E_BAD_STRIDE); a tensor without
 * elements may lie anywhere. A borrowed tensor has no storage to check against: STK_E_BAD_STORAGE. */
#define STK_SAME_OFFSET INT64_MIN
STK_API stk_status stk_tensor_as_strided(const stk_tensor *tensor, int ndim, const int64_t *shape,
                                         const int64_t *strides, int64_t offset_bytes, stk_tensor *out, stk_error *err);
/* The two dims go, their diagonal becomes the last one; offset > 0 is above the main diagonal. */
STK_API stk_status stk_tensor_diagonal(const stk_tensor *tensor, int64_t offset, int dim0, int dim1, stk_tensor *out,
                                       stk_error *err);
/* Both expanded to the shape they have in common. */
STK_API stk_status stk_tensor_broadcast(const stk_tensor *a, const stk_tensor *b, stk_tensor *out_a, stk_tensor *out_b,
                                        stk_error *err);

/* ---- layout ------------------------------------------------------------------------------------------------------ */

typedef enum stk_layout {
    STK_LAYOUT_ROW_MAJOR = 0,     /* the last index is next to itself in memory: C, NumPy, torch */
    STK_LAYOUT_CHANNELS_LAST = 1, /* four axes: shape N, C, H, W over memory in the order N, H, W, C */
    STK_LAYOUT_COLUMN_MAJOR = 2,  /* the first index is: Fortran */
    STK_LAYOUT_KEEP = 3           /* clone: the strides of the original if it covers a block of memory exactly once */
} stk_layout;

/* Row-major. Axes of size 1 do not count; a tensor without elements is contiguous. */
STK_API bool stk_tensor_is_contiguous(const stk_tensor *tensor);
STK_API bool stk_tensor_is_channels_last(const stk_tensor *tensor);
/* The same question for any layout (KEEP: does it cover a block of memory exactly once). A tensor may have several at
 * once, so which one was meant is for the caller to know. docs/tensor.md has the exact answers. */
STK_API bool stk_tensor_has_layout(const stk_tensor *tensor, stk_layout layout);
/* Fresh memory, not initialised, in the given layout (not KEEP). STK_E_BAD_DIM: channels-last without four axes. */
STK_API stk_status stk_tensor_empty_as(stk_dtype dtype, int ndim, const int64_t *shape, stk_layout layout,
                                       stk_device *device, stk_tensor *out, stk_error *err);

/* ---- copies ------------------------------------------------------------------------------------------------------
 * A tensor in the other byte order (STK_TENSOR_SWAPPED) may be the source; the copy is in native order and may be
 * written.
 */

/* Itself (retained) if row-major and in native byte order, else a row-major copy. */
STK_API stk_status stk_tensor_contiguous(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
/* Always a row-major copy in fresh memory. */
STK_API stk_status stk_tensor_clone(const stk_tensor *tensor, stk_tensor *out, stk_error *err);
/* The same for any layout; contiguous_as takes no KEEP. */
STK_API stk_status stk_tensor_contiguous_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out,
                                            stk_error *err);
STK_API stk_status stk_tensor_clone_as(const stk_tensor *tensor, stk_layout layout, stk_tensor *out, stk_error *err);
/* Itself (retained) if it already has the dtype, else a row-major copy. Rules in docs/tensor.md: real to whole numbers
 * truncates and saturates, NaN gives 0; whole numbers wrap among themselves; to f16 and bf16 through f32. */
STK_API stk_status stk_tensor_to(const stk_tensor *tensor, stk_dtype dtype, stk_tensor *out, stk_error *err);
/* Itself (retained) if it is there already, else a copy in the layout KEEP. */
STK_API stk_status stk_tensor_to_device(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err);
/* Elements of `src`, broadcast to the shape of `dst` and cast to its dtype, across devices too. STK_E_BAD_OVERLAP: two
 * indices of `dst` are one place, or dst and src are two views of the same block of memory. */
STK_API stk_status stk_tensor_copy(stk_tensor *dst, const stk_tensor *src, stk_error *err);

/* ---- devices and streams -----------------------------------------------------------------------------------------
 * Every operation on a tensor of a device goes to the thread's current stream of that device (stk_stream_set_current)
 * and is in order with what that stream holds; without one it is done when the call returns. A tensor made on one
 * stream and used on another needs two things from its user, as in torch: the other stream waits for an event, and is
 * recorded before the tensor is released.
 */

/* torch's .to(device, non_blocking=…), in `stream`, which belongs to one of the two devices (NULL: the current one).
 * non_blocking and from pinned memory: queued when the call returns, and the source must stay as it is until the stream
 * has passed. non_blocking and to the CPU: the result is pinned and may be read once the stream has passed. Everything
 * else that touches ordinary memory is done when the call returns: pageable sources, sources that are rearranged or
 * cast on the way because the device cannot, and copies between two devices. */
STK_API stk_status stk_tensor_to_device_on(const stk_tensor *tensor, stk_device *device, stk_stream *stream,
                                           bool non_blocking, stk_tensor *out, stk_error *err);
/* stk_tensor_copy in a stream, with the same rules. */
STK_API stk_status stk_tensor_copy_on(stk_tensor *dst, const stk_tensor *src, stk_stream *stream, bool non_blocking,
                                      stk_error *err);
/* Fresh row-major memory of the CPU that `device` copies from and to without a detour (page-locked for a GPU), not
 * initialised. STK_E_BAD_DEVICE: the CPU needs none. */
STK_API stk_status stk_tensor_empty_pinned(stk_dtype dtype, int ndim, const int64_t *shape, stk_device *device,
                                           stk_tensor *out, stk_error *err);
/* Itself (retained) if it is pinned already, else a copy in pinned memory, laid out as with KEEP. STK_E_BAD_DEVICE: it
 * is not on the CPU. */
STK_API stk_status stk_tensor_pin(const stk_tensor *tensor, stk_device *device, stk_tensor *out, stk_error *err);
STK_API bool stk_tensor_is_pinned(const stk_tensor *tensor);
/* The tensor's memory is used in `stream` too: released, it is used again only after that stream has passed what it
 * holds by then. Copies record the stream they are given, and on pinned memory the one they use, by themselves. Memory
 * that is not the library's own stays with its owner. STK_E_BAD_DEVICE: the stream is of another device. */
STK_API stk_status stk_tensor_record_stream(const stk_tensor *tensor, stk_stream *stream, stk_error *err);

/* ---- filling ------------------------------------------------------------------------------------------------------
 */

/* One value in every element. STK_E_BAD_VALUE: it does not fit the dtype (a real is truncated for a whole-number dtype
 * first; infinities and NaN fit the real ones). */
STK_API stk_status stk_tensor_fill(stk_tensor *tensor, stk_scalar value, stk_error *err);
STK_API stk_status stk_tensor_zero(stk_tensor *tensor, stk_error *err);

#ifdef __cplusplus
}
#endif
#endif

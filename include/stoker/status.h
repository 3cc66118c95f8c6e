/* status.h: status codes, and the struct that describes an error.
 *
 * Every function that can fail returns a stk_status: 0 is success, a positive value is an outcome that is not an error
 * (end of data, not ready), a negative value is an error. Existing values never change. The last parameter `err` of
 * these functions may be NULL; if not, it is filled in on failure.
 *
 * Comments of the public headers describe errors and special values as follows. "STK_E_X: condition" means that the
 * function returns STK_E_X under this condition. A status in parentheses after a requirement is returned if the
 * requirement is not met. "NULL: meaning" and "0: meaning" say what this value of an argument, member or result means.
 */
#ifndef STOKER_STATUS_H
#define STOKER_STATUS_H

#include <stdint.h>

#if defined(__GNUC__)
#define STK_API __attribute__((visibility("default")))
#define STK_PRINTF(text_at, first_at) __attribute__((format(printf, text_at, first_at)))
#define STK_NODISCARD __attribute__((warn_unused_result))
#else
#define STK_API
#define STK_PRINTF(text_at, first_at)
#define STK_NODISCARD
#endif

/* Initializes an option struct: sets struct_size, and everything else to zero. */
#ifdef __cplusplus
extern "C++" {
template <typename opts_type> inline opts_type stk_opts_init()
{
    opts_type opts = opts_type();
    opts.struct_size = static_cast<uint32_t>(sizeof(opts_type));
    return opts;
}
}
#define STK_OPTS_INIT(opts_type) stk_opts_init<opts_type>()
#else
#define STK_OPTS_INIT(opts_type)         \
    {                                    \
        .struct_size = sizeof(opts_type) \
    }
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* X(value, identifier, name, text). The names appear in JSON and in the output of test drivers. */
#define STK_STATUS_LIST(X)                                                                           \
    X(0, STK_OK, "ok", "success")                                                                    \
    X(1, STK_END, "end", "no more data")                                                             \
    X(2, STK_AGAIN, "again", "not ready yet")                                                        \
    /* files */                                                                                      \
    X(-1, STK_E_UNSUPPORTED, "unsupported", "well formed, but uses a feature that is not supported") \
    X(-2, STK_E_UNSAFE, "unsafe", "refused for security: reading it could run code")                 \
    X(-3, STK_E_CORRUPT, "corrupt", "violates its format or contradicts itself")                     \
    X(-4, STK_E_TRUNCATED, "truncated", "shorter than it declares")                                  \
    X(-5, STK_E_LIMIT, "limit", "refused by a resource limit")                                       \
    X(-6, STK_E_NOT_FOUND, "not_found", "a file or a named part of one does not exist")              \
    /* tensor operations */                                                                          \
    X(-20, STK_E_BAD_SHAPE, "bad_shape", "element counts or sizes do not match")                     \
    X(-21, STK_E_BAD_VIEW, "bad_view", "the strides do not allow this view")                         \
    X(-22, STK_E_BAD_DIM, "bad_dim", "dimension out of range or repeated")                           \
    X(-23, STK_E_BAD_INDEX, "bad_index", "index out of range")                                       \
    X(-24, STK_E_BAD_STEP, "bad_step", "slice step below 1")                                         \
    X(-25, STK_E_BAD_STRIDE, "bad_stride", "negative stride where none is allowed")                  \
    X(-26, STK_E_BAD_STORAGE, "bad_storage", "reaches outside the storage")                          \
    X(-27, STK_E_BAD_BROADCAST, "bad_broadcast", "shapes do not broadcast")                          \
    X(-28, STK_E_BAD_DTYPE, "bad_dtype", "dtype not allowed here")                                   \
    X(-29, STK_E_BAD_DEVICE, "bad_device", "tensors are on different devices")                       \
    X(-30, STK_E_BAD_OVERLAP, "bad_overlap", "output overlaps an input or itself")                   \
    X(-31, STK_E_BAD_VALUE, "bad_value", "value does not fit the dtype")                             \
    X(-32, STK_E_BAD_ARG, "bad_arg", "invalid argument")                                             \
    X(-33, STK_E_EMPTY_REDUCE, "empty_reduce", "no elements to take the minimum or maximum of")      \
    X(-34, STK_E_DIV_ZERO, "div_zero", "integer division by zero")                                   \
    /* general */                                                                                    \
    X(-50, STK_E_RANGE, "range", "outside the allowed range")                                        \
    X(-51, STK_E_MEMORY, "memory", "out of memory")                                                  \
    X(-52, STK_E_IO, "io", "a system call failed")                                                   \
    X(-53, STK_E_TIMEOUT, "timeout", "not done within the time allowed")                             \
    X(-54, STK_E_BUSY, "busy", "in use")                                                             \
    X(-55, STK_E_CLOSED, "closed", "already closed")                                                 \
    X(-56, STK_E_FORKED, "forked", "handle belongs to the parent process")                           \
    X(-57, STK_E_CONFIG, "config", "configuration is wrong")                                         \
    X(-58, STK_E_MISMATCH, "mismatch", "values that must match do not")                              \
    X(-59, STK_E_DEVICE, "device", "a device is missing or failed")                                  \
    X(-60, STK_E_EMPTY, "empty", "there is nothing to deliver")                                      \
    X(-61, STK_E_CANCELLED, "cancelled", "cancelled by the caller")                                  \
    X(-62, STK_E_RESOURCE, "resource", "the process has no file descriptors or locks left")

typedef enum stk_status {
#define STK_X(value, identifier, name, text) identifier = value,
    STK_STATUS_LIST(STK_X)
#undef STK_X
} stk_status;

/* A plain struct owned by the caller; nothing in it needs to be freed. Unknown numbers are -1, unknown strings "".
 * `message` is a single line, without a trailing newline, that includes file, record, offset, found and expected. */
typedef struct stk_error {
    stk_status status;
    int64_t record; /* index of the sample in its field, or line number in a config */
    int64_t offset; /* offset in bytes from the start of the file, or column in a config */
    char file[256]; /* path; only its end if it is longer */
    char found[96];
    char expected[96];
    char message[640];
} stk_error;

/* "truncated", "bad_shape", …; "unknown" for a value outside the list. Static. Any thread. */
STK_API const char *stk_status_name(stk_status status);
/* A short description. Static. Any thread. */
STK_API const char *stk_status_text(stk_status status);
/* The version of the library that is loaded, as "1.2.3". Static. Any thread. */
STK_API const char *stk_version(void);
/* Frees a string returned by the library. NULL is allowed. Any thread. */
STK_API void stk_text_free(char *text);

#ifdef __cplusplus
}
#endif
#endif

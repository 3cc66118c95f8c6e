/* pt_global.c: see pt_global.h. The names that torch.load(weights_only=True) allows, without those that would run code.
 */
#include "pt_global.h"
#include <string.h>

static const stki_pt_global globals[] = {
    {"torch._utils", "_rebuild_tensor_v2", STKI_PT_REBUILD_V2, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_tensor_v3", STKI_PT_REBUILD_V3, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_tensor", STKI_PT_REBUILD_V1, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_parameter", STKI_PT_PARAMETER, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_parameter_with_state", STKI_PT_PARAMETER, STK_DTYPE_NONE},
    {"torch.nn.parameter", "Parameter", STKI_PT_PARAMETER, STK_DTYPE_NONE},
    {"collections", "OrderedDict", STKI_PT_ORDERED_DICT, STK_DTYPE_NONE},

    {"torch", "FloatStorage", STKI_PT_STORAGE, STK_F32},
    {"torch", "DoubleStorage", STKI_PT_STORAGE, STK_F64},
    {"torch", "HalfStorage", STKI_PT_STORAGE, STK_F16},
    {"torch", "BFloat16Storage", STKI_PT_STORAGE, STK_BF16},
    {"torch", "LongStorage", STKI_PT_STORAGE, STK_I64},
    {"torch", "IntStorage", STKI_PT_STORAGE, STK_I32},
    {"torch", "ShortStorage", STKI_PT_STORAGE, STK_I16},
    {"torch", "CharStorage", STKI_PT_STORAGE, STK_I8},
    {"torch", "ByteStorage", STKI_PT_STORAGE, STK_U8},
    {"torch", "BoolStorage", STKI_PT_STORAGE, STK_BOOL},
    {"torch", "ComplexFloatStorage", STKI_PT_STORAGE, STK_C64},
    {"torch", "ComplexDoubleStorage", STKI_PT_STORAGE, STK_C128},
    {"torch", "QInt8Storage", STKI_PT_STORAGE, STK_DTYPE_NONE},
    {"torch", "QUInt8Storage", STKI_PT_STORAGE, STK_DTYPE_NONE},
    {"torch", "QInt32Storage", STKI_PT_STORAGE, STK_DTYPE_NONE},
    {"torch", "QUInt4x2Storage", STKI_PT_STORAGE, STK_DTYPE_NONE},
    {"torch", "QUInt2x4Storage", STKI_PT_STORAGE, STK_DTYPE_NONE},
    {"torch.storage", "UntypedStorage", STKI_PT_UNTYPED, STK_DTYPE_NONE},

    {"torch", "bool", STKI_PT_DTYPE, STK_BOOL},
    {"torch", "uint8", STKI_PT_DTYPE, STK_U8},
    {"torch", "int8", STKI_PT_DTYPE, STK_I8},
    {"torch", "uint16", STKI_PT_DTYPE, STK_U16},
    {"torch", "int16", STKI_PT_DTYPE, STK_I16},
    {"torch", "uint32", STKI_PT_DTYPE, STK_U32},
    {"torch", "int32", STKI_PT_DTYPE, STK_I32},
    {"torch", "uint64", STKI_PT_DTYPE, STK_U64},
    {"torch", "int64", STKI_PT_DTYPE, STK_I64},
    {"torch", "float16", STKI_PT_DTYPE, STK_F16},
    {"torch", "bfloat16", STKI_PT_DTYPE, STK_BF16},
    {"torch", "float32", STKI_PT_DTYPE, STK_F32},
    {"torch", "float64", STKI_PT_DTYPE, STK_F64},
    {"torch", "complex64", STKI_PT_DTYPE, STK_C64},
    {"torch", "complex128", STKI_PT_DTYPE, STK_C128},
    {"torch", "float8_e4m3fn", STKI_PT_DTYPE, STK_F8_E4M3FN},
    {"torch", "float8_e5m2", STKI_PT_DTYPE, STK_F8_E5M2},
    {"torch", "float8_e4m3fnuz", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "float8_e5m2fnuz", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "float8_e8m0fnu", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "float4_e2m1fn_x2", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "complex32", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "bits1x8", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "bits2x4", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "bits4x2", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "bits8", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "bits16", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "qint8", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "quint8", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "qint32", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "quint4x2", STKI_PT_DTYPE, STK_DTYPE_NONE},
    {"torch", "quint2x4", STKI_PT_DTYPE, STK_DTYPE_NONE},

    {"torch", "Size", STKI_PT_SIZE, STK_DTYPE_NONE},
    {"torch", "device", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "Tensor", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "per_tensor_affine", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "per_tensor_symmetric", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "per_channel_affine", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "per_channel_symmetric", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch", "per_channel_affine_float_qparams", STKI_PT_OPAQUE, STK_DTYPE_NONE},
    {"torch.serialization", "_get_layout", STKI_PT_OPAQUE, STK_DTYPE_NONE},

    {"torch._utils", "_rebuild_sparse_tensor", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_qtensor", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"torch._utils", "_rebuild_nested_tensor", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"torch._tensor", "_rebuild_from_type_v2", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"_codecs", "encode", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"__builtin__", "set", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"__builtin__", "complex", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"__builtin__", "bytearray", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"__builtin__", "frozenset", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"__builtin__", "slice", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"builtins", "set", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"builtins", "complex", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"builtins", "bytearray", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"builtins", "frozenset", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"builtins", "slice", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"collections", "Counter", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"collections", "defaultdict", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy", "ndarray", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy", "dtype", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy.core.multiarray", "_reconstruct", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy.core.multiarray", "scalar", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy._core.multiarray", "_reconstruct", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
    {"numpy._core.multiarray", "scalar", STKI_PT_UNSUPPORTED, STK_DTYPE_NONE},
};

static bool is(const char *text, const char *bytes, int64_t count)
{
    return (int64_t)strlen(text) == count && !memcmp(text, bytes, (size_t)count);
}

const stki_pt_global *stki_pt_find_global(const char *module, int64_t module_bytes, const char *name,
                                          int64_t name_bytes)
{
    for (size_t i = 0; i < sizeof globals / sizeof globals[0]; i++)
        if (is(globals[i].module, module, module_bytes) && is(globals[i].name, name, name_bytes))
            return &globals[i];
    return NULL;
}

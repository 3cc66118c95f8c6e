/* Tests of the parser of .npy headers, in memory: all spellings that NumPy writes or reads, and what it rejects. */
#include "npy_header.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static stk_error err;

/* Parses `text` as the header of a file with `data_bytes` after it. The text is copied to a block of its size, so that
 * sanitizers detect reads outside. */
static stk_status parse_bytes(int major, const char *text, size_t length, int64_t data_bytes, stk_dtype alias,
                              stki_npy_header *out)
{
    stki_npy_prefix prefix = {major, major == 1 ? 10 : 12, (int64_t)length};
    char *copy = malloc(length ? length : 1);
    stk_status status;

    memcpy(copy, text, length);
    memset(&err, 0, sizeof err);
    status = stki_npy_read_header(&prefix, copy, prefix.text_offset + prefix.text_bytes + data_bytes, alias, "F.npy",
                                  out, &err);
    free(copy);
    if (status) {
        assert_int_equal(err.status, status);
        assert_memory_equal(err.message, "F.npy: ", 7);
        assert_true(strlen(err.message) > 20);
        assert_true(err.found[0] || err.expected[0] || status == STK_E_LIMIT);
    }
    return status;
}

static stk_status parse(const char *text, stki_npy_header *out)
{
    return parse_bytes(1, text, strlen(text), 1 << 20, STK_DTYPE_NONE, out);
}

static void good(const char *text)
{
    stki_npy_header h;

    if (parse(text, &h))
        fail_msg("%s\n%s", text, err.message);
    assert_int_equal(h.dtype, STK_I32);
    assert_int_equal(h.ndim, 2);
    assert_int_equal(h.shape[0], 3);
    assert_int_equal(h.shape[1], 4);
    assert_false(h.fortran);
    assert_false(h.swapped);
    assert_int_equal(h.strides[0], 16);
    assert_int_equal(h.strides[1], 4);
    assert_int_equal(h.data_bytes, 48);
    assert_int_equal(h.data_offset, 10 + (int64_t)strlen(text));
}

/* `offset` is the offset in the text that the message must name; -1: any. */
static void bad(const char *text, stk_status status, int64_t offset, const char *says)
{
    stki_npy_header h = {.ndim = 77};

    if (parse(text, &h) != status)
        fail_msg("%s\nfound %s (%s), expected %s", text, stk_status_name(err.status), err.message,
                 stk_status_name(status));
    assert_int_equal(h.ndim, 77); /* unchanged */
    if (offset >= 0)
        assert_int_equal(err.offset, 10 + offset);
    if (!strstr(err.message, says))
        fail_msg("%s\nmessage: %s\nexpected in it: %s", text, err.message, says);
}

/* Rows N11 and N15: keys in any order, any spaces, both kinds of quotes, optional trailing commas. */
static void test_spellings_that_load(void **state)
{
    (void)state;
    good("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4), }                \n");
    good("{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4)}");
    good("{'descr':'<i4','fortran_order':False,'shape':(3,4,),}");
    good("{\"shape\": (3, 4), \"fortran_order\": False, \"descr\": \"<i4\"}");
    good("{'fortran_order': False, \"shape\": (3, 4), 'descr': '<i4'}");
    good("  \t\r\n{ 'descr'\t:\n'<i4' ,\r\n 'fortran_order' : False , 'shape' : ( 3 , 4 , ) , } \t\r\n");
    good("{u'descr': u'<i4', U'fortran_order': False, u\"shape\": (3L, 4L)}");
    good("{'descr': '=i4', 'fortran_order': False, 'shape': (3, 4)}");
    good("{'descr': '|i4', 'fortran_order': False, 'shape': (3, 4)}");
    good("{'descr': 'i4', 'fortran_order': False, 'shape': (3, 4)}");
    good("{'descr': 'int32', 'fortran_order': False, 'shape': (3, 4)}");
}

static void test_the_long_suffix_ends_with_version_2(void **state)
{
    static const char text[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (3L, 4L)}";
    stki_npy_header h;

    (void)state;
    assert_int_equal(parse_bytes(1, text, sizeof text - 1, 48, STK_DTYPE_NONE, &h), STK_OK);
    assert_int_equal(parse_bytes(2, text, sizeof text - 1, 48, STK_DTYPE_NONE, &h), STK_OK);
    assert_int_equal(h.data_offset, 12 + (int64_t)sizeof text - 1);
    assert_int_equal(parse_bytes(3, text, sizeof text - 1, 48, STK_DTYPE_NONE, &h), STK_E_CORRUPT);
    assert_string_equal(err.found, "'3L' (a number that is not a plain decimal integer)");
}

static void test_syntax_errors(void **state)
{
    (void)state;
    bad("", STK_E_CORRUPT, 0, "found the end of the header, expected '{'");
    bad("   ", STK_E_CORRUPT, 3, "expected '{'");
    bad("['descr']", STK_E_CORRUPT, 0, "found '['");
    bad("dict(descr='<i4')", STK_E_CORRUPT, 0, "found 'dict'");
    bad("{", STK_E_CORRUPT, 1, "the end of the header");
    bad("{}", STK_E_CORRUPT, 1, "the missing key 'descr'");
    bad("{,}", STK_E_CORRUPT, 1, "the key");
    bad("{'descr': '<i4'}", STK_E_CORRUPT, 15, "the missing key 'fortran_order'");
    bad("{'descr': '<i4', 'shape': (3,)}", STK_E_CORRUPT, 30, "the missing key 'fortran_order'");
    bad("{'descr': '<i4', 'fortran_order': False}", STK_E_CORRUPT, 39, "the missing key 'shape'");
    bad("{'shape': (3,), 'fortran_order': False}", STK_E_CORRUPT, 38, "the missing key 'descr'");
    bad("{'descr' '<i4'}", STK_E_CORRUPT, 9, "a colon");
    bad("{'descr': '<i4' 'fortran_order': False}", STK_E_CORRUPT, 16, "a comma or '}'");
    bad("{'descr': '<i4',, 'fortran_order': False}", STK_E_CORRUPT, 16, "the key");
    bad("{'descr': '<i4', 'x': 1, 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 17, "found 'x'");
    bad("{'Descr': '<i4', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 1, "found 'Descr'");
    bad("{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 17, "each key once");
    bad("{'shape': (3,), 'shape': (3,), 'fortran_order': False, 'descr': '<i4'}", STK_E_CORRUPT, 16, "each key once");
    bad("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x", STK_E_CORRUPT, 56, "nothing but blanks");
    bad("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}}", STK_E_CORRUPT, 55, "nothing but blanks");
    bad("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)", STK_E_CORRUPT, 54, "a comma or '}'");
    bad("{'descr': '<i4, 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 17, "found 'fortran_order'");
    bad("{'descr': '<i4", STK_E_CORRUPT, 10, "an unterminated string");
    bad("{'descr': '<i4\n', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 14, "a line break or NUL inside");
    bad("{'descr': '<i4', 'fortran_order': False, # so\n 'shape': (3,)}", STK_E_CORRUPT, 41, "not allowed in a header");
    bad("{'des\\x63r': '<i4', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 1, "the key");
    bad("{'descr': '<\\x694', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 10, "a type string");
    bad("{'descr': '<i4\\", STK_E_CORRUPT, 10, "an unterminated string");
    bad("{'descr': b'<i4', 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 10, "found 'b'");
    bad("{'descr': '<i4', 'fortran_order': 0, 'shape': (3,)}", STK_E_CORRUPT, 34, "True or False");
    bad("{'descr': '<i4', 'fortran_order': 'False', 'shape': (3,)}", STK_E_CORRUPT, 34, "True or False");
    bad("{'descr': '<i4', 'fortran_order': None, 'shape': (3,)}", STK_E_CORRUPT, 34, "True or False");
    bad("{'descr': '<i4', 'fortran_order': Falsey, 'shape': (3,)}", STK_E_CORRUPT, 34, "True or False");
    bad("{'descr': '<i4', 'fortran_order': true, 'shape': (3,)}", STK_E_CORRUPT, 34, "True or False");
    bad("{'descr': None, 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 10, "a type string");
    bad("{'descr': 4, 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 10, "a type string");
    bad("{'descr': {'names': ['a']}, 'fortran_order': False, 'shape': (3,)}", STK_E_CORRUPT, 10, "a type string");
}

static void bad_shape(const char *shape, const char *says)
{
    char text[256];

    snprintf(text, sizeof text, "{'descr': '<i4', 'fortran_order': False, 'shape': %s}", shape);
    bad(text, STK_E_CORRUPT, -1, says);
}

/* Row N14 (a bare integer) and similar texts. */
static void test_invalid_shapes(void **state)
{
    (void)state;
    bad_shape("10", "found '10', expected a tuple");
    bad_shape("(3)", "a comma after the only size");
    bad_shape("[3, 4]", "found '['");
    bad_shape("(3.0,)", "found '3.0'");
    bad_shape("(3., 4)", "found '3.'");
    bad_shape("(1e3,)", "found '1e3'");
    bad_shape("(-1,)", "found '-1'");
    bad_shape("(+3,)", "found '+3'");
    bad_shape("(None,)", "found 'None'");
    bad_shape("(True, 12)", "found 'True'");
    bad_shape("('3',)", "found '3'");
    bad_shape("((3, 4),)", "found '('");
    bad_shape("(3*4,)", "found '*4'");
    bad_shape("(3,,4)", "found ','");
    bad_shape("(,)", "found ','");
    bad_shape("(,3)", "found ','");
    bad_shape("(3 4)", "found '4'");
    bad_shape("(3, 4", "found '}'");
    bad_shape("(3, 4]", "found ']'");
    bad_shape("(0x10,)", "found '0x10'");
    bad_shape("(1_000,)", "found '1_000'");
    bad_shape("(010,)", "a number with a leading zero");
    bad_shape("(3LL,)", "found '3LL'");
    bad_shape("(3l,)", "found '3l'");
    bad_shape("(3, 4x)", "found '4x'");
    bad_shape("()()", "found '('");
}

static void shape_is(const char *shape, int ndim, const int64_t *sizes, int64_t bytes)
{
    stki_npy_header h;
    char text[1024];

    snprintf(text, sizeof text, "{'descr': '<i4', 'fortran_order': False, 'shape': %s}", shape);
    assert_int_equal(parse(text, &h), STK_OK);
    assert_int_equal(h.ndim, ndim);
    for (int i = 0; i < ndim; i++)
        assert_int_equal(h.shape[i], sizes[i]);
    assert_int_equal(h.data_bytes, bytes);
}

/* Includes rows N07 and N08. */
static void test_shapes(void **state)
{
    (void)state;
    shape_is("()", 0, NULL, 4);
    shape_is("( )", 0, NULL, 4);
    shape_is("(7,)", 1, (const int64_t[]){7}, 28);
    shape_is("(0,)", 1, (const int64_t[]){0}, 0);
    shape_is("(3, 0, 2)", 3, (const int64_t[]){3, 0, 2}, 0);
    shape_is("(2,3,4,)", 3, (const int64_t[]){2, 3, 4}, 96);
}

static void test_too_many_axes(void **state)
{
    char text[512] = "{'descr': '|u1', 'fortran_order': True, 'shape': (";
    stki_npy_header h;

    (void)state;
    for (int i = 0; i < 32; i++)
        strcat(text, i == 31 ? "5" : "1,");
    strcat(text, ")}");
    assert_int_equal(parse(text, &h), STK_OK);
    assert_int_equal(h.ndim, 32);
    assert_int_equal(h.shape[31], 5);
    assert_int_equal(h.strides[31], 1);
    text[strlen(text) - 2] = '\0';
    strcat(text, ",1)}");
    bad(text, STK_E_UNSUPPORTED, 49, "found 33 axes");
    assert_non_null(strstr(err.expected, "32"));
}

/* Rows N19 and N22; an axis of length 0 must not hide an overflow. */
static void test_sizes_that_overflow(void **state)
{
    static const char *const shapes[] = {"(2, 2, 1, 2305843009213693952)", "(4294967296, 4294967296)",
                                         "(1099511627776, 1099511627776, 0)", "(0, 9223372036854775807)",
                                         "(2305843009213693952,)"};
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        snprintf(text, sizeof text, "{'descr': '<i4', 'fortran_order': False, 'shape': %s}", shapes[i]);
        bad(text, STK_E_CORRUPT, 50, "the shape overflows");
        assert_non_null(strstr(err.found, shapes[i]));
    }
    bad_shape("(9223372036854775808,)", "a size that fits in 63 bits");
    bad_shape("(99999999999999999999999999999999999999,)", "a size that fits in 63 bits");
    /* The largest possible sizes fail because data is missing, not because of an overflow. */
    bad("{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775807,)}", STK_E_TRUNCATED, -1,
        "expected 9223372036854775807 bytes of uint8");
    bad("{'descr': '|u1', 'fortran_order': False, 'shape': (100000000, 10)}", STK_E_TRUNCATED, -1,
        "found 1048576 bytes, expected 1000000000 bytes of uint8");
}

static void test_fortran_order_is_strides(void **state)
{
    stki_npy_header h;

    (void)state;
    assert_int_equal(parse("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3, 5)}", &h), STK_OK);
    assert_true(h.fortran);
    assert_true(h.swapped);
    assert_int_equal(h.strides[0], 8);
    assert_int_equal(h.strides[1], 16);
    assert_int_equal(h.strides[2], 48);
    assert_int_equal(h.data_bytes, 240);
    assert_int_equal(parse("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 5)}", &h), STK_OK);
    assert_int_equal(h.strides[2], 8);
    assert_int_equal(h.data_bytes, 0);
}

static void test_type_strings(void **state)
{
    static const struct {
        const char *descr;
        stk_dtype dtype;
        bool swapped;
    } types[] = {{"|b1", STK_BOOL, false},
                 {"?", STK_BOOL, false},
                 {"<b1", STK_BOOL, false},
                 {"|u1", STK_U8, false},
                 {">u1", STK_U8, false},
                 {"u1", STK_U8, false},
                 {"|i1", STK_I8, false},
                 {"<u2", STK_U16, false},
                 {">u2", STK_U16, true},
                 {"<i2", STK_I16, false},
                 {">i2", STK_I16, true},
                 {"<u4", STK_U32, false},
                 {">u4", STK_U32, true},
                 {"=i4", STK_I32, false},
                 {">i4", STK_I32, true},
                 {"<u8", STK_U64, false},
                 {">u8", STK_U64, true},
                 {"<i8", STK_I64, false},
                 {">i8", STK_I64, true},
                 {"<f2", STK_F16, false},
                 /* one-letter codes as numpy.dtype 2.4 interprets them */
                 {"b", STK_I8, false},
                 {"B", STK_U8, false},
                 {"<h", STK_I16, false},
                 {">H", STK_U16, true},
                 {"i", STK_I32, false},
                 {"<I", STK_U32, false},
                 {"l", STK_I64, false},
                 {"L", STK_U64, false},
                 {"q", STK_I64, false},
                 {"Q", STK_U64, false},
                 {"p", STK_I64, false},
                 {"P", STK_U64, false},
                 {"e", STK_F16, false},
                 {"f", STK_F32, false},
                 {"<f", STK_F32, false},
                 {">d", STK_F64, true},
                 {"d", STK_F64, false},
                 {"F", STK_C64, false},
                 {"D", STK_C128, false},
                 {">f2", STK_F16, true},
                 {"<f4", STK_F32, false},
                 {">f4", STK_F32, true},
                 {"<f8", STK_F64, false},
                 {">f8", STK_F64, true},
                 {"<c8", STK_C64, false},
                 {">c8", STK_C64, true},
                 {"<c16", STK_C128, false},
                 {">c16", STK_C128, true},
                 {"|c16", STK_C128, false}};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        stki_npy_header h;
        char text[256];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", types[i].descr);
        assert_int_equal(parse(text, &h), STK_OK);
        assert_int_equal(h.dtype, types[i].dtype);
        assert_int_equal(h.swapped, types[i].swapped);
    }
}

/* Related to row N04: the error names the dtype that is not supported. */
static void test_types_that_are_refused(void **state)
{
    static const struct {
        const char *descr;
        stk_status status;
        const char *says;
    } types[] = {{"<f16", STK_E_UNSUPPORTED, "long double"},
                 {"<c32", STK_E_UNSUPPORTED, "long double"},
                 {"|S4", STK_E_UNSUPPORTED, "byte strings"},
                 {"|a7", STK_E_UNSUPPORTED, "byte strings"},
                 {"S", STK_E_UNSUPPORTED, "byte strings"},
                 {"<U5", STK_E_UNSUPPORTED, "text"},
                 {"<M8[ns]", STK_E_UNSUPPORTED, "dates"},
                 {"<m8[25s]", STK_E_UNSUPPORTED, "dates"},
                 {"<M8", STK_E_UNSUPPORTED, "dates"},
                 {"|V8", STK_E_UNSUPPORTED, "source.dtype"},
                 {"<V2", STK_E_UNSUPPORTED, "source.dtype"},
                 {"<f1", STK_E_UNSUPPORTED, "source.dtype"},
                 {"|O", STK_E_UNSAFE, "refused for security"},
                 {"O", STK_E_UNSAFE, "refused for security"},
                 {"|O8", STK_E_UNSAFE, "refused for security"},
                 {"", STK_E_CORRUPT, "unknown element type"},
                 {"<", STK_E_CORRUPT, "unknown element type"},
                 {"<<i4", STK_E_CORRUPT, "unknown element type"},
                 {"!i4", STK_E_CORRUPT, "unknown element type"},
                 {"<i4 ", STK_E_CORRUPT, "unknown element type"},
                 {" <i4", STK_E_CORRUPT, "unknown element type"},
                 {"i4i4", STK_E_CORRUPT, "unknown element type"},
                 {"<i3", STK_E_CORRUPT, "unknown element type"},
                 {"<g", STK_E_UNSUPPORTED, "long double"},
                 {"<x", STK_E_CORRUPT, "unknown element type"},
                 {"<i16", STK_E_CORRUPT, "unknown element type"},
                 {"<f3", STK_E_CORRUPT, "unknown element type"},
                 {"<c4", STK_E_CORRUPT, "unknown element type"},
                 {"<b2", STK_E_CORRUPT, "unknown element type"},
                 {"?1", STK_E_CORRUPT, "unknown element type"},
                 {"<q8", STK_E_CORRUPT, "unknown element type"},
                 {"<i4294967300", STK_E_CORRUPT, "unknown element type"},
                 {"<f18446744073709551620", STK_E_CORRUPT, "unknown element type"},
                 {"<M8ns]", STK_E_CORRUPT, "unknown element type"},
                 {"<M4[ns]", STK_E_CORRUPT, "unknown element type"},
                 {"|S4x", STK_E_CORRUPT, "unknown element type"},
                 {"bfloat16", STK_E_CORRUPT, "unknown element type"},
                 {"u8x", STK_E_CORRUPT, "unknown element type"},
                 {"none", STK_E_CORRUPT, "unknown element type"},
                 {"Object", STK_E_CORRUPT, "unknown element type"}};
    char text[256], quoted[64];

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", types[i].descr);
        bad(text, types[i].status, 10, types[i].says);
        snprintf(quoted, sizeof quoted, "descr '%s'", types[i].descr);
        assert_string_equal(err.found, quoted);
    }
}

/* Rows N09 (version 3 with a non-Latin name) and N11. */
static void test_structured_types(void **state)
{
    static const char utf8[] = "{'descr': [('\xe6\xb8\xa9', '<f4')], 'fortran_order': False, 'shape': (2,)}";
    stki_npy_header h;

    (void)state;
    bad("{'descr': [('shape', '<f4'), ('fortran_order', '<i2', (3,))], 'fortran_order': False, 'shape': (2,), }",
        STK_E_UNSUPPORTED, 10, "found [('shape', '<f4'), ('fortran_order', '<i2', (3,))]");
    bad("{'descr': ('<f4', (3,)), 'fortran_order': False, 'shape': (2,)}", STK_E_UNSUPPORTED, 10, "('<f4', (3,))");
    bad("{'descr': [(('title', 'O'), '<f4'), ('O', '<i4'), ('', '|V7')], 'fortran_order': False, 'shape': (2,)}",
        STK_E_UNSUPPORTED, 10, "structured");
    bad("{'descr': [('it\\'s', '<f4')], 'fortran_order': False, 'shape': (2,)}", STK_E_UNSUPPORTED, 10, "structured");
    bad("{'descr': [('a', '<i4'), ('b', '|O')], 'fortran_order': False, 'shape': (2,)}", STK_E_UNSAFE, 10, "security");
    bad("{'descr': [('a', [('b', [('c', '|O8')])])], 'fortran_order': False, 'shape': (2,)}", STK_E_UNSAFE, 10,
        "security");
    bad("{'descr': ('|O', (3,)), 'fortran_order': False, 'shape': (2,)}", STK_E_UNSAFE, 10, "security");
    bad("{'descr': [('a', ('|O', (2,)))], 'fortran_order': False, 'shape': (2,)}", STK_E_UNSAFE, 10, "security");
    bad("{'descr': [('a', '<f4'], 'fortran_order': False, 'shape': (2,)}", STK_E_CORRUPT, 22, "the matching bracket");
    bad("{'descr': [('a', '<f4')", STK_E_CORRUPT, 23, "the rest of 'descr'");
    bad("{'descr': [('a', '<f4')], 'fortran_order': 1, 'shape': (2,)}", STK_E_CORRUPT, 43, "True or False");
    assert_int_equal(parse_bytes(3, utf8, sizeof utf8 - 1, 8, STK_DTYPE_NONE, &h), STK_E_UNSUPPORTED);
    assert_string_equal(err.found, "[('?"
                                   "?"
                                   "?', '<f4')]"); /* messages are printable */
}

static void test_depth_is_bounded(void **state)
{
    static char text[200000];

    (void)state;
    strcpy(text, "{'descr': ");
    memset(text + 10, '[', 64);
    strcpy(text + 74, "]}");
    bad(text, STK_E_CORRUPT, 75, "the matching bracket"); /* up to 64 levels are parsed */
    memset(text + 10, '(', sizeof text - 11);
    bad(text, STK_E_LIMIT, 74, "nested deeper than 64");
}

static void test_encodings(void **state)
{
    static const char latin[] = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} \xff";
    static const struct {
        const char *bytes;
        bool valid;
    } sequences[] = {{"\xc2\x80", true},          {"\xdf\xbf", true},          {"\xe0\xa0\x80", true},
                     {"\xed\x9f\xbf", true},      {"\xef\xbf\xbf", true},      {"\xf0\x90\x80\x80", true},
                     {"\xf4\x8f\xbf\xbf", true},  {"\xc0\x80", false},         {"\xc1\xbf", false},
                     {"\xe0\x9f\xbf", false},     {"\xed\xa0\x80", false},     {"\xf0\x8f\xbf\xbf", false},
                     {"\xf4\x90\x80\x80", false}, {"\xf5\x80\x80\x80", false}, {"\x80", false},
                     {"\xe2\x82", false},         {"\xe2\x82'", false},        {"\xff", false}};
    stki_npy_header h;

    (void)state;
    assert_int_equal(parse_bytes(1, latin, sizeof latin - 1, 12, STK_DTYPE_NONE, &h), STK_E_CORRUPT);
    assert_int_equal(parse_bytes(3, latin, sizeof latin - 1, 12, STK_DTYPE_NONE, &h), STK_E_CORRUPT);
    assert_string_equal(err.found, "byte 0xff");
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "{'descr': [('%s', '<f4')], 'fortran_order': False, 'shape': (3,)}",
                 sequences[i].bytes);
        assert_int_equal(parse_bytes(3, text, strlen(text), 12, STK_DTYPE_NONE, &h),
                         sequences[i].valid ? STK_E_UNSUPPORTED : STK_E_CORRUPT);
        /* Older versions use one byte per character, so any byte is allowed. */
        assert_int_equal(parse_bytes(2, text, strlen(text), 12, STK_DTYPE_NONE, &h),
                         strchr(sequences[i].bytes, '\'') ? STK_E_CORRUPT : STK_E_UNSUPPORTED);
    }
    /* NUL bytes are not allowed anywhere. */
    for (int at = 0; at < 56; at++) {
        char text[56];
        memcpy(text, "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}  ", sizeof text);
        text[at] = '\0';
        assert_int_equal(parse_bytes(1, text, sizeof text, 12, STK_DTYPE_NONE, &h), STK_E_CORRUPT);
    }
}

static stk_status with_alias(const char *descr, stk_dtype alias, stki_npy_header *h)
{
    char text[128];

    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", descr);
    return parse_bytes(1, text, strlen(text), 64, alias, h);
}

static void test_types_that_the_user_names(void **state)
{
    stki_npy_header h;

    (void)state;
    assert_int_equal(with_alias("<V2", STK_BF16, &h), STK_OK);
    assert_int_equal(h.dtype, STK_BF16);
    assert_int_equal(h.data_bytes, 4);
    assert_false(h.swapped);
    assert_int_equal(with_alias("|V2", STK_BF16, &h), STK_OK);
    assert_int_equal(with_alias("V1", STK_F8_E4M3FN, &h), STK_OK);
    assert_int_equal(h.dtype, STK_F8_E4M3FN);
    assert_int_equal(with_alias("<f1", STK_F8_E5M2, &h), STK_OK);
    assert_int_equal(with_alias("<f1", STK_F8_E4M3FN, &h), STK_OK);
    assert_int_equal(with_alias("<u2", STK_BF16, &h), STK_OK); /* bits that were saved as integers */
    assert_int_equal(h.dtype, STK_BF16);
    assert_int_equal(with_alias(">u2", STK_BF16, &h), STK_OK);
    assert_true(h.swapped);
    assert_int_equal(with_alias("|u1", STK_F8_E5M2, &h), STK_OK);
    assert_int_equal(with_alias("<f4", STK_F32, &h), STK_OK); /* the same dtype as in the file */
    assert_int_equal(with_alias("<f4", STK_F64, &h), STK_E_MISMATCH);
    assert_string_equal(err.found, "descr '<f4'");
    assert_string_equal(err.expected, "float64 (source.dtype)");
    assert_int_equal(with_alias("<f2", STK_BF16, &h), STK_E_MISMATCH);
    assert_int_equal(with_alias("<V2", STK_F8_E5M2, &h), STK_E_MISMATCH);
    assert_int_equal(with_alias("<V3", STK_BF16, &h), STK_E_MISMATCH);
    assert_int_equal(with_alias(">V2", STK_BF16, &h), STK_E_UNSUPPORTED);
    assert_int_equal(with_alias("|O", STK_F64, &h), STK_E_UNSAFE); /* an alias does not make objects safe */
    assert_int_equal(with_alias("|S2", STK_BF16, &h), STK_E_UNSUPPORTED);
}

static stk_status prefix_of(const char *bytes, int64_t file_bytes, int64_t limit, stki_npy_prefix *out)
{
    size_t known = file_bytes < STKI_NPY_PREFIX ? (size_t)file_bytes : STKI_NPY_PREFIX;
    char *copy = malloc(known ? known : 1);
    stk_status status;

    memcpy(copy, bytes, known);
    status = stki_npy_read_prefix(copy, file_bytes, limit, "F.npy", out, &err);
    free(copy);
    return status;
}

/* Rows N09 (length fields of 2 and 4 bytes) and N16 (all bytes of the magic must match). */
static void test_prefix(void **state)
{
    static const char v1[] = "\x93NUMPY\x01\x00\x76\x01{ ", v2[] = "\x93NUMPY\x02\x00\x76\x01\x02\x00",
                      v3[] = "\x93NUMPY\x03\x00\xff\xff\xff\xff";
    stki_npy_prefix p;

    (void)state;
    assert_int_equal(prefix_of(v1, 10000, 0, &p), STK_OK);
    assert_int_equal(p.major, 1);
    assert_int_equal(p.text_offset, 10);
    assert_int_equal(p.text_bytes, 0x176);
    assert_int_equal(prefix_of(v2, 10000000, 0, &p), STK_OK);
    assert_int_equal(p.text_offset, 12);
    assert_int_equal(p.text_bytes, 0x20176);
    assert_int_equal(prefix_of(v1, 10 + 0x176, 0, &p), STK_OK);
    assert_int_equal(prefix_of(v1, 10 + 0x175, 0, &p), STK_E_TRUNCATED);
    assert_string_equal(err.found, "373 bytes");
    assert_string_equal(err.expected, "374 bytes of header");
    assert_int_equal(prefix_of(v3, 100, 0, &p), STK_E_TRUNCATED);
    assert_int_equal(prefix_of(v3, INT64_C(1) << 40, 0, &p), STK_E_LIMIT);
    assert_non_null(strstr(err.message, "header_limit"));
    assert_int_equal(prefix_of(v3, INT64_C(1) << 40, INT64_C(1) << 33, &p), STK_OK);
    assert_int_equal(p.text_bytes, 0xffffffff);
    assert_int_equal(prefix_of(v1, 10000, 0x175, &p), STK_E_LIMIT);
    for (int64_t cut = 0; cut < 10; cut++)
        assert_int_equal(prefix_of(v1, cut, 0, &p), STK_E_TRUNCATED);
    for (int64_t cut = 0; cut < 12; cut++)
        assert_int_equal(prefix_of(v2, cut, 0, &p), STK_E_TRUNCATED);
    for (int i = 0; i < 6; i++) {
        char wrong[13];
        memcpy(wrong, v1, 12);
        wrong[i] ^= 0x20;
        assert_int_equal(prefix_of(wrong, 10000, 0, &p), STK_E_CORRUPT);
        assert_int_equal(err.offset, i);
    }
    assert_int_equal(prefix_of("NUMPY\x01\x00\x76\x00 {}", 10000, 0, &p), STK_E_CORRUPT);
    for (int major = 0; major < 256; major++) {
        char version[13];
        memcpy(version, v1, 12);
        version[6] = (char)major;
        assert_int_equal(prefix_of(version, INT64_C(1) << 40, INT64_C(1) << 33, &p),
                         major >= 1 && major <= 3 ? STK_OK : STK_E_UNSUPPORTED);
        version[7] = 1;
        assert_int_equal(prefix_of(version, 10000, 0, &p), STK_E_UNSUPPORTED);
    }
}

/* Each header truncated at every byte, and with every byte changed: parsing gives a header or an error with a
 * message. */
static void test_cut_and_changed_headers(void **state)
{
    static const char text[] = "{'descr': [('a', '<f4')], u'fortran_order': False, \"shape\": (3, 4L, ), }  \n";
    stki_npy_header h;

    (void)state;
    for (size_t cut = 0; cut < sizeof text - 1; cut++)
        assert_int_equal(parse_bytes(1, text, cut, 64, STK_DTYPE_NONE, &h),
                         cut > (size_t)(strrchr(text, '}') - text) ? STK_E_UNSUPPORTED : STK_E_CORRUPT);
    for (size_t at = 0; at < sizeof text - 1; at++)
        for (int value = 0; value < 256; value++) {
            char changed[sizeof text - 1];
            memcpy(changed, text, sizeof changed);
            changed[at] = (char)value;
            assert_int_not_equal(parse_bytes(1, changed, sizeof changed, 64, STK_DTYPE_NONE, &h), STK_OK);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings_that_load),
        cmocka_unit_test(test_the_long_suffix_ends_with_version_2),
        cmocka_unit_test(test_syntax_errors),
        cmocka_unit_test(test_invalid_shapes),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_too_many_axes),
        cmocka_unit_test(test_sizes_that_overflow),
        cmocka_unit_test(test_fortran_order_is_strides),
        cmocka_unit_test(test_type_strings),
        cmocka_unit_test(test_types_that_are_refused),
        cmocka_unit_test(test_structured_types),
        cmocka_unit_test(test_depth_is_bounded),
        cmocka_unit_test(test_encodings),
        cmocka_unit_test(test_types_that_the_user_names),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_cut_and_changed_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

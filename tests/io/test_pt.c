/* Tests of tensors in .pt files that are built byte by byte, and of the pickle machine, opcode by opcode. Files written
 * by torch are in tests/oracle. */
#include "allocate.h"
#include "container.h"
#include "faults.h"
#include "format.h"
#include "io_files.h"
#include "pt_tensor.h"
#include "source_opts.h"
#include "stk_test.h"
#include "zip_build.h"
#include <stoker/tensor.h>

static stk_error err;

/* ---- pickles ---- */

/* For a literal, which may contain NULs. */
#define UNPICKLE(text, out) stki_pt_unpickle("\x80\x02" text, sizeof("\x80\x02" text) - 1, "f", out, &err)
#define REFUSED(text, status, says)                       \
    do {                                                  \
        stki_pt_pickle refused_;                          \
        assert_status(UNPICKLE(text, &refused_), status); \
        assert_says(says);                                \
    } while (0)

#define ORDERED "ccollections\nOrderedDict\n)R"
#define STORAGE(class, key, count) "(X\7\0\0\0storage" class "X\1\0\0\0" key "X\3\0\0\0cpuK" count "tQ"
#define FLOATS "ctorch\nFloatStorage\n"
#define REBUILD "ctorch._utils\n_rebuild_tensor_v2\n"

static const stki_pt_value *root_of(const stki_pt_pickle *p)
{
    return &p->values[p->root];
}

static void integer_is(const stki_pt_value *value, int64_t expected)
{
    assert_int_equal(value->kind, STKI_PT_INT);
    assert_int_equal(value->integer, expected);
}

static void test_numbers(void **state)
{
    stki_pt_pickle p;

    (void)state;
    assert_ok(UNPICKLE("(K\377M\377\377J\377\377\377\377J\0\0\0\200\212\0\212\1\200\212\2\200\0"
                       "\212\10\377\377\377\377\377\377\377\177\212\10\0\0\0\0\0\0\0\200\212\11\0\0\0\0\0\0\0\0\1"
                       "N\210\211G\277\370\0\0\0\0\0\0t.",
                       &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_TUPLE);
    assert_int_equal(root_of(&p)->count, 14);
    integer_is(stki_pt_item(&p, root_of(&p), 0), 255);
    integer_is(stki_pt_item(&p, root_of(&p), 1), 65535);
    integer_is(stki_pt_item(&p, root_of(&p), 2), -1);
    integer_is(stki_pt_item(&p, root_of(&p), 3), INT32_MIN);
    integer_is(stki_pt_item(&p, root_of(&p), 4), 0);
    integer_is(stki_pt_item(&p, root_of(&p), 5), -128);
    integer_is(stki_pt_item(&p, root_of(&p), 6), 128);
    integer_is(stki_pt_item(&p, root_of(&p), 7), INT64_MAX);
    integer_is(stki_pt_item(&p, root_of(&p), 8), INT64_MIN);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 9)->kind, STKI_PT_LONG);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 10)->kind, STKI_PT_NONE);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 11)->kind, STKI_PT_BOOL);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 11)->integer, 1);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 12)->integer, 0);
    assert_int_equal(stki_pt_item(&p, root_of(&p), 13)->kind, STKI_PT_FLOAT);
    assert_true(stki_pt_item(&p, root_of(&p), 13)->real == -1.5);
    stki_pt_pickle_free(&p);
}

static void text_is(const stki_pt_value *value, const char *expected)
{
    assert_int_equal(value->kind, STKI_PT_TEXT);
    assert_int_equal(value->length, strlen(expected));
    assert_memory_equal(value->text, expected, strlen(expected));
}

static void test_texts_and_memo(void **state)
{
    stki_pt_pickle p;

    (void)state;
    assert_ok(UNPICKLE("\225\0\0\0\0\0\0\0\0]q\0(X\3\0\0\0\303\244!q\1\214\1b\224U\1cr\3\0\0\0\215\1\0\0\0\0\0\0\0d"
                       "h\1h\2j\3\0\0\0C\1\377B\1\0\0\0xU\1\377e.",
                       &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_LIST);
    assert_int_equal(root_of(&p)->count, 10);
    text_is(stki_pt_item(&p, root_of(&p), 0), "\303\244!");
    text_is(stki_pt_item(&p, root_of(&p), 1), "b");
    text_is(stki_pt_item(&p, root_of(&p), 2), "c");
    text_is(stki_pt_item(&p, root_of(&p), 3), "d");
    assert_ptr_equal(stki_pt_item(&p, root_of(&p), 4), stki_pt_item(&p, root_of(&p), 0));
    /* MEMOIZE gave it this number */
    assert_ptr_equal(stki_pt_item(&p, root_of(&p), 5), stki_pt_item(&p, root_of(&p), 1));
    assert_ptr_equal(stki_pt_item(&p, root_of(&p), 6), stki_pt_item(&p, root_of(&p), 2));
    for (int i = 7; i < 10; i++)
        assert_int_equal(stki_pt_item(&p, root_of(&p), i)->kind, STKI_PT_BYTES);
    stki_pt_pickle_free(&p);
    REFUSED("X\2\0\0\0\377\376.", STK_E_CORRUPT, "UTF-8");
    REFUSED("X\2\0\0\0a.", STK_E_TRUNCATED, "the pickle is truncated");
    REFUSED("X\377\377\377\377a.", STK_E_TRUNCATED, "4294967295");
    REFUSED("\215\377\377\377\377\377\377\377\377a.", STK_E_TRUNCATED, "the pickle is truncated");
    REFUSED("h\5.", STK_E_CORRUPT, "memo");
    REFUSED("]q\1h\0.", STK_E_CORRUPT, "memo");
    REFUSED("]r\377\377\377\377.", STK_E_LIMIT, "memo");
}

static void test_containers(void **state)
{
    stki_pt_pickle p;

    (void)state;
    assert_ok(UNPICKLE("}(X\1\0\0\0a)X\1\0\0\0bK\1\205X\1\0\0\0cK\1K\2\206uX\1\0\0\0dK\1K\2K\3\207s.", &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_DICT);
    assert_int_equal(root_of(&p)->count, 8);
    for (int i = 0; i < 4; i++)
        assert_int_equal(stki_pt_item(&p, root_of(&p), 2 * i + 1)->count, i);
    stki_pt_pickle_free(&p);
    assert_ok(UNPICKLE("](K\1K\2eK\3a.", &p));
    assert_int_equal(root_of(&p)->count, 3);
    integer_is(stki_pt_item(&p, root_of(&p), 2), 3);
    stki_pt_pickle_free(&p);

    REFUSED("K\1t.", STK_E_CORRUPT, "no mark");
    REFUSED("K\1\206.", STK_E_CORRUPT, "empty stack");
    REFUSED("K\1(K\2\206.", STK_E_CORRUPT, "empty stack"); /* opcodes cannot pop below the mark */
    REFUSED("]K\1(a.", STK_E_CORRUPT, "empty stack");
    REFUSED("(K\1a.", STK_E_CORRUPT, "empty stack");
    REFUSED("(K\1e.", STK_E_CORRUPT, "empty stack");
    REFUSED("}K\1a.", STK_E_CORRUPT, "a list below");
    REFUSED("]K\1K\2s.", STK_E_CORRUPT, "a dict below");
    REFUSED("}(K\1K\2K\3u.", STK_E_CORRUPT, "pairs");
    REFUSED(")K\1a.", STK_E_CORRUPT, "a list below");
    REFUSED("", STK_E_TRUNCATED, "the pickle is truncated");
    REFUSED("}", STK_E_TRUNCATED, "the pickle is truncated");
    REFUSED(".", STK_E_CORRUPT, "one value");
    REFUSED("K\1K\2.", STK_E_CORRUPT, "one value");
    REFUSED("(K\1.", STK_E_CORRUPT, "one value");
    REFUSED("\376.", STK_E_CORRUPT, "0xfe");
}

/* A name that is not in the table is an error, even if it would not be called. */
static void test_names(void **state)
{
    static const char *const names[] = {"torch._utils\n_rebuild_tensor_v2 \n",
                                        "torch._utils\n_rebuild_tensor_V2\n",
                                        "torch\n_utils._rebuild_tensor_v2\n",
                                        "os\nsystem\n",
                                        "builtins\neval\n",
                                        "torch\nload\n",
                                        "torch.nn.modules.linear\nLinear\n",
                                        "numpy\nload\n",
                                        "collections\nOrderedDict2\n",
                                        "\n\n"};
    char pickle[4000];
    stki_pt_pickle p;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int length = snprintf(pickle, sizeof pickle,
                              "\x80\x02"
                              "c%s.",
                              names[i]);

        assert_status(stki_pt_unpickle(pickle, length, "f", &p, &err), STK_E_UNSAFE);
        assert_says("security");
    }
    memset(pickle, 'a', sizeof pickle); /* "a" is not PROTO, so the pickle begins with the opcode of the name */
    pickle[0] = 'c';
    assert_status(stki_pt_unpickle(pickle, sizeof pickle, "f", &p, &err), STK_E_UNSAFE);
    assert_says("1024");
    assert_status(stki_pt_unpickle(pickle, 700, "f", &p, &err), STK_E_TRUNCATED);
    REFUSED("ccollections\0\nOrderedDict\n.", STK_E_UNSAFE, "collections");
    REFUSED("X\13\0\0\0collectionsX\13\0\0\0OrderedDict\223\214\2os\214\6system\223.", STK_E_UNSAFE, "os.system");
    REFUSED("K\1\214\6system\223.", STK_E_CORRUPT, "two strings");
    REFUSED("ios\nsystem\n.", STK_E_UNSAFE, "INST");
    REFUSED("\202\1.", STK_E_UNSAFE, "EXT1");
    REFUSED("Pabc\n.", STK_E_UNSAFE, "PERSID");
    REFUSED("]0.", STK_E_UNSUPPORTED, "POP");
    REFUSED("I1\n.", STK_E_UNSUPPORTED, "INT");
    REFUSED("\217.", STK_E_UNSUPPORTED, "EMPTY_SET");
    assert_status(stki_pt_unpickle("\x80\x63}.", 4, "f", &p, &err), STK_E_UNSUPPORTED);
    assert_says("99");
}

static void test_reduce(void **state)
{
    stki_pt_pickle p;

    (void)state;
    assert_ok(UNPICKLE(ORDERED "X\1\0\0\0aK\1s}b.", &p)); /* attributes are ignored */
    assert_int_equal(root_of(&p)->kind, STKI_PT_DICT);
    assert_int_equal(root_of(&p)->count, 2);
    stki_pt_pickle_free(&p);
    assert_ok(UNPICKLE("ccollections\nOrderedDict\n](K\1K\2\206]K\3aK\4ae\205R.", &p)); /* as Python 2 writes it */
    assert_int_equal(root_of(&p)->count, 4);
    integer_is(stki_pt_item(&p, root_of(&p), 3), 4);
    stki_pt_pickle_free(&p);
    assert_ok(UNPICKLE("ctorch\nSize\nK\2K\3\206\205R.", &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_TORCH_SIZE);
    assert_int_equal(stki_pt_item_count(&p, root_of(&p)), 2);
    stki_pt_pickle_free(&p);
    assert_ok(UNPICKLE("c__builtin__\nset\n](K\1K\2e\205R.", &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_OTHER);
    stki_pt_pickle_free(&p);
    assert_ok(UNPICKLE("ccollections\ndefaultdict\n)R(K\1K\2u}b.", &p)); /* objects that are not read keep no items */
    assert_int_equal(root_of(&p)->kind, STKI_PT_OTHER);
    stki_pt_pickle_free(&p);

    REFUSED("ccollections\nOrderedDict\nK\1\205R.", STK_E_CORRUPT, "pairs");
    REFUSED("ccollections\nOrderedDict\n]K\1a\205R.", STK_E_CORRUPT, "pairs");
    REFUSED("ctorch\nSize\n]\205R.", STK_E_CORRUPT, "tuple");
    REFUSED("ctorch\nfloat32\n)R.", STK_E_CORRUPT, "expected a callable");
    REFUSED("K\1)R.", STK_E_CORRUPT, "expected a callable and a tuple of arguments");
    REFUSED("ccollections\nOrderedDict\n]R.", STK_E_CORRUPT, "tuple");
    REFUSED("ccollections\nOrderedDict\n)(R.", STK_E_CORRUPT, "empty stack"); /* opcodes cannot pop below the mark */
    REFUSED("ccollections\nOrderedDict\n()R.", STK_E_CORRUPT, "empty stack");
    REFUSED(ORDERED "}(b.", STK_E_CORRUPT, "empty stack");
    REFUSED("K\1(Q.", STK_E_CORRUPT, "empty stack");
    REFUSED("](q\0.", STK_E_CORRUPT, "empty stack");
    REFUSED("]}b.", STK_E_CORRUPT, "attributes");
    REFUSED(ORDERED "K\1b.", STK_E_CORRUPT, "attributes");
}

static void test_storages(void **state)
{
    stki_pt_pickle p;

    (void)state;
    assert_ok(UNPICKLE(STORAGE(FLOATS, "7", "\5") ".", &p));
    assert_int_equal(root_of(&p)->kind, STKI_PT_STORED);
    stki_pt_pickle_free(&p);
    REFUSED(STORAGE("ctorch\nfloat32\n", "7", "\5") ".", STK_E_CORRUPT, "storage class");
    REFUSED(STORAGE(FLOATS, "a", "\5") ".", STK_E_CORRUPT, "digits");
    REFUSED("(X\7\0\0\0storage" FLOATS "X\4\0\0\0../0X\3\0\0\0cpuK\1tQ.", STK_E_CORRUPT, "digits");
    REFUSED("(X\7\0\0\0storage" FLOATS "X\1\0\0\0000X\3\0\0\0cpuJ\377\377\377\377tQ.", STK_E_CORRUPT, "number");
    REFUSED("(X\7\0\0\0storagf" FLOATS "X\1\0\0\0000X\3\0\0\0cpuK\1tQ.", STK_E_CORRUPT, "persistent");
    REFUSED("K\1Q.", STK_E_CORRUPT, "persistent");
    REFUSED(REBUILD "(K\1K\2tR.", STK_E_CORRUPT, "2 arguments");
    REFUSED(REBUILD "(" STORAGE(FLOATS, "0", "\5") "K\0]]\211" ORDERED "tR.", STK_E_CORRUPT, "other arguments");
}

/* ---- walking ---- */

static void walk(const char *pickle, size_t length, stki_pt_leaves *leaves)
{
    stki_pt_pickle p;

    assert_ok(stki_pt_unpickle(pickle, (int64_t)length, "f", &p, &err));
    assert_ok(stki_pt_walk(&p, (int64_t)length, "f", leaves, &err));
    stki_pt_pickle_free(&p);
}

static void test_paths(void **state)
{
    static const char pickle[] = "}(X\1\0\0\0a](K\1)K\2\205eK\7K\0K\1K\2\206K\0NK\0\210K\0G\100\4\0\0\0\0\0\0K\0"
                                 "G\77\271\231\231\231\231\231\232K\0G\100\10\0\0\0\0\0\0K\0K\1\205K\0u.";
    static const char *const expected[] = {"a/0", "a/2/0", "7", "(1, 2)", "None", "True", "2.5", "0.1", "3.0", "(1,)"};
    stki_pt_leaves leaves;

    (void)state;
    walk(pickle, sizeof pickle - 1, &leaves);
    assert_int_equal(leaves.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_string_equal(leaves.leaves[i].path, expected[i]);
    stki_pt_leaves_free(&leaves);
    walk("N.", 2, &leaves);
    assert_int_equal(leaves.count, 1);
    assert_string_equal(leaves.leaves[0].path, "");
    stki_pt_leaves_free(&leaves);
}

static stk_status walk_status(const char *pickle, size_t length)
{
    stki_pt_leaves leaves;
    stki_pt_pickle p;
    stk_status status;

    assert_ok(stki_pt_unpickle(pickle, (int64_t)length, "f", &p, &err));
    status = stki_pt_walk(&p, (int64_t)length, "f", &leaves, &err);
    if (!status)
        stki_pt_leaves_free(&leaves);
    stki_pt_pickle_free(&p);
    return status;
}

static void test_endless(void **state)
{
    char pickle[3000], *at = pickle;

    (void)state;
    assert_status(walk_status("]q\0h\0a.", 7), STK_E_UNSUPPORTED);
    assert_says("contains itself");
    /* Each pair contains the previous pair twice, 40 times. */
    memcpy(at, "]q\1", 3);
    at += 3;
    for (char i = 1; i < 40; i++, at += 5)
        memcpy(at, (char[]){'h', i, '\x86', 'q', (char)(i + 1)}, 5);
    *at++ = '.';
    assert_status(walk_status(pickle, (size_t)(at - pickle)), STK_E_LIMIT);
    assert_says("shared");
    /* Nested tuples: 999 levels are accepted, 1001 are not. */
    for (int depth = 999; depth <= 1001; depth += 2) {
        memset(pickle, '(', (size_t)depth);
        memset(pickle + depth, 't', (size_t)depth);
        pickle[2 * depth] = '.';
        assert_status(walk_status(pickle, 2 * (size_t)depth + 1), depth < 1000 ? STK_OK : STK_E_LIMIT);
    }
    assert_status(walk_status("}]K\1s.", 6), STK_E_UNSUPPORTED);
    assert_says("dict key");
    assert_status(walk_status("}X\2\0\0\0a\0K\1s.", 12), STK_E_UNSUPPORTED);
    assert_says("NUL");
}

/* ---- files ---- */

static const float values[6] = {1, 2, 3, 4, 5, 6};

#define TENSOR(key, count, offset, sizes, strides) \
    REBUILD "(" STORAGE(FLOATS, key, count) "K" offset "(" sizes "t(" strides "t\211" ORDERED "tR"

static const char *make_file(const char *pickle, size_t length, bool deflated, uint32_t crc)
{
    const char *path = stkt_path("test.pt");
    size_t packed_bytes;
    void *packed = stkt_deflate(values, sizeof values, &packed_bytes);
    stkt_zip zip = {0};

    stkt_zip_add(&zip, &(stkt_zip_member){.name = "m/data.pkl", .data = pickle, .bytes = length});
    stkt_zip_add(&zip, &(stkt_zip_member){.name = "m/data/0",
                                          .data = deflated ? packed : values,
                                          .bytes = deflated ? packed_bytes : sizeof values,
                                          .size = sizeof values,
                                          .crc = crc,
                                          .method = deflated ? 8 : 0});
    stkt_zip_end(&zip, 0, "");
    stkt_write_file(path, zip.bytes, zip.count);
    free(zip.bytes);
    free(packed);
    return path;
}
#define MAKE_FILE(pickle, deflated, crc) make_file("\x80\x02" pickle, sizeof("\x80\x02" pickle) - 1, deflated, crc)

static stk_status read_one(const char *path, const char *name, const stki_reader_opts *opts, stk_tensor *out)
{
    stki_container *c;
    stki_array array;
    int64_t member;
    stk_status status = stki_container_open(path, opts, &c, &err);

    if (status)
        return status;
    assert_ok(stki_container_find(c, &(stki_reader_opts){.name = name}, &member, &err));
    status = stki_container_array(c, member, opts, &array, &err);
    if (!status) {
        status = stki_array_tensor(&array, path, out, &err);
        stki_array_release(&array);
    }
    stki_container_release(c);
    return status;
}

static float value_at(const stk_tensor *t, int64_t i, int64_t k)
{
    float value;

    memcpy(&value, (char *)t->data + i * t->strides[0] + k * t->strides[1], 4);
    return value;
}

/* Row T01: the strides in the file are used. Row T02: tensors at several offsets of one storage. */
static void test_views(void **state)
{
    const char *path = MAKE_FILE("}(X\1\0\0\0t" TENSOR("0", "\6", "\0", "K\3K\2", "K\1K\3") "X\1\0\0\0v" TENSOR(
                                     "0", "\6", "\1", "K\1K\4", "K\6K\1") "u.",
                                 false, 0);
    const enum stki_access modes[] = {STKI_ACCESS_MMAP, STKI_ACCESS_PREAD};
    stk_tensor t;

    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        stki_reader_opts opts = {.access = modes[mode], .verify = true};

        assert_ok(read_one(path, "t", &opts, &t));
        assert_int_equal(t.shape[0], 3);
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 2; k++)
                assert_true(value_at(&t, i, k) == values[i + 3 * k]);
        stk_tensor_release(&t);
        assert_ok(read_one(path, "v", &opts, &t));
        for (int k = 0; k < 4; k++)
            assert_true(value_at(&t, 0, k) == values[1 + k]);
        stk_tensor_release(&t);
    }
    path =
        MAKE_FILE(TENSOR("0", "\6", "\0", "K\3K\2", "K\1K\3") ".", true, (uint32_t)crc32(0, (const Bytef *)values, 24));
    assert_ok(read_one(path, "", NULL, &t));
    assert_true(value_at(&t, 2, 1) == 6);
    stk_tensor_release(&t);
}

static void test_checks(void **state)
{
    stki_reader_opts verify = {.verify = true}, small = *stkt_source("{memory_limit: 10}");
    stk_tensor t;

    (void)state;
    assert_ok(read_one(MAKE_FILE(TENSOR("0", "\6", "\0", "K\6", "K\1") ".", false, 5), "", NULL, &t));
    stk_tensor_release(&t);
    assert_status(read_one(stkt_path("test.pt"), "", &verify, &t), STK_E_CORRUPT);
    assert_says("CRC");
    assert_status(read_one(MAKE_FILE(TENSOR("0", "\6", "\0", "K\6", "K\1") ".", true, 5), "", NULL, &t), STK_E_CORRUPT);
    assert_status(read_one(stkt_path("test.pt"), "", &small, &t), STK_E_LIMIT);
    assert_says("memory_limit");
    assert_status(read_one(MAKE_FILE(TENSOR("0", "\5", "\0", "K\5", "K\1") ".", false, 0), "", NULL, &t),
                  STK_E_CORRUPT);
    assert_says("the wrong size");
    assert_status(read_one(MAKE_FILE(TENSOR("3", "\6", "\0", "K\6", "K\1") ".", false, 0), "", NULL, &t),
                  STK_E_CORRUPT);
    assert_says("no storage data/3");
    assert_status(read_one(MAKE_FILE(TENSOR("0", "\6", "\1", "K\6", "K\1") ".", false, 0), "", NULL, &t),
                  STK_E_CORRUPT);
    assert_says("extends beyond its storage: found 24 bytes at element 1");
    /* With a stride of 0, a few bytes can back a shape of any size, up to the memory limit. */
    assert_ok(read_one(MAKE_FILE(TENSOR("0", "\6", "\0", "K\100", "K\0") ".", false, 0), "", NULL, &t));
    assert_int_equal(t.shape[0], 64);
    stk_tensor_release(&t);
    small = *stkt_source("{memory_limit: 100}");
    assert_status(read_one(stkt_path("test.pt"), "", &small, &t), STK_E_LIMIT);
    assert_says("memory_limit");
}

/* Values that are not supported are listed with the reason. */
static void test_unsupported_values(void **state)
{
    static const char *const reasons[] = {"l: an integer of more than 64 bits is not supported",
                                          "s: a bare storage is not supported"};
    stki_container *c;

    (void)state;
    assert_ok(stki_container_open(
        MAKE_FILE("}(X\1\0\0\0l\212\11\0\0\0\0\0\0\0\0\1X\1\0\0\0s" STORAGE(FLOATS, "0", "\6") "u.", false, 0), NULL,
        &c, &err));
    assert_int_equal(c->member_count, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(c->members[i].status, STK_E_UNSUPPORTED);
        assert_non_null(strstr(c->members[i].why, reasons[i]));
    }
    stki_container_release(c);
}

/* Of two values with the same path the last one wins. */
static void test_repeated_paths(void **state)
{
    stki_container *c;

    (void)state;
    assert_ok(
        stki_container_open(MAKE_FILE("}(X\1\0\0\0002K\1K\2K\5X\1\0\0\0aNX\1\0\0\0aK\11u.", false, 0), NULL, &c, &err));
    assert_int_equal(c->member_count, 2);
    assert_int_equal(c->warning_count, 2);
    assert_string_equal(c->members[0].name, "2");
    assert_int_equal(json_integer_value(json_object_get(c->members[0].details, "value")), 5);
    assert_int_equal(json_integer_value(json_object_get(c->members[1].details, "value")), 9);
    stki_container_release(c);
}

/* Row T04: the error of a truncated file says so and has its name and size. */
static void test_cut(void **state)
{
    const char *path = stkt_path("cut.pt");
    char buffer[4096];
    FILE *file = fopen(STKT_TESTS_DIR "/oracle/pt/views_shared.pt", "rb");
    size_t whole = fread(buffer, 1, sizeof buffer, file), cut = whole * 9 / 10;
    stki_container *c;
    char bytes[40];

    (void)state;
    fclose(file);
    stkt_write_file(path, buffer, cut);
    assert_status(stki_container_open(path, NULL, &c, &err), STK_E_TRUNCATED);
    snprintf(bytes, sizeof bytes, "%zu bytes", cut);
    assert_says(bytes);
    assert_says(path);
}

static stk_status open_and_read(const char *path, enum stki_access access)
{
    stki_reader_opts opts = {.access = access, .verify = true};
    stki_container *c;
    stki_reader *reader;
    stk_status status = stki_container_open(path, &opts, &c, &err);

    if (status)
        return status;
    status = stki_container_reader(c, 0, &opts, &reader, &err);
    if (!status)
        stki_reader_destroy(reader);
    stki_container_release(c);
    return status;
}

static void test_memory(void **state)
{
    const char *path = MAKE_FILE("}(X\1\0\0\0t" TENSOR("0", "\6", "\0", "K\3K\2", "K\1K\3") "X\1\0\0\0a](K\1K\2eu.",
                                 true, (uint32_t)crc32(0, (const Bytef *)values, 24));
    stki_memory_stats before, after;
    int failures = 0;

    (void)state;
    stki_memory_read(STKI_MEM_HOST, &before);
    for (int n = 1;; n++) {
        stki_memory_fail_at(n);
        if (!open_and_read(path, STKI_ACCESS_PREAD) && n > 60)
            break;
        failures += err.status == STK_E_MEMORY;
    }
    stki_memory_fail_at(0);
    stki_memory_read(STKI_MEM_HOST, &after);
    assert_true(failures > 40);
    assert_int_equal(before.bytes, after.bytes);
    for (int n = 1;; n++) {
        stkt_fail_read(n, 5 /* EIO */);
        if (!open_and_read(path, STKI_ACCESS_PREAD))
            break;
        assert_int_equal(err.status, STK_E_IO);
    }
    stkt_fail_read(0, 0);
}

/* ---- files written by torch ---- */

static void check_range(const char *name)
{
    char path[512];
    stki_container *c;
    stki_array array;
    stk_tensor t;

    snprintf(path, sizeof path, "%s/data/%s", STKT_TESTS_DIR, name);
    assert_ok(stki_container_open(path, &(stki_reader_opts){0}, &c, &err));
    assert_int_equal(c->member_count, 1);
    assert_ok(stki_container_array(c, 0, &(stki_reader_opts){.verify = true}, &array, &err));
    assert_ok(stki_array_tensor(&array, path, &t, &err));
    assert_int_equal(t.dtype, STK_F32);
    assert_int_equal(t.ndim, 3);
    for (int i = 0; i < 24; i++) {
        float value;

        memcpy(&value, (const char *)t.data + 4 * i, 4);
        assert_true(value == (float)i);
    }
    stk_tensor_release(&t);
    stki_array_release(&array);
    stki_container_release(c);
}

/* torch.arange(24.0).reshape(2, 3, 4) in the format before torch 1.6, and as a parameter with attributes. */
static void test_written_by_torch(void **state)
{
    (void)state;
    check_range("legacy.pt");
    check_range("parameter.pt");
}

static stk_status open_bytes(const char *bytes, size_t count)
{
    const char *path = stkt_path("legacy.pt");
    stki_container *c;
    stk_status status;

    stkt_write_file(path, bytes, count);
    status = stki_container_open(path, &(stki_reader_opts){0}, &c, &err);
    if (status == STK_OK)
        stki_container_release(c);
    return status;
}

/* Truncated at every byte, and with each byte changed: the result is an error or a valid file. */
static void test_legacy_damaged(void **state)
{
    enum { BYTES = 441, SIZE_AT = 337 };
    char path[512], bytes[BYTES];
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/data/legacy.pt", STKT_TESTS_DIR);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, BYTES, file), BYTES);
    fclose(file);
    for (size_t count = 16; count < BYTES; count++)
        assert_status(open_bytes(bytes, count), STK_E_TRUNCATED);
    for (int i = 15; i < BYTES; i++)
        for (int k = 0; k < 8; k++) {
            bytes[i] = (char)(bytes[i] ^ 1 << k);
            (void)open_bytes(bytes, BYTES);
            bytes[i] = (char)(bytes[i] ^ 1 << k);
        }
    bytes[SIZE_AT] = 23;
    assert_status(open_bytes(bytes, BYTES), STK_E_CORRUPT);
    assert_says("found 23, expected 24");
    bytes[SIZE_AT] = 24;
    bytes[18] = (char)0xea; /* protocol 1002 */
    assert_status(open_bytes(bytes, BYTES), STK_E_UNSUPPORTED);
    assert_says("1001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_texts_and_memo),
        cmocka_unit_test(test_containers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_storages),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_unsupported_values),
        cmocka_unit_test(test_repeated_paths),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_written_by_torch),
        cmocka_unit_test(test_legacy_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

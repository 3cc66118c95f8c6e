/* test_cases.h: the framework of the driver that runs the case files (README.md describes them). An operation or a
 * check is a row of a table: its name as in the files, its number of arguments and results, and a function. Each
 * test_cases_*.c has one table of operations and one of checks, and registers them with TC_REGISTER. Adding a row or a
 * file requires no change elsewhere. */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include <casefile.h>
#include <stdbool.h>
#include <stoker/stoker.h>

enum { TC_REGISTERS = 64, TC_LIST = 4096, TC_ANY = -1 };

/* A type of object that a register can hold besides tensors: quantized and sparse tensors, parameters. */
typedef struct tc_type {
    const char *name;
    void (*destroy)(void *object);
} tc_type;

typedef struct tc_value {
    const tc_type *type; /* NULL: the value is `tensor` */
    stk_tensor tensor;
    void *object;
} tc_value;

typedef struct tc_register {
    char name[32]; /* "": unused */
    tc_value value;
} tc_register;

typedef struct tc {
    tc_register registers[TC_REGISTERS];
    const char *folder; /* of the case file; paths in it are relative to this */
    stk_device *device; /* where operations create tensors: the device of a trailing dev=…, or the default */
    bool broken;        /* the line itself is malformed */
    char why[900];      /* why the line fails */
    stk_error err;      /* of the last operation */
} tc;

/* Results go to out[0] (and out[1]), which must stay empty on failure. A malformed line calls tc_bad. */
typedef stk_status (*tc_op_fn)(tc *m, char **arg, tc_value *out, stk_error *err);
/* Returns true if the check holds; otherwise it reports with tc_say what it found. */
typedef bool (*tc_check_fn)(tc *m, char **arg);

typedef struct tc_op {
    const char *name;
    int args, results;
    tc_op_fn run;
} tc_op;

typedef struct tc_check {
    const char *name;
    int args; /* including the register */
    tc_check_fn holds;
} tc_check;

typedef struct tc_table {
    const tc_op *ops;
    int op_count;
    const tc_check *checks;
    int check_count;
    struct tc_table *next;
} tc_table;

void tc_register_table(tc_table *table);

/* Use this once in each file, after `static const tc_op tc_ops[]` and `static const tc_check tc_checks[]`. */
#define TC_REGISTER                                                                      \
    static tc_table tc_this = {tc_ops, (int)(sizeof tc_ops / sizeof *tc_ops), tc_checks, \
                               (int)(sizeof tc_checks / sizeof *tc_checks), NULL};       \
    __attribute__((constructor)) static void tc_register_this(void)                      \
    {                                                                                    \
        tc_register_table(&tc_this);                                                     \
    }
#define TC_NO_OPS static const tc_op tc_ops[] = {{NULL, 0, 0, NULL}};
#define TC_NO_CHECKS static const tc_check tc_checks[] = {{NULL, 0, NULL}};

/* ---- arguments: each function calls tc_bad for text that it cannot parse ---- */

void tc_bad(tc *m, const char *format, ...) STK_PRINTF(2, 3); /* the line is malformed */
bool tc_say(tc *m, const char *format, ...) STK_PRINTF(2, 3); /* records why a check does not hold; returns false */

stk_tensor *tc_tensor(tc *m, const char *name);                /* never NULL */
void *tc_object(tc *m, const char *name, const tc_type *type); /* NULL after tc_bad */
int64_t tc_int(tc *m, const char *text);
double tc_real(tc *m, const char *text);
stk_dtype tc_dtype(tc *m, const char *text);
stk_device *tc_device(tc *m, const char *text);              /* "cpu" or "other", as the driver's options map them */
bool tc_given(const char *text);                             /* not "_" */
int tc_list(tc *m, const char *text, int64_t *out, int max); /* count; "()" is 0 */
int tc_dims(tc *m, const char *text, int *out, int max);
bool tc_is_scalar(const char *text); /* "i:3", "f:0.5", "b:1"; anything else is a register */
stk_scalar tc_scalar(tc *m, const char *text);
stk_scalar tc_number(tc *m, const char *text);                /* "3" is an integer, "0.5" a float */
int64_t tc_hex(tc *m, const char *text, unsigned char **out); /* returns the number of bytes; free(*out) */

/* ---- comparing ---- */

/* The elements in row-major order, in memory that the caller frees. NULL after tc_say. */
unsigned char *tc_elements(tc *m, const stk_tensor *tensor, int64_t *bytes);
/* The elements as doubles, in memory that the caller frees. */
double *tc_doubles(tc *m, const stk_tensor *tensor, int64_t *count);
/* in a static buffer that the fourth call after this one reuses */
const char *tc_list_text(int count, const int64_t *list);

#endif

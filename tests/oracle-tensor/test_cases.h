/* test_cases.h: the frame of the driver that runs the case files (README.md describes them). An operation or a check is
 * a row of a table: its name as in the files, how many arguments and results it has, and a function. Each
 * test_cases_*.c brings one table of each and registers them with TC_REGISTER; nothing else needs to know it.
 */
#ifndef TEST_CASES_H
#define TEST_CASES_H

#include <casefile.h>
#include <stdbool.h>
#include <stoker/stoker.h>

enum { TC_REGISTERS = 64, TC_LIST = 4096, TC_ANY = -1 };

/* What a register holds besides tensors (quantised and sparse ones, parameters): an object that knows how to go. */
typedef struct tc_type {
    const char *name;
    void (*destroy)(void *object);
} tc_type;

typedef struct tc_value {
    const tc_type *type; /* NULL: `tensor` */
    stk_tensor tensor;
    void *object;
} tc_value;

typedef struct tc_register {
    char name[32]; /* "": free */
    tc_value value;
} tc_register;

typedef struct tc {
    tc_register registers[TC_REGISTERS];
    const char *folder; /* of the case file, for paths in it */
    stk_device *device; /* for creating operations: the one of a trailing dev=…, or that of all the rest */
    bool broken;        /* the line itself makes no sense */
    char why[900];      /* what to print for a line that does not hold */
    stk_error err;      /* of the last operation */
} tc;

/* Results go to out[0] (and out[1]); a failure must leave them empty. A line that cannot be understood: tc_bad. */
typedef stk_status (*tc_op_fn)(tc *m, char **arg, tc_value *out, stk_error *err);
/* True if it holds; otherwise tc_say says what was found. */
typedef bool (*tc_check_fn)(tc *m, char **arg);

typedef struct tc_op {
    const char *name;
    int args, results;
    tc_op_fn run;
} tc_op;

typedef struct tc_check {
    const char *name;
    int args; /* the register included */
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

/* Once in a file, after `static const tc_op tc_ops[]` and `static const tc_check tc_checks[]`. */
#define TC_REGISTER                                                                      \
    static tc_table tc_this = {tc_ops, (int)(sizeof tc_ops / sizeof *tc_ops), tc_checks, \
                               (int)(sizeof tc_checks / sizeof *tc_checks), NULL};       \
    __attribute__((constructor)) static void tc_register_this(void)                      \
    {                                                                                    \
        tc_register_table(&tc_this);                                                     \
    }
#define TC_NO_OPS static const tc_op tc_ops[] = {{NULL, 0, 0, NULL}};
#define TC_NO_CHECKS static const tc_check tc_checks[] = {{NULL, 0, NULL}};

/* ---- arguments: each calls tc_bad where the text is not what it should be ---- */

void tc_bad(tc *m, const char *format, ...) STK_PRINTF(2, 3); /* the line makes no sense */
bool tc_say(tc *m, const char *format, ...) STK_PRINTF(2, 3); /* why a check does not hold; returns false */

stk_tensor *tc_tensor(tc *m, const char *name);                /* never NULL */
void *tc_object(tc *m, const char *name, const tc_type *type); /* NULL after tc_bad */
int64_t tc_int(tc *m, const char *text);
double tc_real(tc *m, const char *text);
stk_dtype tc_dtype(tc *m, const char *text);
stk_device *tc_device(tc *m, const char *text);              /* "cpu", "other": as the options of the driver say */
bool tc_given(const char *text);                             /* not "_" */
int tc_list(tc *m, const char *text, int64_t *out, int max); /* count; "()" is 0 */
int tc_dims(tc *m, const char *text, int *out, int max);
bool tc_is_scalar(const char *text); /* "i:3", "f:0.5", "b:1"; otherwise, a register */
stk_scalar tc_scalar(tc *m, const char *text);
stk_scalar tc_number(tc *m, const char *text);                /* "3" whole, "0.5" real */
int64_t tc_hex(tc *m, const char *text, unsigned char **out); /* bytes; free(*out) */

/* ---- comparing ---- */

/* The elements in row-major order, in new memory: free() it. NULL after tc_say. */
unsigned char *tc_elements(tc *m, const stk_tensor *tensor, int64_t *bytes);
/* The elements as doubles. */
double *tc_doubles(tc *m, const stk_tensor *tensor, int64_t *count);
const char *tc_list_text(int count, const int64_t *list); /* a static buffer, good until the fourth call from now */

#endif

/* test_cases.c: runs case files of the tensor oracle. The last line is "N passed, N failed".
 *
 *     test_cases [--device=NAME] [--other=NAME] [--stream] FILE...
 *
 * --device: where tensors live (default: cpu); --other: where those with dev=other live (default: test). NAME "tested"
 * is the device that STOKER_TEST_DEVICE names, or host. --stream runs all work in one stream per device.
 *
 * This file handles lines, registers and arguments; the operations and checks are in the tables of test_cases_*.c. */
#include "test_cases.h"
#include "device_table.h"
#include "test_device.h"
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdarg.h>

static tc_table *tables;
static stk_device *device, *other;
static long passed, failed;

void tc_register_table(tc_table *table)
{
    table->next = tables;
    tables = table;
}

static const tc_op *find_op(const char *name)
{
    for (const tc_table *table = tables; table; table = table->next)
        for (int i = 0; i < table->op_count; i++)
            if (table->ops[i].name && !strcmp(table->ops[i].name, name))
                return &table->ops[i];
    return NULL;
}

static const tc_check *find_check(const char *name)
{
    for (const tc_table *table = tables; table; table = table->next)
        for (int i = 0; i < table->check_count; i++)
            if (table->checks[i].name && !strcmp(table->checks[i].name, name))
                return &table->checks[i];
    return NULL;
}

/* ---- failures ---- */

void tc_bad(tc *m, const char *format, ...)
{
    va_list args;

    if (m->broken)
        return;
    m->broken = true;
    va_start(args, format);
    vsnprintf(m->why, sizeof m->why, format, args);
    va_end(args);
}

bool tc_say(tc *m, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(m->why, sizeof m->why, format, args);
    va_end(args);
    return false;
}

/* ---- registers ---- */

static void drop(tc_value *value)
{
    if (value->type)
        value->type->destroy(value->object);
    else
        stk_tensor_release(&value->tensor);
    memset(value, 0, sizeof *value);
}

static tc_register *find_register(tc *m, const char *name)
{
    for (int i = 0; i < TC_REGISTERS; i++)
        if (m->registers[i].name[0] && !strcmp(m->registers[i].name, name))
            return &m->registers[i];
    return NULL;
}

static void put(tc *m, const char *name, tc_value *value)
{
    tc_register *at = find_register(m, name);

    for (int i = 0; i < TC_REGISTERS && !at; i++)
        if (!m->registers[i].name[0])
            at = &m->registers[i];
    if (!at || strlen(name) >= sizeof at->name) {
        tc_bad(m, "no room for register %s", name);
        drop(value);
        return;
    }
    drop(&at->value);
    strcpy(at->name, name);
    at->value = *value;
}

static void forget(tc *m, const char *name)
{
    tc_register *at = find_register(m, name);

    if (!at) {
        tc_bad(m, "no register %s", name);
        return;
    }
    drop(&at->value);
    at->name[0] = '\0';
}

static void forget_all(tc *m)
{
    for (int i = 0; i < TC_REGISTERS; i++) {
        drop(&m->registers[i].value);
        m->registers[i].name[0] = '\0';
    }
}

stk_tensor *tc_tensor(tc *m, const char *name)
{
    static stk_tensor nothing;
    tc_register *at = find_register(m, name);

    if (at && !at->value.type)
        return &at->value.tensor;
    tc_bad(m, at ? "register %s holds no tensor" : "no register %s", name);
    memset(&nothing, 0, sizeof nothing);
    nothing.dtype = STK_F32;
    return &nothing;
}

void *tc_object(tc *m, const char *name, const tc_type *type)
{
    tc_register *at = find_register(m, name);

    if (at && at->value.type == type)
        return at->value.object;
    tc_bad(m, at ? "register %s holds no %s" : "no register %s (for a %s)", name, type->name);
    return NULL;
}

/* ---- arguments ---- */

int64_t tc_int(tc *m, const char *text)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (end == text || *end || errno)
        tc_bad(m, "not a whole number: %s", text);
    return value;
}

double tc_real(tc *m, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end)
        tc_bad(m, "not a number: %s", text);
    return value;
}

stk_dtype tc_dtype(tc *m, const char *text)
{
    stk_dtype dtype = stk_dtype_find(text);

    if (dtype == STK_DTYPE_NONE)
        tc_bad(m, "unknown type %s", text);
    return dtype;
}

stk_device *tc_device(tc *m, const char *text)
{
    if (!strcmp(text, "other"))
        return other;
    if (strcmp(text, "cpu") != 0)
        tc_bad(m, "unknown device %s", text);
    return device;
}

bool tc_given(const char *text)
{
    return strcmp(text, "_") != 0;
}

int tc_list(tc *m, const char *text, int64_t *out, int max)
{
    int count = cf_ints(text, out, max);

    if (count < 0)
        tc_bad(m, "not a list: %s", text);
    return count < 0 ? 0 : count;
}

int tc_dims(tc *m, const char *text, int *out, int max)
{
    int64_t list[TC_LIST];
    int count = tc_list(m, text, list, max < TC_LIST ? max : TC_LIST);

    for (int i = 0; i < count; i++)
        out[i] = (int)list[i];
    return count;
}

bool tc_is_scalar(const char *text)
{
    return strlen(text) > 2 && text[1] == ':' && strchr("ifb", text[0]);
}

stk_scalar tc_scalar(tc *m, const char *text)
{
    if (!tc_is_scalar(text)) {
        tc_bad(m, "not a scalar: %s", text);
        return stk_int(0);
    }
    if (text[0] == 'f')
        return stk_real(tc_real(m, text + 2));
    return text[0] == 'b' ? stk_bool(tc_int(m, text + 2) != 0) : stk_int(tc_int(m, text + 2));
}

stk_scalar tc_number(tc *m, const char *text)
{
    char *end;
    long long whole = strtoll(text, &end, 10);

    return *text && !*end ? stk_int(whole) : stk_real(tc_real(m, text));
}

int64_t tc_hex(tc *m, const char *text, unsigned char **out)
{
    size_t max = strlen(text) / 2 + 1;
    long count;

    *out = calloc(max, 1);
    if (!*out)
        abort();
    count = cf_hex(text, *out, max);
    if (count < 0)
        tc_bad(m, "not hex: %s", text);
    return count < 0 ? 0 : count;
}

/* ---- comparing ---- */

unsigned char *tc_elements(tc *m, const stk_tensor *tensor, int64_t *bytes)
{
    unsigned char *out;

    *bytes = stk_tensor_nbytes(tensor);
    out = malloc((size_t)*bytes + 1);
    if (!out)
        abort();
    if (stk_tensor_to_bytes(tensor, out, *bytes, &m->err) != STK_OK) {
        tc_say(m, "%s", m->err.message);
        free(out);
        return NULL;
    }
    return out;
}

double *tc_doubles(tc *m, const stk_tensor *tensor, int64_t *count)
{
    stk_tensor wide;
    double *out;
    int64_t bytes;

    if (stk_tensor_to(tensor, STK_F64, &wide, &m->err) != STK_OK) {
        tc_say(m, "%s", m->err.message);
        return NULL;
    }
    out = (double *)(void *)tc_elements(m, &wide, &bytes);
    *count = stk_tensor_numel(&wide);
    stk_tensor_release(&wide);
    return out;
}

const char *tc_list_text(int count, const int64_t *list)
{
    static char buffers[4][256];
    static int next;
    char *text = buffers[next = (next + 1) % 4];
    int used = snprintf(text, sizeof buffers[0], count ? "" : "()");

    for (int i = 0; i < count && used < (int)sizeof buffers[0]; i++)
        used += snprintf(text + used, sizeof buffers[0] - (size_t)used, i ? ",%" PRId64 : "%" PRId64, list[i]);
    return text;
}

/* ---- lines ---- */

/* Removes a trailing dev=… from the arguments. */
static int take_device(tc *m, char **arg, int count)
{
    m->device = device;
    if (count == 0 || strncmp(arg[count - 1], "dev=", 4) != 0)
        return count;
    m->device = tc_device(m, arg[count - 1] + 4);
    return count - 1;
}

static stk_status run_op(tc *m, const char *name, char **arg, int count, tc_value *out, int *results)
{
    const tc_op *op = find_op(name);

    count = take_device(m, arg, count);
    if (!op) {
        tc_bad(m, "unknown operation %s", name);
        return STK_E_UNSUPPORTED;
    }
    *results = op->results;
    if (count != op->args) {
        tc_bad(m, "%s takes %d arguments, not %d", name, op->args, count);
        return STK_E_UNSUPPORTED;
    }
    return op->run(m, arg, out, &m->err);
}

static bool op_line(tc *m, cf *f)
{
    tc_value out[2] = {{0}, {0}};
    char *names[2] = {f->tok[1], strchr(f->tok[1], ',')};
    int results = 0, wanted = !strcmp(f->tok[1], "-") ? 0 : names[1] ? 2 : 1;
    stk_status status;

    if (!strcmp(f->tok[2], "release")) {
        forget(m, f->tok[3]);
        return !m->broken;
    }
    status = run_op(m, f->tok[2], f->tok + 3, f->n - 3, out, &results);
    if (m->broken)
        return false;
    if (status != STK_OK)
        return tc_say(m, "rejected: %s: %s", stk_status_name(status), m->err.message);
    if (names[1])
        *names[1]++ = '\0';
    if (results != wanted)
        tc_say(m, "gives %d results", results);
    for (int i = 0; i < results; i++) {
        if (results == wanted)
            put(m, names[i], &out[i]);
        else
            drop(&out[i]);
    }
    return results == wanted && !m->broken;
}

/* Is `kind` one of "a|b|c"? */
static bool is_kind(const char *kinds, const char *kind)
{
    size_t length = strlen(kind);

    for (const char *at = kinds; at; at = strchr(at, '|')) {
        at += *at == '|';
        if (!strncmp(at, kind, length) && (at[length] == '\0' || at[length] == '|'))
            return true;
    }
    return false;
}

static bool err_line(tc *m, cf *f)
{
    tc_value out[2] = {{0}, {0}};
    int results = 0;
    stk_status status;

    memset(&m->err, 0, sizeof m->err);
    status = run_op(m, f->tok[2], f->tok + 3, f->n - 3, out, &results);
    if (m->broken)
        return false;
    if (status == STK_OK) {
        for (int i = 0; i < results; i++)
            drop(&out[i]);
        return tc_say(m, "accepted");
    }
    if (!is_kind(f->tok[1], stk_status_name(status)))
        return tc_say(m, "rejected with %s: %s", stk_status_name(status), m->err.message);
    if (m->err.status != status || !m->err.message[0])
        return tc_say(m, "rejected without a message");
    return true;
}

static bool check_line(tc *m, cf *f)
{
    const tc_check *check = find_check(f->tok[0]);

    if (!check)
        tc_bad(m, "unknown check %s", f->tok[0]);
    else if (f->n - 1 != check->args)
        tc_bad(m, "%s takes %d arguments, not %d", f->tok[0], check->args, f->n - 1);
    return !m->broken && check->holds(m, f->tok + 1) && !m->broken;
}

static bool line_holds(tc *m, cf *f)
{
    m->broken = false;
    m->why[0] = '\0';
    if (!strcmp(f->tok[0], "op") && f->n >= 4)
        return op_line(m, f);
    if (!strcmp(f->tok[0], "err") && f->n >= 4)
        return err_line(m, f);
    return check_line(m, f);
}

/* ---- files ---- */

static void run_file(const char *path)
{
    static tc m;
    static cf f;
    char folder[4096], name[128] = "";
    bool in_case = false, good = true;
    int more;

    snprintf(folder, sizeof folder, "%s", path);
    m.folder = dirname(folder);
    if (cf_open(&f, path) != 0) {
        printf("FAIL %s: cannot be opened\n", path);
        failed++;
        return;
    }
    while ((more = cf_next(&f)) > 0) {
        if (!strcmp(f.tok[0], "case")) {
            snprintf(name, sizeof name, "%s", f.n > 1 ? f.tok[1] : "");
            in_case = good = true;
        } else if (!strcmp(f.tok[0], "end")) {
            forget_all(&m);
            if (in_case)
                *(good ? &passed : &failed) += 1;
            in_case = false;
        } else if (in_case && good && !line_holds(&m, &f)) {
            printf("FAIL %s line %d: %s\n", name, f.line, m.why);
            good = false;
        }
    }
    if (more < 0 || in_case) {
        printf("FAIL %s line %d: %s\n", path, f.line, more < 0 ? "malformed line" : "the end of the case is missing");
        failed++;
        forget_all(&m);
    }
    cf_close(&f);
}

/* Handles "--device=NAME" and the like. Returns false if it is another argument. */
static bool take_option(const char *argument, const char *option, stk_device **out)
{
    const char *name = argument + strlen(option), *tested = getenv("STOKER_TEST_DEVICE");
    stk_error err;

    if (strncmp(argument, option, strlen(option)) != 0)
        return false;
    if (!strcmp(name, "tested"))
        name = tested && *tested ? tested : "host";
    if (stk_device_find(name, out, &err) != STK_OK) {
        printf("%s: %s\n", argument, err.message);
        exit(1);
    }
    return true;
}

static void work_in_a_stream(stk_device *on)
{
    stk_stream *stream;
    stk_error err;

    if (stk_stream_create(on, &stream, &err) != STK_OK) {
        printf("%s\n", err.message);
        exit(1);
    }
    stk_stream_set_current(on, stream);
}

static void end_stream(stk_device *on)
{
    stk_stream_destroy(stk_stream_set_current(on, NULL));
}

int main(int argc, char **argv)
{
    other = stki_device_test(); /* registers the device "test" */
    device = stk_device_cpu();
    for (int i = 1; i < argc; i++) {
        const char *name = strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i];
        if (take_option(argv[i], "--device=", &device) || take_option(argv[i], "--other=", &other))
            continue;
        if (!strcmp(argv[i], "--stream")) {
            work_in_a_stream(device);
            work_in_a_stream(other);
            continue;
        }
        if (!strcmp(name, "complex.txt"))
            printf("skipped: complex.txt (no complex types)\n"); /* complex types exist for I/O and casts only */
        else
            run_file(argv[i]);
    }
    end_stream(device);
    end_stream(other);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed || !passed;
}

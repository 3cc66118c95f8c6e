/* prep.c: preparation jobs. A job runs without the GIL; its progress callback acquires the GIL, checks for signals, and
 * calls the user's function. */
#include "core.h"
#include "prep_phase.h"

struct watch {
    stk_prep *job;
    PyObject *function;             /* or NULL */
    PyObject *type, *value, *trace; /* the exception that ended the job: the function's, or that of Ctrl-C */
};

static PyObject *progress_dict(const stk_prep_progress *now)
{
    return Py_BuildValue("{sssLsLsLsLsLsLsLsLsdsdsdsdsd}", "phase", stki_prep_phase_name(now->phase), "rows",
                         (long long)now->rows, "row_total", (long long)now->row_total, "resumed_rows",
                         (long long)now->resumed_rows, "failed_rows", (long long)now->failed_rows, "bytes_in",
                         (long long)now->bytes_in, "bytes_out", (long long)now->bytes_out, "pieces",
                         (long long)now->pieces, "piece_total", (long long)now->piece_total, "elapsed",
                         (double)now->elapsed_ns * 1e-9, "wait_rows", (double)now->wait_rows_ns * 1e-9, "wait_finish",
                         (double)now->wait_finish_ns * 1e-9, "write", (double)now->write_ns * 1e-9, "wait_sync",
                         (double)now->wait_sync_ns * 1e-9);
}

static void look(void *context, const stk_prep_progress *now)
{
    struct watch *watch = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *dict = NULL, *done = NULL;

    if (!watch->type) {
        if (PyErr_CheckSignals() == 0 && watch->function && (dict = progress_dict(now)))
            done = PyObject_CallFunctionObjArgs(watch->function, dict, NULL);
        Py_XDECREF(dict);
        Py_XDECREF(done);
        if (PyErr_Occurred()) {
            PyErr_Fetch(&watch->type, &watch->value, &watch->trace);
            stk_prep_cancel(watch->job);
        }
    }
    PyGILState_Release(gil);
}

/* Restores the exception that ended the job, if there was one. */
static bool has_raised(struct watch *watch)
{
    const bool raised = watch->type != NULL;

    if (raised)
        PyErr_Restore(watch->type, watch->value, watch->trace);
    watch->type = watch->value = watch->trace = NULL;
    return raised;
}

static PyObject *notes_of(const stk_prep *job)
{
    PyObject *out = PyList_New(0);

    for (int i = 0; out && i < stk_prep_note_count(job); i++) {
        PyObject *note = core_text(stk_prep_note(job, i));

        if (!note || PyList_Append(out, note) < 0)
            Py_CLEAR(out);
        Py_XDECREF(note);
    }
    return out;
}

/* NULL: None. */
static PyObject *path_text(const char *path)
{
    return path ? core_text(path) : Py_NewRef(Py_None);
}

static PyObject *result_of(const stk_prep *job)
{
    stk_prep_result result = {.struct_size = sizeof result};
    stk_error err;

    if (stk_prep_get_result(job, &result, &err) != STK_OK)
        return core_raise(&err);
    return Py_BuildValue(
        "{sNsLsLsLsLsLsLsNsNsNsNsN}", "complete", PyBool_FromLong(result.complete), "rows", (long long)result.rows,
        "skipped", (long long)result.skipped, "files", (long long)result.files, "bytes", (long long)result.bytes,
        "missing_pieces", (long long)result.missing_pieces, "resumed_rows", (long long)result.resumed_rows,
        "manifest_path", path_text(result.manifest_path), "skipped_path", path_text(result.skipped_path), "stats_path",
        path_text(result.stats_path), "work_folder", path_text(result.work_folder), "notes", notes_of(job));
}

static PyObject *plan_of(struct watch *watch)
{
    stk_prep_plan plan = {.struct_size = sizeof plan};
    stk_error err;
    stk_status status;

    Py_BEGIN_ALLOW_THREADS
    status = stk_prep_get_plan(watch->job, &plan, &err);
    Py_END_ALLOW_THREADS
    if (has_raised(watch))
        return NULL;
    if (status != STK_OK)
        return core_raise(&err);
    return Py_BuildValue("{sLsLsLsLsLsLsLsLsNsNsLsN}", "samples", (long long)plan.samples, "positions",
                         (long long)plan.positions, "batch_rows", (long long)plan.batch_rows, "pieces",
                         (long long)plan.pieces, "piece_rows", (long long)plan.piece_rows, "shards",
                         (long long)plan.shards, "output_bytes", (long long)plan.output_bytes, "work_bytes",
                         (long long)plan.work_bytes, "output_exact", PyBool_FromLong(plan.output_exact),
                         "output_exists", PyBool_FromLong(plan.output_exists), "resumed_rows",
                         (long long)plan.resumed_rows, "notes", notes_of(watch->job));
}

static PyObject *run(struct watch *watch)
{
    stk_error err;
    stk_status status;

    Py_BEGIN_ALLOW_THREADS
    status = stk_prep_run(watch->job, &err);
    Py_END_ALLOW_THREADS
    if (has_raised(watch))
        return NULL;
    return status == STK_OK ? result_of(watch->job) : core_raise(&err);
}

/* None: NULL. False: an exception is set. */
static bool bytes_of(PyObject *value, char **out)
{
    *out = NULL;
    return value == Py_None || PyBytes_AsStringAndSize(value, out, NULL) == 0;
}

/* prep(path or None, text or None, folder or None, sets, progress or None, interval, dry_run, task, tasks, flags), the
 * first four in bytes. */
PyObject *core_prep(PyObject *module, PyObject *args)
{
    const char *sets[256];
    char *path, *text, *folder;
    PyObject *places[3], *given, *progress, *out;
    struct watch watch = {NULL};
    stk_prep_opts opts = STK_PREP_OPTS_INIT;
    double interval;
    long long task, tasks;
    int dry, merge, no_merge, force, restart, no_space_check;
    stk_error err;
    stk_status status;

    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO!OdpLLppppp", &places[0], &places[1], &places[2], &PyTuple_Type, &given, &progress,
                          &interval, &dry, &task, &tasks, &merge, &no_merge, &force, &restart, &no_space_check))
        return NULL;
    if (!bytes_of(places[0], &path) || !bytes_of(places[1], &text) || !bytes_of(places[2], &folder))
        return NULL;
    if (PyTuple_Size(given) > 256)
        return PyErr_Format(PyExc_ValueError, "more than 256 options");
    for (Py_ssize_t i = 0; i < PyTuple_Size(given); i++)
        if (!(sets[i] = PyBytes_AsString(PyTuple_GetItem(given, i))))
            return NULL;
    watch.function = progress == Py_None ? NULL : progress;
    opts.task = task, opts.tasks = tasks;
    opts.merge = merge != 0, opts.no_merge = no_merge != 0, opts.force = force != 0, opts.restart = restart != 0;
    opts.no_space_check = no_space_check != 0;
    opts.progress = look;
    opts.progress_context = &watch;
    opts.progress_interval_ns = (int64_t)(interval * 1e9);
    Py_BEGIN_ALLOW_THREADS
    status = path ? stk_prep_open_file(path, sets, (int)PyTuple_Size(given), &opts, &watch.job, &err)
                  : stk_prep_open_text(text, folder, sets, (int)PyTuple_Size(given), &opts, &watch.job, &err);
    Py_END_ALLOW_THREADS
    if (status != STK_OK)
        return core_raise(&err);
    out = dry ? plan_of(&watch) : run(&watch);
    Py_BEGIN_ALLOW_THREADS
    stk_prep_destroy(watch.job);
    Py_END_ALLOW_THREADS
    return out;
}

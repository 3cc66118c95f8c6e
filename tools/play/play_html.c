/* play_html.c: see play_html.h. */
#include "play_html.h"
#include "html.h"
#include "play.h"
#include "play_ops.h"
#include "play_page.h"
#include "play_svg.h"
#include <inttypes.h>
#include <stdarg.h>

void pl_html_begin(FILE *to, const char *chain)
{
    pl_page_begin(
        to, "What tensor operations do to memory",
        "Each step shows the elements of the tensor by index and, below them, the storage as a row of cells. The "
        "number "
        "above a cell is its position, and the number below it is the element that reads it. The color <span "
        "class=\"key\"></span> darkens in reading order (the last index varies fastest); cells with a dashed edge are "
        "not read. Steps of the same color share a storage.");
    if (*chain) {
        fputs("<p><code>", to);
        html_text(to, chain);
        fputs("</code></p>\n", to);
    }
}

static void put_fact(FILE *to, const char *name, const char *format, ...) STK_PRINTF(3, 4);

static void put_fact(FILE *to, const char *name, const char *format, ...)
{
    char text[600];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(to, "<dt>%s</dt><dd>", name);
    html_text(to, text);
    fputs("</dd>\n", to);
}

static stk_status put_facts(const struct pl_session *session, int index, FILE *to, stk_error *err)
{
    const stk_tensor *tensor = &session->steps[index].tensor;
    int64_t strides[STK_MAX_DIMS], offset;
    char own[32], whole[32], all[32], shared[400];
    stk_status status = stk_tensor_element_strides(tensor, strides, &offset, err);

    if (status != STK_OK)
        return status;
    fputs("<dl>\n", to);
    put_fact(to, "shape", "%s  %s", PL_SHAPE(tensor->ndim, tensor->shape), stk_dtype_long_name(tensor->dtype));
    put_fact(to, "strides", "%s elements = %s bytes", PL_SHAPE(tensor->ndim, strides),
             PL_SHAPE(tensor->ndim, tensor->strides));
    put_fact(to, "offset", "%" PRId64 " elements = %" PRId64 " bytes", offset, stk_tensor_offset_bytes(tensor));
    put_fact(to, "contiguous", "%s", pl_contiguity_text(tensor));
    put_fact(to, "shares with", "%s", pl_shared_text(shared, sizeof shared, session, index));
    put_fact(to, "memory", "%s of a storage of %s; %s in all steps",
             pl_bytes_text(own, sizeof own, stk_tensor_nbytes(tensor)),
             pl_bytes_text(whole, sizeof whole, stk_storage_bytes(tensor->storage)),
             pl_bytes_text(all, sizeof all, pl_session_bytes(session)));
    fputs("</dl>\n", to);
    return STK_OK;
}

static void put_said(const struct pl_step *step, FILE *to)
{
    if (!step->said)
        return;
    fputs(step->how == PL_TEXT ? "<pre>" : "<p class=\"note\">", to);
    html_text(to, step->said);
    fputs(step->how == PL_TEXT ? "</pre>\n" : "</p>\n", to);
}

stk_status pl_html_step(const struct pl_session *session, int index, FILE *to, stk_error *err)
{
    const struct pl_step *step = &session->steps[index];
    int storage = pl_session_storage(session, index);
    char text[80];
    stk_status status;

    fprintf(to, "<section class=\"step h%d\" id=\"step%d\">\n<h2><span class=\"n\">%d</span><code>", storage % PL_HUES,
            index + 1, index + 1);
    html_text(to, step->text);
    fputs("</code>", to);
    if (step->how == PL_TEXT) {
        fputs("</h2>\n", to);
        if (step->figure)
            fputs(step->figure, to);
        else
            put_said(step, to);
        fputs("</section>\n", to);
        return STK_OK;
    }
    fprintf(to, "<span class=\"badge\">storage %s</span>", pl_storage_name(text, sizeof text, storage));
    fprintf(to, "<span class=\"how\">%s</span></h2>\n<div class=\"two\"><div>\n", pl_how_text(text, sizeof text, step));
    status = put_facts(session, index, to, err);
    if (status != STK_OK)
        return status;
    fputs("</div><div><h3>tensor</h3>\n", to);
    pl_svg_tensor(&step->tensor, storage % PL_HUES, to);
    fputs("</div></div>\n", to);
    put_said(step, to);
    fprintf(to, "<h3>storage %s, cells of %" PRId64 " byte%s</h3>\n", pl_storage_name(text, sizeof text, storage),
            stk_dtype_size(step->tensor.dtype), stk_dtype_size(step->tensor.dtype) == 1 ? "" : "s");
    status = pl_svg_storage(&step->tensor, storage % PL_HUES, to, err);
    fputs("</section>\n", to);
    return status;
}

void pl_html_trouble(const struct pl_trouble *trouble, const char *command, const char *figure, FILE *to)
{
    fputs("<section class=\"step bad\">\n<h2><span class=\"n\">✗</span><code>", to);
    html_text(to, command);
    fputs("</code></h2>\n<p>", to);
    html_text(to, trouble->err.message);
    fputs("</p>\n", to);
    if (*trouble->why) {
        fputs("<p>", to);
        html_text(to, trouble->why);
        fputs("</p>\n", to);
    }
    if (figure)
        fputs(figure, to);
    fputs("</section>\n", to);
}

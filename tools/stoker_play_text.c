/* stoker_play_text.c: a step as text. */
#include "stoker_play.h"
#include "stoker_play_ops.h"
#include <inttypes.h>

static const char *how_text(const struct pl_session *session, const struct pl_step *step, char *buffer, int size)
{
    static const char *const texts[] = {
        [PL_NEW] = "fresh memory", [PL_VIEW] = "a view of",         [PL_SAME] = "the very tensor of",
        [PL_COPY] = "a copy of",   [PL_COMPUTED] = "computed from", [PL_IN_PLACE] = "written in place over",
    };

    (void)session;
    if (step->from < 0)
        snprintf(buffer, (size_t)size, "%s", texts[step->how]);
    else
        snprintf(buffer, (size_t)size, "%s step %d", texts[step->how], step->from + 1);
    return buffer;
}

static void print_shared(const struct pl_session *session, int index, FILE *to)
{
    const stk_tensor *tensor = &session->steps[index].tensor;
    bool any = false;

    for (int i = 0; i < index; i++) {
        if (session->steps[i].how == PL_TEXT || session->steps[i].tensor.storage != tensor->storage)
            continue;
        fprintf(to, "%s%d%s%s%s", any ? ", " : "step ", i + 1, *session->steps[i].name ? " (" : "",
                session->steps[i].name, *session->steps[i].name ? ")" : "");
        any = true;
    }
    fprintf(to, "%s\n", any ? "" : "no earlier step");
}

void pl_text_step(const struct pl_session *session, int index, int columns, FILE *to)
{
    const struct pl_step *step = &session->steps[index];
    const stk_tensor *tensor = &step->tensor;
    int64_t strides[STK_MAX_DIMS], offset;
    char how[80];

    (void)columns;
    fprintf(to, "%d  %s\n", index + 1, step->text);
    if (step->how == PL_TEXT) {
        fprintf(to, "%s\n\n", step->said ? step->said : "");
        return;
    }
    fprintf(to, "   %-12s %s %s, %" PRId64 " elements; %s\n", "tensor", stk_dtype_name(tensor->dtype),
            PL_SHAPE(tensor->ndim, tensor->shape), stk_tensor_numel(tensor), how_text(session, step, how, sizeof how));
    stk_tensor_element_strides(tensor, strides, &offset, NULL);
    fprintf(to, "   %-12s %s elements, %s bytes; offset %" PRId64 "\n", "strides", PL_SHAPE(tensor->ndim, strides),
            PL_SHAPE(tensor->ndim, tensor->strides), offset);
    fprintf(to, "   %-12s row-major %s, channels_last %s\n", "contiguous",
            stk_tensor_is_contiguous(tensor) ? "yes" : "no", stk_tensor_is_channels_last(tensor) ? "yes" : "no");
    fprintf(to, "   %-12s ", "shares with");
    print_shared(session, index, to);
    fprintf(to, "   %-12s %" PRId64 " bytes, storage %" PRId64 " bytes\n", "memory", stk_tensor_nbytes(tensor),
            stk_storage_bytes(tensor->storage));
    if (step->said)
        fprintf(to, "   %-12s %s\n", "note", step->said);
    fputc('\n', to);
}

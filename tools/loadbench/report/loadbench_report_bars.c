/* loadbench_report_bars.c: shares of the time and of the machine's limits, as bars with their numbers beside them. */
#include "html.h"
#include "loadbench_foresee.h"
#include "loadbench_predict.h"
#include "loadbench_report_parts.h"
#include "loadbench_scalars.h"
#include "loadbench_table.h"
#include <math.h>
#include <string.h>

/* One bar: share 0 to 1 of the whole width. */
static void bar(FILE *to, bool binds, const char *what, double share, const char *value, const char *note)
{
    fprintf(to, "<div class=\"row%s\"><span class=\"what\">", binds ? " binds" : "");
    html_text(to, what);
    fprintf(to, "</span><span class=\"bar\"><i style=\"width:%.2f%%\"></i></span><span class=\"value\">",
            100 * fmin(1, fmax(0, share)));
    html_text(to, value);
    fputs("</span>", to);
    if (note && *note) {
        fputs("<span class=\"note\">", to);
        html_text(to, note);
        fputs("</span>", to);
    }
    fputs("</div>\n", to);
}

void lb_report_predictions(FILE *to, const json_t *tree)
{
    const json_t *list = lb_tree_at(tree, "verdict.predictions"), *one;
    double now = 0, most, rate, gain, measured, error;
    char value[128], note[320], lead[400];
    size_t i;

    if (json_array_size(list) == 0 || !lb_scalar_at(json_array_get(list, 0), "predicted_samples_per_s", &rate) ||
        !lb_scalar_at(json_array_get(list, 0), "predicted_gain_percent", &gain) || gain <= -100)
        return;
    now = rate / (1 + gain / 100); /* what it was predicted from */
    most = now;
    json_array_foreach(list, i, one)
    {
        if (lb_scalar_at(one, "predicted_samples_per_s", &rate))
            most = fmax(most, rate);
        if (lb_scalar_at(one, "measured_samples_per_s", &rate))
            most = fmax(most, rate);
    }
    snprintf(lead, sizeof lead,
             "Samples a second that one change each is predicted to give, from the clocks of this run. Confidence: "
             "%.20s%s%.200s.",
             lb_text_at(tree, "verdict.confidence"), *lb_text_at(tree, "verdict.doubt") ? ", since " : "",
             lb_text_at(tree, "verdict.doubt"));
    lb_report_section(to, "What would help", lead);
    snprintf(value, sizeof value, "%s", LB_NUMBER(now));
    bar(to, true, "as it is", now / most, value, NULL);
    json_array_foreach(list, i, one)
    {
        rate = gain = 0;
        lb_scalar_at(one, "predicted_samples_per_s", &rate);
        lb_scalar_at(one, "predicted_gain_percent", &gain);
        snprintf(value, sizeof value, fabs(gain) < 100 * LB_SAME ? "about the same" : "%s, %s", LB_NUMBER(rate),
                 LB_GAIN(now, rate));
        note[0] = '\0';
        if (*lb_text_at(one, "failure"))
            snprintf(note, sizeof note, "run: %.250s", lb_text_at(one, "failure"));
        else if (lb_scalar_at(one, "measured_samples_per_s", &measured) && lb_scalar_at(one, "error_percent", &error))
            snprintf(note, sizeof note, "run: %s samples/s; the prediction is off by %.0f %%", LB_NUMBER(measured),
                     fabs(error));
        bar(to, false, lb_text_at(one, "set"), rate / most, value, note);
    }
    fputs("</section>\n", to);
}

/* What binds, as the table of stages calls it: the ring is either the handing over or the lack of slots. */
static const char *stage_of(const json_t *tree)
{
    const char *binds = lb_text_at(tree, "verdict.binds");
    double slot = 0, work = 0, hand_over = 0;

    lb_scalar_at(tree, "stages.wait_for_slot_percent", &slot);
    lb_scalar_at(tree, "stages.wait_for_work_percent", &work);
    lb_scalar_at(tree, "stages.hand_over_work_percent", &hand_over);
    return strcmp(binds, "ring") == 0 && slot >= work + hand_over ? "slots" : binds;
}

#define STAGE(binding, member, label, ...) {#member "_work_percent", #member, label},

void lb_report_stages(FILE *to, const json_t *tree)
{
    static const struct {
        const char *key, *binds, *name;
    } stages[] = {
        LB_STAGES(STAGE){"hand_over_work_percent", "ring", "hand over"},
        {"wait_for_slot_percent", "", "waiting for a slot"},
        {"wait_for_work_percent", "", "waiting for work"},
    };
    const json_t *all = json_object_get(tree, "stages");
    const char *binds = stage_of(tree);
    double percent, wait = 0, copy;
    char value[32];

    if (!all)
        return;
    lb_report_section(to, "Where the time went", "Shares of the workers' time, all repeats together.");
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        if (!lb_scalar_at(all, stages[i].key, &percent) || (percent < 0.05 && strcmp(binds, stages[i].binds) != 0))
            continue;
        snprintf(value, sizeof value, "%.1f %%", percent);
        bar(to,
            strcmp(binds, stages[i].binds) == 0 ||
                (strcmp(stages[i].binds, "convert") == 0 && strcmp(binds, "memory") == 0),
            stages[i].name, percent / 100, value, NULL);
    }
    fputs("<p class=\"lead\" style=\"margin:22px 0 6px\">Shares of the time that passed.</p>\n", to);
    if (lb_scalar_at(all, "copy_work_percent", &copy)) {
        snprintf(value, sizeof value, "%.1f %%", copy);
        bar(to, strcmp(binds, "copy") == 0, "copy to the device", copy / 100, value, NULL);
    }
    lb_scalar_at(all, "consumer_wait_percent", &wait);
    snprintf(value, sizeof value, "%.1f %%", 100 - wait);
    bar(to, strcmp(binds, "consumer") == 0, "consumer at work", 1 - wait / 100, value, NULL);
    snprintf(value, sizeof value, "%.1f %%", wait);
    bar(to, false, "consumer waiting", wait / 100, value, NULL);
    fputs("</section>\n", to);
}

void lb_report_limits(FILE *to, const json_t *tree)
{
    const json_t *list = lb_tree_at(tree, "limits.list"), *one;
    const char *binding = lb_text_at(tree, "limits.binding.name");
    double rate, share;
    char value[96];
    size_t i;

    if (json_array_size(list) == 0)
        return;
    lb_report_section(
        to, "Limits of this machine",
        "How much of what each part alone can do was reached, measured in the same run. A full bar is the limit.");
    json_array_foreach(list, i, one)
    {
        if (!lb_scalar_at(one, "share_percent", &share) || !lb_scalar_at(one, "samples_per_s", &rate) || rate <= 0)
            continue;
        snprintf(value, sizeof value, "%s of %s/s", LB_PERCENT(share), LB_SHORT(rate));
        bar(to, strcmp(lb_text_at(one, "name"), binding) == 0, lb_text_at(one, "name"), share / 100, value,
            lb_text_at(one, "basis"));
    }
    if (*lb_text_at(tree, "limits.excess")) {
        fputs("<p class=\"lead\">", to);
        html_textf(to, "%s: %s.", binding, lb_text_at(tree, "limits.excess"));
        fputs("</p>\n", to);
    }
    fputs("</section>\n", to);
}

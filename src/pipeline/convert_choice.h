/* convert_choice.h: `loader.convert`: whether the workers or the device make the rows of the fields. */
#ifndef STKI_CONVERT_CHOICE_H
#define STKI_CONVERT_CHOICE_H

#include "core.h"

/* Splits the plans whose rows the device makes (plan_split.h), sets the config to what is in effect, and notes why.
 * Between resolve and compile. */
stk_status stki_choose_convert(stki_core *core, stk_error *err);

/* What one batch takes either way, ns. The stages overlap, so the slowest one counts. */
typedef struct stki_convert_costs {
    double host_read;               /* workers, either way: decoding images */
    double host_convert, host_copy; /* workers: converting the samples, or copying them */
    double rows_copy, samples_copy; /* the transfer of converted rows, or of samples */
    double device_convert;          /* the device's work */
} stki_convert_costs;

/* True: the device; `text` says why in one sentence either way. */
bool stki_convert_pays(const stki_convert_costs *costs, char *text, int size);

#endif

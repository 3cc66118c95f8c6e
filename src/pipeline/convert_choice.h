/* convert_choice.h: `loader.convert`: decides whether the workers or the device convert samples to rows. */
#ifndef STKI_CONVERT_CHOICE_H
#define STKI_CONVERT_CHOICE_H

#include "core.h"

/* Splits the plans whose rows the device makes (plan_split.h), stores the choice in the config and adds a note with the
 * reason. Call between resolve and compile. */
stk_status stki_choose_convert(stki_core *core, stk_error *err);

/* Time per batch, ns, for both choices. The stages overlap, so the slowest one determines the throughput. */
typedef struct stki_convert_costs {
    double host_read;               /* workers, with either choice: decoding images */
    double host_convert, host_copy; /* workers: converting the samples, or copying them */
    double rows_copy, samples_copy; /* the transfer of converted rows, or of samples */
    double device_convert;          /* the device's work */
} stki_convert_costs;

/* Returns true if the device should convert. `text` receives the reason, one sentence, in both cases. */
bool stki_convert_pays(const stki_convert_costs *costs, char *text, int size);

#endif

/* convert_choice.h: `loader.convert`: decides whether the workers or the device convert samples to rows. */
#ifndef STKI_CONVERT_CHOICE_H
#define STKI_CONVERT_CHOICE_H

#include "core.h"

/* Splits the plans whose rows the device makes (plan_split.c), stores the choice in the config and adds a note with the
 * reason. Call between resolve and compile. */
stk_status stki_choose_convert(stki_core *core, stk_error *err);

/* Time per batch, ns, for both choices. The stages overlap, so the slowest one determines the throughput. */
typedef struct stki_convert_costs {
    double host_read;               /* decoding images, which workers do with either choice */
    double host_convert, host_copy; /* converting the samples in the workers, or only copying them */
    double rows_copy, samples_copy; /* transferring the converted rows, or the samples */
    double device_convert;          /* converting on the device */
} stki_convert_costs;

/* Returns true if the device should convert. `text` receives the reason for either choice, as one sentence. */
bool stki_convert_pays(const stki_convert_costs *costs, char *text, int size);

#endif

/* loadbench_prepare.h: what comes before a repeat. */
#ifndef LOADBENCH_PREPARE_H
#define LOADBENCH_PREPARE_H

#include "loadbench_run.h"

/* All facts, as a loader has them that is opened without workers: it reads no sample. Where the config does not allow
 * that, from one as the config has it. `out` is all zero; also after a failure lb_facts_fini. */
stk_status lb_prepare_facts(const struct lb_config *config, struct lb_facts *out, stk_error *err);
/* Fills facts->data: which files there are, in the same way. STK_E_CONFIG: the config and the data do not go together.
 */
stk_status lb_prepare_files(const struct lb_config *config, struct lb_facts *facts, stk_error *err);
/* As bench.cache says, before the loader is opened: what it has mapped would stay. Then what lies in memory. */
stk_status lb_prepare_cache(const struct lb_config *config, const struct lb_facts *facts, struct lb_residency *before,
                            stk_error *err);
/* The first one fills the rest of `facts`, later ones must agree with it (STK_E_MISMATCH). */
stk_status lb_prepare_loader(const struct lb_config *config, struct lb_facts *facts, stk_loader **out, stk_error *err);

#endif

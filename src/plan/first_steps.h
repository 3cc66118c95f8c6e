/* first_steps.h: the transforms that must precede all others because they define what a sample is: a new shape, or a
 * sample computed by a custom transform (stk_transform). They are implemented as readers that wrap the file's reader,
 * so that later steps see their samples as if they had been read from a file. */
#ifndef STKI_FIRST_STEPS_H
#define STKI_FIRST_STEPS_H

#include "document.h"
#include "operation.h"
#include "reader.h"
#include <stoker/loader.h>

bool stki_first_steps_know(const char *operation);
const stki_operation *stki_first_steps_operation(int index); /* NULL after the last one */
/* Checks a step of this name without the data. */
stk_status stki_first_steps_check(const char *operation, const stki_node *node, stk_error *err);
/* Whether a custom transform computes the samples. */
bool stki_first_steps_call(const stki_node *transforms);
/* Wraps *reader in the readers that a field's list requires. Takes ownership of *reader, even on failure. */
stk_status stki_first_steps_wrap(const stki_node *transforms, stki_reader **reader, stk_error *err);

/* reader_shape.c: samples reshaped to `shape`, with the same number of elements. */
stk_status stki_shape_reader_open(stki_reader *inner, int ndim, const int64_t *shape, const stki_node *node,
                                  stki_reader **out, stk_error *err);
/* reader_call.c: samples computed by the registered function `name`. */
stk_status stki_call_reader_open(stki_reader *inner, const char *name, const stki_node *node, stki_reader **out,
                                 stk_error *err);

#endif

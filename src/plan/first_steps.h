/* first_steps.h: the steps of a list of transforms that come before all others, since they decide what a sample is: its
 * shape is read in another way, or the user's own function makes another sample of it (stk_transform). They are readers
 * around the file's reader, so that whatever comes behind sees their samples as if a file held them. */
#ifndef STKI_FIRST_STEPS_H
#define STKI_FIRST_STEPS_H

#include "document.h"
#include "operation.h"
#include "reader.h"
#include <stoker/loader.h>

bool stki_first_steps_know(const char *operation);
const stki_operation *stki_first_steps_operation(int index); /* NULL behind the last one */
/* What can be said of such a step without data. */
stk_status stki_first_steps_check(const char *operation, const stki_node *node, stk_error *err);
/* Does a function of the user make the samples? */
bool stki_first_steps_call(const stki_node *transforms);
/* Puts the readers that a field's list asks for around *reader, and owns it then, also when this fails. */
stk_status stki_first_steps_wrap(const stki_node *transforms, stki_reader **reader, stk_error *err);

/* reader_shape.c: samples with the axes of `shape`, of as many elements. */
stk_status stki_shape_reader_open(stki_reader *inner, int ndim, const int64_t *shape, const stki_node *node,
                                  stki_reader **out, stk_error *err);
/* reader_call.c: samples that the function of that name makes. */
stk_status stki_call_reader_open(stki_reader *inner, const char *name, const stki_node *node, stki_reader **out,
                                 stk_error *err);

#endif

/* node_scalar.h: the grammars of single values, for the files behind document.h and option.h. All are false for a text
 * that is no such value, or does not fit. */
#ifndef STKI_NODE_SCALAR_H
#define STKI_NODE_SCALAR_H

#include "document.h"

bool stki_scalar_double(const char *text, double *out);
bool stki_scalar_size(const char *text, int64_t *out);
bool stki_scalar_time(const char *text, int64_t *out);

enum stki_unit { STKI_UNIT_NONE, STKI_UNIT_SIZE, STKI_UNIT_TIME };

/* The unit of `length` characters that sizes or times have, "MiB", "ms", and what it is in bytes or seconds; "" is
 * none, of factor 1. */
bool stki_scalar_unit(const char *name, size_t length, enum stki_unit *kind, double *factor);

enum stki_scalar_kind { STKI_SCALAR_NULL, STKI_SCALAR_BOOL, STKI_SCALAR_INT, STKI_SCALAR_REAL, STKI_SCALAR_TEXT };

/* What a scalar is by itself, where nobody expects anything of it. Sets the value that belongs to the answer. */
enum stki_scalar_kind stki_scalar_kind(const stki_node *node, int64_t *whole, double *real, bool *truth);

/* The other way, in the language of the configs, exactly: "64MiB", "1500ms", "0.1". `buffer` has at least 40 bytes and
 * is returned. */
const char *stki_format_size(int64_t bytes, char *buffer);
const char *stki_format_time(int64_t ns, char *buffer);
const char *stki_format_double(double value, char *buffer);

/* A text as a YAML value that reads back as that text. */
void stki_write_text(const char *text, FILE *to);

#endif

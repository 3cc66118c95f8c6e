/* node_scalar.h: the grammars of scalar values, for the implementation of document.h and option.h. Each function
 * returns false if the text does not have the form or the value is out of range. */
#ifndef STKI_NODE_SCALAR_H
#define STKI_NODE_SCALAR_H

#include "document.h"

bool stki_scalar_double(const char *text, double *out);
bool stki_scalar_size(const char *text, int64_t *out);
bool stki_scalar_time(const char *text, int64_t *out);

enum stki_unit { STKI_UNIT_NONE, STKI_UNIT_SIZE, STKI_UNIT_TIME };

/* Looks up a unit of sizes or times, "MiB", "ms", in the first `length` characters of `name`; *factor is its value in
 * bytes or seconds. "" is STKI_UNIT_NONE with factor 1. */
bool stki_scalar_unit(const char *name, size_t length, enum stki_unit *kind, double *factor);

enum stki_scalar_kind { STKI_SCALAR_NULL, STKI_SCALAR_BOOL, STKI_SCALAR_INT, STKI_SCALAR_REAL, STKI_SCALAR_TEXT };

/* Determines the kind of a scalar from its text, for callers that expect no particular kind, and sets the output for
 * that kind. */
enum stki_scalar_kind stki_scalar_kind(const stki_node *node, int64_t *whole, double *real, bool *truth);

/* Format a value in config syntax so that it parses to the same value: "64MiB", "1500ms", "0.1". `buffer` must have at
 * least 40 bytes; it is returned. */
const char *stki_format_size(int64_t bytes, char *buffer);
const char *stki_format_time(int64_t ns, char *buffer);
const char *stki_format_double(double value, char *buffer);

/* Writes a string as a YAML value that parses to the same string. */
void stki_write_text(const char *text, FILE *to);

#endif

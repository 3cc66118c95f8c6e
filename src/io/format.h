/* format.h: which formats there are. formats.c has the table; one line a format. */
#ifndef STKI_FORMAT_H
#define STKI_FORMAT_H

#include "container.h"
#include "source.h"

enum { STKI_FORMAT_HEAD = 1024 }; /* bytes of a file's beginning that a format may look at */

typedef struct stki_file_format {
    const char *name;           /* as in source.format: "npz" */
    const char *const *endings; /* of file names, with the dot, NULL at the end: used where content does not tell */
    /* Does the content say that it is this format? `length` bytes of the beginning; NULL: content never tells. */
    bool (*matches)(const char *head, int64_t length);
    stk_status (*open)(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
    bool folder;                            /* opens a directory */
    const stki_source_group *const *groups; /* of options, that any of its members takes; ended by NULL */
    /* Adds the names of classes alone, in order, without opening the rest. NULL: there is no shorter way. */
    stk_status (*classes)(const char *path, stki_classes *out, stk_error *err);
} stki_file_format;

/* Format number i of the table; NULL: i is too large. */
const stki_file_format *stki_file_format_at(int i);
/* NULL: there is none of that name. */
const stki_file_format *stki_file_format_named(const char *name);
/* STK_E_UNSUPPORTED says what the file looks like. */
stk_status stki_file_format_of(const char *path, const stki_reader_opts *opts, const stki_file_format **out,
                               stk_error *err);

#endif

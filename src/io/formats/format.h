/* format.h: which formats there are, and opening any file. formats.c has the table; one line a format. */
#ifndef STKI_FORMAT_H
#define STKI_FORMAT_H

#include "container.h"
#include "source.h"

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

/* Opens a file or folder of this format. */
stk_status stki_file_format_open(const stki_file_format *format, const char *path, const stki_reader_opts *opts,
                                 stki_container **out, stk_error *err);
/* Sets what a container has from above its format; the functions here have done so. */
void stki_container_complete(stki_container *container);
/* By content, then by name, or opts->format. */
stk_status stki_container_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Whether a file of text is one sample (source.unit: file). */
bool stki_container_whole_texts(const stki_reader_opts *opts);
/* Are these several files that are named like images? */
bool stki_container_of_images(char *const *paths, int64_t count);
/* Such files as one container with the members "image" and "path", a sample each. */
stk_status stki_container_open_images(char *const *paths, int64_t count, const stki_reader_opts *opts,
                                      stki_container **out, stk_error *err);
/* By the file's content and name. STK_E_UNSUPPORTED names what it looks like. */
stk_status stki_reader_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif

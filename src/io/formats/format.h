/* format.h: the table of formats, and functions that open a file of any format. The table in formats.c has one line per
 * format. */
#ifndef STKI_FORMAT_H
#define STKI_FORMAT_H

#include "container.h"
#include "source.h"

typedef struct stki_file_format {
    const char *name;           /* as in source.format: "npz" */
    const char *const *endings; /* file name extensions with the dot, NULL-terminated; used if the content does not
                                   determine the format */
    /* Whether the first `length` bytes identify this format. NULL: never. */
    bool (*matches)(const char *head, int64_t length);
    stk_status (*open)(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
    bool folder;                            /* opens a directory */
    const stki_source_group *const *groups; /* option groups accepted by any of its members; NULL-terminated */
    /* Adds the class names, in order, without opening the whole folder or file. NULL: not available. */
    stk_status (*classes)(const char *path, stki_classes *out, stk_error *err);
} stki_file_format;

/* Returns format i of the table; NULL: out of range. */
const stki_file_format *stki_file_format_at(int i);
/* Returns the format with this name; NULL: unknown. */
const stki_file_format *stki_file_format_named(const char *name);
/* Identifies the format of a file. The message of STK_E_UNSUPPORTED says what the file looks like. */
stk_status stki_file_format_of(const char *path, const stki_reader_opts *opts, const stki_file_format **out,
                               stk_error *err);

/* Opens a file or folder of this format. */
stk_status stki_file_format_open(const stki_file_format *format, const char *path, const stki_reader_opts *opts,
                                 stki_container **out, stk_error *err);
/* Sets the members of the struct that depend on other formats (groups, open, finish). The functions here that open
 * containers call it. */
void stki_container_complete(stki_container *container);
/* Opens a file in the format given by its content, its name, or opts->format. */
stk_status stki_container_open(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err);
/* Whether a text file is one sample (source.unit: file). */
bool stki_container_whole_texts(const stki_reader_opts *opts);
/* Whether there are several paths, all with image extensions. */
bool stki_container_of_images(char *const *paths, int64_t count);
/* Opens such files as one container with members "image" and "path", one sample per file. */
stk_status stki_container_open_images(char *const *paths, int64_t count, const stki_reader_opts *opts,
                                      stki_container **out, stk_error *err);
/* Opens a reader for the file, whose format is determined by its content and name. The message of STK_E_UNSUPPORTED
 * says what the file looks like. */
stk_status stki_reader_open(const char *path, const stki_reader_opts *opts, stki_reader **out, stk_error *err);

#endif

/* image_set.c: names and labels of image files, with only a few bytes of overhead per name, so that millions of files
 * fit in memory. */
#include "image_set.h"
#include "allocate.h"
#include "error.h"
#include "path.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIRST_ROOM = 256 };

stk_status stki_image_set_root(stki_image_set *set, const char *list, stk_error *err)
{
    set->root = strchr(list, '/') ? stki_folder_of(list) : stki_strdup("");
    return set->root ? STK_OK : stki_fail_memory(err, (int64_t)strlen(list), "the folder of a list");
}

void stki_image_set_fini(stki_image_set *set)
{
    stki_classes_fini(&set->classes);
    stki_free(set->name_found);
    stki_free(set->labels);
    stki_free(set->name_at);
    stki_free(set->names.text);
    stki_free(set->root);
    *set = (stki_image_set){0};
}

bool stki_image_set_path(const stki_image_set *set, int64_t index, char *buffer, int64_t size)
{
    const char *name = stki_image_set_name(set, index);
    bool alone = name[0] == '/' || !set->root[0];
    int n = snprintf(buffer, (size_t)size, "%s%s%s", alone ? "" : set->root, alone ? "" : "/", name);

    return n >= 0 && n < size;
}

bool stki_image_name(const char *name)
{
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    size_t length = strlen(name);

    for (int i = 0; i < (int)(sizeof endings / sizeof endings[0]); i++) {
        size_t end = strlen(endings[i]);
        if (length > end && !strcasecmp(name + length - end, endings[i]))
            return true;
    }
    return false;
}

static stk_status grow(stki_image_set *set, stk_error *err)
{
    int64_t room = set->room ? set->room * 2 : FIRST_ROOM, bytes = room * (int64_t)sizeof(int64_t);
    int64_t *name_at = stki_resize(set->name_at, bytes), *labels;

    if (name_at)
        set->name_at = name_at;
    labels = name_at ? stki_resize(set->labels, bytes) : NULL;
    if (!labels)
        return stki_fail_memory(err, bytes, "the names of images");
    set->labels = labels;
    set->room = room;
    return STK_OK;
}

stk_status stki_image_set_add(stki_image_set *set, const char *folder, const char *name, int64_t label, stk_error *err)
{
    int64_t at = set->names.length;

    if (set->count == set->room && grow(set, err) != STK_OK)
        return STK_E_MEMORY;
    stki_put(&set->names, folder);
    stki_put(&set->names, name);
    stki_put_bytes(&set->names, "", 1);
    if (set->names.failed)
        return stki_fail_memory(err, at + (int64_t)strlen(name) + 1, "the names of images");
    set->name_at[set->count] = at;
    set->labels[set->count++] = label;
    return STK_OK;
}

/* loadbench_output.c: see loadbench_output.h. */
#include "loadbench_output.h"
#include "allocate.h"
#include "error.h"
#include "stamp.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

stk_status lb_output_try(const char *path, const char *what, stk_error *err)
{
    char *part = stki_format("%s.part", path);
    struct stat about;
    const bool other = stat(path, &about) == 0 && !S_ISREG(about.st_mode);
    const int to = part && !other ? open(part, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    const int failed = errno;

    if (to >= 0) {
        close(to);
        unlink(part);
    }
    stki_free(part);
    if (!part)
        return stki_fail_memory(err, 64, "a path");
    if (other)
        return stki_fail(err, STK_E_IO, "%s: %s: exists and is not a regular file: choose another name", path, what);
    return to >= 0 ? STK_OK : stki_fail_errno(err, failed, path, "%s", what);
}

stk_status lb_output_check(const char *option, const char *path, const struct lb_files *data, stk_error *err)
{
    stki_stamp there;

    if (stki_stamp_take(path, &there, NULL) != STK_OK)
        return STK_OK;
    for (int64_t i = 0; i < data->count; i++)
        if (stki_stamp_is_of(&there, data->paths[i]))
            return stki_fail(err, STK_E_CONFIG, "%s: %s is a data file: choose another name", option, path);
    return STK_OK;
}

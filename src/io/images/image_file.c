/* image_file.c: one image file as a container: the member "image" with one sample. Opening reads the image's size
 * (except with source.decode: none); each read decodes the file again. */
#include "allocate.h"
#include "error.h"
#include "image_folder.h"
#include "image_kind.h"
#include "image_load.h"
#include "image_reader.h"
#include "image_set.h"
#include <string.h>

struct image_file {
    stki_container base; /* first member */
    stki_image_set set;  /* contains only this image */
};

static stk_status file_reader(const stki_container *base, int64_t member, const stki_reader_opts *opts,
                              stki_reader **out, stk_error *err)
{
    const struct image_file *file = (const struct image_file *)(const void *)base;
    const stki_decode_opts decode = stki_image_opts(opts);
    stk_status status = stki_image_reader_open(base, &file->set, &decode, out, err);

    (void)member;
    if (status != STK_OK || decode.none)
        return status;
    status = stki_image_reader_settle(*out, err);
    if (status != STK_OK)
        stki_reader_destroy(*out);
    return status;
}

static void file_destroy(stki_container *base)
{
    struct image_file *file = (struct image_file *)(void *)base;

    stki_image_set_fini(&file->set);
    stki_container_free(base);
}

static const stki_container_ops jpeg_ops = {.format = "jpeg", .reader = file_reader, .destroy = file_destroy};
static const stki_container_ops png_ops = {.format = "png", .reader = file_reader, .destroy = file_destroy};

/* Reads the header of the image, which must be of this kind. */
static stk_status info_of(const stki_file *file, const void *bytes, enum stki_image_kind kind,
                          const stki_decode_opts *opts, stki_image_info *out, stk_error *err)
{
    const char *what;
    enum stki_image_kind found = stki_image_kind_of(bytes, file->size, &what);

    if (found != kind && found != STKI_KIND_OTHER)
        return stki_fail_at(err, STK_E_UNSUPPORTED,
                            (stki_place){NULL, -1, -1, what, kind == STKI_KIND_JPEG ? "a JPEG image" : "a PNG image"},
                            "cannot be decoded as this kind of image");
    return stki_image_info_of(bytes, file->size, opts, out, err);
}

static stk_status read_info(const char *path, enum stki_image_kind kind, const stki_decode_opts *opts,
                            stki_image_info *out, bool *cut, stk_error *err)
{
    stki_file *file;
    void *bytes;
    stk_status status = stki_file_open(path, STKI_ACCESS_PREAD, STKI_PATTERN_SEQUENTIAL, &file, err);

    if (status != STK_OK)
        return status;
    bytes = stki_zalloc(file->size + 1);
    status = bytes ? stki_file_read(file, 0, bytes, file->size, err) : stki_fail_memory(err, file->size, path);
    if (status == STK_OK)
        status = stki_fail_place(err, info_of(file, bytes, kind, opts, out, err), path, -1, NULL);
    if (status == STK_OK)
        *cut = stki_image_is_cut(bytes, file->size, opts);
    stki_free(bytes);
    stki_file_close(file);
    return status;
}

static stk_status describe(struct image_file *file, const stki_image_info *info, const stki_decode_opts *decode,
                           stk_error *err)
{
    const int64_t shape[3] = {info->height, info->width, stki_image_channels(decode)}, varying[1] = {-1};
    const bool whole = decode->none;
    stki_member *member;
    stk_status status = stki_container_add(&file->base, "image", whole ? 1 : 3, whole ? varying : shape, &member, err);

    if (status != STK_OK)
        return status;
    member->kind = STKI_MEMBER_RECORDS;
    member->dtype = whole ? STK_U8 : stki_image_dtype(decode);
    member->count = 1;
    member->layout = "records";
    if (!whole)
        member->details = json_pack("{s:i, s:i}", "channels", info->channels, "orientation", info->orientation);
    return STK_OK;
}

static stk_status open_image(const char *path, enum stki_image_kind kind, const stki_reader_opts *opts,
                             stki_container **out, stk_error *err)
{
    const stki_decode_opts decode = stki_image_opts(opts);
    struct image_file *file;
    stki_image_info info = {0};
    bool cut = false;
    stk_status status =
        stki_container_create(sizeof *file, kind == STKI_KIND_PNG ? &png_ops : &jpeg_ops, path, &file, err);

    if (status != STK_OK)
        return status;
    file->set.root = stki_strdup("");
    status = file->set.root ? STK_OK : stki_fail_memory(err, 1, path);
    if (status == STK_OK && !decode.none)
        status = read_info(path, kind, &decode, &info, &cut, err);
    if (status == STK_OK)
        status = stki_image_set_add(&file->set, "", path, 0, err);
    if (status == STK_OK)
        status = describe(file, &info, &decode, err);
    if (cut)
        stki_container_warn(&file->base, STKI_IMAGE_CUT, "the image");
    if (status != STK_OK) {
        file_destroy(&file->base);
        return status;
    }
    *out = &file->base;
    return STK_OK;
}

stk_status stki_jpeg_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    return open_image(path, STKI_KIND_JPEG, opts, out, err);
}

stk_status stki_png_container(const char *path, const stki_reader_opts *opts, stki_container **out, stk_error *err)
{
    return open_image(path, STKI_KIND_PNG, opts, out, err);
}

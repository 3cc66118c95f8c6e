/* stki-threads */
/* Tests of transcoding JPEG images without decoding: coefficients, tables and segments, read by libjpeg from both
 * files, must be equal; images that are not changed; and whole jobs, whose outputs must give the pixels of the original
 * folder. */
#include "decode.h"
#include "jpeg_header.h"
#include "jpeg_make.h"
#include "jpeg_transcode.h"
#include "loader_test.h"
#include "prep_test.h"
#include <jansson.h>
#include <sys/stat.h>

static const stkt_jpeg kinds[] = {
    {.width = 160, .height = 80},
    {.width = 157, .height = 83, .h = 2},
    {.width = 190, .height = 117, .h = 2, .v = 2},
    {.width = 190, .height = 117, .h = 2, .v = 2, .quality = 100},
    {.width = 157, .height = 83, .v = 2},
    {.width = 227, .height = 66, .h = 4},
    {.width = 227, .height = 66, .h = 4, .v = 2},
    {.width = 227, .height = 66, .h = 2, .v = 4},
    {.width = 100, .height = 70, .h = 3},
    {.width = 157, .height = 83, .channels = 1},
    {.width = 157, .height = 83, .channels = 1, .h = 2, .v = 2},
    {.width = 157, .height = 83, .stored = JCS_RGB},
    {.width = 128, .height = 96, .channels = 4},
    {.width = 128, .height = 96, .channels = 4, .stored = JCS_YCCK, .h = 2, .v = 2},
    {.width = 190, .height = 117, .h = 2, .v = 2, .progressive = true},
    {.width = 190, .height = 117, .progressive = true},
    {.width = 190, .height = 117, .channels = 1, .progressive = true},
    {.width = 190, .height = 117, .h = 2, .v = 2, .restart = 5},
    {.width = 1, .height = 1, .h = 2, .v = 2},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static stki_jpeg_room room;

static void begin_reading(struct jpeg_decompress_struct *d, struct jpeg_error_mgr *errors, stkt_bytes file)
{
    d->err = jpeg_std_error(errors);
    jpeg_create_decompress(d);
    for (int i = 0; i < 16; i++)
        jpeg_save_markers(d, JPEG_APP0 + i, 0xFFFF);
    jpeg_save_markers(d, JPEG_COM, 0xFFFF);
    jpeg_mem_src(d, file.data, file.size);
    jpeg_read_header(d, TRUE);
}

static void same_segments(const struct jpeg_decompress_struct *a, const struct jpeg_decompress_struct *b)
{
    jpeg_saved_marker_ptr m = a->marker_list, n = b->marker_list;

    for (; m && n; m = m->next, n = n->next) {
        assert_int_equal(m->marker, n->marker);
        assert_int_equal(m->data_length, n->data_length);
        assert_int_equal(m->original_length, n->original_length);
        assert_memory_equal(m->data, n->data, m->data_length);
    }
    assert_null(m);
    assert_null(n);
}

static void same_component(struct jpeg_decompress_struct *a, struct jpeg_decompress_struct *b, int i,
                           jvirt_barray_ptr in_a, jvirt_barray_ptr in_b)
{
    const jpeg_component_info *p = &a->comp_info[i], *q = &b->comp_info[i];

    assert_int_equal(p->component_id, q->component_id);
    assert_int_equal(p->h_samp_factor, q->h_samp_factor);
    assert_int_equal(p->v_samp_factor, q->v_samp_factor);
    assert_int_equal(p->width_in_blocks, q->width_in_blocks);
    assert_int_equal(p->height_in_blocks, q->height_in_blocks);
    assert_memory_equal(p->quant_table->quantval, q->quant_table->quantval, sizeof p->quant_table->quantval);
    for (JDIMENSION y = 0; y < p->height_in_blocks; y++) {
        JBLOCKARRAY of_a = a->mem->access_virt_barray((j_common_ptr)a, in_a, y, 1, FALSE);
        JBLOCKARRAY of_b = b->mem->access_virt_barray((j_common_ptr)b, in_b, y, 1, FALSE);

        assert_memory_equal(of_a[0], of_b[0], p->width_in_blocks * sizeof(JBLOCK));
    }
}

/* Compares all data that a decoder or another program uses. */
static void same_image(stkt_bytes before, stkt_bytes after, int interval)
{
    struct jpeg_decompress_struct a, b;
    struct jpeg_error_mgr errors_a, errors_b;
    jvirt_barray_ptr *in_a, *in_b;

    begin_reading(&a, &errors_a, before);
    begin_reading(&b, &errors_b, after);
    in_a = jpeg_read_coefficients(&a);
    in_b = jpeg_read_coefficients(&b);
    assert_int_equal(a.image_width, b.image_width);
    assert_int_equal(a.image_height, b.image_height);
    assert_int_equal(a.num_components, b.num_components);
    assert_int_equal(a.jpeg_color_space, b.jpeg_color_space);
    assert_int_equal(a.saw_JFIF_marker, b.saw_JFIF_marker);
    assert_int_equal(a.saw_Adobe_marker, b.saw_Adobe_marker);
    assert_false(b.progressive_mode);
    assert_false(b.arith_code);
    assert_int_equal(b.restart_interval, interval);
    assert_int_equal(b.comps_in_scan, b.num_components);
    same_segments(&a, &b);
    for (int i = 0; i < a.num_components; i++)
        same_component(&a, &b, i, in_a[i], in_b[i]);
    jpeg_finish_decompress(&a);
    jpeg_finish_decompress(&b);
    assert_int_equal(errors_a.num_warnings + errors_b.num_warnings, 0);
    jpeg_destroy_decompress(&a);
    jpeg_destroy_decompress(&b);
}

/* The largest divisor of the number of MCUs in a row that is at most `most`, found by trying all candidates. */
static int interval_of(const stkt_jpeg *k, int most)
{
    const int side = k->channels == 1 || !k->h ? 8 : 8 * k->h, columns = (k->width + side - 1) / side;
    int best = 1;

    for (int n = 1; n <= most && n <= columns; n++)
        best = columns % n == 0 ? n : best;
    return best;
}

static stki_jpeg_transcoded transcode(stkt_bytes file, int restart)
{
    stki_jpeg_transcoded out = {0};
    stk_error err;

    assert_ok(stki_jpeg_transcode(file.data, (int64_t)file.size, restart, &room, &out, &err));
    return out;
}

static void coefficients_are_kept(void **unused)
{
    static const int restarts[] = {1, 2, 3, 8, 65535};

    (void)unused;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);

        for (size_t n = 0; n < sizeof restarts / sizeof restarts[0]; n++) {
            const stki_jpeg_transcoded out = transcode(file, restarts[n]);
            stki_jpeg_header header;
            stk_error err;

            assert_null(out.stays);
            assert_int_equal(out.height, kinds[i].height);
            assert_int_equal(out.width, kinds[i].width);
            assert_int_equal(out.components, kinds[i].channels ? kinds[i].channels : 3);
            same_image(file, (stkt_bytes){room.data, (size_t)out.bytes}, interval_of(&kinds[i], restarts[n]));
            assert_ok(stki_jpeg_read_header(room.data, out.bytes, &header, &err));
            assert_int_equal(header.restart, interval_of(&kinds[i], restarts[n]));
        }
        free(file.data);
    }
}

/* EXIF, a profile in two parts, XMP, comments, JFIF with a density and a thumbnail, Adobe. */
static void segments_are_kept(void **unused)
{
    static const uint8_t jfif[] = {0xFF, 0xE0, 0, 22,  'J', 'F', 'I', 'F', 0, 1, 2, 1,
                                   0,    72,   0, 144, 1,   2,   1,   2,   3, 4, 5, 6},
                         exif[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                                   0,    1,    1, 18, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0},
                         xmp[] = {0xFF, 0xE1, 0, 9, 'h', 't', 't', 'p', ':', '/', '/'},
                         adobe[] = {0xFF, 0xEE, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 1, 0, 2, 1},
                         comment[] = {0xFF, 0xFE, 0, 7, 'h', 'e', 'l', 'l', 'o'}, empty[] = {0xFF, 0xFE, 0, 2};
    static uint8_t profile[65537] = {0xFF, 0xE2, 0xFF, 0xFF, 'I', 'C', 'C', '_', 'P',
                                     'R',  'O',  'F',  'I',  'L', 'E', 0,   1,   2};
    const struct {
        const uint8_t *bytes;
        size_t count;
    } segments[] = {{jfif, sizeof jfif},       {exif, sizeof exif},       {profile, sizeof profile},
                    {profile, sizeof profile}, {comment, sizeof comment}, {xmp, sizeof xmp},
                    {empty, sizeof empty},     {adobe, sizeof adobe},     {comment, sizeof comment}};
    /* without its JFIF segment */
    stkt_bytes plain = stkt_jpeg_make(&kinds[2]), file = stkt_bytes_edit(plain, 2, 18, NULL, 0);
    stki_jpeg_transcoded out;
    stki_jpeg_header header;
    stk_error err;

    (void)unused;
    for (size_t i = sizeof segments / sizeof segments[0]; i-- > 0;) {
        stkt_bytes more = stkt_bytes_edit(file, 2, 0, segments[i].bytes, segments[i].count);

        free(file.data);
        file = more;
        out = transcode(file, 2);
        same_image(file, (stkt_bytes){room.data, (size_t)out.bytes}, 2);
    }
    assert_ok(stki_jpeg_read_header(room.data, out.bytes, &header, &err));
    assert_int_equal(header.orientation, 6);
    assert_memory_equal(room.data + 2, jfif, sizeof jfif); /* including the thumbnail */
    free(file.data);
    free(plain.data);
}

/* ---- images that are not changed ---- */

/* One scan per component, because an MCU of a common scan would have too many blocks. */
static stkt_bytes make_scans(void)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned long size = 0;
    unsigned char *data = NULL;
    uint8_t row[70 * 3];
    JSAMPROW rows[1] = {row};
    const jpeg_scan_info scans[3] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};

    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &size);
    c.image_width = 70;
    c.image_height = 50;
    c.input_components = 3;
    c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&c);
    c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 4;
    c.scan_info = scans;
    c.num_scans = 3;
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < 50; y++) {
        for (int x = 0; x < 210; x++)
            row[x] = stkt_jpeg_pixel(y, x / 3, x % 3);
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return (stkt_bytes){data, size};
}

static void some_images_are_unchanged(void **unused)
{
    const stkt_jpeg plain = {.width = 61, .height = 47, .h = 2, .v = 2};
    stkt_bytes base = stkt_jpeg_make(&plain);
    const size_t frame = (size_t)stkt_jpeg_find(base, 0xC0);
    const uint8_t lossless = 0xC3, twelve = 12, hierarchical = 0xC5;
    stkt_jpeg arithmetic = plain, unfinished = plain;
    stkt_bytes files[6];
    static const char *const says[] = {"arithmetic", "lossless", "12 bits", "hierarchical", "last scans", "baseline"};

    (void)unused;
    arithmetic.arithmetic = true;
    unfinished.progressive = unfinished.dc_only = true;
    files[0] = stkt_jpeg_make(&arithmetic);
    files[1] = stkt_bytes_edit(base, frame + 1, 1, &lossless, 1);
    files[2] = stkt_bytes_edit(base, frame + 4, 1, &twelve, 1);
    files[3] = stkt_bytes_edit(base, frame + 1, 1, &hierarchical, 1);
    files[4] = stkt_jpeg_make(&unfinished);
    files[5] = make_scans();
    for (int i = 0; i < 6; i++) {
        const stki_jpeg_transcoded out = transcode(files[i], 2);

        assert_non_null(out.stays);
        assert_non_null(strstr(out.stays, says[i]));
        assert_int_equal(out.height, i == 5 ? 50 : 47);
        assert_int_equal(out.width, i == 5 ? 70 : 61);
        assert_int_equal(out.components, 3);
        free(files[i].data);
    }
    free(base.data);
}

static void damage_is_an_error(void **unused)
{
    (void)unused;
    for (int i = 0; i < KINDS; i++) {
        stkt_bytes file = stkt_jpeg_make(&kinds[i]);
        static const uint8_t stray[2] = {0x12, 0x34};
        stkt_bytes bad = stkt_bytes_edit(file, (size_t)stkt_jpeg_find(file, 0xDB), 0, stray, 2);
        stki_jpeg_transcoded out = {0};
        stk_error err;

        assert_status(stki_jpeg_transcode(bad.data, (int64_t)bad.size, 2, &room, &out, &err), STK_E_CORRUPT);
        for (size_t cut = file.size - 1; cut > file.size / 3; cut -= 1 + cut / 13) {
            uint8_t *exact = malloc(cut);
            stk_status status = stki_jpeg_transcode(memcpy(exact, file.data, cut), (int64_t)cut, 2, &room, &out, &err);

            if (status != STK_E_TRUNCATED && status != STK_E_CORRUPT)
                fail_msg("kind %d truncated to %zu of %zu bytes: %s", i, cut, file.size, stk_status_name(status));
            free(exact);
        }
        free(bad.data);
        free(file.data);
    }
}

/* A size that the data does not justify must not cause an allocation of that size. */
static void sizes_are_not_trusted(void **unused)
{
    stkt_bytes file = stkt_jpeg_make(&kinds[14]);
    const size_t frame = (size_t)stkt_jpeg_find(file, 0xC2);
    static const uint8_t large[4] = {0x30, 0, 0x30, 0}, huge[4] = {0xFF, 0xDC, 0xFF, 0xDC};
    stkt_bytes bad = stkt_bytes_edit(file, frame + 5, 4, large, 4),
               worse = stkt_bytes_edit(file, frame + 5, 4, huge, 4);
    stki_jpeg_transcoded out = {0};
    stk_error err;

    (void)unused;
    assert_status(stki_jpeg_transcode(bad.data, (int64_t)bad.size, 2, &room, &out, &err), STK_E_TRUNCATED);
    assert_says("12288x12288");
    out = transcode(worse, 2);
    assert_non_null(out.stays);
    assert_non_null(strstr(out.stays, "pixels"));
    free(bad.data);
    free(worse.data);
    free(file.data);
}

/* ---- jobs ---- */

enum { IMAGES = 30 };

static bool is_odd_one(int i)
{
    return i % 10 == 7;
}

/* Thirty images: every second one progressive, with three kinds of subsampling; three with arithmetic coding. */
static void make_folder(void)
{
    static const int sampling[3][2] = {{1, 1}, {2, 1}, {2, 2}};

    assert_int_equal(mkdir(stkt_path("set"), 0700), 0);
    assert_int_equal(mkdir(stkt_path("set/a"), 0700), 0);
    assert_int_equal(mkdir(stkt_path("set/b"), 0700), 0);
    for (int i = 0; i < IMAGES; i++) {
        stkt_bytes file = stkt_jpeg_make(&(stkt_jpeg){.width = 240 + 7 * i,
                                                      .height = 260 - 3 * i,
                                                      .h = sampling[i % 3][0],
                                                      .v = sampling[i % 3][1],
                                                      .progressive = i % 2 && !is_odd_one(i),
                                                      .arithmetic = is_odd_one(i)});

        stkt_write_file(stkt_path(stkt_text("set/%c/%02d.jpg", i % 2 ? 'b' : 'a', i)), file.data, file.size);
        free(file.data);
    }
}

/* XXH3 of the random crops of two epochs. */
static void crops_of(const char *image, const char *label, const char *decode, char digest[64])
{
    stk_loader *loader;
    uint64_t hash = 1;
    stk_batch *batch;
    stk_error err;
    stk_status status;

    assert_ok(stk_loader_open_text(
        stkt_text("dataset: {fields: {image: {path: %s, source: {name: %s, decode: %s}, transforms: "
                  "[{random_resized_crop: 64}]}, label: {path: %s, source: {name: %s}}}}\n"
                  "loader: {num_workers: 3, batch_size: 7, seed: 3, num_epochs: 2, last_batch: partial}\n",
                  stkt_path(image), strstr(image, ".tar") ? "jpg" : "image", decode, stkt_path(image), label),
        NULL, NULL, 0, &loader, &err));
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        stk_tensor tensor;

        assert_ok(stk_batch_tensor(batch, "image", &tensor, &err));
        hash = stkt_hash(hash, tensor.data, tensor.shape[0] * 64 * 64 * 3);
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_END);
    stk_loader_destroy(loader);
    snprintf(digest, 64, "%016llx", (unsigned long long)hash);
}

static const char *job_text(const char *output, const char *encode)
{
    return stkt_text("dataset: {fields: {image: {path: %s, source: {decode: none}}, label: {path: %s}}}\n"
                     "prep: {num_workers: 2, piece_bytes: 4096}\n"
                     "output: {path: %s, fields: {image: {encode: %s}%s}}\n",
                     stkt_path("set"), stkt_path("set"), stkt_path(output), encode,
                     strstr(output, ".tar") ? ", label: {extension: cls}" : "");
}

static json_int_t arithmetic_ones(const char *manifest, const char **encode)
{
    json_t *json = json_load_file(stkt_path(manifest), 0, NULL), *fields = json_object_get(json, "fields");
    static char said[64];
    json_int_t count = -1;

    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);

        if (strcmp(json_string_value(json_object_get(field, "name")), "image") != 0)
            continue;
        snprintf(said, sizeof said, "%s", json_string_value(json_object_get(field, "encode")));
        assert_int_equal(json_object_size(json_object_get(field, "stays")), 1);
        count = json_integer_value(json_object_get(json_object_get(field, "stays"), "arithmetic coding"));
    }
    json_decref(json);
    *encode = said;
    return count;
}

static void a_job(void **unused)
{
    static const char *const outputs[] = {"one.tar", "two.beton"};
    char folder[2][64], made[64];

    (void)unused;
    make_folder();
    crops_of("set", "label", "exact", folder[0]);
    crops_of("set", "label", "fast", folder[1]);
    for (int i = 0; i < 2; i++) {
        const char *text = job_text(outputs[i], "{transcode: jpeg, restart: 3}"), *encode;
        stk_prep *job;
        bool noted = false;
        stk_error err = {0};

        assert_ok(stk_prep_open_text(text, NULL, NULL, 0, NULL, &job, &err));
        assert_ok(stk_prep_run(job, &err));
        for (int n = 0; n < stk_prep_note_count(job); n++)
            noted = noted || (strstr(stk_prep_note(job, n), "3 images were kept unchanged") &&
                              strstr(stk_prep_note(job, n), "3 arithmetic coding"));
        assert_true(noted);
        stk_prep_destroy(job);
        assert_int_equal(arithmetic_ones(i == 0 ? "one.manifest.json" : "two.manifest.json", &encode), 3);
        assert_string_equal(encode, "transcode");
        crops_of(outputs[i], i == 0 ? "cls" : "label", "exact", made);
        assert_string_equal(made, folder[0]);
        crops_of(outputs[i], i == 0 ? "cls" : "label", "fast", made);
        assert_string_equal(made, folder[1]);
    }
}

/* Unchanged images are counted over all tasks, each of which processes only its own part. */
static void tasks(void **unused)
{
    const char *text = job_text("tasks.beton", "{transcode: jpeg}"), *encode;

    (void)unused;
    for (int task = 0; task < 3; task++) {
        const stk_prep_opts opts = {.struct_size = sizeof opts, .task = task, .tasks = 3};
        stk_error err = {0};

        assert_ok(stkt_prep_run(&opts, NULL, &err, text));
    }
    assert_int_equal(arithmetic_ones("tasks.manifest.json", &encode), 3);
}

static void refusals(void **unused)
{
    static const char *const wrong[] = {
        "{transcode: png}", "{restart: 2}", "{transcode: jpeg, restart: 0}",    "{transcode: jpeg, quality: 3}",
        "transcode",        "[jpeg]",       "{transcode: jpeg, restart: 70000}"};
    stk_error err = {0};

    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (stkt_prep_run(NULL, NULL, &err, job_text("wrong.tar", wrong[i])) >= STK_OK)
            fail_msg("%s was accepted", wrong[i]);
    assert_status(stkt_prep_run(NULL, NULL, &err,
                                stkt_text("dataset: {fields: {image: {path: %s, ragged: true}}}\noutput: {path: %s, "
                                          "fields: {image: {encode: {transcode: jpeg}}}}\n",
                                          stkt_path("set"), stkt_path("wrong.tar"))),
                  STK_E_CONFIG);
    assert_says("decode: none");
    assert_status(stkt_prep_run(NULL, NULL, &err,
                                stkt_text("dataset: {fields: {image: {path: %s, ragged: true}}}\noutput: {path: %s, "
                                          "fields: {image: {encode: jpeg, restart: 2, progressive: true}}}\n",
                                          stkt_path("set"), stkt_path("wrong.tar"))),
                  STK_E_CONFIG);
    assert_says("progressive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(coefficients_are_kept),
        cmocka_unit_test(segments_are_kept),
        cmocka_unit_test(some_images_are_unchanged),
        cmocka_unit_test(damage_is_an_error),
        cmocka_unit_test(sizes_are_not_trusted),
        cmocka_unit_test(a_job),
        cmocka_unit_test(tasks),
        cmocka_unit_test(refusals),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    stki_jpeg_room_fini(&room);
    return failed;
}

/* loadbench_place.c: /proc/self/mountinfo has one line per mount: "36 35 98:0 /root /mount opts … - type source opts",
 * with spaces in names written as \040. The file system of a path is the mount with the longest matching prefix. If
 * several mounts have the same mount point, the last one hides the others. */
#include "loadbench_place.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <stoker/device.h>
#include <string.h>

/* Decodes \040 and similar escapes in place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' && from[3] >= '0' &&
            from[3] <= '7') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static bool begins_with(const char *path, const char *mount)
{
    const size_t length = strlen(mount);

    return strcmp(mount, "/") == 0 ||
           (strncmp(path, mount, length) == 0 && (path[length] == '/' || path[length] == '\0'));
}

static bool first_line(const char *path, char *out, int size)
{
    FILE *file = fopen(path, "re");
    const bool read = file && fgets(out, size, file);

    if (file)
        fclose(file);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    for (int i = read ? (int)strlen(out) - 1 : -1; i >= 0 && out[i] == ' '; i--)
        out[i] = '\0';
    return read;
}

void lb_place_read(const char *path, const char *mountinfo, struct lb_place *out)
{
    char *real = realpath(path, NULL), line[4096];
    FILE *file = fopen(mountinfo, "re");
    size_t longest = 0;

    *out = (struct lb_place){0};
    while (real && file && fgets(line, sizeof line, file)) {
        char mount[1024], type[64], source[512];
        const char *behind = strstr(line, " - ");
        if (!behind || sscanf(line, "%*d %*d %*s %*s %1023s", mount) != 1 ||
            sscanf(behind, " - %63s %511s", type, source) != 2)
            continue;
        unescape(mount);
        unescape(source);
        if (!begins_with(real, mount) || strlen(mount) < longest)
            continue;
        longest = strlen(mount);
        snprintf(out->type, sizeof out->type, "%.31s", type);
        snprintf(out->source, sizeof out->source, "%.127s", source);
        snprintf(out->mount, sizeof out->mount, "%.255s", mount);
    }
    if (file)
        fclose(file);
    free(real);
}

void lb_gpu_read(const char *device_name, const char *sys, struct lb_gpu *out)
{
    stk_device_properties properties = {.struct_size = sizeof properties};
    stk_device *device;
    char path[512], text[64];

    *out = (struct lb_gpu){.link_width = -1};
    if (stk_device_find(device_name, &device, NULL) != STK_OK ||
        stk_device_get_properties(device, &properties, NULL) != STK_OK)
        return;
    snprintf(out->model, sizeof out->model, "%s", properties.model);
    snprintf(out->bus, sizeof out->bus, "%s", properties.bus);
    out->memory_bytes = properties.total_bytes;
    out->driver_version = properties.driver_version;
    out->runtime_version = properties.runtime_version;
    if (!out->bus[0])
        return;
    for (char *at = out->bus; *at; at++) /* names in /sys are in lower case */
        *at = *at >= 'A' && *at <= 'F' ? (char)(*at - 'A' + 'a') : *at;
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/current_link_speed", sys, out->bus);
    if (first_line(path, text, sizeof text))
        snprintf(out->link_speed, sizeof out->link_speed, "%.47s", text);
    snprintf(path, sizeof path, "%s/bus/pci/devices/%s/current_link_width", sys, out->bus);
    if (first_line(path, text, sizeof text))
        out->link_width = (int)strtol(text, NULL, 10);
}

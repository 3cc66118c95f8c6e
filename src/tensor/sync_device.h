/* sync_device.h: shared by synchronous devices: a fill function, and streams and events that are always complete. */
#ifndef STKI_SYNC_DEVICE_H
#define STKI_SYNC_DEVICE_H

#include "device_table.h"

/* Writes `count` copies of a pattern of 1 to 16 bytes to host memory. */
void stki_fill_bytes(void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);

stk_status stki_sync_stream_create(stk_device *device, bool urgent, stk_stream **out, stk_error *err);
void stki_sync_stream_destroy(stk_device *device, stk_stream *stream);
stk_status stki_sync_stream_query(stk_device *device, stk_stream *stream, stk_error *err);
stk_status stki_sync_stream_wait(stk_device *device, stk_stream *stream, stk_event *event, stk_error *err);
stk_status stki_sync_event_create(stk_device *device, bool timing, stk_event **out, stk_error *err);
void stki_sync_event_destroy(stk_device *device, stk_event *event);
stk_status stki_sync_event_record(stk_device *device, stk_event *event, stk_stream *stream, stk_error *err);
stk_status stki_sync_event_query(stk_device *device, stk_event *event, stk_error *err);
stk_status stki_sync_event_elapsed(stk_device *device, const stk_event *from, const stk_event *to, int64_t *out_ns,
                                   stk_error *err);
stk_status stki_sync_spin(stk_device *device, int64_t ns, stk_stream *stream, stk_error *err);
stk_status stki_sync_synchronize(stk_device *device, stk_error *err);
/* Returns the properties of the host: CPU and memory. */
stk_status stki_sync_properties(stk_device *device, stk_device_properties *out, stk_error *err);

#define STKI_SYNC_DEVICE_OPS                                                                                \
    .stream_create = stki_sync_stream_create, .stream_destroy = stki_sync_stream_destroy,                   \
    .stream_query = stki_sync_stream_query, .stream_wait = stki_sync_stream_wait,                           \
    .event_create = stki_sync_event_create, .event_destroy = stki_sync_event_destroy,                       \
    .event_record = stki_sync_event_record, .event_query = stki_sync_event_query,                           \
    .event_elapsed = stki_sync_event_elapsed, .spin = stki_sync_spin, .synchronize = stki_sync_synchronize, \
    .properties = stki_sync_properties

#endif

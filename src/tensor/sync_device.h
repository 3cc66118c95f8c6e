/* sync_device.h: what devices that do everything at once share: a filler, and streams and events that are always done.
 */
#ifndef STKI_SYNC_DEVICE_H
#define STKI_SYNC_DEVICE_H

#include "device_table.h"

/* `count` copies of a pattern of 1 to 16 bytes, in ordinary memory. */
void stki_fill_bytes(void *dst, const void *pattern, int64_t pattern_bytes, int64_t count);

stk_status stki_sync_stream_create(stk_device *device, stki_stream **out, stk_error *err);
void stki_sync_stream_destroy(stk_device *device, stki_stream *stream);
stk_status stki_sync_stream_synchronize(stk_device *device, stki_stream *stream, stk_error *err);
stk_status stki_sync_event_create(stk_device *device, stki_event **out, stk_error *err);
void stki_sync_event_destroy(stk_device *device, stki_event *event);
stk_status stki_sync_event_record(stk_device *device, stki_event *event, stki_stream *stream, stk_error *err);
stk_status stki_sync_event_query(stk_device *device, stki_event *event, stk_error *err);
stk_status stki_sync_stream_wait(stk_device *device, stki_stream *stream, stki_event *event, stk_error *err);
stk_status stki_sync_synchronize(stk_device *device, stk_error *err);

#define STKI_SYNC_DEVICE_OPS                                                                    \
    .stream_create = stki_sync_stream_create, .stream_destroy = stki_sync_stream_destroy,       \
    .stream_synchronize = stki_sync_stream_synchronize, .event_create = stki_sync_event_create, \
    .event_destroy = stki_sync_event_destroy, .event_record = stki_sync_event_record,           \
    .event_query = stki_sync_event_query, .stream_wait = stki_sync_stream_wait, .synchronize = stki_sync_synchronize

#endif

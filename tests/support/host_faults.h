/* host_faults.h: makes operations of the host device slow, blocked or failing. Operations are copies, fills,
 * conversions and kernels, but not waits for events or time stamps. Test programs are linked with
 * --wrap=stki_host_submit, so that operations go through host_faults.c; the device has no code for it. */
#ifndef STKT_HOST_FAULTS_H
#define STKT_HOST_FAULTS_H

#include "host_device.h"

#define STKT_HOST_HOLD INT64_MAX

typedef struct stkt_host_faults {
    int64_t delay_ns; /* before each operation; STKT_HOST_HOLD: until the faults are changed */
    /* The n-th operation that is submitted from now on and runs (1 is the next) fails, once; 0: none. */
    int64_t fail_at;
} stkt_host_faults;

/* Sets the faults of one stream. If `stream` is NULL, sets those of all existing and future streams of the device and
 * of operations without a stream (which ignore holds); `fail_at` then counts all these operations together. `faults`
 * NULL: no faults. A running delay uses the new value at once. Operations queued before the first call are not
 * affected. Thread-safe. */
void stkt_host_set_faults(stk_device *device, stk_stream *stream, const stkt_host_faults *faults);

#endif

/* host_faults.h: makes operations of the host device slow, stand still, or fail. Operations are copies, fills,
 * conversions and kernels; waits for events and time stamps are none. Test programs are linked with
 * --wrap=stki_host_submit, so that the operations pass through host_faults.c; the device itself knows nothing of it.
 */
#ifndef STKT_HOST_FAULTS_H
#define STKT_HOST_FAULTS_H

#include "host_device.h"

#define STKT_HOST_HOLD INT64_MAX

typedef struct stkt_host_faults {
    int64_t delay_ns; /* before each operation; STKT_HOST_HOLD: until the faults are set again */
    int64_t
        fail_at; /* the n-th operation that is submitted from now on and runs fails, once (1 is the next); 0: none */
} stkt_host_faults;

/* For one stream, or (`stream` NULL) for all streams of the device, those to come too, and the operations without a
 * stream, which ignore a hold; `fail_at` then counts the operations of all of them. NULL: no faults. A delay that runs
 * takes the new value at once. Operations queued before the first call of this are left alone. Any thread. */
void stkt_host_set_faults(stk_device *device, stk_stream *stream, const stkt_host_faults *faults);

#endif

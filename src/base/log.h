/* log.h: debug messages by topic. Disabled unless the program (`--debug=topic,topic` or `all`) or the environment
 * variable STOKER_DEBUG enables topics. Each message is one line on stderr: "stoker: TOPIC: …". An unknown topic in the
 * environment is reported on stderr once. The library prints nothing else. Thread-safe. */
#ifndef STKI_LOG_H
#define STKI_LOG_H

#include <stdbool.h>
#include <stoker/status.h>

#define STKI_LOG_TOPICS(X) X(config) X(io) X(order) X(ring) X(worker) X(plan) X(memory)

enum stki_log_topic {
#define STKI_X(name) STKI_LOG_##name,
    STKI_LOG_TOPICS(STKI_X)
#undef STKI_X
};

/* STK_E_CONFIG: a topic is unknown; the message names it and lists the known ones. */
stk_status stki_log_enable(const char *topics, stk_error *err);
bool stki_log_on(enum stki_log_topic topic);
void stki_log(enum stki_log_topic topic, const char *format, ...) STK_PRINTF(2, 3);

#endif

/* http1_step: what a connection of HTTP/1.1 reads or waits for.
 *
 *     head ─▶ body ─▶ answer ─▶ head ...        one request after the other
 *                        └────▶ raw             another protocol, until the end
 *     any of them ─▶ over                       what follows is not read
 *
 * Threads  none; the table is constant.
 */
#ifndef WEIR_SERVER_HTTP1_STEP_H
#define WEIR_SERVER_HTTP1_STEP_H

#include "base/states.h"

enum http1_step {
    HTTP1_HEAD,   /* a request's line and fields */
    HTTP1_BODY,   /* its body; an answer may begin before all of it has come */
    HTTP1_ANSWER, /* nothing, until the answer is complete */
    HTTP1_RAW,    /* bytes of the protocol that a 101 has switched to */
    HTTP1_OVER,
    HTTP1_STEP_COUNT,
};

extern const struct state http1_steps[HTTP1_STEP_COUNT];

#endif

/* lane: libcurl's transfers on one loop.
 *
 * libcurl names the sockets it waits for and the time of its next call; the lane waits with the
 * loop and calls it. Operations that libcurl forbids inside its own callbacks are postponed
 * here until it has returned.
 *
 * Private to client/.
 *
 * Memory   a transfer lives inside its owner. It is off the lane once on_done or on_left is
 *          called.
 * Threads  the loop's.
 */
#ifndef WEIR_CLIENT_LANE_H
#define WEIR_CLIENT_LANE_H

#include "base/list.h"
#include "client/curl.h"
#include "loop/loop.h"

struct lane {
    const struct curl *curl;
    struct loop *loop;
    CURLM *multi;
    struct timer timer;
    struct list leaving;
    unsigned inside; /* libcurl on the stack */
    size_t transfers;
};

struct transfer {
    CURL *easy;
    struct list leaving;
    void (*on_done)(struct transfer *transfer, CURLcode result);
    void (*on_left)(struct transfer *transfer);
};

struct lane *lane_new(const struct curl *curl, struct loop *loop);
void lane_free(struct lane *lane); /* no transfer may be on it; NULL is fine */

/* Call both from a turn of the loop, not from a libcurl callback. on_done may run before
 * lane_unpause() returns. */
void lane_add(struct lane *lane, struct transfer *transfer);
MUST_CHECK CURLcode lane_unpause(struct lane *lane, struct transfer *transfer);

/* Remove a transfer that is not done, now or as soon as libcurl is off the stack, and call
 * on_left. A connection with an unfinished response is closed. */
void lane_leave(struct lane *lane, struct transfer *transfer);

#endif

/* lane: libcurl's transfers of one loop.
 *
 * libcurl says which sockets it waits for and when it wants to be called again; the lane waits
 * for it with the loop and calls it. Everything that libcurl refuses to do while it is itself
 * on the stack is kept here until it is not.
 *
 * Private to client/.
 *
 * Memory   a transfer lives inside its owner; off the lane once on_done or on_left is called.
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

/* Both from a turn of the loop, not from one of libcurl's callbacks. on_done may come before
 * lane_unpause() returns. */
void lane_add(struct lane *lane, struct transfer *transfer);
MUST_CHECK CURLcode lane_unpause(struct lane *lane, struct transfer *transfer);

/* Take it off before it is done, now or as soon as libcurl is off the stack, and call on_left.
 * A connection that has been used only in part is closed. */
void lane_leave(struct lane *lane, struct transfer *transfer);

#endif

/* follow: the journal of one run, read from a daemon, also across broken connections.
 *
 *     asking ─▶ reading ─▶ over          the run's last event came, or the reader stopped
 *        ▲         │
 *        └─ resting ◀┘                   the connection broke, or the daemon stopped: again after
 *                                        the last event that was read, a little later each time
 *
 * Memory   owns its texts; follow_free(). Lends each event to on_event.
 * Threads  the loop's.
 * Source   contract/weir/api.h: GET /weir/v1/runs/{id}/events, Last-Event-ID, `reset`.
 */
#ifndef WEIR_CLI_FOLLOW_H
#define WEIR_CLI_FOLLOW_H

#include "cli/ask_daemon.h"
#include "wire/json.h"

struct run_follow;

struct run_follow_options {
    struct http_pool *pool;
    struct loop *loop;
    const struct daemon_target *target; /* borrowed until the end */
    struct str run;                     /* its id */
    struct str after;                   /* the id of an event, or empty: from the first */
    unsigned tries;                     /* in a row, before it gives up; 0: for ever */
    /* One event, as one JSON object. May call run_follow_stop(). */
    void (*on_event)(struct str json, void *ctx);
    /* It will try again. NULL: not reported. */
    void (*on_broken)(const struct err *why, void *ctx);
    /* Once, unless it is freed before. failed: why it gave up; NULL: the run has ended, or it was
     * stopped. The callback may free it. */
    void (*on_end)(const struct err *failed, void *ctx);
    void *ctx;
};

struct run_follow *run_follow_start(const struct run_follow_options *options);
void run_follow_free(struct run_follow *follow); /* accepts NULL */

/* Read no further; on_end comes in a later turn. */
void run_follow_stop(struct run_follow *follow);

/* The id of the last event that came, to go on after it; valid until the next one. */
struct str run_follow_place(const struct run_follow *follow);

#endif

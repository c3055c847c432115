/* watch: a call about one job or workflow, which may follow it to its end (close mode B).
 *
 *     watch_begin ─▶ found (run_open.h) ─▶ a reply
 *                                      ├─▶ watch_subscribe: its events, then its end
 *                                      └─▶ watch_for_end:   a reply when it is over
 *
 * Private to contract/nimi/job.
 *
 * Memory   the first member of the call's work, which frees it with watch_done().
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.1 rule 005, 6.4; checks.md K20.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_WATCH_H
#define WEIR_CONTRACT_NIMI_JOB_WATCH_H

#include "contract/nimi/job/run_open.h"
#include "stream/follow.h"

struct nimi_watch {
    struct run_open open;  /* must be the first member; its fold is what was read */
    struct follow *follow; /* NULL: not followed yet */
    bool ends_later;       /* the last message is on its way, and ends the call */
    /* It has gone since it was found (NULL), or `failed` says why it cannot be read now. */
    void (*gone)(struct nimi_watch *watch, const struct err *failed);
};

/* Look for the run. `events` are the call's; watch_drained() and so on may be among them in any
 * case. */
void watch_begin(struct nimi_watch *watch, struct nimi_call *call,
                 const struct nimi_work *events, struct str id);
void watch_done(struct nimi_watch *watch);

/* Follow the run from its first event to its last. `wire` gets the work, whose first member the
 * watch is. A subscription that arrives while the runtime stops is admitted, because it only
 * reads. It gets what is over, and is cut like the others for what is not. */
void watch_subscribe(struct nimi_watch *watch, const struct stream_wire *wire);
void watch_for_end(struct nimi_watch *watch, const struct stream_wire *wire);

/* The call is over, or ends now because its stream was cut. */
bool watch_is_cut(struct nimi_call *call, struct close_ending ending);

/* A part of a wire. */
void watch_ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                 void *ctx); /* of a subscriber */

/* Parts of a struct nimi_work. */
void watch_drained(void *ctx);
void watch_stopping(void *ctx);
void watch_cancelled(enum close_cause why, void *ctx);

#endif

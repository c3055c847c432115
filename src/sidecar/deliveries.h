/* deliveries: events on their way to the platform.
 *
 * Events are sent one after the other, each until the platform has taken it: at least once, with
 * an id that stays the same and that no other process gives. An event that is sent once is
 * dropped when the platform cannot take it. Nothing waits for the platform. With a file, an event is kept
 * once it is on disk, and the events of an earlier process are sent first; without one, it is
 * kept in memory, and lost when the process ends.
 *
 *     put ─▶ on disk ─▶ kept ─▶ sent         (400 and the like: dropped, and counted)
 *
 * Memory   owns the events, DELIVERIES_MAX and DELIVERIES_MAX_BYTES at most.
 * Threads  one loop's; the file is written on another thread.
 * Source   contracts/agentbreeder.md 4.4 and 4.10.
 */
#ifndef WEIR_SIDECAR_DELIVERIES_H
#define WEIR_SIDECAR_DELIVERIES_H

#include "client/http.h"

#define DELIVERIES_MAX 10000
#define DELIVERIES_MAX_BYTES (16 * MIB) /* of their lines in the file */
#define DELIVERY_FIRST_WAIT_MS 500
#define DELIVERY_LAST_WAIT_MS 30000

struct deliveries;

struct deliveries_options {
    struct loop *loop;
    struct http_pool *pool;
    struct str url, token; /* of the platform */
    struct str file;       /* empty: in memory */
};

struct delivery_event {
    struct str path; /* "/api/v1/costs" */
    struct str body; /* a JSON object */
    bool once;       /* best effort: dropped after one attempt that failed */
};

/* Called once, never before deliveries_put() has returned: the events are kept, or why not. */
typedef void delivery_kept_fn(const struct err *failed, void *ctx);

/* Reads the file: call it before the loop runs.
 * errors  those of delivery_file_open() */
MUST_CHECK bool deliveries_new(const struct deliveries_options *options,
                               struct deliveries **ret, struct err *e);

/* Keep all of these events, or none. `kept` is not called any more after deliveries_forget().
 * errors reported: ERR_RESOURCE_EXHAUSTED too many wait; ERR_UNAVAILABLE the disk */
void deliveries_put(struct deliveries *deliveries, const struct delivery_event *events,
                    size_t count, delivery_kept_fn *kept, void *ctx);
void deliveries_forget(struct deliveries *deliveries, void *ctx);

struct delivery_counts {
    uint64_t waiting, sent, refused, dropped, failed; /* failed: attempts */
};
struct delivery_counts deliveries_counts(const struct deliveries *deliveries);

/* Send nothing more. stopped(ctx) is called once the file is idle. */
void deliveries_stop(struct deliveries *deliveries, void (*stopped)(void *ctx), void *ctx);
void deliveries_free(struct deliveries *deliveries); /* stopped, or never run; accepts NULL */

#endif

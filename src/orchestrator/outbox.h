/* outbox: usage that NATS has not taken yet, and brings it there.
 *
 *     usage_events, unpublished ─▶ a batch ─▶ a worker: JetStream, acknowledged ─▶ published
 *                   ▲                                    │ NATS is away
 *                   └──────────── later ◀────────────────┘
 *
 * A model call's row is stored with its message, and marked as published only once JetStream has
 * acknowledged it. So nothing is lost while NATS is away or when this process dies; what was
 * sent and not marked is sent again under the same message id, which JetStream drops.
 *
 * Memory   one batch at a time.
 * Threads  the loop's; libnats is loaded and asked on a worker.
 * Source   contracts of the orchestrator, "NATS and analytics"; checks.md N1, N2.
 */
#ifndef WEIR_ORCHESTRATOR_OUTBOX_H
#define WEIR_ORCHESTRATOR_OUTBOX_H

#include "orchestrator/query.h"

struct outbox;

/* The URL is copied; the queries are borrowed. */
struct outbox *outbox_new(struct loop *loop, struct queries *queries, struct str url);
/* Something was stored: look soon. */
void outbox_wake(struct outbox *outbox);
/* No further batch. A worker that is under way may still use the outbox, until the loop is
 * freed. */
void outbox_stop(struct outbox *outbox);
void outbox_free(struct outbox *outbox); /* accepts NULL */

#endif

/* drive: a turn at the runtime of its workspace, wherever that is.
 *
 *     start ─▶ runtime found ─▶ (pause after failures) ─▶ on_sent ─▶ events ─▶ the last event
 *
 * It needs the runtime (runtimes.h), asks it (agent/converse_turn.h), and leaves it. After a
 * runtime was lost its next turns wait, longer after each failure, so that it is not met by all
 * of them at once when it comes back. The fake runtime is part of this file: it answers with
 * what it was told.
 *
 * Memory   the question is borrowed until the end. A drive frees itself before its last
 *          callback, or by drive_cancel().
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_DRIVE_H
#define WEIR_ORCHESTRATOR_DRIVE_H

#include "agent/converse_turn.h"
#include "orchestrator/runtimes.h"

/* A turn that was refused because its runtime does not serve yet has this reason. */
#define DRIVE_STARTING "RTM0001"

struct driver;
struct drive;

struct driver_options {
    struct loop *loop;
    struct http_pool *http;
    struct runtimes *runtimes;
    bool secure, per_turn;         /* as struct converse_target */
    const struct token_keys *keys; /* NULL: no token is sent */
    uint64_t stall_ms;
};

/* Everything is borrowed until driver_free(). */
struct driver *driver_new(const struct driver_options *options);
void driver_free(struct driver *driver);

struct drive *drive_start(struct driver *driver, const struct converse_question *question,
                          const struct converse_sink *sink, void *ctx);
/* After the first event, also from inside it: no more is read until drive_resume(). */
void drive_pause(struct drive *drive);
void drive_resume(struct drive *drive);
void drive_cancel(struct drive *drive);

/* How long a turn waits after `failures` in a row: 0, then from 200 ms to 5 s, and up to a
 * quarter more or less by `random`. */
uint64_t drive_pause_ms(unsigned failures, uint64_t random);

#endif

/* late_ends: the ends of turns that the store refused in the middle, written once it can.
 *
 * When the store refuses a part of a turn (a full disk, a server that is away), the turn fails in
 * memory and its caller is told. What was stored of it before would stand there without an end
 * until the next start: shown as running, its session not to be erased. So each such turn is looked
 * up a second later, and again while the store refuses, and gets its end, unless it has one.
 *
 *     waiting ─▶ reading ─▶ writing ─▶ the next one     waiting: a pause, or nothing to do
 *        ▲─────────┴───────────┘ the store refused
 *
 * Memory   the host's, from its first such turn on; at most LATE_ENDS_MAX of them wait. What does
 *          not fit, or cannot be read, is ended by the next start (recover.h).
 * Threads  the host's loop.
 * Source   checks.md K27, T1.
 */
#ifndef WEIR_TURN_LATE_ENDS_H
#define WEIR_TURN_LATE_ENDS_H

#include "engine/engine.h"

#define LATE_ENDS_MAX 4096
#define LATE_ENDS_PAUSE_MS 1000

struct late_ends;

/* The turn is over and no longer in the directory. */
void late_ends_add(struct run_host *host, uint64_t run);

/* Begin nothing more: the store closes. */
void late_ends_stop(struct run_host *host);

/* The store has answered everything. */
void late_ends_done(struct run_host *host);

#endif

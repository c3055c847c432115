/* run_head: how a run began, read from its first event, in memory or in the store.
 *
 * A request names an earlier response, or repeats an idempotency key: the run of it says whose it
 * is and which session it belongs to. Any loop finds it, and so does a later process.
 *
 * Memory   opaque; it ends with its answer, or with run_head_cancel().
 * Threads  the loop that looks.
 */
#ifndef WEIR_CONTRACT_RUN_HEAD_H
#define WEIR_CONTRACT_RUN_HEAD_H

#include "session/session_table.h"
#include "wire/event.h"

struct run_head;

/* `started` is the run's first event, valid until this returns; NULL: there is no such run, or
 * `failed` says why the store could not answer. */
typedef void run_head_fn(const struct event *started, const struct err *failed, void *ctx);

/* `on_answer` is called once, later. */
struct run_head *run_head_look(struct session_table *sessions, struct loop *loop, uint64_t run,
                               run_head_fn *on_answer, void *ctx);
void run_head_cancel(struct run_head *head); /* no answer comes; NULL is fine */

#endif

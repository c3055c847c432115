/* loop: the event loop of one thread.
 *
 * A loop waits for events, runs their handlers, and at the end of that turn runs the deferred
 * tasks: streams pump, connections write. Everything a turn produced for one connection thus
 * leaves in one write. An object belongs to one loop for life and needs no lock; another thread
 * reaches it by posting a mail.
 *
 *     wait ─▶ timers ─▶ sockets, mail ─▶ deferred tasks, until none is left ─▶ wait
 *
 * A fake loop has no descriptors, and its clock stands still until a test advances it.
 *
 * Memory   tasks, timers and mails live inside their owners; the loop only links them.
 * Threads  everything belongs to the loop's own thread, except loop_post().
 */
#ifndef WEIR_LOOP_LOOP_H
#define WEIR_LOOP_LOOP_H

#include "base/attr.h"
#include "base/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct uv_loop_s;

struct loop *loop_new(void);
/* Nothing may be linked to it, and no thread may post any more. Mail under way is delivered. */
void loop_free(struct loop *loop);

/* Run until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Milliseconds of monotonic time, as of the start of this turn. */
uint64_t loop_now_ms(const struct loop *loop);

/* One pointer for the owner of this thread. Objects that start on a loop, such as connections,
 * find the thread's data through it. NULL until set. */
void loop_set_owner(struct loop *loop, void *owner);
void *loop_owner(const struct loop *loop);

/* For folders that use libuv handles directly (server/). NULL on a fake loop. */
struct uv_loop_s *loop_uv(struct loop *loop);

/* --- fake loops, for tests ------------------------------------------------------------- */

struct loop *loop_new_fake(void);

/* Run one turn now: the waiting mail, then the deferred tasks. */
void loop_turn(struct loop *loop);

/* Advance the clock by `ms`: timers fire in order, each in its own turn and at its own time. */
void loop_advance(struct loop *loop, uint64_t ms);

/* --- deferred tasks: "before this turn ends" -------------------------------------------- */

typedef void task_fn(void *ctx);

struct task {
    struct list link;
    task_fn *fn;
    void *ctx;
};

void task_init(struct task *task, task_fn *fn, void *ctx);

/* Run `task` once at the end of this turn, after the tasks deferred before it. Deferring a task
 * that is already waiting changes nothing. A task may defer others and itself; they run in the
 * same turn. Deferred outside a turn (on the loop's thread, before loop_run), it runs in the
 * first turn. */
void loop_defer(struct loop *loop, struct task *task);
void task_cancel(struct task *task); /* harmless when it is not waiting */

/* --- timers ------------------------------------------------------------------------------ */

struct timer {
    struct loop *loop;
    size_t place; /* in the loop's heap, counted from 1; 0 = not waiting */
    uint64_t due_ms;
    task_fn *fn;
    void *ctx;
};

void timer_init(struct timer *timer, struct loop *loop, task_fn *fn, void *ctx);

/* Fire once, `in_ms` from loop_now_ms(); never before this call returns, also for 0.
 * Starting a timer that is already waiting moves it. Timers due in the same millisecond fire in
 * the same turn, in the order they were started. */
void timer_start(struct timer *timer, uint64_t in_ms);
void timer_stop(struct timer *timer); /* harmless when it is not waiting */

static inline bool timer_waits(const struct timer *timer) {
    return timer->place != 0;
}

/* --- mail: "on that loop, soon" ----------------------------------------------------------- */

struct mail {
    struct mail *next;
    task_fn *fn;
    void *ctx;
};

/* Run fn(ctx) on `loop` in a later turn. Mails from one thread run in the order posted. Any
 * thread may call. `mail` must stay valid until fn has begun. All posts between two turns cost
 * the loop one wake-up. */
void loop_post(struct loop *loop, struct mail *mail, task_fn *fn, void *ctx);

#endif

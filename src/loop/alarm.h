/* alarm: a task at an exact moment, for what must not be told by when it happens.
 *
 * A timer fires some time after its millisecond: how much later depends on what the turn that
 * started it had to do. An alarm fires at its microsecond, whatever was done before.
 *
 * Memory   freed when it has fired or was stopped.
 * Threads  the loop's.
 */
#ifndef WEIR_LOOP_ALARM_H
#define WEIR_LOOP_ALARM_H

#include "loop/loop.h"

struct alarm;

/* Have fn(ctx) run at `at_us` of clock_mono_us(), never before this call returns. Where the
 * system has no descriptor left, and on a fake loop, at the millisecond after it. */
struct alarm *alarm_start(struct loop *loop, uint64_t at_us, task_fn *fn, void *ctx);

/* Before it has fired; NULL is fine. */
void alarm_stop(struct alarm *alarm);

#endif

/* alarm: run a task at an exact time, where the timing itself must not leak information.
 *
 * A timer fires some time after its millisecond; how late depends on the work of the turn that
 * started it. An alarm fires at its microsecond, whatever work came before.
 *
 * Memory   frees itself once it has fired or was stopped.
 * Threads  the loop's.
 */
#ifndef WEIR_LOOP_ALARM_H
#define WEIR_LOOP_ALARM_H

#include "loop/loop.h"

struct alarm;

/* Run fn(ctx) at `at_us` of clock_mono_us(), never before this call returns. It runs at the
 * next millisecond instead when no file descriptor is available, and on a fake loop. */
struct alarm *alarm_start(struct loop *loop, uint64_t at_us, task_fn *fn, void *ctx);

/* Only before it has fired; accepts NULL. */
void alarm_stop(struct alarm *alarm);

#endif

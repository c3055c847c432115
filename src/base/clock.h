/* clock: the machine's two clocks, wall time and monotonic time.
 *
 * Code on a loop asks the loop (loop_now_ms), so that tests can control time. These functions
 * are for the loop itself, for logs, and for timestamps that leave the process.
 *
 * Threads  any.
 */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds and microseconds since 1970, UTC; may jump when the clock is set. */
int64_t clock_unix_ms(void);
int64_t clock_unix_us(void);

/* Milliseconds and microseconds since some fixed moment; never goes back. */
uint64_t clock_mono_ms(void);
uint64_t clock_mono_us(void);

/* The moment in `ms`, for waits on a condition that has the monotonic clock. */
struct timespec clock_mono_in(uint64_t ms);

#endif

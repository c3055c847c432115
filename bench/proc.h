/* proc: what the kernel says another process used.
 *
 * Threads  any; values only.
 * Source   proc(5): schedstat of every thread, smaps_rollup, stat.
 */
#ifndef WEIR_BENCH_PROC_H
#define WEIR_BENCH_PROC_H

#include "base/err.h"

#include <sys/types.h>

struct proc_memory {
    uint64_t rss_kb, pss_kb;
};

/* Nanoseconds on a CPU of all living threads together; `ret_threads` may be NULL. */
MUST_CHECK bool proc_cpu_ns(pid_t pid, uint64_t *ret, unsigned *ret_threads, struct err *e);

MUST_CHECK bool proc_memory(pid_t pid, struct proc_memory *ret, struct err *e);

/* Nanoseconds that all CPUs of the machine were busy, whoever kept them so. */
MUST_CHECK bool proc_machine_busy_ns(uint64_t *ret, struct err *e);

#endif

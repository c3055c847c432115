/* launch: what it costs to start, and what the disk under the data costs.
 *
 * Threads  none.
 */
#ifndef WEIR_BENCH_LAUNCH_H
#define WEIR_BENCH_LAUNCH_H

#include "base/err.h"

enum launch_probe {
    LAUNCH_HEALTH,   /* the first byte of a 200 to GET /health */
    LAUNCH_SETTINGS, /* the first byte of the server's HTTP/2 SETTINGS */
};

/* Start `argv` `runs` times on core `cpu` and print the time from exec to the first answer.
 * Every "{port}" in argv becomes a free port, the one that is asked. Each process is stopped
 * and waited for before the next one starts. */
MUST_CHECK bool launch_times(char **argv, enum launch_probe probe, unsigned runs, unsigned cpu,
                             struct err *e);

/* Append 4 KiB and fdatasync, many times, in a file made in `folder`; print how long. */
MUST_CHECK bool launch_disk(const char *folder, struct err *e);

#endif

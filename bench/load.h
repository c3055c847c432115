/* load: what the driver does to a running server.
 *
 * Each prints one JSON object, one line, on stdout, and fails rather than print a figure for
 * a run in which a byte was wrong. docs/performance.md says what each figure means.
 *
 * Threads  none.
 */
#ifndef WEIR_BENCH_LOAD_H
#define WEIR_BENCH_LOAD_H

#include "fleet.h"

#include <sys/types.h>

struct load_options {
    struct fleet_options fleet;
    pid_t server;
    unsigned seconds; /* turns: how long to measure */
    unsigned chunks;  /* paced, memory: length of a paced turn; memory: 0: no paced turn */
    bool brief;       /* memory: wait for a tenth of the times, to see that it runs */
    bool at_once;     /* paced: all turns begin, and so end, at the same time */
};

/* As many turns as the server gives: every stream asks again as soon as it is answered. */
MUST_CHECK bool load_turns(const struct load_options *options, struct err *e);

/* One paced turn on each stream, begun at random moments of the first second, or all at once. Also
 * says how long after its last chunk each turn was done, which is when the disk has it. */
MUST_CHECK bool load_paced(const struct load_options *options, struct err *e);

/* Bytes the server holds: idle, 10 s after this begins; with idle streams (each had one turn, 32 at
 * a time) right after their turns and 30 s later; with streams in a paced turn; and after all had
 * one unpaced turn at the same time: at once, 3 s later and 20 s after that. */
MUST_CHECK bool load_memory(const struct load_options *options, struct err *e);

#endif

/* turn_line: one log line for each finished turn, for the operator of a daemon.
 *
 *     turn 1882… ended: workspace default, user anonymous, session s-1, agent manager,
 *     model gpt-5-mini, 120 tokens in, 30 tokens out, $0.00021, 1.204 s, done
 *     …, 0.103 s, failed: TURN_TIMEOUT
 *
 * Counts that the provider did not report are shown as unknown. If it reported only some of the
 * calls, their sum is shown with a '+'.
 *
 * Memory   a plain value inside its owner.
 * Threads  any. */
#ifndef WEIR_RECORD_TURN_LINE_H
#define WEIR_RECORD_TURN_LINE_H

#include "wire/event.h"

/* The usage of a turn's model calls. All zero: no call was made. */
struct turn_sums {
    struct turn_sum {
        int64_t known;
        size_t calls, open; /* all calls, and the calls that did not report it */
    } prompt, completion, cost_nano;
};

void turn_sums_add(struct turn_sums *sums, const struct event_usage *usage);

struct turn_end {
    uint64_t run;
    struct str workspace, user, session; /* session: may be empty */
    struct str agent, model;             /* model: empty if none was asked */
    uint64_t took_ms;
    struct str state;  /* "done" */
    struct str reason; /* of a failure; else empty */
};

void turn_line_log(const struct turn_end *end, const struct turn_sums *sums);

#endif

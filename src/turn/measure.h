/* measure: what a turn reports to the metrics (metrics/metrics.h) and as spans (spans/spans.h).
 *
 *     invoke_agent ┬ chat          the trace is the caller's, or begins here; one that the caller
 *                  ├ execute_tool  does not sample is only passed on
 *                  └ approval
 *
 * Each function costs a load of two flags while no one wants any.
 *
 * Memory   struct measure is a plain value inside its run.
 * Threads  the loop of its run. */
#ifndef WEIR_TURN_MEASURE_H
#define WEIR_TURN_MEASURE_H

#include "provider/provider.h"

struct run;
struct turn_call;

struct measure {
    uint64_t asked_ms;          /* when the model was asked that is out now */
    bool first;                 /* it has not said anything yet */
    int64_t prompt, completion; /* what it used, as far as it has said; below 0: unknown */
    /* Of the turn, and of that call of its model; in the run's arena. NULL: there is none. */
    struct trace_context *turn, *call;
};

void measure_turn_begins(const struct run *run);
void measure_turn_ends(struct run *run);

/* A model is asked, each event of its reply, and a reply that was cut by us. */
void measure_model_asked(struct run *run);
void measure_model_event(struct run *run, const struct reply_event *event);
void measure_model_cut(struct run *run);

/* What a call of the model used, as it stands in the journal. */
void measure_usage(const struct run *run, const struct event_usage *usage);

/* The trace that a call of a tool passes on; NULL: there is none. */
const struct trace_context *measure_tool_begins(struct turn_call *call);
void measure_tool_ends(const struct turn_call *call, const struct err *failed);

/* A human has decided. */
void measure_approval_ends(struct run *run);

#endif

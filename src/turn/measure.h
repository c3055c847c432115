/* measure: what a turn reports to the metrics (metrics/metrics.h).
 *
 * Each function costs one load of a flag while nobody wants metrics.
 *
 * Memory   struct measure is a plain value inside its run.
 * Threads  the loop of its run. */
#ifndef WEIR_TURN_MEASURE_H
#define WEIR_TURN_MEASURE_H

#include "provider/provider.h"

struct run;
struct turn_call;

struct measure {
    uint64_t asked_ms; /* when the model was asked that is out now */
    bool first;        /* it has not said anything yet */
};

void measure_turn_begins(const struct run *run);
void measure_turn_ends(const struct run *run);

/* A model is asked, each event of its reply, and a reply that was cut by us. */
void measure_model_asked(struct run *run);
void measure_model_event(struct run *run, const struct reply_event *event);
void measure_model_cut(struct run *run);

/* What a call of the model used, as it stands in the journal. */
void measure_usage(const struct run *run, const struct event_usage *usage);

void measure_tool_ends(const struct turn_call *call, const struct err *failed);

#endif

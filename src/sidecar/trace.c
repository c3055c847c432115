#include "sidecar/trace.h"

#include <stdio.h>

bool trace_id_ok(struct str text) {
    return trace_context_is_id(text, TRACE_ID_BYTES);
}

static void put(char *ret, struct str text) {
    memcpy(ret, text.at, text.len);
    ret[text.len] = 0;
}

void trace_begin(struct trace *trace, struct str trace_id, struct str traceparent) {
    struct trace_context parent;
    bool inherits = trace_context_read(traceparent, &parent);
    bool named = trace_id_ok(trace_id);
    *trace = (struct trace){.sampled = true};
    if (inherits && (!named || str_equal(trace_id, str_from(parent.id)))) {
        put(trace->parent, str_from(parent.span));
        trace->sampled = parent.flags & TRACE_SAMPLED;
    }
    if (named)
        put(trace->id, trace_id);
    else if (inherits)
        put(trace->id, str_from(parent.id));
    else
        trace_context_random(trace->id, TRACE_ID_BYTES);
    trace_context_random(trace->span, TRACE_SPAN_BYTES);
}

void trace_write_parent(const struct trace *trace, char ret[static TRACE_PARENT_BYTES + 1]) {
    snprintf(ret, TRACE_PARENT_BYTES + 1, "00-%s-%s-%s", trace->id, trace->span,
             trace->sampled ? "01" : "00");
}

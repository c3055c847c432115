#include "sidecar/trace.h"

#include <stdio.h>

bool trace_id_ok(struct str text) {
    return trace_id_is(text, TRACE_ID_DIGITS);
}

static void put(char *ret, struct str text) {
    memcpy(ret, text.at, text.len);
    ret[text.len] = 0;
}

/* The trace and the span that a traceparent names. */
static bool read_parent(struct str traceparent, struct trace *ret) {
    struct trace_context parent;
    if (!trace_context_read(traceparent, &parent)) return false;
    trace_id_write(parent.id, TRACE_ID_DIGITS, ret->id);
    trace_id_write(parent.span, TRACE_SPAN_DIGITS, ret->parent);
    ret->sampled = parent.flags & TRACE_SAMPLED;
    return true;
}

void trace_begin(struct trace *trace, struct str trace_id, struct str traceparent) {
    bool named = trace_id_ok(trace_id);
    *trace = (struct trace){.sampled = true};
    bool inherits = read_parent(traceparent, trace);
    if (named && !str_equal(trace_id, str_from(trace->id))) {
        *trace = (struct trace){.sampled = true}; /* the parent is of another trace */
        put(trace->id, trace_id);
    } else if (!inherits) {
        trace_id_random(trace->id, TRACE_ID_DIGITS);
    }
    trace_id_random(trace->span, TRACE_SPAN_DIGITS);
    memcpy(trace->call, trace->span, sizeof(trace->call));
}

void trace_write_parent(const struct trace *trace, char ret[static TRACE_PARENT_BYTES + 1]) {
    snprintf(ret, TRACE_PARENT_BYTES + 1, "00-%s-%s-%s", trace->id, trace->call,
             trace->sampled ? "01" : "00");
}

static struct str header(const struct exchange *exchange, struct str name) {
    const struct field *field = exchange_field(exchange, name);
    return field ? str_trim(field->value) : STR_EMPTY;
}

void trace_begin_request(struct trace *trace, const struct exchange *exchange) {
    trace_begin(trace, header(exchange, STR("x-trace-id")),
                header(exchange, STR("traceparent")));
}

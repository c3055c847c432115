#include "server/exchange_trace.h"

#include "base/mem.h"

/* Both in one piece of memory. */
static struct trace_context *trace_with(const struct trace_context *read, struct str state) {
    struct trace_context *trace = mem_alloc(sizeof(*trace) + state.len);
    char *text = (char *)(trace + 1);
    *trace = *read;
    if (state.len) memcpy(text, state.at, state.len);
    trace->state = str_of(text, state.len);
    return trace;
}

struct trace_context *exchange_trace(const struct exchange *exchange) {
    size_t count, parents = 0;
    const struct field *fields = exchange_fields(exchange, &count);
    struct str parent = STR_EMPTY;
    struct trace_context read;
    struct trace_state state = {.len = 0};
    for (size_t i = 0; fields && i < count; i++) {
        if (!str_equal(fields[i].name, STR("traceparent"))) continue;
        parent = str_trim(fields[i].value);
        parents++;
    }
    if (parents != 1 || !trace_context_read(parent, &read)) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("tracestate")))
            trace_state_add(&state, fields[i].value);
    }
    return trace_with(&read, trace_state_str(&state));
}

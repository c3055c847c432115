#include "server/exchange_trace.h"

#include "base/mem.h"

struct trace_context *exchange_trace(const struct exchange *exchange) {
    size_t count, parents = 0;
    const struct field *fields = exchange_fields(exchange, &count);
    struct str parent = STR_EMPTY;
    struct trace_context read;
    for (size_t i = 0; fields && i < count; i++) {
        if (!str_equal(fields[i].name, STR("traceparent"))) continue;
        parent = str_trim(fields[i].value);
        parents++;
    }
    if (parents != 1 || !trace_context_read(parent, &read)) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("tracestate")))
            trace_context_add_state(&read, fields[i].value);
    }
    struct trace_context *trace = MEM_NEW(struct trace_context);
    *trace = read;
    return trace;
}

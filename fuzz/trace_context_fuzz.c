/* trace_context: any headers are no trace, or one that reads back as it was written, without what
 * is not allowed in a header. */
#include "wire/trace_context.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str states, parent = str_split(str_of((const char *)data, size), '\n', &states);
    struct trace_context trace, again;
    struct buf text;
    if (!trace_context_read(parent, &trace)) {
        assert(!trace_context_known(&trace));
        return 0;
    }
    while (states.len) trace_context_add_state(&trace, str_split(states, '\n', &states));
    assert(trace.state_len <= TRACE_STATE_MAX_BYTES);
    for (size_t i = 0; i < trace.state_len; i++)
        assert(trace.state[i] >= ' ' && trace.state[i] <= '~');
    buf_init(&text, KIB);
    trace_context_put(&trace, &text);
    assert(trace_context_take(buf_str(&text), &again));
    assert(str_equal(trace_context_state(&again), trace_context_state(&trace)));
    assert(str_equal(str_from(again.id), str_from(trace.id)) && again.flags == trace.flags);
    buf_done(&text);
    return 0;
}

/* trace_context: any headers are no trace, or one that reads back as it was written, without what
 * is not allowed in a header. */
#include "wire/trace_context.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str states, parent = str_split(str_of((const char *)data, size), '\n', &states);
    struct trace_context trace, again;
    struct trace_state read = {.len = 0};
    struct buf text;
    if (!trace_context_read(parent, &trace)) {
        assert(!trace_context_known(&trace));
        return 0;
    }
    while (states.len) trace_state_add(&read, str_split(states, '\n', &states));
    assert(read.len <= TRACE_STATE_MAX_BYTES);
    for (size_t i = 0; i < read.len; i++) assert(read.text[i] >= ' ' && read.text[i] <= '~');
    trace.state = trace_state_str(&read);
    buf_init(&text, KIB);
    trace_context_put(&trace, &text);
    assert(trace_context_take(buf_str(&text), &again));
    assert(str_equal(again.state, trace.state));
    assert(!memcmp(again.id, trace.id, TRACE_ID_BYTES) && again.flags == trace.flags);
    buf_done(&text);
    return 0;
}

/* A usage event that was read is read again as the same; what is refused adds nothing. */
#include "orchestrator/usage_event.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf first, second;
    struct err e;
    buf_init(&first, 8 * USAGE_EVENT_MAX_BYTES);
    buf_init(&second, 8 * USAGE_EVENT_MAX_BYTES);
    buf_append_byte(&first, '[');
    if (usage_event_copy(str_of(data, size), &first, &e)) {
        /* Escapes may make it longer than an event may be. */
        bool again = usage_event_copy(str_skip(buf_str(&first), 1), &second, &e);
        assert(again || first.len > USAGE_EVENT_MAX_BYTES);
        assert(!again || str_equal(str_skip(buf_str(&first), 1), buf_str(&second)));
    } else {
        assert(first.len == 1 && e.code != ERR_NONE);
    }
    buf_done(&first);
    buf_done(&second);
    return 0;
}

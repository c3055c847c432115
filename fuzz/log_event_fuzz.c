/* Whatever stands in a log of the store: an event of memory or of an agent is read or refused,
 * and one that is read can be encoded. The input is a length byte, the event, and its body. */
#include "contract/nimi/agent/agent.h"
#include "contract/nimi/memory/memory.h"

#include <assert.h>
#include <stdint.h>

static void try_kind(const struct log_kind *kind, const struct event_log_event *event) {
    struct arena *arena = arena_new(LOG_EVENT_ARENA_BYTES);
    struct buf bytes;
    void *message;
    uint64_t *sequence;
    buf_init(&bytes, 4 * MIB);
    if (kind->read(event, arena, &message, &sequence)) {
        *sequence = event->sequence;
        bool encoded = pb_encode(kind->type, message, &bytes);
        assert(encoded);
        (void)encoded;
    }
    buf_done(&bytes);
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > EVENT_LOG_BYTES_MAX) return 0;
    struct str rest = str_of(data + 1, size - 1);
    const struct event_log_event event = {
        .sequence = size, .bytes = str_head(rest, data[0]), .body = str_skip(rest, data[0])};
    try_kind(&memory_log, &event);
    try_kind(&agent_log, &event);
    return 0;
}

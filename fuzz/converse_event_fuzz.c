/* Any bytes as an event of an AgentRuntime: what is read is text that lies in the arena, and a
 * failure has a code. */
#include "agent/converse_event.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *arena = arena_new(2 * MIB);
    struct converse_event event;
    struct err e;
    if (converse_event_read(lent_of(str_of(data, size)), arena, &event, &e)) {
        const struct str texts[] = {event.agent, event.text,  event.call_id, event.tool,
                                    event.args,  event.model, event.why};
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) assert(utf8_valid(texts[i]));
        for (size_t i = 0; i < event.turn_count; i++) assert(utf8_valid(event.turns[i].text));
        assert((event.kind == CONVERSE_ERROR) == (event.code != ERR_NONE));
        assert(event.kind != CONVERSE_RESULT || !event.error || event.why.len);
    } else {
        assert(e.code != ERR_NONE);
    }
    arena_free(arena);
    return 0;
}

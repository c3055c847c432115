/* Bodies of OpenAI's API: each is read or refused with a text, and what is read fits its
 * lists. */
#include "contract/openai/responses_request.h"

#include <assert.h>

#define ARENA_MAX_BYTES (4 * MIB)

static void check(const struct guest_request *request) {
    assert(request->message_count > 0 && request->messages);
    assert(request->tool_count == 0 || request->tools);
    for (size_t i = 0; i < request->tool_count; i++) assert(request->tools[i].name.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct err e;
    struct request_reading reading = {.arena = arena, .e = &e};
    struct str body = str_of(data, size), none = {NULL, 0};
    struct openai_request chat;
    struct responses_request response;
    if (chat_request_parse(&reading, body, none, &chat)) {
        check(&chat.turn);
    } else {
        assert(e.text[0]);
    }
    if (responses_request_parse(&reading, body, none, &response)) {
        check(&response.common);
    } else {
        assert(e.text[0]);
    }
    arena_free(arena);
    return 0;
}

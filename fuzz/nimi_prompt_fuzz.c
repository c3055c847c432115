/* prompt of nimi: whatever request decodes, its conversation is refused with a reason or built:
 * then it ends with what the user said last, no message is empty, and every role is known. The
 * media type of an upload is judged along. */
#include "contract/nimi/prompt.h"
#include "contract/nimi/upload/receive.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct prompt *prompt) {
    const struct provider_request *request = &prompt->request;
    assert(prompt->asked.len && request->turn_start < request->message_count);
    const struct message *last = &request->messages[request->turn_start];
    assert(last->role == MESSAGE_USER && (last->parts.len || last->text.len));
    assert(last->parts.len || str_equal(last->text, prompt->asked));
    assert(request->messages[request->message_count - 1].role != MESSAGE_SYSTEM);
    for (size_t i = 0; i < prompt->artifact_count; i++)
        assert(prompt->artifacts[i].id.len && prompt->artifacts[i].message->parts.len);
    for (size_t i = 0; i < request->message_count; i++) {
        const struct message *message = &request->messages[i];
        assert(message->text.len || message->parts.len);
        assert(message->role == MESSAGE_USER || message->role == MESSAGE_AGENT || i);
        assert(i <= request->turn_start || message->role != MESSAGE_USER);
    }
    assert(request->options == &prompt->options && request->tool_count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str bytes = str_of((const char *)data, size);
    struct arena *arena = arena_new(8 * size + 256 * KIB);
    struct nimi_text_generate_scenario_spec spec;
    struct prompt prompt;
    struct fault fault;
    struct err e;
    if (pb_decode_view(&nimi_text_generate_scenario_spec_table, bytes, arena, &spec, &e)) {
        if (prompt_build(&spec, STR("m"), arena, &prompt, &fault)) {
            check(&prompt);
        } else {
            assert(fault.reason && fault.why.code && fault.why.text[0]);
        }
    }
    if (receive_type_is_allowed(bytes)) {
        assert(bytes.len <= RECEIVE_TYPE_MAX_BYTES && str_find_byte(bytes, '/') < bytes.len);
        assert(str_find_byte(bytes, '\n') == bytes.len);
    }
    arena_free(arena);
    return 0;
}

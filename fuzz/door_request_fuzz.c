/* The bodies of Anthropic's messages and of AG-UI's runs: whatever comes is refused with a sentence,
 * or becomes a request whose parts are what a turn can take. */
#include "contract/agui/request.h"
#include "contract/anthropic/request.h"
#include "wire/json.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refused(const struct err *e) {
    assert(err_text(e).len);
    assert(e->code == ERR_MALFORMED || e->code == ERR_INVALID_ARGUMENT ||
           e->code == ERR_TOO_LARGE);
}

static void check_taken(const struct guest_request *request) {
    struct json json;
    struct err e;
    for (size_t i = 0; i < request->message_count; i++)
        assert(request->messages[i].role != MESSAGE_OPAQUE);
    for (size_t i = 0; i < request->tool_count; i++)
        assert(!request->tools[i].parameters.len ||
               json_read(request->tools[i].parameters, &json, &e));
    assert(!request->extras.len ||
           (json_read(request->extras, &json, &e) && json.kind == JSON_OBJECT));
    assert(request->decides || request->message_count);
    assert(!request->decides || request->approval_run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str body = str_of((const char *)data, size);
    struct guest_request request;
    struct run_input input;
    struct err e = {0};
    struct arena *arena = arena_new(64 * size + 256 * KIB);
    static const enum messages_use uses[] = {MESSAGES_WHOLE, MESSAGES_GO_ON, MESSAGES_COUNTED};
    for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
        if (messages_request_parse(body, uses[i], arena, &request, &e)) {
            check_taken(&request);
        } else {
            check_refused(&e);
        }
    }
    if (run_input_parse(body, arena, &input, &request, &e)) {
        check_taken(&request);
        assert(input.thread.len && str_equal(request.session, input.thread));
    } else {
        check_refused(&e);
    }
    arena_free(arena);
    return 0;
}

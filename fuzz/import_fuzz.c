/* Whatever list reads as JSON is refused with a place or becomes messages that keep and read
 * back equal; of a list that a session told before, the last turn alone is new. */
#include "conversation/import.h"
#include "provider/parts.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(const struct message *message) {
    struct json json;
    struct err e;
    assert(message->role != MESSAGE_OPAQUE && message->agent.len == 0);
    if (message->role == MESSAGE_TOOL_CALL || message->role == MESSAGE_TOOL_RESULT)
        assert(message->call_id.len && message->tool.len);
    if (message->role == MESSAGE_TOOL_RESULT)
        assert(json_read(message->text, &json, &e) && json.kind == JSON_OBJECT);
    if (message->parts.len) {
        assert(message->role == MESSAGE_USER && json_read(message->parts, &json, &e));
        assert(parts_check(json, &e));
    }
}

static void check_kept(const struct import *import, size_t size, struct arena *arena) {
    struct buf first, again;
    struct import back;
    struct err e;
    buf_init(&first, 16 * size + 64 * KIB);
    buf_init(&again, 16 * size + 64 * KIB);
    assert(import_append(import->messages, import->count, &first));
    assert(import_decode(buf_str(&first), arena, &back, &e) && back.count == import->count);
    assert(import_append(back.messages, back.count, &again));
    assert(str_equal(buf_str(&first), buf_str(&again)));
    buf_done(&first);
    buf_done(&again);
}

/* The same list, and then another question. */
static void check_known(const struct import *import, struct arena *arena) {
    struct message *more = arena_alloc(arena, (import->count + 1) * sizeof(struct message));
    if (!more) return;
    for (size_t i = 0; i < import->count; i++) more[i] = import->messages[i];
    more[import->count] = (struct message){.role = MESSAGE_USER, .text = STR("?")};
    size_t known = import_known(import->messages, import->count, more, import->count + 1);
    assert(known <= import->count);
    for (size_t i = known; i < import->count; i++) assert(more[i].role == MESSAGE_SYSTEM);
    assert(!import_forks(import->messages, import->count, more, import->count + 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str bytes = str_of((const char *)data, size);
    struct arena *arena = arena_new(32 * size + 256 * KIB);
    struct import import;
    struct json list;
    struct err e;
    if (json_read(bytes, &list, &e)) {
        if (import_read(list, arena, &import, &e)) {
            for (size_t i = 0; i < import.count; i++) check_message(&import.messages[i]);
            check_kept(&import, size, arena);
            check_known(&import, arena);
            struct str asked = import_unpack(import.messages, import.count, bytes);
            assert(str_ends(bytes, asked));
        } else {
            assert(e.code == ERR_INVALID_ARGUMENT || e.code == ERR_RESOURCE_EXHAUSTED);
            assert(e.code != ERR_INVALID_ARGUMENT || str_starts(err_text(&e), STR("messages")));
        }
    }
    if (import_decode(bytes, arena, &import, &e)) check_kept(&import, size, arena);
    arena_free(arena);
    return 0;
}

/* What clients send to the orchestrator, and what runtimes say of their tools: a message that is
 * accepted has no NUL, and what is shown is JSON. */
#include "base/arena.h"
#include "orchestrator/request.h"
#include "orchestrator/sockets.h"
#include "orchestrator/tool_line.h"

#include <assert.h>
#include <string.h>

#define ROOM_BYTES (4 * MIB)

static void read_message(struct json json, struct buf *out) {
    struct arena *arena = arena_new(ROOM_BYTES);
    struct talk_mention mentions[REQUEST_MENTIONS_MAX];
    struct request request;
    struct err e;
    if (request_read(json, arena, &request, &e)) {
        assert(!request.text.len || !memchr(request.text.at, 0, request.text.len));
        for (size_t i = 0; i < request.mention_count; i++)
            mentions[i] = (struct talk_mention){0, request.mentions[i].offset,
                                                request.mentions[i].length};
        size_t before = out->len;
        talk_without_mentions(request.text, mentions, request.mention_count, out);
        assert(out->len - before <= request.text.len);
    }
    arena_free(arena);
}

static void show_call(struct str tool, struct str args, struct buf *out) {
    struct json shown;
    struct err e;
    buf_clear(out);
    tool_line_args(tool, args, out);
    assert(!out->len || json_read(buf_str(out), &shown, &e));
    tool_line_query(tool, args, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    struct buf out;
    struct json json;
    struct err e;
    buf_init(&out, ROOM_BYTES);
    if (json_read(input, &json, &e)) {
        read_message(json, &out);
        sockets_answer_text(json, json_find(json, STR("answers")), &out);
    }
    show_call(STR("web_fetch"), input, &out);
    show_call(STR("content_search"), input, &out);
    buf_done(&out);
    return 0;
}

#include "contract/agentbreeder/frames.h"

#include "route/route_json.h"
#include "wire/event_json.h"
#include "wire/sse.h"

#define RESULT_MAX_BYTES (64 * MIB)
#define ROOM_MAX_BYTES (1 * MIB) /* that is made at once for a result */

void frame_object(struct route_call *call, struct str name, const char *key, struct str text) {
    struct route_json event;
    json_member_str(route_json_object(&event, 6 * text.len + KIB), key, text);
    route_json_event(&event, call, name);
}

static const struct str delta_head = STR_INIT("data: {\"delta\":"),
                        delta_tail = STR_INIT("}\n\n");

static void put_delta(struct buf *out, struct str text) {
    size_t len = delta_head.len + text.len + 2 + delta_tail.len;
    char *at = buf_room(out, len);
    if (!at) return;
    char *quoted = at + delta_head.len;
    if (json_copy_plain(quoted + 1, text)) {
        memcpy(at, delta_head.at, delta_head.len);
        quoted[0] = quoted[text.len + 1] = '"';
        memcpy(quoted + text.len + 2, delta_tail.at, delta_tail.len);
        buf_grew(out, len);
        return;
    }
    buf_append(out, delta_head);
    json_put_str(out, text);
    buf_append(out, delta_tail);
}

/* The same bytes as frame_object() sends, without a document between. */
void frame_deltas(struct route_call *call, struct str text, struct str more) {
    struct buf *out = route_sse_out(call);
    struct str agent;
    if (!out) return;
    size_t begin = out->len;
    do {
        put_delta(out, text);
    } while (event_next_text(&more, &agent, &text));
    route_sse_wrote(call, begin);
}

void frame_error(struct route_call *call, enum err_code code, struct str message) {
    struct buf text;
    buf_init(&text, message.len + 64);
    buf_printf(&text, "%s: ", err_kinds[code].name);
    buf_append(&text, message);
    frame_object(call, STR("error"), "error", buf_str(&text));
    buf_done(&text);
}

void frame_tool_call(struct route_call *call, const struct event *event) {
    struct route_json out;
    struct json_writer *json = route_json_object(&out, 6 * event->tool_call.args.len +
                                                           6 * event->tool_call.tool.len + KIB);
    json_member_str(json, "name", event->tool_call.tool);
    event_json_document(json, "args", event->tool_call.args);
    route_json_event(&out, call, STR("tool_call"));
}

void frame_step(struct route_call *call, struct str agent, struct str description,
                struct str result) {
    struct route_json event;
    struct json_writer *json =
        route_json_object(&event, 6 * (description.len + agent.len) + result.len + KIB);
    json_member_str(json, "description", description);
    if (result.len) json_member_raw(json, "result", result);
    if (agent.len) json_member_str(json, "agent", agent);
    route_json_event(&event, call, STR("step"));
}

/* A stream that shows steps also shows that the run waits, and for what. */
void frame_approval(struct route_call *call, const struct outcome *outcome,
                    const struct event *event) {
    struct buf asked;
    buf_init(&asked, RESULT_MAX_BYTES);
    outcome_write_approval(outcome, event, &asked);
    frame_step(call, event->agent, STR("approval"), buf_str(&asked));
    buf_done(&asked);
}

/* What is written is mostly one line, so it is written where it is sent from. An argument that a
 * model wrote on several lines makes it more: such data is taken back, and sent as one line. */
void frame_result(struct route_call *call, const struct outcome *outcome,
                  const struct event *event) {
    struct buf *out = route_sse_out(call);
    if (!out) return;
    size_t begin = out->len;
    buf_append(out, STR("event: result\ndata: "));
    size_t data_at = out->len;
    if (event->kind == EVENT_DONE && event->done.turns.len < ROOM_MAX_BYTES)
        (void)buf_room(out, event->done.turns.len + KIB);
    outcome_write(outcome, event, out);
    struct str data = str_skip(buf_str(out), data_at);
    if (sse_is_line(data)) {
        buf_append(out, STR("\n\n"));
        route_sse_wrote(call, begin);
        return;
    }
    struct buf lines;
    buf_init(&lines, data.len);
    buf_append(&lines, data);
    out->len = begin;
    route_sse_event(call, STR("result"), STR_EMPTY, buf_str(&lines));
    buf_done(&lines);
}

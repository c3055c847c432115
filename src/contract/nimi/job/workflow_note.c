#include "contract/nimi/job/workflow_fold.h"

#define MEMBER_INT(writer, note, member)                                                       \
    if ((note)->member) json_member_i64(writer, #member, (note)->member)
#define MEMBER_STR(writer, note, member)                                                       \
    if ((note)->member.len) json_member_str(writer, #member, (note)->member)

bool workflow_note_write(const struct workflow_note *note, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "node", note->node);
    json_member_str(&w, "state", states_name(node_states, note->state));
    MEMBER_INT(&w, note, event);
    MEMBER_INT(&w, note, skip);
    MEMBER_INT(&w, note, attempt);
    MEMBER_INT(&w, note, retries);
    MEMBER_INT(&w, note, percent);
    MEMBER_INT(&w, note, reason);
    MEMBER_INT(&w, note, next_ms);
    MEMBER_STR(&w, note, job);
    MEMBER_STR(&w, note, callback);
    MEMBER_STR(&w, note, error);
    if (note->output.len) json_member_raw(&w, "output", note->output);
    json_close(&w);
    return buf_ok(out);
}

static int64_t number_at(struct json note, const char *key) {
    int64_t number = 0;
    return json_i64(json_find(note, str_from(key)), &number) ? number : 0;
}

static bool text_at(struct json note, const char *key, struct arena *arena, struct str *ret) {
    struct json value = json_find(note, str_from(key));
    *ret = STR_EMPTY;
    return value.kind == JSON_NONE || json_str(value, arena, ret);
}

static bool state_at(struct json note, enum node_state *ret) {
    struct json name = json_find(note, STR("state"));
    for (enum node_state state = 0; state < NODE_STATE_COUNT; state++) {
        *ret = state;
        if (json_is(name, states_name(node_states, state))) return true;
    }
    return false;
}

bool workflow_note_read(struct str bytes, struct arena *arena, struct workflow_note *ret) {
    struct json note;
    struct err e;
    if (!json_read(bytes, &note, &e) || note.kind != JSON_OBJECT) return false;
    struct json output = json_find(note, STR("output"));
    *ret =
        (struct workflow_note){.event = (int32_t)number_at(note, "event"),
                               .skip = (enum node_skip)(number_at(note, "skip") & 3),
                               .attempt = (int32_t)number_at(note, "attempt"),
                               .retries = (int32_t)number_at(note, "retries"),
                               .percent = (int32_t)number_at(note, "percent"),
                               .reason = (int32_t)number_at(note, "reason"),
                               .next_ms = number_at(note, "next_ms"),
                               .output = output.kind == JSON_OBJECT ? output.raw : STR_EMPTY};
    return state_at(note, &ret->state) && text_at(note, "node", arena, &ret->node) &&
           text_at(note, "job", arena, &ret->job) &&
           text_at(note, "callback", arena, &ret->callback) &&
           text_at(note, "error", arena, &ret->error);
}

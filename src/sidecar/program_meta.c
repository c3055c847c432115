#include "sidecar/program_meta.h"

#define STATE_TEXT_MAX_BYTES (16 * KIB) /* longer ones lose their end anyway */

static const struct str meta_key = STR_INIT("_meta"), parent_key = STR_INIT("traceparent"),
                        state_key = STR_INIT("tracestate");

/* --- reading ---------------------------------------------------------------------------------- */

static void read_state(struct json value, struct trace_state *ret) {
    struct buf text;
    *ret = (struct trace_state){.len = 0};
    buf_init(&text, STATE_TEXT_MAX_BYTES);
    if (json_text(value, &text)) trace_state_add(ret, buf_str(&text));
    buf_done(&text);
}

bool program_meta_read(struct json params, char parent[static TRACE_PARENT_BYTES + 1],
                       struct trace_state *state) {
    struct json meta = json_find(params, meta_key);
    struct json said = json_find(meta, parent_key);
    struct json more = json_find(meta, state_key);
    struct trace_context trace;
    struct buf text;
    buf_init(&text, KIB);
    bool valid = json_text(said, &text) && trace_context_read(buf_str(&text), &trace);
    buf_done(&text);
    if (!valid) return false;
    trace_context_write(&trace, parent);
    read_state(more, state);
    return true;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* All members, but for those of two names. */
static void copy_members(struct json object, struct str without, struct str nor,
                         struct json_writer *w) {
    struct json_reader reader = json_enter(object);
    struct json key = {.kind = JSON_NONE}, value = {.kind = JSON_NONE};
    struct buf text;
    buf_init(&text, SIZE_MAX);
    while (json_next_member(&reader, &key, &value)) {
        if (json_is(key, without) || json_is(key, nor)) continue;
        buf_clear(&text);
        json_text(key, &text);
        json_key(w, buf_str(&text));
        json_write_raw(w, value.raw);
    }
    buf_done(&text);
}

void program_meta_write(struct json params, struct str parent, struct str state,
                        struct buf *out) {
    struct json meta = json_find(params, meta_key);
    struct json_writer w = json_writer(out);
    if (params.kind != JSON_OBJECT && params.kind != JSON_NONE) {
        json_write_raw(&w, params.raw);
        return;
    }
    json_open_object(&w);
    copy_members(params, meta_key, meta_key, &w);
    json_member_object(&w, "_meta");
    copy_members(meta, parent_key, state_key, &w);
    json_member_str(&w, "traceparent", parent);
    if (state.len) json_member_str(&w, "tracestate", state);
    json_close(&w);
    json_close(&w);
}

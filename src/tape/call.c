#include "tape/call.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "tape/row.h"
#include "wire/base64.h"

#include <stdlib.h>

/* A value inside a file may have fewer levels than the file. */
#define VALUE_DEPTH_MAX 48

static const char *const kind_names[] = {[TAPE_MODEL] = "model", [TAPE_TOOL] = "tool"};

struct str tape_kind_name(enum tape_kind kind) {
    return str_from(kind_names[kind]);
}

static bool reads_as_container(struct str text, struct json *ret) {
    struct err e;
    if (!text.len || (text.at[0] != '{' && text.at[0] != '[')) return false;
    return json_read_depth(text, VALUE_DEPTH_MAX, ret, &e);
}

void tape_put(struct json_writer *writer, const char *key, struct str text) {
    struct json value;
    if (reads_as_container(text, &value)) {
        json_member_raw(writer, key, text);
    } else {
        json_member_str(writer, key, text);
    }
}

/* --- one member --------------------------------------------------------------------------- */

static void put_masked(struct json_writer *writer, const char *key, struct str text,
                       const struct mask *mask) {
    struct buf hidden;
    buf_init(&hidden, 3 * text.len + KIB);
    mask_text(mask, text, &hidden, NULL, 0);
    json_member_str(writer, key, buf_str(&hidden));
    buf_done(&hidden);
}

/* JSON without white space is written as JSON and read back byte for byte; other text becomes a
 * string. */
static void put_value(struct json_writer *writer, const char *key, struct str text,
                      const struct mask *mask) {
    struct json value;
    struct buf plain, hidden;
    if (!reads_as_container(text, &value)) {
        put_masked(writer, key, text, mask);
        return;
    }
    buf_init(&plain, text.len);
    buf_init(&hidden, 4 * text.len + KIB);
    json_compact(text, &plain);
    mask_json(mask, value, &hidden);
    bool spaced = !str_equal(buf_str(&plain), text);
    bool secret = !str_equal(buf_str(&plain), buf_str(&hidden));
    if (spaced && !secret) {
        json_member_str(writer, key, text);
    } else {
        json_member_raw(writer, key, buf_str(&hidden));
    }
    buf_done(&plain);
    buf_done(&hidden);
}

static void put_counts(struct json_writer *writer, const struct event_usage *usage,
                       const struct mask *mask) {
    put_masked(writer, "model", usage->model, mask);
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->type != USAGE_TOKENS) continue;
        if (usage_get(usage, field) == TOKENS_UNKNOWN) {
            json_member_null(writer, field->name);
        } else {
            json_member_i64(writer, field->name, usage_get(usage, field));
        }
    }
}

static void put_members(struct json_writer *writer, const struct tape_event *event,
                        const struct mask *mask) {
    const struct tape_row *row = &tape_rows[event->reply.kind];
    for (size_t i = 0; i < ARRAY_LEN(row->members) && row->members[i].name; i++) {
        const struct tape_member *member = &row->members[i];
        struct str text = *tape_field((struct reply_event *)(uintptr_t)&event->reply, member);
        switch (member->form) {
        case TAPE_AS_ID: json_member_str(writer, member->name, text); break;
        case TAPE_AS_PROSE: put_masked(writer, member->name, text, mask); break;
        case TAPE_AS_VALUE: put_value(writer, member->name, text, mask); break;
        case TAPE_AS_OPTION:
            if (text.len) put_value(writer, member->name, text, mask);
            break;
        }
    }
}

/* --- text in pieces ----------------------------------------------------------------------- */

static size_t count_alike(const struct tape_event *events, size_t count) {
    size_t alike = 1;
    while (alike < count && events[alike].reply.kind == events[0].reply.kind) alike++;
    return alike;
}

static void put_pieces(struct json_writer *writer, const struct tape_event *events,
                       const size_t *ends, size_t count) {
    json_member_array(writer, "pieces");
    for (size_t i = 0; i < count; i++) {
        json_open_array(writer);
        json_write_u64(writer, events[i].at_ms);
        json_write_u64(writer, ends[i] - (i ? ends[i - 1] : 0));
        json_close(writer);
    }
    json_close(writer);
}

static void tape_call_put_text(struct json_writer *writer, const struct tape_event *events,
                               size_t count, const struct mask *mask) {
    struct buf whole, hidden;
    size_t *ends = mem_zero(count, sizeof(size_t)), total = 0;
    for (size_t i = 0; i < count; i++) ends[i] = total += events[i].reply.text.len;
    buf_init(&whole, total);
    buf_init(&hidden, 3 * total + KIB);
    for (size_t i = 0; i < count; i++) buf_append(&whole, events[i].reply.text);
    mask_text(mask, buf_str(&whole), &hidden, ends, count);
    if (utf8_valid(buf_str(&hidden))) {
        json_member_str(writer, "text", buf_str(&hidden));
    } else {
        struct buf coded;
        buf_init(&coded, base64_encoded_len(hidden.len) + 4);
        base64_encode(&coded, buf_str(&hidden), BASE64_STANDARD, BASE64_PADDED);
        json_member_str(writer, "base64", buf_str(&coded));
        buf_done(&coded);
    }
    put_pieces(writer, events, ends, count);
    buf_done(&whole);
    buf_done(&hidden);
    free(ends);
}

/* --- the document ------------------------------------------------------------------------- */

static bool is_piece(const struct tape_event *event) {
    return event->reply.kind == REPLY_TEXT || event->reply.kind == REPLY_THINKING;
}

/* Write one or more events as one object. Returns how many. */
static size_t put_event(struct json_writer *writer, const struct tape_event *event,
                        size_t count, const struct mask *mask) {
    size_t taken = is_piece(event) ? count_alike(event, count) : 1;
    json_open_object(writer);
    json_member_u64(writer, "at_ms", event->at_ms);
    json_member_str(writer, "kind", str_from(tape_rows[event->reply.kind].name));
    if (is_piece(event)) tape_call_put_text(writer, event, taken, mask);
    if (event->reply.kind == REPLY_USAGE) put_counts(writer, event->reply.usage, mask);
    if (event->reply.kind == REPLY_FAILED)
        json_member_str(writer, "code", err_name(event->reply.code));
    put_members(writer, event, mask);
    json_close(writer);
    return taken;
}

static void put_object(struct json_writer *writer, const char *key, struct str text,
                       const struct mask *mask) {
    struct buf hidden;
    buf_init(&hidden, 4 * text.len + KIB);
    mask_json(mask, json_of(text), &hidden);
    json_member_raw(writer, key, buf_str(&hidden));
    buf_done(&hidden);
}

static void put_call(struct json_writer *writer, const struct tape_call *call,
                     const struct mask *mask) {
    json_open_object(writer);
    json_member_i64(writer, "weir_tape", TAPE_VERSION);
    json_member_str(writer, "kind", tape_kind_name(call->kind));
    json_member_i64(writer, "started_us", call->started_us);
    put_object(writer, "request", call->request, mask);
    if (call->who.len) put_object(writer, "who", call->who, mask);
    json_member_array(writer, "heard");
    for (size_t i = 0; i < call->event_count;)
        i += put_event(writer, &call->events[i], call->event_count - i, mask);
    json_close(writer);
    json_close(writer);
}

/* --- for people --------------------------------------------------------------------------- */

static void new_line(struct buf *out, unsigned depth) {
    buf_append_byte(out, '\n');
    for (unsigned i = 0; i < depth; i++) buf_append(out, STR("  "));
}

static bool holds_containers(struct json array) {
    struct json_reader reader = json_enter(array);
    struct json item;
    while (json_next_item(&reader, &item)) {
        if (item.kind == JSON_OBJECT || item.kind == JSON_ARRAY) return true;
    }
    return false;
}

static void indent(struct json value, unsigned depth, struct buf *out) {
    struct json_reader reader = json_enter(value);
    struct json key = {0}, item;
    bool object = value.kind == JSON_OBJECT, first = true;
    if ((!object && !holds_containers(value)) || json_count(value) == 0) {
        json_compact(value.raw, out);
        return;
    }
    buf_append_byte(out, object ? '{' : '[');
    while (object ? json_next_member(&reader, &key, &item) : json_next_item(&reader, &item)) {
        if (!first) buf_append_byte(out, ',');
        first = false;
        new_line(out, depth + 1);
        if (object) buf_append(out, key.raw);
        if (object) buf_append(out, STR(": "));
        indent(item, depth + 1, out);
    }
    new_line(out, depth);
    buf_append_byte(out, object ? '}' : ']');
}

bool tape_call_encode(const struct tape_call *call, const struct mask *mask, struct buf *out) {
    struct buf compact;
    buf_init(&compact, out->max_bytes);
    struct json_writer writer = json_writer(&compact);
    put_call(&writer, call, mask);
    bool fits = buf_ok(&compact);
    if (fits) {
        indent(json_of(buf_str(&compact)), 0, out);
        buf_append_byte(out, '\n');
    }
    buf_done(&compact);
    return fits && buf_ok(out);
}

void tape_put_who(const struct tape_who *who, struct buf *out) {
    struct json_writer writer = json_writer(out);
    char room[24];
    struct buf run = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append_u64(&run, who->run);
    json_open_object(&writer);
    if (who->run) json_member_str(&writer, "run", buf_str(&run));
    if (who->call_id.len) json_member_str(&writer, "call_id", who->call_id);
    json_member_str(&writer, "workspace", who->workspace);
    json_member_str(&writer, "user", who->user);
    json_member_str(&writer, "session", who->session);
    json_close(&writer);
}

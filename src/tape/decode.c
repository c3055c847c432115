/* decode: parse a call of tape/call.h. */
#include "tape/row.h"

#include "wire/base64.h"

#define EVENTS_MAX 1000000 /* of one call, including pieces */

struct reading {
    struct arena *arena;
    struct tape_call call;
    struct tape_event *events;
    size_t count, room;
    struct err *e;
};

static bool decode_refuse(struct reading *reading, const char *what) {
    return err_set(reading->e, ERR_MALFORMED, "this is not a recording: %s", what);
}

static bool decode_too_large(struct reading *reading) {
    return err_set(reading->e, ERR_TOO_LARGE,
                   "the recording is too large to be kept in memory");
}

/* --- members ------------------------------------------------------------------------------ */

static bool decode_take_text(struct reading *reading, struct json value, struct str *ret) {
    struct buf text;
    if (value.kind != JSON_STRING)
        return decode_refuse(reading, "a text is missing in 'heard'");
    buf_init(&text, value.raw.len);
    json_text(value, &text);
    bool kept = arena_str(reading->arena, buf_str(&text), ret);
    buf_done(&text);
    return kept || decode_too_large(reading);
}

static bool take_compact(struct reading *reading, struct str raw, struct str *ret) {
    struct buf compact;
    buf_init(&compact, raw.len);
    json_compact(raw, &compact);
    bool kept = arena_str(reading->arena, buf_str(&compact), ret);
    buf_done(&compact);
    return kept || decode_too_large(reading);
}

static bool decode_take_value(struct reading *reading, struct json value, struct str *ret) {
    bool container = value.kind == JSON_OBJECT || value.kind == JSON_ARRAY;
    return container ? take_compact(reading, value.raw, ret)
                     : decode_take_text(reading, value, ret);
}

static bool take_members(struct reading *reading, struct json object,
                         struct reply_event *event) {
    const struct tape_row *row = &tape_rows[event->kind];
    for (size_t i = 0; i < ARRAY_LEN(row->members) && row->members[i].name; i++) {
        const struct tape_member *member = &row->members[i];
        struct json value = json_find(object, str_from(member->name));
        struct str *field = tape_field(event, member);
        if (member->form == TAPE_AS_OPTION && value.kind == JSON_NONE) continue;
        bool is_value = member->form == TAPE_AS_VALUE || member->form == TAPE_AS_OPTION;
        bool taken = is_value ? decode_take_value(reading, value, field)
                              : decode_take_text(reading, value, field);
        if (!taken) return false;
    }
    return true;
}

static bool decode_take_usage(struct reading *reading, struct json object,
                              struct reply_event *event) {
    struct event_usage *usage = ARENA_NEW(reading->arena, struct event_usage);
    if (!usage) return decode_too_large(reading);
    *usage = USAGE_UNKNOWN;
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (field->type != USAGE_TOKENS) continue;
        struct json number = json_find(object, str_from(field->name));
        bool known = number.kind != JSON_NULL && number.kind != JSON_NONE;
        if (known && !json_i64(number, usage_at(usage, field)))
            return decode_refuse(reading, "a count of 'usage' is not a whole number");
    }
    event->usage = usage;
    return decode_take_text(reading, json_find(object, STR("model")), &usage->model);
}

static bool take_code(struct reading *reading, struct json object, struct reply_event *event) {
    struct str name = STR_EMPTY;
    if (!decode_take_text(reading, json_find(object, STR("code")), &name)) return false;
    event->code = err_code_named(name);
    return true;
}

/* --- events ------------------------------------------------------------------------------- */

/* Old arrays stay in the arena; together they are no longer than the last one. */
static bool decode_make_room(struct reading *reading) {
    if (reading->count < reading->room) return true;
    if (reading->count == EVENTS_MAX) return decode_too_large(reading);
    size_t room = reading->room ? 2 * reading->room : 8;
    struct tape_event *events = arena_alloc(reading->arena, room * sizeof(*events));
    if (!events) return decode_too_large(reading);
    if (reading->count) memcpy(events, reading->events, reading->count * sizeof(*events));
    reading->events = events;
    reading->room = room;
    return true;
}

static bool decode_add(struct reading *reading, const struct tape_event *event) {
    if (!decode_make_room(reading)) return false;
    reading->events[reading->count++] = *event;
    return true;
}

static bool take_coded(struct reading *reading, struct json object, struct str *ret) {
    struct json coded = json_find(object, STR("base64"));
    struct str text = STR_EMPTY;
    if (coded.kind == JSON_NONE)
        return decode_take_text(reading, json_find(object, STR("text")), ret);
    if (!decode_take_text(reading, coded, &text)) return false;
    char *room = arena_alloc(reading->arena, base64_decoded_len(text.len) + 1);
    if (!room) return decode_too_large(reading);
    size_t len = 0;
    if (!base64_decode(text, BASE64_STANDARD, BASE64_EITHER, room, &len))
        return decode_refuse(reading, "its 'base64' is not base64");
    *ret = str_of(room, len);
    return true;
}

static bool take_u64(struct reading *reading, struct json number, uint64_t *ret) {
    int64_t value;
    if (!json_i64(number, &value) || value < 0)
        return decode_refuse(reading, "a time or a length is not a number of 0 or more");
    *ret = (uint64_t)value;
    return true;
}

/* The lengths of the pieces must add up to the text. */
static bool take_pieces(struct reading *reading, struct json object, struct tape_event *event) {
    struct str text = STR_EMPTY;
    if (!take_coded(reading, object, &text)) return false;
    struct json pieces = json_find(object, STR("pieces")), piece;
    if (pieces.kind == JSON_NONE) { /* optional, for handwritten files */
        event->reply.text = text;
        return decode_add(reading, event);
    }
    struct json_reader reader = json_enter(pieces);
    while (json_next_item(&reader, &piece)) {
        uint64_t len = 0;
        if (!take_u64(reading, json_at(piece, 0), &event->at_ms) ||
            !take_u64(reading, json_at(piece, 1), &len))
            return false;
        if (len > text.len)
            return decode_refuse(reading, "the pieces are longer than their text");
        event->reply.text = str_head(text, (size_t)len);
        text = str_skip(text, (size_t)len);
        if (!decode_add(reading, event)) return false;
    }
    return text.len == 0 || decode_refuse(reading, "the pieces are shorter than their text");
}

static bool find_row(struct reading *reading, struct json object, struct reply_event *event) {
    struct json kind = json_find(object, STR("kind"));
    for (size_t i = 0; i < ARRAY_LEN(tape_rows); i++) {
        const char *name = tape_rows[i].name;
        if (!name || !json_is(kind, str_from(name))) continue;
        if (!tape_rows[i].tells[reading->call.kind]) break;
        event->kind = (enum reply_kind)i;
        return true;
    }
    return decode_refuse(reading, "'heard' has an event of an unknown 'kind'");
}

static bool decode_take_event(struct reading *reading, struct json object) {
    struct tape_event event = {
        .reply = {
            .call_id = STR_EMPTY, .name = STR_EMPTY, .text = STR_EMPTY, .args = STR_EMPTY}};
    struct reply_event *reply = &event.reply;
    if (object.kind != JSON_OBJECT)
        return decode_refuse(reading, "'heard' holds what is not an object");
    if (!find_row(reading, object, reply) ||
        !take_u64(reading, json_find(object, STR("at_ms")), &event.at_ms))
        return false;
    if (reply->kind == REPLY_TEXT || reply->kind == REPLY_THINKING)
        return take_pieces(reading, object, &event);
    if (reply->kind == REPLY_USAGE && !decode_take_usage(reading, object, reply)) return false;
    if (reply->kind == REPLY_FAILED && !take_code(reading, object, reply)) return false;
    return take_members(reading, object, reply) && decode_add(reading, &event);
}

/* --- the whole file ----------------------------------------------------------------------- */

static bool decode_check_version(struct reading *reading, struct json document) {
    int64_t version;
    if (!json_i64(json_find(document, STR("weir_tape")), &version) || version < 1)
        return decode_refuse(reading, "it has no 'weir_tape'");
    if (version == TAPE_VERSION) return true;
    return err_set(reading->e, ERR_FAILED_PRECONDITION,
                   "this recording has format %lld and this weir reads format %d; record it "
                   "again, or replay it with a newer weir",
                   (long long)version, TAPE_VERSION);
}

static bool decode_take_head(struct reading *reading, struct json document) {
    struct json kind = json_find(document, STR("kind"));
    struct json request = json_find(document, STR("request"));
    struct json who = json_find(document, STR("who"));
    reading->call.kind = json_is(kind, tape_kind_name(TAPE_TOOL)) ? TAPE_TOOL : TAPE_MODEL;
    if (!json_is(kind, tape_kind_name(reading->call.kind)))
        return decode_refuse(reading, "its 'kind' is neither \"model\" nor \"tool\"");
    if (!json_i64(json_find(document, STR("started_us")), &reading->call.started_us))
        return decode_refuse(reading, "it has no 'started_us'");
    if (request.kind != JSON_OBJECT) return decode_refuse(reading, "it has no 'request'");
    reading->call.who = STR_EMPTY;
    return take_compact(reading, request.raw, &reading->call.request) &&
           (who.kind != JSON_OBJECT || take_compact(reading, who.raw, &reading->call.who));
}

static bool take_heard(struct reading *reading, struct json document) {
    struct json heard = json_find(document, STR("heard")), item;
    struct json_reader reader = json_enter(heard);
    if (heard.kind != JSON_ARRAY) return decode_refuse(reading, "it has no 'heard'");
    while (json_next_item(&reader, &item)) {
        if (!decode_take_event(reading, item)) return false;
    }
    for (size_t i = 0; i < reading->count; i++) {
        bool ends = tape_rows[reading->events[i].reply.kind].ends[reading->call.kind];
        if (ends != (i + 1 == reading->count))
            return decode_refuse(reading, "'heard' must have one ending, as its last");
    }
    return reading->count > 0 ||
           decode_refuse(reading, "'heard' must have one ending, as its last");
}

bool tape_call_decode(struct str text, struct arena *arena, struct tape_call *ret,
                      struct err *e) {
    struct reading reading = {.arena = arena, .e = e};
    struct json document;
    if (!json_read(text, &document, e)) return false;
    if (document.kind != JSON_OBJECT) return decode_refuse(&reading, "it is no JSON object");
    if (!decode_check_version(&reading, document) || !decode_take_head(&reading, document) ||
        !take_heard(&reading, document))
        return false;
    reading.call.events = reading.events;
    reading.call.event_count = reading.count;
    *ret = reading.call;
    return true;
}

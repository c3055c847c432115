#include "provider/live_event.h"

#include "provider/gather.h"
#include "wire/base64.h"

/* Reads the members of one kind. */
typedef bool read_fn(struct json event, struct buf *room, struct live_event *ret,
                     struct err *e);

static bool live_event_full(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "an event is too long");
}

/* The text of a string; empty when it is none. */
static bool live_event_read_text(struct json string, struct buf *room, struct str *ret,
                                 struct err *e) {
    size_t at = room->len;
    *ret = STR_EMPTY;
    if (string.kind != JSON_STRING) return true;
    if (!json_text(string, room)) return live_event_full(e);
    *ret = str_skip(buf_str(room), at);
    return true;
}

static bool read_nothing(struct json event, struct buf *room, struct live_event *ret,
                         struct err *e) {
    (void)event, (void)room, (void)ret, (void)e;
    return true;
}

/* --- the session -------------------------------------------------------------------------- */

/* What the session is made of was renamed after the beta. */
static bool read_created(struct json event, struct buf *room, struct live_event *ret,
                         struct err *e) {
    struct json session = json_find(event, STR("session"));
    (void)room, (void)e;
    ret->beta = json_find(session, STR("modalities")).kind == JSON_ARRAY &&
                json_find(session, STR("output_modalities")).kind == JSON_NONE;
    return true;
}

/* --- an answer ---------------------------------------------------------------------------- */

static bool read_begun(struct json event, struct buf *room, struct live_event *ret,
                       struct err *e) {
    return live_event_read_text(json_find(json_find(event, STR("response")), STR("id")), room,
                                &ret->response, e);
}

static bool read_delta(struct json event, struct buf *room, struct live_event *ret,
                       struct err *e) {
    struct json delta = json_find(event, STR("delta"));
    if (delta.kind != JSON_STRING) ret->kind = LIVE_EVENT_OTHER;
    return live_event_read_text(json_find(event, STR("response_id")), room, &ret->response,
                                e) &&
           live_event_read_text(delta, room, &ret->text, e);
}

static bool read_sound(struct json event, struct buf *room, struct live_event *ret,
                       struct err *e) {
    if (!read_delta(event, room, ret, e)) return false;
    size_t at = room->len, len = base64_decoded_len(ret->text.len);
    char *bytes = buf_room(room, len);
    if (!bytes) return live_event_full(e);
    if (!base64_decode(ret->text, BASE64_STANDARD, BASE64_EITHER, bytes, &len))
        return err_set(e, ERR_MALFORMED, "the sound of an event is no base64");
    buf_grew(room, len);
    ret->text = str_skip(buf_str(room), at);
    return true;
}

static bool live_event_read_call(struct json event, struct buf *room, struct live_event *ret,
                                 struct err *e) {
    return live_event_read_text(json_find(event, STR("response_id")), room, &ret->response,
                                e) &&
           live_event_read_text(json_find(event, STR("call_id")), room, &ret->call_id, e) &&
           live_event_read_text(json_find(event, STR("name")), room, &ret->tool, e) &&
           live_event_read_text(json_find(event, STR("arguments")), room, &ret->text, e);
}

/* --- its end ------------------------------------------------------------------------------ */

static enum live_status live_event_status_of(struct json response) {
    struct json status = json_find(response, STR("status"));
    struct json reason = json_find(json_find(response, STR("status_details")), STR("reason"));
    if (json_is(status, STR("failed"))) return LIVE_STATUS_FAILED;
    if (json_is(status, STR("cancelled"))) return LIVE_STATUS_CANCELLED;
    if (!json_is(status, STR("incomplete"))) return LIVE_STATUS_COMPLETED;
    return json_is(reason, STR("content_filter")) ? LIVE_STATUS_FILTERED : LIVE_STATUS_CUT;
}

static void live_event_read_usage(struct json usage, struct event_usage *ret) {
    struct json in = json_find(usage, STR("input_token_details"));
    *ret = USAGE_UNKNOWN;
    ret->prompt = gather_count(usage, "input_tokens");
    ret->completion = gather_count(usage, "output_tokens");
    ret->total = gather_count(usage, "total_tokens");
    ret->cached = gather_count(in, "cached_tokens");
}

/* Of its messages the texts, and the transcripts of what was spoken. */
static bool append_item(struct json item, struct buf *room) {
    struct json_reader parts = json_enter(json_find(item, STR("content")));
    bool fits = true;
    for (struct json part; json_next_item(&parts, &part);) {
        struct json text = json_find(part, STR("text"));
        if (text.kind != JSON_STRING) text = json_find(part, STR("transcript"));
        if (text.kind == JSON_STRING) fits = fits && json_text(text, room);
    }
    return fits;
}

static bool read_output(struct json response, struct buf *room, struct str *ret,
                        struct err *e) {
    size_t at = room->len;
    struct json_reader items = json_enter(json_find(response, STR("output")));
    for (struct json item; json_next_item(&items, &item);) {
        if (json_is(json_find(item, STR("type")), STR("message")) && !append_item(item, room))
            return live_event_full(e);
    }
    *ret = str_skip(buf_str(room), at);
    return true;
}

static bool read_done(struct json event, struct buf *room, struct live_event *ret,
                      struct err *e) {
    struct json response = json_find(event, STR("response"));
    ret->status = live_event_status_of(response);
    ret->error = json_find(response, STR("status_details"));
    live_event_read_usage(json_find(response, STR("usage")), &ret->usage);
    return read_begun(event, room, ret, e) && read_output(response, room, &ret->text, e);
}

static bool read_error(struct json event, struct buf *room, struct live_event *ret,
                       struct err *e) {
    ret->error = event;
    return live_event_read_text(json_find(json_find(event, STR("error")), STR("event_id")),
                                room, &ret->event_id, e);
}

/* --- all of them -------------------------------------------------------------------------- */

/* clang-format off */
static const struct {
    struct str type;
    enum live_event_kind kind;
    read_fn *read;
} types[] = {
    {STR_INIT("response.output_audio.delta"),            LIVE_EVENT_SOUND,            read_sound},
    {STR_INIT("response.audio.delta"),                   LIVE_EVENT_SOUND,            read_sound},
    {STR_INIT("response.output_audio_transcript.delta"), LIVE_EVENT_TEXT,             read_delta},
    {STR_INIT("response.audio_transcript.delta"),        LIVE_EVENT_TEXT,             read_delta},
    {STR_INIT("response.output_text.delta"),             LIVE_EVENT_TEXT,             read_delta},
    {STR_INIT("response.text.delta"),                    LIVE_EVENT_TEXT,             read_delta},
    {STR_INIT("response.function_call_arguments.done"),  LIVE_EVENT_CALL,             live_event_read_call},
    {STR_INIT("response.created"),                       LIVE_EVENT_RESPONSE_CREATED, read_begun},
    {STR_INIT("response.done"),                          LIVE_EVENT_RESPONSE_DONE,    read_done},
    {STR_INIT("error"),                                  LIVE_EVENT_ERROR,            read_error},
    {STR_INIT("session.created"),                        LIVE_EVENT_SESSION_CREATED,  read_created},
    {STR_INIT("session.updated"),                        LIVE_EVENT_SESSION_UPDATED,  read_nothing},
    {STR_INIT("input_audio_buffer.speech_started"),      LIVE_EVENT_SPEECH_STARTED,   read_nothing},
    {STR_INIT("rate_limits.updated"),                    LIVE_EVENT_RATE_LIMITS,      read_nothing},
};
/* clang-format on */

bool live_event_read(struct str message, struct buf *room, struct live_event *ret,
                     struct err *e) {
    struct json event;
    if (!json_read(message, &event, e)) return false;
    struct json type = json_find(event, STR("type"));
    if (type.kind != JSON_STRING)
        return err_set(e, ERR_MALFORMED, "an event is no JSON object with a type");
    *ret = (struct live_event){.kind = LIVE_EVENT_OTHER, .usage = USAGE_UNKNOWN};
    buf_clear(room);
    if (!buf_room(room, LIVE_EVENT_ROOM * message.len))
        return live_event_full(e); /* it moves no more */
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!json_is(type, types[i].type)) continue;
        ret->kind = types[i].kind;
        return types[i].read(event, room, ret, e);
    }
    return true;
}

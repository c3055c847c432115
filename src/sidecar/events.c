#include "sidecar/events.h"

#include <stdio.h>

static const struct str text_keys[] = {STR_INIT("delta"), STR_INIT("text")};

void events_init(struct events *events, const struct events_options *options) {
    *events = (struct events){.options = *options};
    sse_frames_init(&events->frames, options->event_max_bytes);
    filter_init(&events->filter, options->rules);
}

void events_done(struct events *events) {
    sse_frames_done(&events->frames);
    filter_done(&events->filter);
    text_done(&events->done);
}

const struct guardrail *events_blocked_by(const struct events *events) {
    return events->filter.result.blocked_by;
}

bool events_ended_well(const struct events *events) {
    return events->over && events->ended && !events->fault.code && !events_blocked_by(events);
}

size_t events_waiting(const struct events *events) {
    return events->frames.lines.len;
}

/* Room for what the rules make of an event: one may replace a short match by a long text. */
static size_t rewritten_max(const struct events *events) {
    return 2 * events->options.event_max_bytes + 8 * MIB;
}

/* False, always: the stream is given up because of this. */
static bool give_up(struct events *events, enum err_code code, const char *why) {
    return err_set(&events->fault, code, "%s", why);
}

/* Whether all that the rules made of an event is in `text`. */
static bool fits(struct events *events, const struct buf *text) {
    return buf_ok(text) ||
           give_up(events, ERR_TOO_LARGE, "an event is too large once it is redacted");
}

/* --- writing ---------------------------------------------------------------------------------- */

static void put_data(struct str data, struct buf *out) {
    do {
        struct str line = str_split(data, '\n', &data);
        buf_append(out, STR("data: "));
        buf_append(out, line);
        buf_append_byte(out, '\n');
    } while (data.at);
}

static void pass_frame(struct events *events, const struct sse_frame *frame) {
    buf_append(events->out, frame->bytes);
    buf_append_byte(events->out, '\n');
}

/* The frame with other data: its name and its other lines stay. */
static void rewrite_frame(struct events *events, const struct sse_frame *frame,
                          struct str data) {
    struct str rest = frame->bytes;
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        bool is_data = str_equal(line, STR("data")) || str_starts(line, STR("data:"));
        if (is_data || !line.len) continue;
        buf_append(events->out, line);
        buf_append_byte(events->out, '\n');
    }
    put_data(data, events->out);
    buf_append_byte(events->out, '\n');
}

static void events_put_text(struct str text, struct buf *out) {
    if (!text.len) return;
    buf_append(out, STR("data: {\"delta\":"));
    json_put_str(out, text);
    buf_append(out, STR("}\n\n"));
}

static void put_error(struct str code, struct str text, struct buf *out) {
    struct json_writer json = json_writer(out);
    buf_append(out, STR("event: error\ndata: "));
    json_open_object(&json);
    json_member_str(&json, "error", text);
    json_member_str(&json, "code", code);
    json_close(&json);
    buf_append(out, STR("\n\n"));
}

static void put_done(struct events *events, struct buf *out) {
    struct json own = {0};
    struct str text = text_str(events->done);
    if (text.len) own = json_of(text);
    buf_append(out, STR("event: done\ndata: "));
    events->options.sink.write_done(own, out, events->options.sink.ctx);
    buf_append(out, STR("\n\ndata: [DONE]\n\n"));
}

/* --- the end ---------------------------------------------------------------------------------- */

static void put_block(const struct events *events, struct buf *out) {
    char text[256];
    const struct filter_result *result = &events->filter.result;
    struct str name = guardrail_name(result->blocked_by);
    snprintf(text, sizeof(text), "the answer was blocked by guardrail '" STR_FMT "'%s",
             STR_ARG(str_head(name, 128)),
             result->undecided ? ", whose check was given up as too expensive" : "");
    put_error(STR("GUARDRAIL_BLOCKED"), str_from(text), out);
}

static struct str code_of(const struct err *why) {
    switch (why->code) {
    case ERR_DEADLINE_EXCEEDED: return STR("UPSTREAM_TIMEOUT");
    case ERR_MALFORMED:
    case ERR_TOO_LARGE: return STR("UPSTREAM_INVALID");
    case ERR_RESOURCE_EXHAUSTED: return STR("UNAVAILABLE");
    default: return STR("UPSTREAM_UNREACHABLE");
    }
}

/* Let the text pass that was held back. False: it is blocked. */
static bool flush_text(struct events *events, struct buf *out) {
    struct buf rest;
    buf_init(&rest, rewritten_max(events));
    bool passed = filter_end(&events->filter, &rest) && fits(events, &rest);
    if (passed) events_put_text(buf_str(&rest), out);
    buf_done(&rest);
    return passed;
}

static void finish(struct events *events, const struct err *why, struct buf *out) {
    if (events->over) return;
    events->over = true;
    (void)flush_text(events, out);
    if (events->resulted) why = NULL; /* what counts has come */
    if (events->fault.code) why = &events->fault;
    if (events_blocked_by(events))
        put_block(events, out);
    else if (why && !events->failed)
        put_error(code_of(why), err_text(why), out);
    if (events->options.terminates) put_done(events, out);
}

/* A stream without [DONE] may be incomplete, unless its result has come. */
void events_end(struct events *events, const struct err *why, struct buf *out) {
    struct err cut;
    bool whole = events->resulted || events->failed || !events->options.terminates;
    err_set(&cut, ERR_UNAVAILABLE, "the agent ended its stream without [DONE]");
    if (!why && (!whole || sse_frames_midway(&events->frames))) why = &cut;
    finish(events, why, out);
}

/* --- events ----------------------------------------------------------------------------------- */

static struct json events_text_of(struct json object) {
    for (size_t i = 0; i < ARRAY_LEN(text_keys); i++) {
        struct json text = json_find(object, text_keys[i]);
        if (text.kind == JSON_STRING) return text;
    }
    return (struct json){0};
}

/* Most events are `{"delta":"..."}`, and without rules nothing in them needs to be read. */
static bool is_plain_text(const struct events *events, const struct sse_frame *frame) {
    return !events->options.rules.count && !frame->event.len &&
           (str_starts(frame->data, STR("{\"delta\"")) ||
            str_starts(frame->data, STR("{\"text\""))) &&
           str_find(frame->data, STR("\"usage\"")) == frame->data.len;
}

/* Filter the text of one event; `ret` is what of the text so far may pass now.
 * ret_same: exactly this event's text passes. */
static bool filter_piece(struct events *events, struct str text, struct buf *ret,
                         bool *ret_same) {
    bool held = filter_held(&events->filter) > 0;
    uint64_t redacted = events->filter.result.redacted;
    if (!filter_feed(&events->filter, text, ret)) return false;
    *ret_same = !held && filter_held(&events->filter) == 0 &&
                redacted == events->filter.result.redacted && str_equal(text, buf_str(ret));
    return true;
}

/* Filter one member that is not the event's text. */
static bool filter_member(struct events *events, struct json value, struct buf *out) {
    struct filter_result result;
    if (filter_json(events->options.rules, value.raw, out, &result)) return true;
    events->filter.result.blocked_by = result.blocked_by;
    events->filter.result.undecided |= result.undecided;
    return false;
}

/* The object with `passed` as its text and its other members filtered. */
static bool write_piece(struct events *events, struct json object, struct json text,
                        struct str passed, struct buf *out) {
    struct json key, value;
    struct json_reader members = json_enter(object);
    bool good = true, first = true;
    buf_append_byte(out, '{');
    while (good && json_next_member(&members, &key, &value)) {
        if (!first) buf_append_byte(out, ',');
        first = false;
        buf_append(out, key.raw);
        buf_append_byte(out, ':');
        if (value.raw.at == text.raw.at)
            json_put_str(out, passed);
        else
            good = filter_member(events, value, out);
    }
    buf_append_byte(out, '}');
    return good;
}

static bool events_take_text(struct events *events, const struct sse_frame *frame,
                             struct json object, struct json text) {
    struct buf words, passed, data;
    bool same = false;
    buf_init(&words, events->options.event_max_bytes);
    buf_init(&passed, rewritten_max(events));
    buf_init(&data, 2 * rewritten_max(events));
    (void)json_text(text, &words);
    bool alone = json_count(object) == 1;
    bool good = filter_piece(events, buf_str(&words), &passed, &same) && fits(events, &passed);
    if (good && alone && same) {
        pass_frame(events, frame);
    } else if (good && !(alone && passed.len == 0)) {
        good =
            write_piece(events, object, text, buf_str(&passed), &data) && fits(events, &data);
        if (good) rewrite_frame(events, frame, buf_str(&data));
    }
    buf_done(&data);
    buf_done(&passed);
    buf_done(&words);
    return good;
}

static bool take_strings(struct events *events, const struct sse_frame *frame) {
    struct buf data;
    struct filter_result result;
    if (!events->options.rules.count) {
        pass_frame(events, frame);
        return true;
    }
    buf_init(&data, rewritten_max(events));
    bool good = filter_json(events->options.rules, frame->data, &data, &result);
    if (good && !result.redacted) {
        pass_frame(events, frame);
    } else if (good) {
        good = fits(events, &data);
        if (good) rewrite_frame(events, frame, buf_str(&data));
    } else {
        events->filter.result.blocked_by = result.blocked_by;
        events->filter.result.undecided |= result.undecided;
    }
    buf_done(&data);
    return good;
}

/* The final aggregate comes after all text. */
static bool take_last(struct events *events, const struct sse_frame *frame) {
    return flush_text(events, events->out) && take_strings(events, frame);
}

static bool take_done(struct events *events, struct json object) {
    struct buf data;
    struct filter_result result;
    buf_init(&data, rewritten_max(events));
    bool good = filter_json(events->options.rules, object.raw, &data, &result);
    text_done(&events->done);
    if (!good) events->filter.result.blocked_by = result.blocked_by;
    good = good && fits(events, &data);
    if (good && object.kind == JSON_OBJECT) events->done = text_copy(buf_str(&data));
    buf_done(&data);
    return good;
}

static bool take_object(struct events *events, const struct sse_frame *frame,
                        struct json object) {
    struct json text = {0};
    if (!frame->event.len) text = events_text_of(object);
    bool result = str_equal(frame->event, STR("result"));
    bool error = str_equal(frame->event, STR("error")) ||
                 (!frame->event.len && json_find(object, STR("error")).kind != JSON_NONE);
    events->options.sink.on_event(object, events->options.sink.ctx);
    if (events->options.terminates && str_equal(frame->event, STR("done")))
        return take_done(events, object);
    events->resulted |= result;
    events->failed |= error;
    if (text.kind == JSON_STRING && events->options.rules.count)
        return events_take_text(events, frame, object, text);
    return result || error ? take_last(events, frame) : take_strings(events, frame);
}

/* Data that is not JSON is text, too, though no agent of this contract sends it. */
static bool take_raw(struct events *events, const struct sse_frame *frame) {
    bool named = frame->event.len > 0;
    events->failed |= str_equal(frame->event, STR("error"));
    if (named) return take_strings(events, frame);
    struct buf passed;
    bool same = false;
    buf_init(&passed, rewritten_max(events));
    bool good = filter_piece(events, frame->data, &passed, &same) && fits(events, &passed);
    if (good && same) pass_frame(events, frame);
    if (good && !same && passed.len) rewrite_frame(events, frame, buf_str(&passed));
    buf_done(&passed);
    return good;
}

/* To the rules it would be one text, with its escapes; a client's reader may accept it. */
static bool is_broken_json(const struct events *events, struct str data) {
    struct str text = str_trim(data);
    bool container = text.len && (text.at[0] == '{' || text.at[0] == '[');
    return events->options.rules.count && container && !str_equal(text, STR("[DONE]"));
}

static bool events_take_frame(struct events *events, const struct sse_frame *frame) {
    struct json object;
    struct err e;
    if (!frame->data.at || is_plain_text(events, frame)) {
        pass_frame(events, frame);
        return true;
    }
    if (json_read(frame->data, &object, &e)) return take_object(events, frame, object);
    if (is_broken_json(events, frame->data))
        return give_up(events, ERR_MALFORMED,
                       "the agent sent JSON that the guardrails cannot read");
    return take_raw(events, frame);
}

/* `event: message` is what an event without a name is. */
static bool events_on_frame(const struct sse_frame *said, void *ctx) {
    struct events *events = ctx;
    struct sse_frame frame = *said;
    if (str_equal(frame.event, STR("message"))) frame.event = STR_EMPTY;
    bool ends = events->options.terminates && !frame.event.len && frame.data.at &&
                str_equal(str_trim(frame.data), STR("[DONE]"));
    events->ended |= ends;
    if (ends || !events_take_frame(events, &frame)) finish(events, NULL, events->out);
    return !events->over;
}

bool events_feed(struct events *events, struct str bytes, struct buf *out) {
    if (events->over) return false;
    events->out = out;
    if (!sse_frames_feed(&events->frames, bytes, events_on_frame, events, &events->fault))
        finish(events, NULL, out);
    events->out = NULL;
    return !events->over;
}

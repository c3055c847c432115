#include "validate/talk.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define END_TEXT_MAX_BYTES (8 * KIB)
#define AVAILABLE_PAUSE_MS 50

static void talk_stop_waiting(struct talk *talk) {
    loop_stop(talk->asker->loop);
}

/* Fields past the bound, or past what can be kept, count as not sent. */
static void on_metadata(struct str name, struct str value, void *ctx) {
    struct talk *talk = ctx;
    struct talk_field *field = &talk->fields[talk->field_count];
    if (talk->field_count == TALK_FIELDS_MAX) return;
    field->before = talk->count;
    if (arena_str(talk->arena, name, &field->name) &&
        arena_str(talk->arena, value, &field->value))
        talk->field_count++;
}

static void talk_on_message(struct lent lent, void *ctx) {
    struct talk *talk = ctx;
    struct str kept;
    if (talk->count == TALK_MESSAGES_MAX || !arena_str(talk->arena, lent_read(lent), &kept)) {
        talk->too_much = true;
        talk_leave(talk);
        talk_stop_waiting(talk);
        return;
    }
    if (talk->count == talk->room) {
        talk->room = talk->room ? talk->room * 2 : 16;
        talk->messages = mem_resize(talk->messages, talk->room * sizeof(struct str));
    }
    talk->messages[talk->count++] = kept;
    if (talk->enough && talk->enough(talk, talk->enough_ctx)) talk_stop_waiting(talk);
}

static void talk_on_end(const struct grpc_call_end *end, void *ctx) {
    struct talk *talk = ctx;
    talk->call = NULL;
    talk->ended = true;
    talk->end = *end;
    buf_append(&talk->end_text, str_head(end->text, END_TEXT_MAX_BYTES));
    talk->end.text = talk->end.said = STR_EMPTY;
    if (!arena_str(talk->arena, end->said, &talk->end.said)) talk->too_much = true;
    talk_stop_waiting(talk);
}

static const struct grpc_call_sink sink = {
    .on_metadata = on_metadata, .on_message = talk_on_message, .on_end = talk_on_end};

static void talk_init(struct talk *talk, struct asker *asker) {
    *talk = (struct talk){.asker = asker, .arena = arena_new(TALK_MAX_BYTES)};
    buf_init(&talk->end_text, END_TEXT_MAX_BYTES);
    buf_init(&talk->sent_text, FINDING_SEEN_MAX_BYTES);
    buf_init(&talk->seen_text, FINDING_SEEN_MAX_BYTES);
}

void talk_none(struct asker *asker, struct talk *ret) {
    talk_init(ret, asker);
    ret->timed_out = true;
}

void talk_open(struct asker *asker, const struct talk_options *options, struct talk *ret) {
    struct forward_server server;
    struct err e;
    talk_init(ret, asker);
    if (!forward_server_of(options->url, &server, &e) ||
        !grpc_call_start(asker->pool, asker->loop,
                         &(struct grpc_call_request){.host = server.host,
                                                     .port = server.port,
                                                     .secure = server.secure,
                                                     .path = options->path,
                                                     .metadata = options->metadata,
                                                     .metadata_count = options->metadata_count},
                         &sink, ret, &ret->call, &e)) {
        ret->ended = true;
        ret->end = (struct grpc_call_end){.code = e.code};
        buf_append(&ret->end_text, err_text(&e));
    }
}

void talk_say(struct talk *talk, struct str message) {
    struct err e;
    bool sent = !talk->call || grpc_call_send(talk->call, message, &e);
    (void)sent; /* too much waits: the server does not read, and time will be up */
}

void talk_finish(struct talk *talk) {
    if (talk->call) grpc_call_finish(talk->call);
}

void talk_leave(struct talk *talk) {
    if (talk->call) grpc_call_cancel(talk->call);
    talk->call = NULL;
}

static void talk_on_late(void *ctx) {
    struct talk *talk = ctx;
    talk->timed_out = true;
    talk_stop_waiting(talk);
}

bool talk_wait(struct talk *talk, talk_enough_fn *enough, void *ctx, uint64_t timeout_ms) {
    struct timer timer;
    asker_wait(talk->asker, 0); /* the loop's clock may be old */
    if (!talk->call || (enough && enough(talk, ctx))) return true;
    talk->enough = enough;
    talk->enough_ctx = ctx;
    timer_init(&timer, talk->asker->loop, talk_on_late, talk);
    timer_start(&timer, timeout_ms);
    /* Another call that ends stops the loop too. */
    do loop_run(talk->asker->loop);
    while (talk->call && !talk->timed_out && !(enough && enough(talk, ctx)));
    timer_stop(&timer);
    talk->enough = NULL;
    return !talk->timed_out;
}

void talk_once(struct asker *asker, const struct talk_options *options, struct str message,
               uint64_t timeout_ms, struct talk *ret) {
    talk_open(asker, options, ret);
    talk_say(ret, message);
    talk_finish(ret);
    bool ended = talk_wait(ret, NULL, NULL, timeout_ms);
    if (!ended) talk_leave(ret);
}

void talk_until_available(struct asker *asker, const struct talk_options *options,
                          uint64_t timeout_ms) {
    uint64_t late_ms = clock_mono_ms() + timeout_ms;
    bool available = false;
    while (!available && clock_mono_ms() < late_ms) {
        struct talk talk;
        talk_once(asker, options, STR_EMPTY, timeout_ms, &talk);
        available = !talk.ended || talk.end.code != ERR_UNAVAILABLE;
        talk_done(&talk);
        if (!available) asker_wait(asker, AVAILABLE_PAUSE_MS);
    }
}

bool talk_serves(struct asker *asker, const struct talk_options *options, uint64_t timeout_ms) {
    struct talk talk;
    talk_once(asker, options, STR_EMPTY, timeout_ms, &talk);
    bool serves = talk.count > 0 ||
                  (talk.ended && talk.end.from_server && talk.end.code != ERR_UNIMPLEMENTED);
    talk_done(&talk);
    return serves;
}

size_t talk_decode(struct talk *talk, const struct pb_message *type, const void **ret_frames) {
    size_t count = 0;
    struct err e;
    talk->decoded = arena_new(TALK_DECODED_MAX_BYTES);
    talk->frames = mem_zero(talk->count + 1, type->size);
    while (count < talk->count && pb_decode_view(type, talk->messages[count], talk->decoded,
                                                 talk->frames + count * type->size, &e))
        count++;
    *ret_frames = talk->frames;
    return count;
}

void talk_show(struct talk *talk, struct str seen) {
    const struct asker *asker = talk->asker;
    evidence_append(&talk->seen_text, seen, asker->secrets, asker->secret_count);
    talk->evidence = (struct evidence){buf_str(&talk->sent_text), buf_str(&talk->seen_text)};
}

const struct talk_field *talk_find(const struct talk *talk, struct str name) {
    for (size_t i = 0; i < talk->field_count; i++) {
        if (str_equal(talk->fields[i].name, name)) return &talk->fields[i];
    }
    return NULL;
}

void talk_done(struct talk *talk) {
    talk_leave(talk);
    arena_free(talk->arena);
    free(talk->messages);
    arena_free(talk->decoded);
    free(talk->frames);
    buf_done(&talk->end_text);
    buf_done(&talk->sent_text);
    buf_done(&talk->seen_text);
}

void talk_describe_end(const struct talk *talk, struct buf *out) {
    if (talk->too_much)
        buf_append(out, STR("more than can be kept"));
    else if (talk->timed_out)
        buf_append(out, STR("no end in time"));
    else if (!talk->ended)
        buf_append(out, STR("still open"));
    else if (talk->end.code == ERR_NONE)
        buf_append(out, STR("OK"));
    else
        buf_printf(out, "%s: " STR_FMT, err_kinds[talk->end.code].name,
                   STR_ARG(buf_str(&talk->end_text)));
}

const char *talk_end(const struct talk *talk, char room[TALK_END_BYTES]) {
    struct buf text;
    buf_init(&text, TALK_END_BYTES - 1);
    talk_describe_end(talk, &text);
    snprintf(room, TALK_END_BYTES, STR_FMT, STR_ARG(buf_str(&text)));
    buf_done(&text);
    return room;
}

bool talk_ended_with(const struct talk *talk, enum err_code code) {
    return talk->ended && talk->end.code == code && (code == ERR_NONE || talk->end.from_server);
}

void talk_put_message(struct str json, struct buf *out) {
    struct json value;
    struct err e;
    buf_init(out, TALK_TEXT_MAX_BYTES);
    if (json.len == 0 || !json_read(json, &value, &e)) return;
    if (!json_text(value, out)) buf_append(out, value.raw);
}

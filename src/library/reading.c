#include "library/inner.h"

#include "base/clock.h"
#include "base/mem.h"
#include "wire/base64.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const struct state reading_states[READING_STATE_COUNT] = {
    [READING_OPENING] = {"opening", TO(READING_RUNNING) | TO(READING_ENDED)},
    [READING_RUNNING] = {"running", TO(READING_ENDED)},
    [READING_ENDED] = {"ended", 0},
};

/* The only function that writes shared->state. With the lock. */
static void reading_move(struct shared *shared, enum reading_state next) {
    assert(states_allow(reading_states, shared->state, next));
    shared->state = next;
    pthread_cond_broadcast(&shared->changed);
}

/* --- frames ------------------------------------------------------------------------------- */

static struct str reading_put(char **at, struct str text) {
    struct str copy = str_of(*at, text.len);
    if (text.len) memcpy(*at, text.at, text.len);
    (*at)[text.len] = '\0';
    *at += text.len + 1;
    return copy;
}

static struct frame *frame_new(struct str bytes, struct str type, struct str id,
                               const struct reader_frame *facts) {
    struct frame *frame =
        mem_alloc(sizeof(*frame) + bytes.len + facts->text.len + type.len + id.len + 4);
    char *at = (char *)(frame + 1);
    *frame = (struct frame){.holders = 1, .facts = *facts};
    list_init(&frame->link);
    frame->bytes = reading_put(&at, bytes);
    frame->text = reading_put(&at, facts->text);
    frame->type = reading_put(&at, type);
    frame->id = reading_put(&at, id);
    frame->facts.text = frame->text;
    return frame;
}

static size_t frame_cost(const struct frame *frame) {
    return sizeof(*frame) + frame->bytes.len + frame->text.len + frame->type.len +
           frame->id.len + 4;
}

/* With the lock. */
static void frame_drop(struct frame *frame) {
    if (frame && --frame->holders == 0) free(frame);
}

/* --- the loop's side: frames -------------------------------------------------------------- */

static void on_linger(void *ctx) {
    struct weir_stream *stream = ctx;
    const struct reader_end end = {.open = true};
    stream->transport->cancel(stream);
    reading_end(stream, &end, STR_EMPTY);
}

/* Put it into the queue. The call pauses when the queue is full; after the completing frame it
 * need not, because nothing else is kept. */
static void enqueue(struct weir_stream *stream, struct frame *frame) {
    struct shared *shared = &stream->shared;
    bool last = frame->facts.last;
    pthread_mutex_lock(&shared->lock);
    list_append(&shared->queue, &frame->link);
    shared->queued += frame_cost(frame);
    if (stream->method->mode == CLOSE_TERMINAL) {
        frame_drop(shared->newest);
        shared->newest = frame;
        frame->holders++;
    }
    bool full = shared->queued >= stream->queue_bytes && !last;
    bool pause = full && !shared->paused, resume = last && shared->paused;
    shared->paused = full;
    pthread_cond_broadcast(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
    if (pause) stream->transport->pause(stream);
    if (resume) stream->transport->resume(stream);
    if (last) timer_start(&stream->linger, STREAM_LINGER_MS);
}

static void reading_take(struct weir_stream *stream, struct str bytes, struct str type,
                         struct str id, const struct reader_frame *facts) {
    if (facts->dropped) return;
    enqueue(stream, frame_new(bytes, type, id, facts));
    if (facts->turn_over && stream->transport->turn_over) stream->transport->turn_over(stream);
}

void reading_take_message(struct weir_stream *stream, struct str message) {
    struct reader_frame facts;
    const struct pb_message *type = stream->method->frame;
    struct arena *arena = arena_new(STREAM_ARENA_MAX_BYTES);
    reader_message(&stream->reader, message, arena, &facts);
    reading_take(stream, message, type ? str_from(type->name) : STR_EMPTY, STR_EMPTY, &facts);
    arena_free(arena);
}

void reading_take_event(struct weir_stream *stream, const struct sse_event *event) {
    struct reader_frame facts;
    struct arena *arena = arena_new(STREAM_ARENA_MAX_BYTES);
    reader_event(&stream->reader, event, arena, &facts);
    reading_take(stream, event->data, event->type, event->id, &facts);
    arena_free(arena);
}

/* --- the loop's side: the end ------------------------------------------------------------- */

static const char *reading_keep_text(struct buf *into, struct str text) {
    size_t begin = into->len;
    buf_append(into, text);
    buf_append_byte(into, '\0');
    return into->at + begin;
}

static const char *snapshot_of(const struct reader_method *method) {
    return method->snapshot ? method->snapshot : "";
}

/* A frame has a number where a status has a name. */
static struct str reason_name(const struct weir_stream *stream) {
    const struct reader *reader = &stream->reader;
    if (reader->reason.len || !reader->reason_code) return buf_str(&reader->reason);
    return protojson_value_name(stream->client->json, STR(".nimi.runtime.v1.ReasonCode"),
                                reader->reason_code);
}

static void fill_outcome(struct weir_stream *stream, const struct reader_end *end,
                         struct stream_outcome_advice advice, struct str message) {
    struct reader *reader = &stream->reader;
    struct buf *text = &stream->outcome_text;
    enum err_code status =
        end->by_us ? end->code : stream_outcome_status(end->code, end->from_server);
    struct str said = reader->message.len ? buf_str(&reader->message) : message;
    struct str reason = reason_name(stream);
    (void)buf_room(text, reason.len + said.len + 2); /* so that it stays */
    stream->outcome = (struct weir_outcome){
        .size = sizeof(stream->outcome),
        .code = (int)advice.outcome,
        .name = stream_outcome_name(advice.outcome).at,
        .meaning = stream_outcome_meaning(advice.outcome).at,
        .repeat = (int)advice.repeat,
        .wait = (int)advice.wait,
        .snapshot = advice.snapshot ? snapshot_of(stream->method) : NULL,
        .status = err_kinds[status].grpc_status,
        .status_name = err_kinds[status].name,
        .reason_code = reader->reason_code,
        .reason = reading_keep_text(text, reason),
        .message = reading_keep_text(text, said),
        .event = advice.outcome == STREAM_DISCONNECTED ? "runtime.disconnected" : "",
        .faults = reader->faults,
        .frames = reader->frames,
        .missing = reader->missing,
    };
}

void reading_end(struct weir_stream *stream, const struct reader_end *end, struct str message) {
    struct shared *shared = &stream->shared;
    timer_stop(&stream->linger);
    fill_outcome(stream, end, reader_close(&stream->reader, end), message);
    pthread_mutex_lock(&shared->lock);
    reading_move(shared, READING_ENDED);
    pthread_mutex_unlock(&shared->lock);
}

/* --- the loop's side: mails --------------------------------------------------------------- */

static void reading_on_open(void *ctx) {
    struct weir_stream *stream = ctx;
    struct shared *shared = &stream->shared;
    struct err why;
    bool started = stream->transport->start(stream, &why);
    pthread_mutex_lock(&shared->lock);
    if (!started) shared->refused = why;
    reading_move(shared, started ? READING_RUNNING : READING_ENDED);
    pthread_mutex_unlock(&shared->lock);
}

static bool is_ended(struct weir_stream *stream) {
    pthread_mutex_lock(&stream->shared.lock);
    bool ended = stream->shared.state == READING_ENDED;
    pthread_mutex_unlock(&stream->shared.lock);
    return ended;
}

static void on_resume(void *ctx) {
    struct weir_stream *stream = ctx;
    struct shared *shared = &stream->shared;
    pthread_mutex_lock(&shared->lock);
    shared->resuming = shared->paused = false;
    pthread_mutex_unlock(&shared->lock);
    if (!is_ended(stream)) stream->transport->resume(stream);
}

static void reading_on_cancel(void *ctx) {
    struct weir_stream *stream = ctx;
    const struct reader_end end = {.code = ERR_CANCELLED, .by_us = true};
    if (is_ended(stream)) return;
    stream->transport->cancel(stream);
    reading_end(stream, &end, STR_EMPTY);
}

static void reading_free(struct weir_stream *stream) {
    struct shared *shared = &stream->shared;
    LIST_EACH(&shared->queue, link) {
        frame_drop(CONTAINER_OF(link, struct frame, link));
    }
    frame_drop(shared->newest);
    frame_drop(stream->current);
    frame_drop(stream->shown);
    pthread_mutex_destroy(&shared->lock);
    pthread_cond_destroy(&shared->changed);
    sse_free(stream->sse);
    reader_done(&stream->reader);
    text_done(&stream->path);
    buf_done(&stream->messages);
    if (stream->header_text.len) memset(stream->header_text.at, 0, stream->header_text.len);
    buf_done(&stream->header_text);
    buf_done(&stream->refusal);
    buf_done(&stream->outcome_text);
    buf_done(&stream->json);
    free(stream);
}

/* The last mail of a stream. */
static void on_leave(void *ctx) {
    struct weir_stream *stream = ctx;
    timer_stop(&stream->linger);
    stream->transport->cancel(stream);
    reading_free(stream);
}

/* --- the consumer's side: opening --------------------------------------------------------- */

static struct weir_stream *reading_new(struct weir_client *client) {
    struct weir_stream *stream = MEM_NEW(struct weir_stream);
    struct shared *shared = &stream->shared;
    pthread_condattr_t monotonic;
    stream->client = client;
    pthread_mutex_init(&shared->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&shared->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    list_init(&shared->queue);
    buf_init(&stream->refusal, STREAM_REFUSAL_MAX_BYTES);
    buf_init(&stream->outcome_text, STREAM_REFUSAL_MAX_BYTES);
    buf_init(&stream->json, STREAM_JSON_MAX_BYTES);
    return stream;
}

/* Have the loop take it over, and wait for that. */
static bool reading_start(struct weir_stream *stream, struct err *e) {
    struct weir_client *client = stream->client;
    struct shared *shared = &stream->shared;
    reader_init(&stream->reader, stream->method, stream->message_count);
    stream->reader.resumed = stream->resumed;
    timer_init(&stream->linger, client->loop, on_linger, stream);
    stream->transport =
        reader_kind_is_http(stream->method->kind) ? &transport_http : &transport_grpc;
    pthread_mutex_lock(&client->lock);
    client->holders++;
    pthread_mutex_unlock(&client->lock);
    loop_post(client->loop, &stream->open, reading_on_open, stream);
    pthread_mutex_lock(&shared->lock);
    while (shared->state == READING_OPENING) pthread_cond_wait(&shared->changed, &shared->lock);
    *e = shared->refused;
    pthread_mutex_unlock(&shared->lock);
    return e->code == ERR_NONE;
}

struct weir_stream *weir_stream_open(struct weir_client *client,
                                     const struct weir_stream_options *from, char *error,
                                     size_t error_room) {
    struct weir_stream_options options = {0};
    struct weir_stream *stream = reading_new(client);
    struct err why;
    memcpy(&options, from, from->size < sizeof(options) ? from->size : sizeof(options));
    bool read = reading_take_options(stream, &options, &why);
    bool started = read && reading_start(stream, &why);
    if (started) return stream;
    if (error && error_room) snprintf(error, error_room, "%s", why.text);
    if (read)
        weir_stream_free(stream);
    else
        reading_free(stream);
    return NULL;
}

void weir_stream_free(struct weir_stream *stream) {
    if (!stream) return;
    struct weir_client *client = stream->client;
    loop_post(client->loop, &stream->leave, on_leave, stream);
    client_drop(client);
}

void weir_stream_cancel(struct weir_stream *stream) {
    struct shared *shared = &stream->shared;
    pthread_mutex_lock(&shared->lock);
    bool first = !shared->cancelling;
    shared->cancelling = true;
    pthread_mutex_unlock(&shared->lock);
    if (first) loop_post(stream->client->loop, &stream->cancel, reading_on_cancel, stream);
}

/* --- the consumer's side: frames ---------------------------------------------------------- */

/* With the lock. False: the time is over, and nothing has come. */
static bool await(struct shared *shared, int timeout_ms) {
    struct timespec until = clock_mono_in((uint64_t)(timeout_ms > 0 ? timeout_ms : 0));
    while (list_empty(&shared->queue) && shared->state != READING_ENDED) {
        int result = timeout_ms < 0
                         ? pthread_cond_wait(&shared->changed, &shared->lock)
                         : pthread_cond_timedwait(&shared->changed, &shared->lock, &until);
        if (result == ETIMEDOUT) break;
    }
    return !list_empty(&shared->queue) || shared->state == READING_ENDED;
}

/* With the lock: the next frame becomes the current one. True: the loop must resume the call. */
static bool advance(struct weir_stream *stream) {
    struct shared *shared = &stream->shared;
    struct frame *frame = CONTAINER_OF(list_pop(&shared->queue), struct frame, link);
    shared->queued -= frame_cost(frame);
    stream->current = frame;
    if (!shared->paused || shared->resuming || shared->queued > stream->queue_bytes / 2)
        return false;
    return shared->resuming = true;
}

static void fill_frame(struct weir_frame *ret, const struct frame *frame) {
    const struct weir_frame whole = {
        .size = ret->size,
        .bytes = frame->bytes.at,
        .len = frame->bytes.len,
        .type = frame->type.at,
        .number = frame->facts.has_number ? frame->facts.number : 0,
        .missing = frame->facts.missing,
        .text = frame->text.at,
        .text_len = frame->text.len,
        .last = frame->facts.last,
        .turn_over = frame->facts.turn_over,
    };
    memcpy(ret, &whole, ret->size < sizeof(whole) ? ret->size : sizeof(whole));
}

int weir_stream_next(struct weir_stream *stream, struct weir_frame *ret, int timeout_ms) {
    struct shared *shared = &stream->shared;
    pthread_mutex_lock(&shared->lock);
    frame_drop(stream->current);
    stream->current = NULL;
    bool came = await(shared, timeout_ms);
    bool resume = !list_empty(&shared->queue) && advance(stream);
    pthread_mutex_unlock(&shared->lock);
    if (resume) loop_post(stream->client->loop, &stream->resume, on_resume, stream);
    if (!came) return WEIR_NEXT_TIMEOUT;
    if (!stream->current) return WEIR_NEXT_END;
    fill_frame(ret, stream->current);
    return WEIR_NEXT_FRAME;
}

int weir_stream_snapshot(struct weir_stream *stream, struct weir_frame *ret) {
    struct shared *shared = &stream->shared;
    pthread_mutex_lock(&shared->lock);
    frame_drop(stream->shown);
    stream->shown = shared->newest;
    if (stream->shown) stream->shown->holders++;
    pthread_mutex_unlock(&shared->lock);
    if (!stream->shown) return 0;
    fill_frame(ret, stream->shown);
    return 1;
}

int weir_stream_outcome(struct weir_stream *stream, struct weir_outcome *ret) {
    struct shared *shared = &stream->shared;
    size_t size = ret->size;
    pthread_mutex_lock(&shared->lock);
    bool over = shared->state == READING_ENDED && list_empty(&shared->queue);
    pthread_mutex_unlock(&shared->lock);
    if (!over) return 0;
    memcpy(ret, &stream->outcome, size < sizeof(*ret) ? size : sizeof(*ret));
    ret->size = size;
    return 1;
}

/* --- the consumer's side: JSON ------------------------------------------------------------ */

static void write_event(const struct frame *frame, struct buf *out) {
    struct json data;
    struct err none;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "event", frame->type);
    if (frame->id.len) json_member_str(&json, "id", frame->id);
    if (json_read_depth(frame->bytes, JSON_DEPTH_MAX - 1, &data, &none)) {
        json_key(&json, STR("data"));
        json_write_raw(&json, data.raw);
    } else {
        json_member_str(&json, "data", frame->bytes);
    }
    json_close(&json);
}

/* Bytes that are no message of a type that we know. */
static void write_unknown(const struct frame *frame, struct buf *out) {
    struct buf text;
    buf_init(&text, base64_encoded_len(frame->bytes.len) + 4);
    base64_encode(&text, frame->bytes, BASE64_STANDARD, BASE64_PADDED);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "base64", buf_str(&text));
    json_close(&json);
    buf_done(&text);
}

static bool reading_write_message(const struct weir_stream *stream, const struct frame *frame,
                                  struct buf *out) {
    const struct pb_message *type = stream->method->frame;
    struct err none;
    struct arena *arena = arena_new(STREAM_ARENA_MAX_BYTES);
    void *message = type ? arena_alloc(arena, type->size + 1u) : NULL;
    bool decoded = message && pb_decode_view(type, frame->bytes, arena, message, &none);
    bool written = true;
    if (decoded)
        written = protojson_write(stream->client->json, type, message, out);
    else
        write_unknown(frame, out);
    arena_free(arena);
    return written;
}

const char *weir_stream_json(struct weir_stream *stream) {
    const struct frame *frame = stream->current;
    bool written = frame != NULL;
    buf_clear(&stream->json);
    if (frame && reader_kind_is_http(stream->method->kind))
        write_event(frame, &stream->json);
    else if (frame)
        written = reading_write_message(stream, frame, &stream->json);
    buf_append_byte(&stream->json, '\0');
    return written && buf_ok(&stream->json) ? stream->json.at : NULL;
}

#include "stream/stream.h"

#include "base/mem.h"
#include "base/pool.h"

#include <assert.h>

struct stream {
    struct stream_options options;
    struct close close;
    struct cursor *cursor;
    uint64_t sent_ms;       /* when an event was last projected */
    struct timer stall;     /* runs while the transport is full */
    struct timer heartbeat; /* runs if the wire has one */
};

static _Thread_local struct pool streams = POOL(sizeof(struct stream), 256);

static void pump(void *ctx);
static void stream_on_stall(void *ctx);
static void on_heartbeat(void *ctx);

enum stream_verdict stream_judge(const struct event *event) {
    if (event->kind == EVENT_DONE) return STREAM_FINISHES;
    return event_is_terminal(event->kind) ? STREAM_FAILS : STREAM_GOES_ON;
}

enum stream_verdict stream_judge_question(const struct event *event, void *ctx) {
    (void)ctx;
    return event->kind == EVENT_APPROVAL ? STREAM_FINISHES : stream_judge(event);
}

bool stream_open(const struct stream_options *options, struct stream **ret, struct err *e) {
    struct stream *stream = pool_zero(&streams);
    stream->options = *options;
    if (!options->stall_ms) stream->options.stall_ms = STREAM_STALL_MS;
    if (!options->heartbeat_ms) stream->options.heartbeat_ms = STREAM_HEARTBEAT_MS;
    stream->sent_ms = loop_now_ms(options->loop);
    close_init(&stream->close, options->mode);
    close_establish(&stream->close);
    timer_init(&stream->stall, options->loop, stream_on_stall, stream);
    timer_init(&stream->heartbeat, options->loop, on_heartbeat, stream);
    if (!cursor_open(options->journal, options->after_seq, options->loop, pump, stream,
                     &stream->cursor, e)) {
        pool_give(&streams, stream);
        return false;
    }
    if (options->paces) cursor_pace(stream->cursor);
    if (options->wire->heartbeat) timer_start(&stream->heartbeat, stream->options.heartbeat_ms);
    *ret = stream;
    return true;
}

void stream_free(struct stream *stream) {
    if (!stream) return;
    timer_stop(&stream->stall);
    timer_stop(&stream->heartbeat);
    cursor_close(stream->cursor);
    pool_give(&streams, stream);
}

/* --- ending ------------------------------------------------------------------------------- */

/* `event` ends the stream; NULL: the cause is outside the journal. `ended` may free the stream,
 * so it is not touched afterwards. */
static void stream_finish(struct stream *stream, enum close_cause cause, enum err_code code,
                          const struct event *event) {
    struct close_ending ending = close_decide(&stream->close, cause, code);
    if (ending.last != FRAME_NONE) {
        /* Only an event can end a stream with a frame, so there is one to project. */
        assert(event);
        close_frame(&stream->close, ending.last);
        stream->options.wire->project(event, ending.last, stream->options.ctx);
    }
    timer_stop(&stream->stall);
    timer_stop(&stream->heartbeat);
    close_end(&stream->close);
    stream->options.wire->ended(ending, cause, event, stream->options.ctx);
}

/* The status of an event that fails a stream whose mode answers with one. */
static enum err_code failure_code(const struct event *event) {
    if (event->kind == EVENT_FAILED) return event->failed.code;
    return event->kind == EVENT_CANCELLED ? ERR_CANCELLED : ERR_UNKNOWN;
}

void stream_end(struct stream *stream, enum close_cause cause) {
    assert(cause != CAUSE_FINISHED && cause != CAUSE_FAILED);
    if (stream->close.state != CLOSE_CLOSED) stream_finish(stream, cause, ERR_NONE, NULL);
}

/* --- reading ------------------------------------------------------------------------------ */

static size_t transport_queued(const struct stream *stream) {
    const struct stream_wire *wire = stream->options.wire;
    return wire->queued ? wire->queued(stream->options.ctx) : 0;
}

static bool transport_is_full(const struct stream *stream) {
    return transport_queued(stream) >= STREAM_HIGH_BYTES;
}

static void wait_for_room(struct stream *stream) {
    stream->options.wire->wake_at(STREAM_LOW_BYTES, stream->options.ctx);
    if (!timer_waits(&stream->stall)) timer_start(&stream->stall, stream->options.stall_ms);
}

/* True: nothing follows what was read, so leave_now() is due after its projection. */
static bool gather_last(const struct stream *stream) {
    const struct stream_wire *wire = stream->options.wire;
    if (!wire->gather || !cursor_is_at_end(stream->cursor)) return false;
    wire->gather(stream->options.ctx);
    return true;
}

/* False: the event was the last one, and the stream may have been freed. */
static bool pass_on(struct stream *stream, const struct event *event) {
    const struct stream_wire *wire = stream->options.wire;
    enum stream_verdict verdict = STREAM_GOES_ON;
    if (event->kind != EVENT_TEXT)
        verdict = wire->judge ? wire->judge(event, stream->options.ctx) : stream_judge(event);
    if (verdict != STREAM_GOES_ON) {
        bool well = verdict == STREAM_FINISHES;
        stream_finish(stream, well ? CAUSE_FINISHED : CAUSE_FAILED, failure_code(event), event);
        return false;
    }
    assert(!event_is_terminal(event->kind));
    enum close_frame frame = stream->options.mode == CLOSE_SINGLE ? FRAME_NONE : FRAME_DATA;
    if (frame == FRAME_DATA) close_frame(&stream->close, frame);
    bool leaves_now = frame == FRAME_DATA && gather_last(stream);
    wire->project(event, frame, stream->options.ctx);
    if (leaves_now) wire->leave_now(stream->options.ctx);
    return true;
}

/* If text comes next, pass on as much as the transport has room for. */
static bool pass_on_texts(struct stream *stream, size_t room) {
    const struct stream_wire *wire = stream->options.wire;
    if (!wire->project_texts || stream->options.mode == CLOSE_SINGLE) return false;
    size_t count;
    struct str texts = cursor_texts(stream->cursor, room, &count);
    if (count == 0) return false;
    close_frame(&stream->close, FRAME_DATA);
    bool leaves_now = gather_last(stream);
    wire->project_texts(texts, count, stream->options.ctx);
    if (leaves_now) wire->leave_now(stream->options.ctx);
    return true;
}

static void pump(void *ctx) {
    struct stream *stream = ctx;
    if (stream->close.state != CLOSE_ESTABLISHED) return;
    struct event event;
    for (;;) {
        size_t queued = transport_queued(stream);
        if (queued >= STREAM_HIGH_BYTES) {
            wait_for_room(stream);
            return;
        }
        if (!pass_on_texts(stream, STREAM_HIGH_BYTES - queued)) {
            if (!cursor_next(stream->cursor, &event)) return;
            if (!pass_on(stream, &event)) return;
        }
        stream->sent_ms = loop_now_ms(stream->options.loop);
    }
}

void stream_drained(struct stream *stream) {
    timer_stop(&stream->stall);
    pump(stream);
}

/* --- time --------------------------------------------------------------------------------- */

static void stream_on_stall(void *ctx) {
    struct stream *stream = ctx;
    uint64_t stalled_ms = stream->options.wire->stalled_ms(stream->options.ctx);
    uint64_t limit_ms = stream->options.stall_ms;
    if (stalled_ms >= limit_ms) {
        stream_end(stream, CAUSE_STALLED);
    } else {
        timer_start(&stream->stall, limit_ms - stalled_ms);
    }
}

static void on_heartbeat(void *ctx) {
    struct stream *stream = ctx;
    uint64_t quiet_ms = loop_now_ms(stream->options.loop) - stream->sent_ms;
    uint64_t every_ms = stream->options.heartbeat_ms;
    if (quiet_ms >= every_ms && !transport_is_full(stream)) {
        stream->options.wire->heartbeat(stream->options.ctx);
        quiet_ms = 0;
    }
    if (quiet_ms >= every_ms) quiet_ms = 0;
    timer_start(&stream->heartbeat, every_ms - quiet_ms);
}

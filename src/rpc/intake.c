#include "rpc/intake.h"

#include "base/mem.h"
#include "rpc/call.h"
#include "rpc/gzip.h"

#include <assert.h>

#define SMALL_MESSAGE_BYTES (64 * KIB) /* needs no check for free memory */

const struct state intake_states[INTAKE_STATE_COUNT] = {
    [INTAKE_WAITING] = {"waiting", TO(INTAKE_HANDED) | TO(INTAKE_OVER)},
    [INTAKE_HANDED] = {"handed", TO(INTAKE_WAITING) | TO(INTAKE_OVER)},
    [INTAKE_OVER] = {"over", 0},
};

static void intake_move(struct intake *intake, enum intake_state next) {
    assert(states_allow(intake_states, intake->state, next));
    intake->state = (uint8_t)next;
}

void intake_init(struct intake *intake, bool one_request, size_t message_max_bytes,
                 enum grpc_encoding encoding) {
    assert(encoding != GRPC_ENCODING_UNKNOWN);
    *intake = (struct intake){.one_request = one_request, .gzip = encoding == GRPC_GZIP};
    grpc_reader_init(&intake->reader, message_max_bytes);
    buf_init(&intake->held, one_request ? message_max_bytes : INTAKE_HELD_MAX_BYTES);
}

void intake_done(struct intake *intake) {
    grpc_reader_done(&intake->reader);
    buf_done(&intake->held);
}

/* --- held bytes --------------------------------------------------------------------------- */

static struct str held(const struct intake *intake) {
    return str_skip(buf_str(&intake->held), intake->taken);
}

/* Free the buffer when everything is read; sometimes move the rest to the front. */
static void held_tidy(struct intake *intake) {
    if (intake->taken == intake->held.len) {
        buf_release(&intake->held);
        intake->taken = 0;
    } else if (intake->taken > intake->held.len / 2) {
        buf_drop(&intake->held, intake->taken);
        intake->taken = 0;
    }
}

void intake_drop(struct rpc_call *call) {
    struct intake *intake = &call->intake;
    if (intake->running) return; /* the handler may still look at a message */
    size_t waiting = intake->one_request ? 0 : held(intake).len;
    size_t max_bytes = intake->reader.max_bytes;
    intake_done(intake);
    grpc_reader_init(&intake->reader, max_bytes);
    intake->taken = 0;
    intake->has_request = false;
    if (waiting) exchange_consumed(call->exchange, waiting);
}

/* --- messages ---------------------------------------------------------------------------- */

static void broken(struct rpc_call *call, const struct err *e) {
    const struct rpc_handler *handler = call->method->handler;
    if (e->code == ERR_TOO_LARGE && handler->too_large) handler->too_large(call, e, call->ctx);
    if (!call_is_live(call)) return; /* the handler ended it */
    call_break(call, e->code, err_text(e));
}

static void intake_hand_over(struct rpc_call *call, struct str message) {
    intake_move(&call->intake, INTAKE_HANDED);
    if (!call->method->handler->message) return;
    struct text block;
    struct lent lent = lent_begin(message, &block);
    call->method->handler->message(call, lent, call->ctx);
    lent_end(&block);
}

/* The one request waits until it is certain to be the only one. */
static void intake_keep_request(struct rpc_call *call, struct grpc_message message) {
    struct intake *intake = &call->intake;
    struct err e;
    if (intake->has_request) {
        call_break(call, ERR_UNIMPLEMENTED, STR("more than one request message"));
        return;
    }
    if (!message.compressed) {
        buf_append(&intake->held, message.bytes);
        assert(buf_ok(&intake->held));
    } else if (!gzip_inflate(message.bytes, &intake->held, &e)) {
        broken(call, &e);
        return;
    }
    intake->has_request = true;
}

static void hand_over_inflated(struct rpc_call *call, struct str bytes) {
    struct buf message;
    struct err e;
    buf_init(&message, call->intake.reader.max_bytes);
    if (gzip_inflate(bytes, &message, &e)) {
        intake_hand_over(call, buf_str(&message));
    } else {
        broken(call, &e);
    }
    buf_done(&message);
}

static void accept(struct rpc_call *call, struct grpc_message message) {
    struct intake *intake = &call->intake;
    struct err e;
    if (!grpc_flag_allowed(message, intake->gzip ? GRPC_GZIP : GRPC_IDENTITY, &e)) {
        broken(call, &e);
        return;
    }
    intake->inflated = message.compressed;
    if (intake->one_request) {
        intake_keep_request(call, message);
    } else if (message.compressed) {
        hand_over_inflated(call, message.bytes);
    } else {
        intake_hand_over(call, message.bytes);
    }
}

/* Read from the front of *bytes while the handler is ready, and leave the rest. */
static void intake_take(struct rpc_call *call, struct str *bytes) {
    struct intake *intake = &call->intake;
    while (call_is_live(call) && intake->state == INTAKE_WAITING) {
        struct grpc_message message;
        struct err e;
        enum grpc_step step = grpc_next(&intake->reader, bytes, &message, &e);
        if (step == GRPC_MORE) return;
        if (step == GRPC_BROKEN) {
            broken(call, &e);
        } else {
            accept(call, message);
        }
    }
}

static void say_half_closed(struct rpc_call *call) {
    intake_move(&call->intake, INTAKE_OVER);
    if (call->method->handler->half_closed) call->method->handler->half_closed(call, call->ctx);
}

/* The peer has half-closed and everything before that was read. */
static void intake_finish(struct rpc_call *call) {
    struct intake *intake = &call->intake;
    struct err e;
    if (!grpc_end(&intake->reader, &e)) {
        broken(call, &e);
        return;
    }
    if (intake->one_request) {
        if (!intake->has_request) {
            call_break(call, ERR_UNIMPLEMENTED, STR("no request message"));
            return;
        }
        intake_hand_over(call, buf_str(&intake->held));
        if (!call_is_live(call)) return;
        intake->has_request = false;
        buf_release(&intake->held);
    }
    say_half_closed(call);
}

/* Whether the memory for `len` more bytes of a message may be taken. */
static bool may_grow(const struct intake *intake, size_t len, struct err *e) {
    size_t parts = intake->reader.partial.len + intake->held.len;
    return parts + len <= SMALL_MESSAGE_BYTES || mem_check(parts + len, e);
}

/* --- the pump ---------------------------------------------------------------------------- */

/* Read what is held, then `fresh`. Report consumed bytes to the server only at the end, when
 * nothing is lent any more, because it may deliver more bytes at once. */
static void pump(struct rpc_call *call, struct str fresh) {
    struct intake *intake = &call->intake;
    assert(!intake->running);
    intake->running = true;
    size_t consumed = 0;
    struct err e;
    if (fresh.len && !may_grow(intake, fresh.len, &e)) broken(call, &e);

    if (!intake->one_request && intake->held.len) {
        struct str rest = held(intake);
        size_t before = rest.len;
        intake_take(call, &rest);
        intake->taken += before - rest.len;
        consumed += before - rest.len;
        held_tidy(intake);
    }
    if (intake->one_request || !intake->held.len) {
        size_t before = fresh.len;
        intake_take(call, &fresh);
        consumed += before - fresh.len;
    }
    if (call_is_live(call) && fresh.len) {
        if (buf_append(&intake->held, fresh)) {
            fresh = STR_EMPTY;
        } else {
            call_break(call, ERR_RESOURCE_EXHAUSTED, STR("more was sent than was asked for"));
        }
    }
    bool all_read = intake->one_request || !intake->held.len;
    if (call_is_live(call) && intake->ended && all_read && intake->state == INTAKE_WAITING)
        intake_finish(call);

    intake->running = false;
    if (!call_is_live(call)) {
        consumed += fresh.len;
        intake_drop(call);
    }
    if (consumed) exchange_consumed(call->exchange, consumed);
}

void intake_feed(struct rpc_call *call, struct str bytes) {
    if (call_is_live(call)) {
        pump(call, bytes);
    } else if (bytes.len) {
        exchange_consumed(call->exchange, bytes.len);
    }
}

void intake_end(struct rpc_call *call) {
    call->intake.ended = true;
    if (call_is_live(call)) pump(call, STR_EMPTY);
}

void intake_resume(struct rpc_call *call) {
    if (call_is_live(call)) pump(call, STR_EMPTY);
}

bool rpc_client_is_done(const struct rpc_call *call) {
    const struct intake *intake = &call->intake;
    struct err cut;
    return intake->ended && !intake->has_request && held(intake).len == 0 &&
           grpc_end(&intake->reader, &cut);
}

void rpc_next(struct rpc_call *call) {
    struct intake *intake = &call->intake;
    if (!call_is_live(call) || intake->state != INTAKE_HANDED || intake->one_request) return;
    intake_move(intake, INTAKE_WAITING);
    /* Something to hand over, or only memory to give back. Never before this returns: a
     * handler must not be called from inside its own call. */
    bool due = intake->held.len || intake->ended || intake->reader.lent;
    if (!intake->running && due) loop_defer(call->site->loop, &call->later);
}

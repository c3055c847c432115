#include "rpc/call.h"

#include "base/mem.h"
#include "rpc/gzip.h"
#include "rpc/status.h"

#include <assert.h>
#include <stdlib.h>

#define CALL_MAGIC 0x7270632eu
#define NEVER UINT64_MAX
#define DRAIN_MS (10 * 1000)
#define LAST_BYTES_MS (3 * 1000) /* for what a call that was cancelled has sent before */
/* --- states ------------------------------------------------------------------------------ */

/* clang-format off */
const struct state call_states[CALL_STATE_COUNT] = {
    [CALL_CHECKING] = {"checking", TO(CALL_REFUSED) | TO(CALL_OPENING)},
    [CALL_REFUSED]  = {"refused",  TO(CALL_CLOSED)},
    [CALL_OPENING]  = {"opening",  TO(CALL_OPEN) | TO(CALL_ENDED) | TO(CALL_CUT)},
    [CALL_OPEN]     = {"open",     TO(CALL_ENDED) | TO(CALL_CUT)},
    [CALL_ENDED]    = {"ended",    TO(CALL_CLOSED)},
    [CALL_CUT]      = {"cut",      TO(CALL_CANCELLED) | TO(CALL_ENDED)},
    [CALL_CANCELLED]     = {"cancelled", TO(CALL_CLOSED)},
    [CALL_CLOSED]   = {"closed",   0},
};
/* clang-format on */

static void rpc_call_move(struct rpc_call *call, enum call_state next) {
    assert(states_allow(call_states, call->state, next));
    call->state = (uint8_t)next;
}

/* --- copies that live as long as the call ------------------------------------------------ */

struct kept {
    struct kept *next;
    char text[];
};

/* An arena's first block would be larger than all the rest of a call. */
struct str rpc_keep(struct rpc_call *call, struct str text) {
    struct kept *kept = mem_alloc(sizeof(*kept) + text.len + 1);
    kept->next = call->kept;
    call->kept = kept;
    if (text.len) memcpy(kept->text, text.at, text.len);
    kept->text[text.len] = '\0';
    return str_of(kept->text, text.len);
}

static void free_kept(struct rpc_call *call) {
    while (call->kept) {
        struct kept *kept = call->kept;
        call->kept = kept->next;
        free(kept);
    }
}

/* --- the end ----------------------------------------------------------------------------- */

static void send_end(struct rpc_call *call, enum err_code code, struct str message) {
    timer_stop(&call->deadline);
    /* Initial and trailing metadata are kept separate. */
    if (call->initial || call->site->always.count) rpc_establish(call);
    status_end(call->exchange, code, message, call->trailing);
}

void rpc_end(struct rpc_call *call, enum err_code code, struct str message) {
    /* In CALL_CUT the status has already been sent, and cancelled() will not be called. */
    bool cut = call->state == CALL_CUT;
    rpc_call_move(call, CALL_ENDED);
    if (cut) return;
    if (code == ERR_CANCELLED && call->site->stopping)
        rpc_hurry(call, LAST_BYTES_MS, STR_EMPTY);
    send_end(call, code, message);
    intake_drop(call);
}

static void become_cut(struct rpc_call *call, enum rpc_cancel why) {
    rpc_call_move(call, CALL_CUT);
    call->why = (uint8_t)why;
    timer_stop(&call->deadline);
}

static void cut(struct rpc_call *call, enum rpc_cancel why) {
    become_cut(call, why);
    intake_drop(call);
}

static void rpc_call_report(struct rpc_call *call) {
    const struct rpc_handler *handler = call->method->handler;
    rpc_call_move(call, CALL_CANCELLED);
    if (handler->cancelled) handler->cancelled(call, call->why, call->ctx);
}

/* End the call ourselves. Not from inside a handler's callback. */
static void call_cancel(struct rpc_call *call, enum rpc_cancel why, enum err_code code,
                        struct str message) {
    send_end(call, code, message);
    cut(call, why);
    rpc_call_report(call);
}

void call_break(struct rpc_call *call, enum err_code code, struct str message) {
    call_cancel(call, RPC_BROKEN, code, message);
}

void call_stop(struct rpc_call *call) {
    if (call_is_live(call))
        call_cancel(call, RPC_STOPPED, ERR_CANCELLED, STR("the server is stopping"));
}

void call_say_stopping(struct rpc_call *call) {
    if (call_is_live(call) && call->method->handler->stopping)
        call->method->handler->stopping(call, call->ctx);
}

/* A client that does not speak gRPC gets its answer at once, but may finish sending its request
 * before the stream ends. A reset in the middle would make some clients lose the answer. */
static void call_drain(struct rpc_call *call) {
    call->drains = true;
    timer_start(&call->deadline, DRAIN_MS);
}

static void call_drained(struct rpc_call *call) {
    call->drains = false;
    timer_stop(&call->deadline);
    exchange_end(call->exchange, NULL, 0);
}

static void on_deadline(void *ctx) {
    struct rpc_call *call = ctx;
    assert(call->magic == CALL_MAGIC);
    if (call->drains) {
        call_drained(call);
        return;
    }
    call_cancel(call, RPC_DEADLINE, ERR_DEADLINE_EXCEEDED, STR("deadline exceeded"));
}

/* Unread bytes are queued before any trailers, so trailers would not arrive. Reset the stream
 * instead, with a code that gRPC clients read as the status. This also ends calls that are over
 * but cannot send their last bytes. */
static void reset_unread(struct rpc_call *call, enum exchange_abort code, enum rpc_cancel why) {
    exchange_abort(call->exchange, code);
    if (!call_is_live(call)) return;
    cut(call, why);
    rpc_call_report(call);
}

void rpc_hurry(struct rpc_call *call, uint64_t within_ms, struct str why) {
    if (!call->hurry) call->hurry = MEM_NEW(struct call_hurry);
    *call->hurry = (struct call_hurry){loop_now_ms(call->site->loop), within_ms, why};
    site_check_within(call->site,
                      within_ms < RPC_HURRY_PAUSE_MS ? within_ms : RPC_HURRY_PAUSE_MS);
}

/* What came before the stop does not count as a pause. */
static uint64_t check_hurry(struct rpc_call *call) {
    const struct call_hurry *hurry = call->hurry;
    uint64_t since_ms = loop_now_ms(call->site->loop) - hurry->since_ms;
    uint64_t paused_ms = exchange_stalled_ms(call->exchange);
    if (paused_ms > since_ms) paused_ms = since_ms;
    if (paused_ms < RPC_HURRY_PAUSE_MS && since_ms < hurry->within_ms) {
        uint64_t left_ms = hurry->within_ms - since_ms,
                 pause_ms = RPC_HURRY_PAUSE_MS - paused_ms;
        return left_ms < pause_ms ? left_ms : pause_ms;
    }
    if (exchange_queued(call->exchange) > 0) {
        reset_unread(call, ABORT_CANCEL, RPC_STOPPED);
    } else if (call_is_live(call)) {
        call_cancel(call, RPC_STOPPED, ERR_CANCELLED, hurry->why);
    }
    return RPC_HURRY_PAUSE_MS;
}

uint64_t call_check_stall(struct rpc_call *call, uint64_t limit_ms) {
    if (call->hurry) return check_hurry(call);
    uint64_t stalled_ms = exchange_stalled_ms(call->exchange);
    if (stalled_ms < limit_ms) return limit_ms - stalled_ms;
    reset_unread(call, ABORT_ENHANCE_CALM, RPC_STALLED);
    return limit_ms;
}

/* --- callbacks of the exchange ------------------------------------------------------------ */

static void call_on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    (void)exchange;
    intake_feed(ctx, lent_read(bytes));
}

static void call_on_body_end(struct exchange *exchange, void *ctx) {
    (void)exchange;
    struct rpc_call *call = ctx;
    if (call->drains) {
        call_drained(call);
    } else {
        intake_end(call);
    }
}

static void call_on_drained(struct exchange *exchange, void *ctx) {
    (void)exchange;
    struct rpc_call *call = ctx;
    assert(call->magic == CALL_MAGIC);
    if (call_is_live(call) && call->method->handler->drained)
        call->method->handler->drained(call, call->ctx);
}

static void call_on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange;
    (void)how; /* if the call is still live, the peer has left */
    struct rpc_call *call = ctx;
    assert(call->magic == CALL_MAGIC && !call->intake.running);
    /* Nothing needs to be consumed any more; the server has done that itself. */
    if (call_is_live(call)) become_cut(call, RPC_PEER_LEFT);
    if (call->state == CALL_CUT) rpc_call_report(call);

    bool opened = call->state != CALL_REFUSED;
    rpc_call_move(call, CALL_CLOSED);
    if (opened && call->method->handler->closed) call->method->handler->closed(call->ctx);

    list_remove(&call->link);
    timer_stop(&call->deadline);
    task_cancel(&call->later);
    intake_done(&call->intake);
    free_kept(call);
    free(call->hurry);
    free(call->initial);
    free(call->trailing);
    call->magic = 0;
    free(call);
}

static void on_later(void *ctx) {
    struct rpc_call *call = ctx;
    assert(call->magic == CALL_MAGIC);
    if (call->state == CALL_CUT) {
        rpc_call_report(call);
    } else {
        intake_resume(call);
    }
}

/* --- the beginning ----------------------------------------------------------------------- */

static const struct exchange_events events = {call_on_body, call_on_body_end, call_on_drained,
                                              call_on_closed};

struct rpc_call *call_new(struct rpc_site *site, struct exchange *exchange) {
    struct rpc_call *call = MEM_NEW(struct rpc_call);
    call->magic = CALL_MAGIC;
    call->exchange = exchange;
    call->site = site;
    timer_init(&call->deadline, site->loop, on_deadline, call);
    task_init(&call->later, on_later, call);
    list_append(&site->calls, &call->link);
    exchange_accept(exchange, &events, call);
    return call;
}

void call_refuse(struct rpc_call *call, enum err_code code, struct str message) {
    rpc_call_move(call, CALL_REFUSED);
    send_end(call, code, message);
}

void call_refuse_http(struct rpc_call *call, int status) {
    rpc_call_move(call, CALL_REFUSED);
    status_http(call->exchange, status);
    call_drain(call);
}

void call_refuse_stream(struct rpc_call *call) {
    rpc_call_move(call, CALL_REFUSED);
    exchange_abort(call->exchange, ABORT_PROTOCOL);
}

void call_open(struct rpc_call *call, const struct call_wishes *wishes,
               const struct rpc_service *service) {
    const struct rpc_method *method = call->method;
    uint64_t timeout_ms = wishes->timeout_ms;
    bool one_request = method->kind == RPC_UNARY || method->kind == RPC_SERVER_STREAM;
    size_t max_bytes =
        service->request_max_bytes ? service->request_max_bytes : method->request_max_bytes;
    intake_init(&call->intake, one_request, max_bytes, wishes->encoding);
    call->takes_gzip = wishes->takes_gzip;

    if (method->deadline_ms && method->deadline_ms < timeout_ms)
        timeout_ms = method->deadline_ms;
    if (timeout_ms != NEVER) timer_start(&call->deadline, timeout_ms);

    rpc_call_move(call, CALL_OPENING);
    call->ctx = method->handler->open(call, service->ctx);
    exchange_forget_request(call->exchange);
    if (call->state != CALL_OPENING) return;
    rpc_call_move(call, CALL_OPEN);
    if (method->established == RPC_AT_ACCEPT) rpc_establish(call);
}

/* --- sending ----------------------------------------------------------------------------- */

void rpc_establish(struct rpc_call *call) {
    if (exchange_head_sent(call->exchange)) return;
    status_head(call->exchange, call->announces_gzip, &call->site->always, call->initial);
}

bool rpc_established(const struct rpc_call *call) {
    return exchange_head_sent(call->exchange);
}

void rpc_compress(struct rpc_call *call, enum rpc_compression compression) {
    if (compression == RPC_GZIP && call->takes_gzip && !exchange_head_sent(call->exchange))
        call->announces_gzip = true;
    call->compresses = compression == RPC_GZIP && call->announces_gzip;
}

/* The queue is full because the peer does not read. A truncated message must not be sent. */
static void overflow(struct rpc_call *call, struct buf *out) {
    out->len = call->message_begin;
    out->full = false;
    send_end(call, ERR_RESOURCE_EXHAUSTED, STR("too much waits to be read"));
    cut(call, RPC_STALLED);
    loop_defer(call->site->loop, &call->later);
}

struct buf *rpc_message_begin(struct rpc_call *call) {
    assert(call_is_live(call) || call->state == CALL_CUT);
    assert(!call->message_out);
    call->message_out = &call->site->sink;
    if (call_is_live(call)) {
        rpc_establish(call);
        call->message_out = exchange_out(call->exchange);
    }
    call->message_begin = grpc_begin_message(call->message_out);
    return call->message_out;
}

/* Replace the message by its compressed form, if that is shorter. */
static void compress(struct rpc_call *call, struct buf *out) {
    size_t begin = call->message_begin + GRPC_PREFIX_BYTES;
    struct str message = str_skip(buf_str(out), begin);
    struct buf shorter;
    buf_init(&shorter, message.len);
    if (gzip_deflate(message, &shorter)) {
        out->at[call->message_begin] = 1;
        out->len = begin;
        buf_append(out, buf_str(&shorter));
    }
    buf_done(&shorter);
}

void rpc_message_end(struct rpc_call *call) {
    struct buf *out = call->message_out;
    call->message_out = NULL;
    if (!call_is_live(call)) {
        buf_release(out);
    } else if (!buf_ok(out)) {
        overflow(call, out);
    } else {
        if (call->compresses) compress(call, out);
        grpc_end_message(out, call->message_begin);
        exchange_touch(call->exchange);
    }
}

char *rpc_messages_room(struct rpc_call *call, size_t max_bytes) {
    assert(!call->message_out && !call->compresses);
    if (!call_is_live(call)) return NULL;
    rpc_establish(call);
    struct buf *out = exchange_out(call->exchange);
    char *at = buf_room(out, max_bytes);
    call->message_begin = out->len;
    if (!at) overflow(call, out);
    return at;
}

void rpc_messages_put(struct rpc_call *call, size_t len) {
    buf_grew(exchange_out(call->exchange), len);
    exchange_touch(call->exchange);
}

void rpc_send(struct rpc_call *call, struct str message) {
    buf_append(rpc_message_begin(call), message);
    rpc_message_end(call);
}

size_t rpc_queued(const struct rpc_call *call) {
    return exchange_queued(call->exchange);
}

size_t rpc_pressure(const struct rpc_call *call) {
    return exchange_pressure(call->exchange);
}

void rpc_wake_at(struct rpc_call *call, size_t low) {
    if (call_is_live(call)) exchange_wake_at(call->exchange, low);
}

uint64_t rpc_stalled_ms(const struct rpc_call *call) {
    return exchange_stalled_ms(call->exchange);
}

/* --- metadata ----------------------------------------------------------------------------- */

static void add_extra(struct rpc_call *call, struct status_extra **extra, struct str name,
                      struct str value) {
    if (!*extra) *extra = MEM_NEW(struct status_extra);
    assert((*extra)->count < STATUS_EXTRA_MAX);
    struct buf text;
    buf_init(&text, value.len * 2 + 4);
    if (str_ends(name, STR("-bin"))) {
        grpc_bin_encode(&text, value);
        value = buf_str(&text);
    }
    (*extra)->fields[(*extra)->count++] =
        (struct field){rpc_keep(call, name), rpc_keep(call, value)};
    buf_done(&text);
}

void rpc_header(struct rpc_call *call, struct str name, struct str value) {
    assert(!exchange_head_sent(call->exchange) || !call_is_live(call));
    add_extra(call, &call->initial, name, value);
}

void rpc_trailer(struct rpc_call *call, struct str name, struct str value) {
    add_extra(call, &call->trailing, name, value);
}

static const struct field *metadata(const struct rpc_call *call, size_t *ret_count) {
    assert(call->state == CALL_CHECKING || call->state == CALL_OPENING);
    return exchange_fields(call->exchange, ret_count);
}

struct lent rpc_metadata(const struct rpc_call *call, struct str key, size_t *ret_count) {
    size_t field_count, found = 0;
    const struct field *fields = metadata(call, &field_count);
    struct lent first = {{NULL, 0}};
    for (size_t i = 0; i < field_count; i++) {
        if (!str_equal(fields[i].name, key)) continue;
        if (found++ == 0) first = lent_of(fields[i].value);
    }
    if (ret_count) *ret_count = found;
    return first;
}

struct lent rpc_metadata_at(const struct rpc_call *call, struct str key, size_t index) {
    size_t field_count;
    const struct field *fields = metadata(call, &field_count);
    bool binary = str_ends(key, STR("-bin"));
    for (size_t i = 0; i < field_count; i++) {
        if (!str_equal(fields[i].name, key)) continue;
        /* Only binary values may have been joined by commas, because base64 contains none. */
        struct str value, rest = fields[i].value;
        do {
            value = binary ? str_trim(str_split(rest, ',', &rest)) : rest;
            if (index-- == 0) return lent_of(value);
        } while (binary && rest.at);
    }
    return (struct lent){{NULL, 0}};
}

bool rpc_metadata_bin(const struct rpc_call *call, struct str key, size_t index,
                      struct buf *out, struct err *e) {
    assert(str_ends(key, STR("-bin")));
    struct str value = lent_read(rpc_metadata_at(call, key, index));
    if (!value.at) {
        return err_set(e, ERR_NOT_FOUND, "there is no value %zu of " STR_FMT, index,
                       STR_ARG(key));
    }
    return grpc_bin_decode(out, value, e);
}

/* --- asking ------------------------------------------------------------------------------ */

const struct rpc_method *rpc_method(const struct rpc_call *call) {
    return call->method;
}

const struct rpc_identity *rpc_identity(const struct rpc_call *call) {
    return &call->identity;
}

bool rpc_is_stopping(const struct rpc_call *call) {
    return call->site->stopping;
}

struct loop *rpc_loop(const struct rpc_call *call) {
    return call->site->loop;
}

struct exchange *rpc_exchange(struct rpc_call *call) {
    return call->exchange;
}

bool rpc_came_compressed(const struct rpc_call *call) {
    return call->intake.inflated;
}

uint64_t rpc_time_left_ms(const struct rpc_call *call) {
    if (!timer_waits(&call->deadline)) return NEVER;
    uint64_t now_ms = loop_now_ms(call->site->loop);
    return call->deadline.due_ms > now_ms ? call->deadline.due_ms - now_ms : 0;
}

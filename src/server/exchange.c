#include "server/exchange.h"

#include "base/mem.h"
#include "base/sixteen.h"
#include "server/conn.h"

#include <assert.h>
#include <stdlib.h>

/* No owner intends to queue this much: streams wait at 256 KiB, messages are at most 4 MiB. */
#define QUEUE_MAX_BYTES (64 * MIB)

/* A connection past its limit may go on as long as its peer keeps reading. */
#define OVER_LIMIT_GRACE_MS 1000

#define SECTION_FIELDS_MAX 64
#define SECTION_MAX_BYTES (64 * KIB)

#define DROP_AT_BYTES (64 * KIB)

static uint64_t exchange_now_ms(const struct exchange *exchange) {
    return loop_now_ms(exchange->conn->home->loop);
}

/* Update the connection's sum of queued bytes. */
static void count_queued(struct exchange *exchange) {
    size_t queued = exchange_queued(exchange);
    exchange->conn->queued_bytes += queued;
    exchange->conn->queued_bytes -= exchange->counted;
    exchange->counted = queued;
}

/* --- from begin to close ------------------------------------------------------------------ */

struct exchange *exchange_new(struct conn *conn, enum exchange_http http) {
    struct exchange *exchange = MEM_NEW(struct exchange);
    exchange->conn = conn;
    exchange->http = (uint8_t)http;
    exchange->request = request_new(conn->limits);
    buf_init(&exchange->out, QUEUE_MAX_BYTES);
    list_init(&exchange->dirty);
    list_init(&exchange->waits);
    list_init(&exchange->link);
    list_append(&conn->exchanges, &exchange->link);
    conn->exchange_count++;
    atomic_fetch_add_explicit(&conn->home->exchange_count, 1, memory_order_relaxed);
    return exchange;
}

void exchange_begin(struct exchange *exchange) {
    struct conn *conn = exchange->conn;
    atomic_fetch_add_explicit(&conn->home->requests, 1, memory_order_relaxed);
    conn->listener->on_request(exchange, conn->listener->ctx);
    assert(exchange->accepted);
}

void exchange_accept(struct exchange *exchange, const struct exchange_events *events,
                     void *ctx) {
    assert(!exchange->accepted && events->on_closed);
    exchange->accepted = true;
    exchange->events = events;
    exchange->ctx = ctx;
    if (exchange->expects_continue) exchange_mark(exchange);
}

void exchange_give_body(struct exchange *exchange, struct str bytes) {
    exchange->body_came = true;
    exchange->unconsumed += bytes.len;
    if (exchange->aborted || exchange->ended || !exchange->events) {
        exchange_consumed(exchange, bytes.len);
        return;
    }
    struct text block;
    struct lent lent = lent_begin(bytes, &block);
    exchange->events->on_body(exchange, lent, exchange->ctx);
    lent_end(&block);
}

void exchange_give_end(struct exchange *exchange) {
    exchange->request_ended = true;
    conn_known(exchange->conn);
    if (exchange->aborted || exchange->ended || !exchange->events) return;
    exchange->events->on_body_end(exchange, exchange->ctx);
}

void exchange_close(struct exchange *exchange, enum exchange_close how) {
    struct conn *conn = exchange->conn;
    conn->protocol->forget(exchange);
    list_remove(&exchange->link);
    list_remove(&exchange->dirty);
    list_remove(&exchange->waits);
    conn->queued_bytes -= exchange->counted;
    if (--conn->exchange_count == 0) conn->idle_ms = loop_now_ms(conn->home->loop);
    atomic_fetch_sub_explicit(&conn->home->exchange_count, 1, memory_order_relaxed);
    home_settle(conn->home);
    if (exchange->events) exchange->events->on_closed(exchange, how, exchange->ctx);
    request_free(exchange->request);
    free(exchange->head);
    free(exchange->trailers);
    buf_done(&exchange->out);
    free(exchange);
}

/* --- the request -------------------------------------------------------------------------- */

struct str exchange_method(const struct exchange *exchange) {
    return exchange->request ? exchange->request->method : STR_EMPTY;
}

struct str exchange_path(const struct exchange *exchange) {
    return exchange->request ? exchange->request->path : STR_EMPTY;
}

struct str exchange_query(const struct exchange *exchange) {
    return exchange->request ? exchange->request->query : (struct str){NULL, 0};
}

struct str exchange_authority(const struct exchange *exchange) {
    return exchange->request ? exchange->request->authority : STR_EMPTY;
}

enum exchange_http exchange_http(const struct exchange *exchange) {
    return (enum exchange_http)exchange->http;
}

const struct field *exchange_field(const struct exchange *exchange, struct str name) {
    return exchange->request ? request_find(exchange->request, name) : NULL;
}

const struct field *exchange_fields(const struct exchange *exchange, size_t *ret_count) {
    *ret_count = exchange->request ? exchange->request->field_count : 0;
    return exchange->request ? exchange->request->fields : NULL;
}

int64_t exchange_content_length(const struct exchange *exchange) {
    return exchange->request ? exchange->request->content_length : -1;
}

struct str exchange_peer(const struct exchange *exchange) {
    return str_from(exchange->conn->peer);
}

struct str exchange_peer_owner(const struct exchange *exchange) {
    const struct address_owner *owner = &exchange->conn->owner;
    return str_of(owner->bytes, owner->len);
}

bool exchange_peer_is_loopback(const struct exchange *exchange) {
    return exchange->conn->peer_is_loopback;
}

enum exchange_reach exchange_reach(const struct exchange *exchange) {
    return exchange->conn->listener->reach;
}

struct loop *exchange_loop(const struct exchange *exchange) {
    return exchange->conn->home->loop;
}

void exchange_forget_request(struct exchange *exchange) {
    request_free(exchange->request);
    exchange->request = NULL;
}

void exchange_consumed(struct exchange *exchange, size_t len) {
    assert(len <= exchange->unconsumed);
    exchange->unconsumed -= len;
    exchange->conn->protocol->consumed(exchange, len);
}

void exchange_authenticated(struct exchange *exchange) {
    struct conn *conn = exchange->conn;
    if (conn->authenticated) return;
    conn->authenticated = true;
    conn->protocol->authenticated(conn);
}

/* --- the response: head and trailers ------------------------------------------------------ */

/* Control bytes are never sent in a field, because they could end it and begin another one. */
static void copy_value(char *to, struct str value) {
    size_t done = 0;
    for (; done + 16 <= value.len; done += 16) {
        sixteen c = sixteen_at(value.at + done);
        if (sixteen_any((sixteen)((c < ' ') | (c == 127)))) break;
        memcpy(to + done, &c, sizeof(c));
    }
    for (size_t i = done; i < value.len; i++) {
        uint8_t byte = (uint8_t)value.at[i];
        to[i] = (byte < ' ' && byte != '\t') || byte == 127 ? ' ' : (char)byte;
    }
}

static struct section *section_new(int status, const struct field *fields, size_t count) {
    assert(count <= SECTION_FIELDS_MAX);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += fields[i].name.len + fields[i].value.len;
    assert(bytes <= SECTION_MAX_BYTES);

    struct section *section =
        mem_alloc(sizeof(*section) + count * sizeof(struct field) + bytes);
    section->status = status;
    section->count = count;
    char *at = (char *)(section->fields + count);
    for (size_t i = 0; i < count; i++) {
        struct str name = fields[i].name, value = fields[i].value;
        memcpy(at, name.at, name.len);
        copy_value(at + name.len, value);
        section->fields[i] =
            (struct field){str_of(at, name.len), str_of(at + name.len, value.len)};
        at += name.len + value.len;
    }
    return section;
}

void exchange_head(struct exchange *exchange, int status, const struct field *fields,
                   size_t count) {
    if (exchange->aborted) return;
    assert(!exchange->head_given && !exchange->ended);
    assert(status >= 200 && status <= 599);
    exchange->head_given = true;
    conn_known(exchange->conn);
    exchange->head = section_new(status, fields, count);
    exchange_mark(exchange);
}

void exchange_upgrade(struct exchange *exchange, const struct field *fields, size_t count) {
    if (exchange->aborted) return;
    assert(!exchange->head_given && !exchange->ended && exchange->request_ended);
    assert(exchange->http == EXCHANGE_HTTP_1_1 && !exchange->is_head);
    exchange->head_given = true;
    exchange->head = section_new(101, fields, count);
    exchange_mark(exchange);
}

bool exchange_head_sent(const struct exchange *exchange) {
    return exchange->head_given;
}

void exchange_end(struct exchange *exchange, const struct field *trailers, size_t count) {
    if (exchange->aborted) return;
    assert(exchange->head_given && !exchange->ended);
    count_queued(exchange);
    exchange->ended = true;
    if (count) exchange->trailers = section_new(0, trailers, count);
    exchange_mark(exchange);
}

#define REFUSAL_FIELDS_MAX 8

static void refuse_in_form(struct exchange *exchange, int status,
                           const struct refusal_form *form) {
    struct field fields[REFUSAL_FIELDS_MAX] = {{STR("content-type"), form->content_type}};
    assert(form->always_count < REFUSAL_FIELDS_MAX);
    memcpy(fields + 1, form->always, form->always_count * sizeof(struct field));
    struct buf body;
    buf_init(&body, REFUSAL_MAX_BYTES);
    form->body(status, str_from(status_text(status)), &body);
    exchange_head(exchange, status, fields, form->always_count + 1);
    exchange_send(exchange, buf_str(&body));
    exchange_end(exchange, NULL, 0);
    buf_done(&body);
}

void exchange_refuse(struct exchange *exchange, int status) {
    if (exchange->conn->listener->refusal) {
        refuse_in_form(exchange, status, exchange->conn->listener->refusal);
        return;
    }
    const struct field type = {STR("content-type"), STR("text/plain; charset=utf-8")};
    exchange_head(exchange, status, &type, 1);
    exchange_send(exchange, str_from(status_text(status)));
    exchange_send(exchange, STR("\n"));
    exchange_end(exchange, NULL, 0);
}

void exchange_abort(struct exchange *exchange, enum exchange_abort why) {
    if (exchange->aborted) return;
    exchange->aborted = true;
    exchange->abort_code = why;
    if (why == ABORT_ENHANCE_CALM)
        atomic_fetch_add_explicit(&exchange->conn->home->slow_cut, 1, memory_order_relaxed);
    exchange_mark(exchange);
}

/* --- the response: bytes ------------------------------------------------------------------ */

size_t exchange_queued(const struct exchange *exchange) {
    return exchange->out.len - exchange->out_at;
}

size_t exchange_pressure(const struct exchange *exchange) {
    return conn_is_full(exchange->conn) ? QUEUE_MAX_BYTES : exchange_queued(exchange);
}

struct buf *exchange_out(struct exchange *exchange) {
    if (!exchange->out.at) home_lend_spare(exchange->conn->home, &exchange->out);
    return &exchange->out;
}

void exchange_send(struct exchange *exchange, struct str bytes) {
    if (exchange->aborted) return;
    buf_append(exchange_out(exchange), bytes);
    exchange_touch(exchange);
}

/* Whether nothing of this exchange and its connection waits, so that bytes may leave. Bytes in the
 * queue that were not counted yet are the ones that are about to leave. */
static bool may_leave_now(const struct exchange *exchange) {
    const struct conn *conn = exchange->conn;
    return exchange->counted == 0 && exchange->out_at == 0 && !list_linked(&exchange->dirty) &&
           !exchange->ended && conn->state == CONN_OPEN && !conn->yields &&
           conn_unsent_bytes(conn) == 0;
}

void exchange_send_now(struct exchange *exchange, struct str bytes) {
    const struct protocol *protocol = exchange->conn->protocol;
    if (exchange->aborted || bytes.len == 0) return;
    if (!protocol->send_now || exchange->out.len || !may_leave_now(exchange) ||
        !protocol->send_now(exchange, bytes)) {
        exchange_send(exchange, bytes);
    }
}

void exchange_touch_now(struct exchange *exchange) {
    const struct protocol *protocol = exchange->conn->protocol;
    struct buf *out = &exchange->out;
    bool leaves = protocol->send_now && out->len && buf_ok(out) && !exchange->aborted &&
                  may_leave_now(exchange) && protocol->send_now(exchange, buf_str(out));
    if (leaves) {
        home_take_spare(exchange->conn->home, out);
    } else {
        exchange_touch(exchange);
    }
}

static bool over_limit(const struct exchange *exchange) {
    const struct conn *conn = exchange->conn;
    return conn->queued_bytes + conn_unsent_bytes(conn) > conn->limits->connection_max_bytes &&
           exchange_now_ms(exchange) - conn->progress_ms > OVER_LIMIT_GRACE_MS;
}

/* Whether the connection already knows of queued bytes: the next flush then takes these too. */
static bool is_noted(const struct exchange *exchange) {
    return list_linked(&exchange->dirty) && exchange->counted > 0 && buf_ok(&exchange->out) &&
           !exchange->aborted && !exchange->ended;
}

void exchange_touch(struct exchange *exchange) {
    if (is_noted(exchange)) {
        count_queued(exchange);
        return;
    }
    if (exchange->aborted) {
        exchange->out.len = exchange->out_at + exchange->counted;
        return;
    }
    assert(!exchange->ended || exchange_queued(exchange) == exchange->counted);
    struct conn *conn = exchange->conn;
    bool waited = exchange->counted > 0;
    bool conn_waited = conn->queued_bytes > 0 || conn_unsent_bytes(conn) > 0;
    count_queued(exchange);
    if (exchange->counted == 0) return;
    if (!waited) {
        exchange->progress_ms = exchange_now_ms(exchange);
        pace_begin(&exchange->pace, exchange_now_ms(exchange), exchange->counted);
    }
    if (!conn_waited) conn->progress_ms = exchange_now_ms(exchange);
    if (!buf_ok(&exchange->out) || over_limit(exchange))
        exchange_abort(exchange, ABORT_ENHANCE_CALM);
    exchange_mark(exchange);
}

void exchange_left(struct exchange *exchange, size_t len) {
    exchange->out_at += len;
    assert(exchange->out_at <= exchange->out.len);
    exchange->progress_ms = exchange_now_ms(exchange);
    pace_left(&exchange->pace, len);
    if (exchange->out_at == exchange->out.len) {
        exchange->out_at = 0;
        home_take_spare(exchange->conn->home, &exchange->out);
    } else if (exchange->out_at >= DROP_AT_BYTES && exchange->out_at > exchange->out.len / 2) {
        buf_drop(&exchange->out, exchange->out_at);
        exchange->out_at = 0;
    }
    count_queued(exchange);
    if (exchange->wakes && exchange->counted <= exchange->wake_low) exchange_mark(exchange);
}

void exchange_wake_at(struct exchange *exchange, size_t low) {
    exchange->wakes = true;
    exchange->wake_low = low;
    if (exchange_queued(exchange) <= low) exchange_mark(exchange);
}

void exchange_settle(struct exchange *exchange) {
    count_queued(exchange);
    if (!exchange->wakes || exchange_queued(exchange) > exchange->wake_low) return;
    if (conn_is_full(exchange->conn)) {
        conn_await_room(exchange->conn, exchange);
        return;
    }
    exchange->wakes = false;
    if (exchange->events && exchange->events->on_drained && !exchange->aborted)
        exchange->events->on_drained(exchange, exchange->ctx);
}

/* While the connection holds unsent bytes, its progress counts as the exchange's. */
uint64_t exchange_progress_ms(const struct exchange *exchange) {
    const struct conn *conn = exchange->conn;
    bool behind = conn_unsent_bytes(conn) > 0 && conn->progress_ms > exchange->progress_ms;
    return behind ? conn->progress_ms : exchange->progress_ms;
}

uint64_t exchange_stalled_ms(const struct exchange *exchange) {
    if (exchange_queued(exchange) == 0) return 0;
    return exchange_now_ms(exchange) - exchange_progress_ms(exchange);
}

void exchange_mark(struct exchange *exchange) {
    if (!list_linked(&exchange->dirty)) list_append(&exchange->conn->dirty, &exchange->dirty);
    conn_flush_soon(exchange->conn);
}

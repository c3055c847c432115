#include "fake/exchange_fake.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct exchange {
    struct loop *loop;
    const struct exchange_events *events;
    void *ctx;
    struct task flush;
    int calls; /* functions of exchange.h, or callbacks, that are on the stack */

    char *method, *path, *query; /* NULL once forgotten */
    struct field fields[FAKE_FIELDS_MAX];
    size_t field_count;
    enum exchange_http http;
    enum exchange_reach reach;
    const char *authority;
    bool started, body_ended, authenticated;
    size_t unconsumed;

    int status;
    struct buf head, trailers, out, sent;
    bool ended, closing, closed, left;
    int aborted;
    size_t may_read; /* how much more the peer takes */
    size_t wake_low;
    bool wakes;
    bool waiting; /* bytes were there at the last touch or write */
    uint64_t progress_ms;
};

static void flush(void *ctx);

struct exchange *fake_new(struct loop *loop, const char *method, const char *path) {
    struct exchange *x = MEM_NEW(struct exchange);
    x->loop = loop;
    x->method = str_dup(str_from(method));
    struct str query, plain = str_split(str_from(path), '?', &query);
    x->path = str_dup(plain);
    x->query = query.at ? str_dup(query) : NULL;
    x->http = EXCHANGE_HTTP_2;
    x->authority = "localhost";
    x->aborted = -1;
    x->may_read = SIZE_MAX;
    task_init(&x->flush, flush, x);
    buf_init(&x->head, 64 * KIB);
    buf_init(&x->trailers, 64 * KIB);
    buf_init(&x->out, FAKE_QUEUE_BYTES);
    buf_init(&x->sent, 64 * MIB);
    return x;
}

void fake_room(struct exchange *x, size_t queue_bytes) {
    x->out.max_bytes = queue_bytes;
}

static void forget(struct exchange *x) {
    for (size_t i = 0; i < x->field_count; i++) {
        free((char *)(uintptr_t)x->fields[i].name.at);
        free((char *)(uintptr_t)x->fields[i].value.at);
    }
    x->field_count = 0;
    free(x->method);
    free(x->path);
    free(x->query);
    x->method = x->path = x->query = NULL;
}

void fake_free(struct exchange *x) {
    if (!x) return;
    assert(x->closed || !x->started);
    forget(x);
    buf_done(&x->head);
    buf_done(&x->trailers);
    buf_done(&x->out);
    buf_done(&x->sent);
    free(x);
}

void fake_field(struct exchange *x, const char *name, const char *value) {
    assert(x->field_count < FAKE_FIELDS_MAX && !x->started);
    struct str name_copy = {str_dup(str_from(name)), strlen(name)};
    struct str value_copy = {str_dup(str_from(value)), strlen(value)};
    x->fields[x->field_count++] = (struct field){name_copy, value_copy};
}

void fake_http(struct exchange *x, enum exchange_http http) {
    x->http = http;
}

void fake_listener(struct exchange *x, enum exchange_reach reach, const char *authority) {
    x->reach = reach;
    x->authority = authority;
}

void fake_start(struct exchange *x, exchange_start_fn *start, void *ctx) {
    x->started = true;
    x->calls++;
    start(x, ctx);
    x->calls--;
    assert(x->events);
}

/* --- what the peer does ------------------------------------------------------------------ */

void fake_body(struct exchange *x, struct str bytes) {
    if (x->closed || x->aborted >= 0) return;
    assert(x->started && (!x->body_ended || x->status == 101));
    char *copy = mem_alloc(bytes.len);
    if (bytes.len) memcpy(copy, bytes.at, bytes.len);
    x->unconsumed += bytes.len;
    x->calls++;
    x->events->on_body(x, lent_of(str_of(copy, bytes.len)), x->ctx);
    x->calls--;
    free(copy);
}

void fake_body_end(struct exchange *x) {
    if (x->closed || x->aborted >= 0) return;
    assert(x->started && !x->body_ended);
    x->body_ended = true;
    x->calls++;
    x->events->on_body_end(x, x->ctx);
    x->calls--;
}

void fake_leave(struct exchange *x) {
    x->left = true;
    loop_defer(x->loop, &x->flush);
}

void fake_stop_reading(struct exchange *x) {
    fake_read(x, 0);
}

void fake_read(struct exchange *x, size_t bytes) {
    x->may_read = bytes;
    loop_defer(x->loop, &x->flush);
}

void fake_read_all(struct exchange *x) {
    fake_read(x, SIZE_MAX);
}

void fake_settle(struct loop *loop) {
    loop_turn(loop);
}

/* --- the end of a turn ------------------------------------------------------------------- */

static void write_out(struct exchange *x) {
    size_t len = x->out.len < x->may_read ? x->out.len : x->may_read;
    if (len == 0) return;
    buf_append(&x->sent, str_head(buf_str(&x->out), len));
    buf_drop(&x->out, len);
    if (x->may_read != SIZE_MAX) x->may_read -= len;
    x->progress_ms = loop_now_ms(x->loop);
    x->waiting = x->out.len > 0;
}

static void close_with(struct exchange *x, enum exchange_close how) {
    assert(!x->closed);
    buf_clear(&x->out);
    x->closing = true;
    x->unconsumed = 0;
    x->events->on_closed(x, how, x->ctx);
    x->closed = true;
}

static void flush(void *ctx) {
    struct exchange *x = ctx;
    if (x->closed || !x->started) return;
    assert(x->calls == 0);
    if (x->aborted >= 0) {
        close_with(x, EXCHANGE_ABORTED);
        return;
    }
    if (!x->left) write_out(x);
    if (x->ended && x->out.len == 0) {
        close_with(x, EXCHANGE_COMPLETE);
        return;
    }
    if (x->left) {
        close_with(x, EXCHANGE_PEER_LEFT);
        return;
    }
    if (x->wakes && x->out.len <= x->wake_low) {
        x->wakes = false;
        if (x->events->on_drained) x->events->on_drained(x, x->ctx);
    }
}

/* --- what it saw ------------------------------------------------------------------------- */

int fake_status(const struct exchange *x) {
    return x->status;
}

struct str fake_head(const struct exchange *x) {
    return buf_str(&x->head);
}

struct str fake_sent(const struct exchange *x) {
    return buf_str(&x->sent);
}

struct str fake_trailers(const struct exchange *x) {
    return buf_str(&x->trailers);
}

struct str fake_value(struct str section, const char *name) {
    while (section.len) {
        struct str line = str_split(section, '\n', &section);
        size_t colon = str_find(line, STR(": "));
        if (str_equal(str_head(line, colon), str_from(name))) return str_skip(line, colon + 2);
    }
    return (struct str){NULL, 0};
}

bool fake_ended(const struct exchange *x) {
    return x->ended;
}

bool fake_closed(const struct exchange *x) {
    return x->closed;
}

int fake_aborted(const struct exchange *x) {
    return x->aborted;
}

size_t fake_unconsumed(const struct exchange *x) {
    return x->unconsumed;
}

bool fake_forgotten(const struct exchange *x) {
    return !x->path;
}

bool fake_authenticated(const struct exchange *x) {
    return x->authenticated;
}

/* --- exchange.h -------------------------------------------------------------------------- */

void exchange_accept(struct exchange *x, const struct exchange_events *events, void *ctx) {
    assert(!x->events && x->started);
    x->events = events;
    x->ctx = ctx;
}

struct str exchange_method(const struct exchange *x) {
    return str_from(x->method);
}

struct str exchange_path(const struct exchange *x) {
    return str_from(x->path);
}

struct str exchange_query(const struct exchange *x) {
    return x->query ? str_from(x->query) : (struct str){NULL, 0};
}

struct str exchange_authority(const struct exchange *x) {
    return str_from(x->authority);
}

enum exchange_http exchange_http(const struct exchange *x) {
    return x->http;
}

const struct field *exchange_field(const struct exchange *x, struct str name) {
    for (size_t i = 0; i < x->field_count; i++)
        if (str_equal(x->fields[i].name, name)) return &x->fields[i];
    return NULL;
}

const struct field *exchange_fields(const struct exchange *x, size_t *ret_count) {
    *ret_count = x->field_count;
    return x->fields;
}

int64_t exchange_content_length(const struct exchange *x) {
    const struct field *field = exchange_field(x, STR("content-length"));
    uint64_t len;
    return field && str_to_u64(field->value, &len) ? (int64_t)len : -1;
}

struct str exchange_peer(const struct exchange *x) {
    (void)x;
    return STR("127.0.0.1:51234");
}

struct str exchange_peer_owner(const struct exchange *x) {
    (void)x;
    return STR("peer");
}

bool exchange_peer_is_loopback(const struct exchange *x) {
    (void)x;
    return true;
}

enum exchange_reach exchange_reach(const struct exchange *x) {
    return x->reach;
}

struct loop *exchange_loop(const struct exchange *x) {
    return x->loop;
}

void exchange_forget_request(struct exchange *x) {
    forget(x);
}

void exchange_consumed(struct exchange *x, size_t len) {
    assert(!x->closing && len <= x->unconsumed);
    x->unconsumed -= len;
}

void exchange_authenticated(struct exchange *x) {
    x->authenticated = true;
}

static void render(struct buf *out, const struct field *fields, size_t count) {
    for (size_t i = 0; i < count; i++)
        buf_printf(out, STR_FMT ": " STR_FMT "\n", STR_ARG(fields[i].name),
                   STR_ARG(fields[i].value));
}

static void may_still_send(const struct exchange *x) {
    assert(x->events && !x->ended && !x->closing && x->aborted < 0);
}

void exchange_head(struct exchange *x, int status, const struct field *fields, size_t count) {
    may_still_send(x);
    assert(x->status == 0 && status >= 200 && status <= 599);
    x->status = status;
    render(&x->head, fields, count);
    loop_defer(x->loop, &x->flush);
}

void exchange_upgrade(struct exchange *x, const struct field *fields, size_t count) {
    may_still_send(x);
    assert(x->status == 0 && x->body_ended && x->http == EXCHANGE_HTTP_1_1);
    x->status = 101;
    render(&x->head, fields, count);
    loop_defer(x->loop, &x->flush);
}

bool exchange_head_sent(const struct exchange *x) {
    return x->status != 0;
}

struct buf *exchange_out(struct exchange *x) {
    may_still_send(x);
    return &x->out;
}

void exchange_touch(struct exchange *x) {
    may_still_send(x);
    assert(x->status != 0 && !x->out.full);
    if (!x->waiting) x->progress_ms = loop_now_ms(x->loop);
    x->waiting = x->out.len > 0;
    loop_defer(x->loop, &x->flush);
}

void exchange_send(struct exchange *x, struct str bytes) {
    buf_append(exchange_out(x), bytes);
    exchange_touch(x);
}

void exchange_send_now(struct exchange *x, struct str bytes) {
    if (bytes.len) exchange_send(x, bytes);
}

void exchange_touch_now(struct exchange *x) {
    exchange_touch(x);
}

size_t exchange_queued(const struct exchange *x) {
    return x->out.len;
}

size_t exchange_pressure(const struct exchange *x) {
    return x->out.len;
}

void exchange_wake_at(struct exchange *x, size_t low) {
    x->wake_low = low;
    x->wakes = true;
    loop_defer(x->loop, &x->flush);
}

void exchange_end(struct exchange *x, const struct field *trailers, size_t count) {
    may_still_send(x);
    assert(x->status != 0);
    render(&x->trailers, trailers, count);
    x->ended = true;
    loop_defer(x->loop, &x->flush);
}

void exchange_abort(struct exchange *x, enum exchange_abort why) {
    assert(!x->closing);
    x->aborted = (int)why;
    loop_defer(x->loop, &x->flush);
}

uint64_t exchange_stalled_ms(const struct exchange *x) {
    return x->out.len ? loop_now_ms(x->loop) - x->progress_ms : 0;
}

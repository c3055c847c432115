#include "route/answer.h"

#include "base/arena.h"
#include "base/pool.h"
#include "wire/json.h"
#include "wire/sse.h"

#include <assert.h>

#define ANSWER_MAGIC 0x726f7574u
#define EXTRA_MAX 16
#define EXTRA_MAX_BYTES (64 * KIB)
#define FIELDS_MAX 48
#define DRAIN_MS (10 * 1000)
#define DRAIN_BYTES (64 * KIB)
#define FAILURE_MAX_BYTES (64 * KIB)

static _Thread_local struct pool calls = POOL(sizeof(struct route_call), 256);

/* --- states ------------------------------------------------------------------------------ */

/* clang-format off */
const struct state answer_states[ANSWER_STATE_COUNT] = {
    [ANSWER_COLLECTING] = {"collecting", TO(ANSWER_HANDLING) | TO(ANSWER_ANSWERED) |
                                         TO(ANSWER_GONE)},
    [ANSWER_HANDLING]   = {"handling",   TO(ANSWER_STREAMING) | TO(ANSWER_ANSWERED) |
                                         TO(ANSWER_GONE)},
    [ANSWER_STREAMING]  = {"streaming",  TO(ANSWER_ANSWERED) | TO(ANSWER_GONE)},
    [ANSWER_ANSWERED]   = {"answered",   TO(ANSWER_GONE) | TO(ANSWER_CLOSED)},
    [ANSWER_GONE]       = {"gone",       TO(ANSWER_CLOSED)},
    [ANSWER_CLOSED]     = {"closed",     0},
};
/* clang-format on */

static void route_answer_move(struct route_call *call, enum answer_state next) {
    assert(states_allow(answer_states, call->state, next));
    if (call->state == ANSWER_COLLECTING) timer_stop(&call->slow);
    call->state = (uint8_t)next;
}

/* --- callbacks of the exchange ------------------------------------------------------------ */

/* Whether memory for `len` more bytes is available, if they need any. */
static bool may_grow(const struct buf *body, size_t len, struct err *e) {
    size_t need = body->len + len;
    return need <= body->room || mem_check(need, e);
}

/* A refused HTTP/2 client gets its answer at once, but may finish sending its request before
 * the stream ends. Errors in the rest are still reported, and a reset in the middle would make
 * some clients lose the answer. */
static void answer_drain(struct route_call *call) {
    call->drains = true;
    timer_start(&call->slow, DRAIN_MS);
}

static void answer_drained(struct route_call *call) {
    if (!call->drains) return;
    call->drains = false;
    timer_stop(&call->slow);
    if (!call->aborted) exchange_end(call->exchange, NULL, 0);
}

static void on_body(struct exchange *exchange, struct lent lent, void *ctx) {
    struct route_call *call = ctx;
    assert(call->magic == ANSWER_MAGIC);
    struct str bytes = lent_read(lent);
    if (call->upgraded && call->state == ANSWER_STREAMING) {
        call->watch->received(lent, call->watch_ctx);
        return;
    }
    exchange_consumed(exchange, bytes.len);
    call->received_bytes += bytes.len;
    if (call->drains && call->received_bytes > DRAIN_BYTES) answer_drained(call);
    if (call->state != ANSWER_COLLECTING) return;
    struct err e;
    if (!may_grow(&call->body, bytes.len, &e)) {
        buf_release(&call->body);
        answer_overloaded(call, &e);
    } else if (!buf_append(&call->body, bytes)) {
        buf_release(&call->body);
        call->cuts_short = true;
        route_refuse(call, 413, STR("PAYLOAD_TOO_LARGE"), "the body is larger than %zu bytes",
                     call->table->body_max_bytes);
    }
}

/* A body sent too slowly would hold a connection and a buffer without limit. */
static void on_stretch(void *ctx) {
    struct route_call *call = ctx;
    const struct route_table *table = call->table;
    if (call->drains) {
        answer_drained(call);
        return;
    }
    if (call->body.len - call->stretch_from >= table->body_stretch_bytes) {
        call->stretch_from = call->body.len;
        timer_start(&call->slow, table->body_stretch_ms);
        return;
    }
    buf_release(&call->body);
    call->cuts_short = true;
    route_refuse(call, 408, STR("REQUEST_TIMEOUT"),
                 "the body came slower than %zu bytes in %llu ms", table->body_stretch_bytes,
                 (unsigned long long)table->body_stretch_ms);
}

/* The request is released when the handler returns, because a turn may take minutes. */
static void on_body_end(struct exchange *exchange, void *ctx) {
    struct route_call *call = ctx;
    assert(call->magic == ANSWER_MAGIC);
    answer_drained(call);
    if (call->state != ANSWER_COLLECTING) return;
    route_answer_move(call, ANSWER_HANDLING);
    call->row->handle(call, call->table->ctx);
    buf_done(&call->body);
    exchange_forget_request(exchange);
}

static bool is_answering(const struct route_call *call) {
    return call->state == ANSWER_HANDLING || call->state == ANSWER_STREAMING;
}

static void route_answer_on_drained(struct exchange *exchange, void *ctx) {
    (void)exchange;
    struct route_call *call = ctx;
    assert(call->magic == ANSWER_MAGIC);
    if (is_answering(call) && call->watch && call->watch->drained)
        call->watch->drained(call->watch_ctx);
}

static void report_left(struct route_call *call) {
    route_answer_move(call, ANSWER_GONE);
    if (call->watch && call->watch->left) call->watch->left(call->watch_ctx);
}

static void route_answer_on_closed(struct exchange *exchange, enum exchange_close how,
                                   void *ctx) {
    (void)exchange;
    struct route_call *call = ctx;
    assert(call->magic == ANSWER_MAGIC);
    bool whole = how == EXCHANGE_COMPLETE && call->state == ANSWER_ANSWERED;
    if (whole) {
        if (call->watch && call->watch->closed) call->watch->closed(call->watch_ctx);
    } else if (call->state != ANSWER_GONE) {
        report_left(call);
    }
    route_answer_move(call, ANSWER_CLOSED);
    timer_stop(&call->slow);
    list_remove(&call->link);
    buf_done(&call->body);
    arena_free(call->arena);
    call->magic = 0;
    pool_give(&calls, call);
}

static const struct exchange_events events = {on_body, on_body_end, route_answer_on_drained,
                                              route_answer_on_closed};

struct route_call *answer_new(struct route_site *site, struct exchange *exchange) {
    struct route_call *call = pool_zero(&calls);
    call->magic = ANSWER_MAGIC;
    call->exchange = exchange;
    call->site = site;
    call->table = site->tables[site->table_count - 1];
    call->no_body = str_equal(exchange_method(exchange), STR("HEAD"));
    timer_init(&call->slow, site->loop, on_stretch, call);
    list_append(&site->calls, &call->link);
    exchange_accept(exchange, &events, call);
    return call;
}

void answer_collect(struct route_call *call, const struct route *row) {
    call->row = row;
    const struct route_table *table = call->table;
    buf_init(&call->body, table->body_max_bytes);
    bool timed = (row->needs & (ROUTE_JSON | ROUTE_BODY)) && table->body_stretch_bytes;
    if (timed) timer_start(&call->slow, table->body_stretch_ms);
}

void answer_say_stopping(struct route_call *call) {
    answer_drained(call);
    if (is_answering(call) && call->watch && call->watch->stopping)
        call->watch->stopping(call->watch_ctx);
}

/* Answered calls are left to the server's own deadline. */
void answer_cut(struct route_call *call) {
    if (call->state != ANSWER_COLLECTING && !is_answering(call)) return;
    exchange_abort(call->exchange, ABORT_CANCEL);
    report_left(call);
}

/* --- the head ---------------------------------------------------------------------------- */

struct extra {
    size_t count, room;
    struct field *fields;
};

#define EXTRA_FIRST 4 /* most answers have fewer */

static struct str route_answer_copy(struct route_call *call, struct str text) {
    struct str ret = STR_EMPTY;
    bool fits = arena_str(call->arena, text, &ret);
    assert(fits);
    (void)fits;
    return ret;
}

static struct field *find_extra(struct extra *extra, struct str name) {
    for (size_t i = 0; i < extra->count; i++) {
        if (str_equal_nocase(extra->fields[i].name, name)) return &extra->fields[i];
    }
    return NULL;
}

static struct field *add_extra(struct route_call *call) {
    struct extra *extra = call->extra;
    assert(extra->count < EXTRA_MAX);
    if (extra->count == extra->room) {
        size_t room = extra->room ? 2 * extra->room : EXTRA_FIRST;
        struct field *fields = arena_alloc(call->arena, room * sizeof(struct field));
        assert(fields);
        for (size_t i = 0; i < extra->count; i++) fields[i] = extra->fields[i];
        extra->fields = fields;
        extra->room = room;
    }
    return &extra->fields[extra->count++];
}

void route_field(struct route_call *call, struct str name, struct str value) {
    assert(call->state == ANSWER_COLLECTING || call->state == ANSWER_HANDLING);
    if (!call->arena) call->arena = arena_new(EXTRA_MAX_BYTES);
    if (!call->extra) call->extra = ARENA_NEW(call->arena, struct extra);
    struct field *field = find_extra(call->extra, name);
    if (field && str_equal(field->value, value)) return;
    if (!field) {
        field = add_extra(call);
        field->name = route_answer_copy(call, name);
    }
    field->value = route_answer_copy(call, value);
}

void route_retry_after(struct route_call *call, const struct err *why) {
    char digits[20];
    struct buf seconds = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    if (!why->retry_after_ms) return;
    buf_append_u64(&seconds, (why->retry_after_ms + UINT64_C(999)) / 1000);
    route_field(call, STR("retry-after"), buf_str(&seconds));
}

struct str route_keep(struct route_call *call, struct str text) {
    if (!call->arena) call->arena = arena_new(EXTRA_MAX_BYTES);
    return route_answer_copy(call, text);
}

struct section {
    struct field fields[FIELDS_MAX];
    size_t count;
};

static void add_all(struct section *section, const struct field *fields, size_t count) {
    assert(section->count + count <= FIELDS_MAX);
    for (size_t i = 0; i < count; i++) section->fields[section->count++] = fields[i];
}

static void route_answer_add(struct section *section, struct str name, struct str value) {
    add_all(section, &(struct field){name, value}, 1);
}

/* The fields of every answer of the table, and those added to this one. */
static void add_given(struct section *section, const struct route_call *call) {
    add_all(section, call->table->always, call->table->always_count);
    if (call->extra) add_all(section, call->extra->fields, call->extra->count);
}

/* --- one body ---------------------------------------------------------------------------- */

static bool may_have_body(int status) {
    return status != 204 && status != 304;
}

static void send_reply(struct route_call *call, int status, struct str content_type,
                       struct str body) {
    bool early = call->state == ANSWER_COLLECTING && !call->cuts_short;
    route_answer_move(call, ANSWER_ANSWERED);
    if (call->aborted) return;

    char digits[20];
    struct buf len = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&len, body.len);

    struct section head = {.count = 0};
    add_given(&head, call);
    if (content_type.len) route_answer_add(&head, STR("content-type"), content_type);
    if (may_have_body(status)) route_answer_add(&head, STR("content-length"), buf_str(&len));
    exchange_head(call->exchange, status, head.fields, head.count);
    if (may_have_body(status) && !call->no_body && body.len)
        exchange_send(call->exchange, body);
    if (early && exchange_http(call->exchange) == EXCHANGE_HTTP_2)
        answer_drain(call);
    else
        exchange_end(call->exchange, NULL, 0);
}

void route_reply(struct route_call *call, int status, struct str content_type,
                 struct str body) {
    assert(call->state == ANSWER_HANDLING);
    send_reply(call, status, content_type, body);
}

void answer_empty(struct route_call *call, int status) {
    send_reply(call, status, STR_EMPTY, STR_EMPTY);
}

/* For tables without their own form of failures. */
static void plain_failure_body(const struct route_failure *failure, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_object(&writer, "error");
    json_member_str(&writer, "code", failure->code);
    json_member_str(&writer, "message", failure->message);
    if (failure->details.len) json_member_raw(&writer, "details", failure->details);
    json_close(&writer);
    json_close(&writer);
}

void route_fail(struct route_call *call, const struct route_failure *failure) {
    assert(call->state == ANSWER_COLLECTING || call->state == ANSWER_HANDLING);
    assert(failure->status >= 400 && failure->status <= 599);
    struct buf body;
    buf_init(&body, FAILURE_MAX_BYTES);
    if (call->table->failure_body) {
        call->table->failure_body(failure, &body);
    } else {
        plain_failure_body(failure, &body);
    }
    struct str type = call->table->failure_type;
    send_reply(call, failure->status, type.at ? type : STR("application/json"), buf_str(&body));
    buf_done(&body);
}

#define REFUSAL_MAX_BYTES (2 * KIB)

void route_refuse(struct route_call *call, int status, struct str code, const char *format,
                  ...) {
    struct buf text;
    buf_init(&text, REFUSAL_MAX_BYTES);
    va_list values;
    va_start(values, format);
    buf_vprintf(&text, format, values);
    va_end(values);
    route_fail(call, &(struct route_failure){status, code, buf_str(&text), STR_EMPTY});
    buf_done(&text);
}

void answer_overloaded(struct route_call *call, const struct err *why) {
    call->cuts_short = true;
    route_field(call, STR("retry-after"), STR("1"));
    route_refuse(call, 503, STR("UNAVAILABLE"), STR_FMT, STR_ARG(err_text(why)));
}

/* --- an event stream --------------------------------------------------------------------- */

void route_sse_begin(struct route_call *call) {
    route_pieces_begin(call, STR("text/event-stream"));
}

void route_pieces_begin(struct route_call *call, struct str content_type) {
    const struct field fields[] = {
        {STR("content-type"), content_type},
        {STR("cache-control"), STR("no-cache")},
        {STR("x-accel-buffering"), STR("no")},
    };
    assert(!call->no_body);
    route_answer_move(call, ANSWER_STREAMING);
    if (call->aborted) return;
    struct section head = {.count = 0};
    add_given(&head, call);
    add_all(&head, fields, ARRAY_LEN(fields));
    /* HTTP/2 forbids it, and to HTTP/1.0 the end of the body is the end of the connection. */
    if (exchange_http(call->exchange) == EXCHANGE_HTTP_1_1)
        route_answer_add(&head, STR("connection"), STR("keep-alive"));
    exchange_head(call->exchange, 200, head.fields, head.count);
    arena_free(call->arena); /* the head is sent, and a stream may last long */
    call->arena = NULL;
    call->extra = NULL;
}

bool route_sized_begin(struct route_call *call, int status, struct str content_type,
                       uint64_t len) {
    char digits[20];
    struct buf text = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    struct section head = {.count = 0};
    bool more = !call->no_body;
    buf_append_u64(&text, len);
    route_answer_move(call, more ? ANSWER_STREAMING : ANSWER_ANSWERED);
    if (call->aborted) return more;
    add_given(&head, call);
    route_answer_add(&head, STR("content-type"), content_type);
    route_answer_add(&head, STR("content-length"), buf_str(&text));
    exchange_head(call->exchange, status, head.fields, head.count);
    if (!more) exchange_end(call->exchange, NULL, 0);
    return more;
}

/* Whether a comma-separated list names `token`. */
static bool list_names(struct str list, struct str token) {
    while (list.at) {
        if (str_equal_nocase(str_trim(str_split(list, ',', &list)), token)) return true;
    }
    return false;
}

bool route_wants_upgrade(const struct route_call *call, struct str protocol) {
    struct str connection = lent_read(route_header(call, STR("connection")));
    struct str upgrade = lent_read(route_header(call, STR("upgrade")));
    return exchange_http(call->exchange) == EXCHANGE_HTTP_1_1 &&
           str_equal(exchange_method(call->exchange), STR("GET")) &&
           list_names(connection, STR("upgrade")) && list_names(upgrade, protocol);
}

void route_upgrade(struct route_call *call, struct str protocol) {
    assert(call->watch && call->watch->received);
    route_answer_move(call, ANSWER_STREAMING);
    if (call->aborted) return;
    call->upgraded = true;
    struct section head = {.count = 0};
    add_given(&head, call);
    route_answer_add(&head, STR("upgrade"), protocol);
    exchange_upgrade(call->exchange, head.fields, head.count);
    arena_free(call->arena);
    call->arena = NULL;
    call->extra = NULL;
}

void route_consumed(struct route_call *call, size_t len) {
    exchange_consumed(call->exchange, len);
}

/* An event that does not fit is not sent in part: the reader is cut off before it. */
static bool cut_unless_whole(struct route_call *call, struct buf *out, size_t begin) {
    if (buf_ok(out)) return true;
    out->len = begin;
    out->full = false;
    route_cut(call);
    return false;
}

static void touch(struct route_call *call, struct buf *out, size_t begin) {
    if (cut_unless_whole(call, out, begin) && !call->gathers) exchange_touch(call->exchange);
}

/* Models and tools write values on several lines, which stand in ours as they came. */
static void append_event(struct buf *out, struct str name, struct str id, struct str data) {
    struct json value;
    struct buf line;
    struct err e;
    buf_init(&line, data.len + 1);
    if (!sse_is_line(data) && json_read(data, &value, &e) && json_compact(value.raw, &line))
        data = buf_str(&line);
    sse_append(out, name, id, data);
    buf_done(&line);
}

void route_sse_event(struct route_call *call, struct str name, struct str id, struct str data) {
    assert(call->state == ANSWER_STREAMING);
    if (call->aborted) return;
    struct buf *out = exchange_out(call->exchange);
    size_t begin = out->len;
    append_event(out, name, id, data);
    touch(call, out, begin);
}

struct buf *route_sse_out(struct route_call *call) {
    assert(call->state == ANSWER_STREAMING);
    return call->aborted ? NULL : exchange_out(call->exchange);
}

void route_sse_wrote(struct route_call *call, size_t begin) {
    touch(call, exchange_out(call->exchange), begin);
}

void route_gather(struct route_call *call) {
    call->gathers = true;
}

void route_leave_now(struct route_call *call) {
    call->gathers = false;
    if (!call->aborted) exchange_touch_now(call->exchange);
}

void route_piece(struct route_call *call, struct str bytes) {
    assert(call->state == ANSWER_STREAMING);
    if (call->aborted) return;
    struct buf *out = exchange_out(call->exchange);
    size_t begin = out->len;
    buf_append(out, bytes);
    touch(call, out, begin);
}

void route_piece_now(struct route_call *call, struct str bytes) {
    assert(call->state == ANSWER_STREAMING);
    if (!call->aborted) exchange_send_now(call->exchange, bytes);
}

void route_sse_comment(struct route_call *call, struct str text) {
    assert(call->state == ANSWER_STREAMING);
    if (call->aborted) return;
    struct buf *out = exchange_out(call->exchange);
    size_t begin = out->len;
    sse_append_comment(out, text);
    touch(call, out, begin);
}

void route_sse_end(struct route_call *call) {
    assert(call->state == ANSWER_STREAMING);
    route_answer_move(call, ANSWER_ANSWERED);
    if (!call->aborted) exchange_end(call->exchange, NULL, 0);
}

/* --- asking ------------------------------------------------------------------------------ */

void route_watch(struct route_call *call, const struct route_watch *watch, void *ctx) {
    call->watch = watch;
    call->watch_ctx = ctx;
}

struct exchange *route_exchange(struct route_call *call) {
    return call->exchange;
}

struct loop *route_loop(const struct route_call *call) {
    return call->site->loop;
}

struct lent route_body(const struct route_call *call) {
    return lent_of(buf_str(&call->body));
}

struct lent route_header(const struct route_call *call, struct str lower_case_name) {
    const struct field *field = exchange_field(call->exchange, lower_case_name);
    return lent_of(field ? str_trim(field->value) : (struct str){NULL, 0});
}

size_t route_queued(const struct route_call *call) {
    return exchange_queued(call->exchange);
}

size_t route_pressure(const struct route_call *call) {
    return exchange_pressure(call->exchange);
}

void route_wake_at(struct route_call *call, size_t low) {
    exchange_wake_at(call->exchange, low);
}

uint64_t route_stalled_ms(const struct route_call *call) {
    return exchange_stalled_ms(call->exchange);
}

static void route_abort(struct route_call *call, enum exchange_abort why) {
    if (call->aborted) return;
    call->aborted = true;
    exchange_abort(call->exchange, why);
}

void route_cut(struct route_call *call) {
    route_abort(call, ABORT_ENHANCE_CALM);
}

void route_break(struct route_call *call) {
    route_abort(call, ABORT_INTERNAL);
}

/* HTTP/1.0 and 1.1: one exchange at a time, in order.
 *
 *     HEAD ─▶ BODY ─▶ ANSWER ─▶ HEAD ...      bytes that come during ANSWER wait unparsed
 *       └───────────────┘ no body   │
 *                                   └─▶ RAW    another protocol, after 101
 *     any ─▶ OVER     nothing more is read; what is made leaves, then the connection closes
 */
#include "base/mem.h"
#include "server/conn.h"
#include "server/guard.h"
#include "server/http1_head.h"
#include "server/http1_step.h"
#include "server/single.h"

#include <assert.h>
#include <stdlib.h>

/* Limit for body bytes that the owner has not consumed, and for pipelined bytes kept here;
 * beyond it reading pauses. */
#define BODY_WINDOW_BYTES (64 * KIB)
#define STASH_PAUSE_BYTES (64 * KIB)
#define STASH_MAX_BYTES (STASH_PAUSE_BYTES + HOME_RECEIVE_MAX_BYTES)

/* A body must arrive at 1 KiB per second after 10 s (checks.md, limits): each byte adds a
 * millisecond. */
#define BODY_GRACE_MS 10000

#define TRAILER_NAME_BYTES 64

const struct state http1_steps[HTTP1_STEP_COUNT] = {
    /* clang-format off */
    [HTTP1_HEAD]   = {"head",   TO(HTTP1_BODY) | TO(HTTP1_ANSWER) | TO(HTTP1_OVER)},
    [HTTP1_BODY]   = {"body",   TO(HTTP1_ANSWER) | TO(HTTP1_OVER)},
    [HTTP1_ANSWER] = {"answer", TO(HTTP1_HEAD) | TO(HTTP1_RAW) | TO(HTTP1_OVER)},
    [HTTP1_RAW]    = {"raw",    TO(HTTP1_OVER)},
    [HTTP1_OVER]   = {"over",   0},
    /* clang-format on */
};

struct http1 {
    struct conn *conn;
    enum http1_step step;
    struct guard guard;
    llhttp_t parser;
    struct exchange *exchange; /* the active one */
    uint64_t body_left;        /* of a content-length */
    uint64_t head_ms;          /* when the first byte of the header section arrived */
    uint64_t body_due_ms;
    struct buf partial;  /* an incomplete header section */
    struct buf stash;    /* bytes after the active request ... */
    size_t stash_at;     /* ... and how far it has been read */
    struct buf own;      /* the server's own output: 100, refusals */
    int64_t answer_left; /* bytes still due by the answer's content-length; -1: none was sent */
    bool keeps_alive;
    bool is_chunked;      /* the request */
    bool answer_chunked;  /* the response */
    bool answer_bodiless; /* HEAD, 204, 304 */
    bool answering;       /* the head of the answer was sent */
    bool body_over;       /* llhttp has seen the last chunk */
    struct buf trailer;   /* the name of the trailer being received */
};

/* The only function that writes http1->step. */
static void http1_move(struct http1 *http1, enum http1_step next) {
    assert(states_allow(http1_steps, http1->step, next));
    http1->step = next;
}

static uint64_t http1_now_ms(const struct http1 *http1) {
    return loop_now_ms(http1->conn->home->loop);
}

/* --- refusing ----------------------------------------------------------------------------- */

/* There is no exchange to carry the answer, because the bytes never became a request. */
static void write_refusal(struct http1 *http1, int status) {
    static const struct refusal_form plain = {.content_type =
                                                  STR_INIT("text/plain; charset=utf-8")};
    const struct conn *conn = http1->conn;
    const struct refusal_form *form =
        conn->listener->refusal ? conn->listener->refusal : &plain;
    const char *text = status_text(status);
    struct buf body;
    buf_init(&body, REFUSAL_MAX_BYTES);
    if (form->body)
        form->body(status, str_from(text), &body);
    else
        buf_printf(&body, "%s\n", text);
    buf_printf(&http1->own, "HTTP/1.1 %d %s\r\ncontent-type: " STR_FMT "\r\n", status, text,
               STR_ARG(form->content_type));
    for (size_t i = 0; i < form->always_count; i++) {
        buf_printf(&http1->own, STR_FMT ": " STR_FMT "\r\n", STR_ARG(form->always[i].name),
                   STR_ARG(form->always[i].value));
    }
    buf_printf(&http1->own, "content-length: %zu\r\nconnection: close\r\ndate: ", body.len);
    buf_append(&http1->own, home_date(conn->home));
    buf_append(&http1->own, STR("\r\n\r\n"));
    buf_append(&http1->own, buf_str(&body));
    buf_done(&body);
}

/* Answer with `status` and close, because it is unknown where the next request begins. */
static void http1_refuse(struct http1 *http1, int status) {
    struct conn *conn = http1->conn;
    http1_move(http1, HTTP1_OVER);
    if (http1->answering) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    write_refusal(http1, status);
    conn_finish(conn);
}

/* --- requests: the header section --------------------------------------------------------- */

static const int status_of[] = {
    [GUARD_BAD] = 400,
    [GUARD_TARGET_TOO_LONG] = 414,
    [GUARD_FIELDS_TOO_LARGE] = 431,
};

static int http1_on_body(llhttp_t *parser, const char *at, size_t len) {
    struct http1 *http1 = parser->data;
    http1->body_due_ms += len;
    exchange_give_body(http1->exchange, str_of(at, len));
    return 0;
}

static int on_trailer(llhttp_t *parser, const char *at, size_t len) {
    struct http1 *http1 = parser->data;
    buf_append(&http1->trailer, str_of(at, len));
    return 0;
}

/* A name that is too long for the buffer is not a relevant one. */
static int on_trailer_over(llhttp_t *parser) {
    struct http1 *http1 = parser->data;
    bool fine = !buf_ok(&http1->trailer) || single_may_trail(buf_str(&http1->trailer));
    buf_clear(&http1->trailer);
    return fine ? 0 : -1;
}

static int on_body_over(llhttp_t *parser) {
    struct http1 *http1 = parser->data;
    http1->body_over = true;
    return 0;
}

/* Not const because llhttp keeps a non-const pointer to it. */
static llhttp_settings_t body_settings = {
    .on_body = http1_on_body,
    .on_header_field = on_trailer,
    .on_header_field_complete = on_trailer_over,
    .on_message_complete = on_body_over,
};

static void http1_take_head(struct http1 *http1, struct exchange *exchange,
                            const struct http1_head *head) {
    bool has_body = head->is_chunked || exchange->request->content_length > 0;
    exchange->http = (uint8_t)head->http;
    exchange->is_head = head->is_head;
    exchange->expects_continue = head->expects_continue;
    exchange->wants_trailers = head->wants_trailers;
    exchange->request_ended = !has_body;

    http1->exchange = exchange;
    http1_move(http1, has_body ? HTTP1_BODY : HTTP1_ANSWER);
    http1->is_chunked = head->is_chunked;
    http1->keeps_alive = head->keeps_alive;
    http1->answering = false;
    http1->body_over = false;
    http1->body_due_ms = http1_now_ms(http1) + BODY_GRACE_MS;
    http1->body_left =
        has_body && !head->is_chunked ? (uint64_t)exchange->request->content_length : 0;
    if (!head->is_chunked) return;
    guard_chunks(&http1->guard);
    http1->parser.data = http1;
    http1->parser.settings = &body_settings;
}

/* Three words without a slash begin another protocol: a request line has a target and a
 * version. Such a peer would not understand an HTTP answer, so the connection is just
 * closed. */
static bool is_foreign(struct str section) {
    struct str line = str_head(section, str_find_byte(section, '\r'));
    size_t spaces = 0;
    for (size_t i = 0; i < line.len; i++) spaces += line.at[i] == ' ';
    return spaces == 2 && str_find_byte(line, '/') == line.len;
}

static void http1_begin(struct http1 *http1, struct str section) {
    struct conn *conn = http1->conn;
    struct exchange *exchange = exchange_new(conn, EXCHANGE_HTTP_1_1);
    struct http1_head head = {.request = exchange->request};
    int status = http1_head_read(&head, &http1->parser, section, conn->limits);
    if (status) {
        exchange_close(exchange, EXCHANGE_ABORTED);
        if (is_foreign(section))
            conn_cut(conn, EXCHANGE_ABORTED);
        else
            http1_refuse(http1, status);
        return;
    }
    http1_take_head(http1, exchange, &head);
    exchange_begin(exchange);
    if (http1->step == HTTP1_ANSWER) exchange_give_end(exchange);
}

static size_t read_head(struct http1 *http1, struct str bytes) {
    if (http1->head_ms == CONN_NEVER) http1->head_ms = http1_now_ms(http1);
    size_t used;
    enum guard_verdict verdict = guard_scan(&http1->guard, bytes, &used);
    struct str section = str_head(bytes, used);
    if (verdict != GUARD_MORE && verdict != GUARD_END) {
        http1_refuse(http1, status_of[verdict]);
        return used;
    }
    bool in_pieces = http1->partial.len > 0 || verdict == GUARD_MORE;
    if (in_pieces) {
        buf_append(&http1->partial, section);
        assert(buf_ok(&http1->partial)); /* the guard's limits are lower */
        section = buf_str(&http1->partial);
    }
    if (verdict == GUARD_MORE) return used;
    http1->head_ms = CONN_NEVER;
    http1_begin(http1, section);
    buf_release(&http1->partial);
    return used;
}

/* --- requests: the body ------------------------------------------------------------------- */

static void end_body(struct http1 *http1) {
    http1_move(http1, HTTP1_ANSWER);
    exchange_give_end(http1->exchange);
}

static size_t read_counted(struct http1 *http1, struct str bytes) {
    struct str part = str_head(bytes, http1->body_left);
    http1->body_left -= part.len;
    http1->body_due_ms += part.len;
    exchange_give_body(http1->exchange, part);
    if (http1->body_left == 0) end_body(http1);
    return part.len;
}

/* The guard checks the bytes first, then llhttp decodes them; both must find the same end. */
static size_t read_chunked(struct http1 *http1, struct str bytes) {
    size_t used;
    enum guard_verdict verdict = guard_scan(&http1->guard, bytes, &used);
    bool fits = verdict == GUARD_MORE || verdict == GUARD_END;
    if (fits && llhttp_execute(&http1->parser, bytes.at, used) != HPE_OK) fits = false;
    if (fits && http1->body_over != (verdict == GUARD_END)) fits = false;
    if (!fits)
        http1_refuse(http1, verdict == GUARD_FIELDS_TOO_LARGE ? 431 : 400);
    else if (verdict == GUARD_END)
        end_body(http1);
    return used;
}

static size_t read_raw(struct http1 *http1, struct str bytes) {
    exchange_give_body(http1->exchange, bytes);
    return bytes.len;
}

/* Returns how many bytes were used. Bytes after a request wait for its answer. */
static size_t use_bytes(struct http1 *http1, struct str bytes) {
    size_t used = 0;
    while (used < bytes.len && http1->conn->state == CONN_OPEN) {
        struct str rest = str_skip(bytes, used);
        if (http1->step == HTTP1_HEAD)
            used += read_head(http1, rest);
        else if (http1->step == HTTP1_BODY)
            used += http1->is_chunked ? read_chunked(http1, rest) : read_counted(http1, rest);
        else if (http1->step == HTTP1_RAW && http1->exchange)
            used += read_raw(http1, rest);
        else
            break;
    }
    return used;
}

static void http1_receive(struct conn *conn, struct str bytes) {
    struct http1 *http1 = conn->protocol_state;
    size_t used = http1->stash.len ? 0 : use_bytes(http1, bytes);
    if (conn->state != CONN_OPEN || used == bytes.len) return;
    buf_append(&http1->stash, str_skip(bytes, used));
    assert(buf_ok(&http1->stash)); /* reading pauses before that */
}

/* Parse the bytes kept after the last request: the next one, or the other protocol. */
static void http1_resume(struct http1 *http1) {
    bool reads = http1->step == HTTP1_HEAD || http1->step == HTTP1_RAW;
    if (!reads || http1->stash.len == 0) return;
    http1->stash_at += use_bytes(http1, str_skip(buf_str(&http1->stash), http1->stash_at));
    if (http1->stash_at < http1->stash.len) return;
    buf_release(&http1->stash);
    http1->stash_at = 0;
}

static bool http1_wants_bytes(const struct conn *conn) {
    const struct http1 *http1 = conn->protocol_state;
    if (http1->stash.len >= STASH_PAUSE_BYTES) return false;
    bool windowed = http1->step == HTTP1_BODY || (http1->step == HTTP1_RAW && http1->exchange);
    return !windowed || http1->exchange->unconsumed < BODY_WINDOW_BYTES;
}

static void http1_consumed(struct exchange *exchange, size_t len) {
    struct http1 *http1 = exchange->conn->protocol_state;
    bool was_paused = exchange->unconsumed + len >= BODY_WINDOW_BYTES;
    if (!was_paused || exchange->unconsumed >= BODY_WINDOW_BYTES) return;
    http1->body_due_ms = http1_now_ms(http1) + BODY_GRACE_MS;
    conn_watch(exchange->conn);
}

static void http1_authenticated(struct conn *conn) {
    (void)conn; /* there is only one exchange at a time */
}

/* --- answers: the head -------------------------------------------------------------------- */

static void http1_put(struct gather *gather, struct str name, struct str value) {
    size_t len = name.len + 2 + value.len + 2;
    char *at = gather->at + gather->len;
    assert(len <= gather_room(gather));
    memcpy(at, name.at, name.len);
    at[name.len] = ':';
    at[name.len + 1] = ' ';
    if (value.len) memcpy(at + name.len + 2, value.at, value.len);
    at[len - 2] = '\r';
    at[len - 1] = '\n';
    gather->len += len;
}

#define DIGITS_MAX 20 /* of 64 bits, in decimal */

static void http1_put_number(struct gather *gather, uint64_t number) {
    char text[DIGITS_MAX];
    size_t at = sizeof(text);
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    gather_append(gather, str_of(text + at, sizeof(text) - at));
}

static void put_status(struct gather *gather, int status) {
    gather_append(gather, STR("HTTP/1.1 "));
    http1_put_number(gather, (uint64_t)status);
    gather_append(gather, STR(" "));
    gather_append(gather, str_from(status_text(status)));
    gather_append(gather, STR("\r\n"));
}

struct owner_fields { /* header fields that the owner set */
    bool date;
    struct str connection;
};

static bool wants_close(struct str connection) {
    return str_find_nocase(connection, STR("close")) < connection.len;
}

static struct owner_fields put_fields(struct http1 *http1, struct gather *gather,
                                      const struct section *head) {
    struct owner_fields own = {.connection = STR_EMPTY};
    for (size_t i = 0; i < head->count; i++) {
        struct str name = head->fields[i].name, value = head->fields[i].value;
        if (str_equal(name, STR("connection"))) {
            own.connection = value;
            continue;
        }
        if (str_equal(name, STR("transfer-encoding"))) continue; /* set by us */
        uint64_t length;
        if (str_equal(name, STR("content-length")) && str_to_u64(value, &length))
            http1->answer_left = length <= INT64_MAX ? (int64_t)length : -1;
        if (str_equal(name, STR("date"))) own.date = true;
        http1_put(gather, name, value);
    }
    return own;
}

/* Write how the peer finds the end of the body. */
static void put_framing(struct http1 *http1, struct gather *gather) {
    const struct exchange *exchange = http1->exchange;
    bool trails = exchange->trailers && exchange->wants_trailers;
    bool modern = exchange->http == EXCHANGE_HTTP_1_1;
    if (http1->answer_bodiless || http1->answer_left >= 0) return;
    if (exchange->ended && !(trails && modern)) {
        http1->answer_left = (int64_t)exchange_queued(exchange);
        gather_append(gather, STR("content-length: "));
        http1_put_number(gather, (uint64_t)http1->answer_left);
        gather_append(gather, STR("\r\n"));
    } else if (modern) {
        http1->answer_chunked = true;
        http1_put(gather, STR("transfer-encoding"), STR("chunked"));
    } else {
        http1->keeps_alive = false;
    }
}

/* The connection ends with the other protocol. */
static void put_upgrade(struct http1 *http1, struct gather *gather) {
    http1_move(http1, HTTP1_RAW);
    http1->keeps_alive = false;
    http1_put(gather, STR("connection"), STR("upgrade"));
}

static void put_framed(struct http1 *http1, struct gather *gather,
                       const struct owner_fields *own) {
    const struct exchange *exchange = http1->exchange;
    put_framing(http1, gather);
    if (!own->date) http1_put(gather, STR("date"), home_date(http1->conn->home));
    bool cut_short = exchange->ended && !exchange->request_ended;
    if (cut_short || http1->conn->stopping || wants_close(own->connection))
        http1->keeps_alive = false;
    if (!http1->keeps_alive)
        http1_put(gather, STR("connection"), STR("close"));
    else if (exchange->http == EXCHANGE_HTTP_1_0)
        http1_put(gather, STR("connection"), STR("keep-alive"));
    else if (own->connection.len)
        http1_put(gather, STR("connection"), own->connection);
}

static void http1_put_head(struct http1 *http1, struct gather *gather) {
    struct exchange *exchange = http1->exchange;
    struct section *head = exchange->head;
    int status = head->status;
    http1->answering = true;
    http1->answer_chunked = false;
    http1->answer_left = -1;
    http1->answer_bodiless = exchange->is_head || status == 204 || status == 304;

    put_status(gather, status);
    struct owner_fields own = put_fields(http1, gather, head);
    if (status == 101)
        put_upgrade(http1, gather);
    else
        put_framed(http1, gather, &own);
    gather_append(gather, STR("\r\n"));

    free(head);
    exchange->head = NULL;
}

/* --- answers: the body -------------------------------------------------------------------- */

#define CHUNK_FRAME_BYTES (DIGITS_MAX + 2 + 2)

static char *put_hex(char *at, size_t number) {
    unsigned shift = 0;
    while (number >> shift > 15) shift += 4;
    for (;; shift -= 4) {
        *at++ = "0123456789abcdef"[number >> shift & 15];
        if (shift == 0) return at;
    }
}

/* In one go: most chunks are a token's. */
static void put_chunk(struct gather *gather, struct str bytes) {
    char *begin = gather->at + gather->len;
    assert(bytes.len && bytes.len + CHUNK_FRAME_BYTES <= gather_room(gather));
    char *at = put_hex(begin, bytes.len);
    *at++ = '\r';
    *at++ = '\n';
    memcpy(at, bytes.at, bytes.len);
    at += bytes.len;
    *at++ = '\r';
    *at++ = '\n';
    gather->len += (size_t)(at - begin);
}

static void http1_put_body(struct http1 *http1, struct gather *gather) {
    struct exchange *exchange = http1->exchange;
    struct str unsent = exchange_unsent(exchange);
    if (unsent.len == 0 || gather_full(gather)) return;
    struct str part = str_head(unsent, HOME_GATHER_BYTES - gather->len);
    if (http1->answer_bodiless) {
        part = unsent;
    } else if (http1->answer_chunked) {
        put_chunk(gather, part);
    } else if (http1->answer_left >= 0) {
        /* Bytes beyond the announced length would be read as the next answer. */
        if (part.len > (uint64_t)http1->answer_left) part = unsent;
        struct str announced = str_head(part, (size_t)http1->answer_left);
        http1->answer_left -= (int64_t)announced.len;
        if (announced.len < part.len) http1->keeps_alive = false;
        gather_append(gather, announced);
    } else {
        gather_append(gather, part);
    }
    exchange_left(exchange, part.len);
}

#define NOW_MAX_BYTES (16 * KIB) /* larger ones are not worth a stack */

/* Only what has the simplest form: a chunk. */
static bool http1_send_now(struct exchange *exchange, struct str bytes) {
    const struct http1 *http1 = exchange->conn->protocol_state;
    char room[NOW_MAX_BYTES + CHUNK_FRAME_BYTES];
    bool plain = http1->exchange == exchange && http1->answering && http1->answer_chunked &&
                 !http1->answer_bodiless && http1->own.len == 0;
    if (!plain || bytes.len > NOW_MAX_BYTES) return false;
    struct gather chunk = {.at = room};
    put_chunk(&chunk, bytes);
    return conn_send_now(exchange->conn, str_of(room, chunk.len));
}

static void put_end(struct http1 *http1, struct gather *gather) {
    const struct exchange *exchange = http1->exchange;
    if (!http1->answer_chunked) return;
    gather_append(gather, STR("0\r\n"));
    const struct section *trailers = exchange->wants_trailers ? exchange->trailers : NULL;
    for (size_t i = 0; trailers && i < trailers->count; i++)
        http1_put(gather, trailers->fields[i].name, trailers->fields[i].value);
    gather_append(gather, STR("\r\n"));
}

/* Whether the answer is complete now. */
static bool put_answer(struct http1 *http1, struct gather *gather) {
    struct exchange *exchange = http1->exchange;
    if (exchange->head) http1_put_head(http1, gather);
    if (!http1->answering) return false;
    http1_put_body(http1, gather);
    if (!exchange->ended || exchange_queued(exchange) > 0) return false;
    put_end(http1, gather);
    return true;
}

static void end_exchange(struct http1 *http1) {
    struct conn *conn = http1->conn;
    struct exchange *exchange = http1->exchange;
    bool owes = http1->answer_left > 0 && !http1->answer_bodiless;
    bool goes_on = http1->keeps_alive && exchange->request_ended && !conn->stopping && !owes;
    http1_move(http1, goes_on ? HTTP1_HEAD : HTTP1_OVER);
    http1->answering = false;
    guard_head(&http1->guard, conn->limits);
    exchange_close(exchange, EXCHANGE_COMPLETE);
    if (!goes_on) conn_finish(conn);
}

static void put_own(struct http1 *http1, struct gather *gather) {
    if (http1->own.len == 0) return;
    gather_append(gather, buf_str(&http1->own));
    buf_release(&http1->own);
}

static void http1_gather(struct conn *conn, struct gather *gather) {
    struct http1 *http1 = conn->protocol_state;
    put_own(http1, gather);
    while (conn->state == CONN_OPEN && !gather_full(gather)) {
        if (!http1->exchange) http1_resume(http1);
        if (!http1->exchange || !put_answer(http1, gather)) break;
        end_exchange(http1);
    }
    if (http1->step == HTTP1_RAW) http1_resume(http1);
    put_own(http1, gather); /* the request may have been refused just now */
}

/* --- the rest ----------------------------------------------------------------------------- */

static void http1_start(struct conn *conn) {
    struct http1 *http1 = MEM_NEW(struct http1);
    http1->conn = conn;
    conn->protocol_state = http1;
    buf_init(&http1->partial, conn->limits->target_max_bytes + conn->limits->fields_max_bytes +
                                  4 * conn->limits->fields_max + 1 * KIB);
    buf_init(&http1->stash, STASH_MAX_BYTES);
    buf_init(&http1->own, 4 * KIB);
    buf_init(&http1->trailer, TRAILER_NAME_BYTES);
    guard_head(&http1->guard, conn->limits);
    http1->head_ms = conn->opened_ms;
}

static void http1_free(struct conn *conn) {
    struct http1 *http1 = conn->protocol_state;
    buf_done(&http1->partial);
    buf_done(&http1->stash);
    buf_done(&http1->own);
    buf_done(&http1->trailer);
    free(http1);
}

static void http1_forget(struct exchange *exchange) {
    struct http1 *http1 = exchange->conn->protocol_state;
    if (http1->exchange == exchange) http1->exchange = NULL;
}

static void http1_settle(struct conn *conn) {
    struct http1 *http1 = conn->protocol_state;
    struct exchange *exchange = http1->exchange;
    if (!exchange || !list_linked(&exchange->dirty)) return;
    list_remove(&exchange->dirty);
    if (exchange->aborted) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    bool waits = exchange->expects_continue && !exchange->body_came && !exchange->head_given;
    exchange->expects_continue = false;
    if (waits) buf_append(&http1->own, STR("HTTP/1.1 100 Continue\r\n\r\n"));
    exchange_settle(exchange);
}

static void http1_shut_down(struct conn *conn) {
    struct http1 *http1 = conn->protocol_state;
    http1->keeps_alive = false;
    if (http1->step != HTTP1_HEAD || guard_began(&http1->guard)) return;
    /* Between two requests a reset cannot destroy an answer, so do not linger. */
    if (conn_unsent_bytes(conn))
        conn_finish(conn);
    else
        conn_cut(conn, EXCHANGE_ABORTED);
}

static uint64_t http1_due_ms(const struct conn *conn) {
    const struct http1 *http1 = conn->protocol_state;
    if (http1->step == HTTP1_HEAD && http1->head_ms != CONN_NEVER)
        return http1->head_ms + conn->limits->header_timeout_ms;
    if (http1->step == HTTP1_BODY && http1_wants_bytes(conn)) return http1->body_due_ms;
    return CONN_NEVER;
}

static void http1_overdue(struct conn *conn) {
    http1_refuse(conn->protocol_state, 408);
}

const struct protocol protocol_http1 = {
    .name = "http/1.1",
    .start = http1_start,
    .free = http1_free,
    .receive = http1_receive,
    .settle = http1_settle,
    .gather = http1_gather,
    .send_now = http1_send_now,
    .forget = http1_forget,
    .consumed = http1_consumed,
    .authenticated = http1_authenticated,
    .wants_bytes = http1_wants_bytes,
    .shut_down = http1_shut_down,
    .due_ms = http1_due_ms,
    .overdue = http1_overdue,
};

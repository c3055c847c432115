#include "client/h2.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "client/dial.h"
#include "tls/visit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

/* Limit of one write; one frame may exceed it. */
#define WRITE_BYTES (64 * KIB)

/* With room for TLS's own records. */
#define OUT_MAX_BYTES (2 * WRITE_BYTES + 4 * RECORDS_ROOM_BYTES)

struct h2 {
    struct list link; /* in place->shared, until it is closed */
    struct place *place;
    enum h2_state state;
    struct text host;
    uint16_t port;
    bool secure;
    enum http_reach reach; /* the rule its address was checked by */
    struct visit visit;    /* TLS, once it was started */
    struct secure_wait wait;
    struct dial *dial;
    uv_poll_t poll;
    int fd, events; /* events: what the loop watches for */
    struct h2_session *session;
    struct task settle; /* sends the output, and acts on the result */
    struct timer timer; /* until OPEN: to connect; then keepalive, or idle too long */
    struct buf out;     /* unsent; encrypted if secure */
    size_t out_at;
    uint64_t connect_ms, keepalive_ms, answer_ms;
    uint64_t heard_ms; /* when bytes last arrived */
    uint64_t idle_ms;  /* when its last call ended; 0: it has calls, or had none yet */
    bool pinged;       /* only the answer to a ping has arrived since */
    bool adopted; /* of requests that could go elsewhere: a ping without an answer ends none */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state h2_states[H2_STATE_COUNT] = {
    [H2_DIALLING] = {"dialling", TO(H2_SECURING) | TO(H2_OPEN) | TO(H2_CLOSED)},
    [H2_SECURING] = {"securing", TO(H2_OPEN) | TO(H2_CLOSED)},
    [H2_OPEN] = {"open", TO(H2_DRAINING) | TO(H2_CLOSED)},
    [H2_DRAINING] = {"draining", TO(H2_CLOSED)},
    [H2_CLOSED] = {"closed", 0},
};

/* The only function that writes h2->state. */
static void h2_move(struct h2 *h2, enum h2_state next) {
    assert(states_allow(h2_states, h2->state, next));
    h2->state = next;
}

/* --- the end ------------------------------------------------------------------------------ */

static void h2_free(struct h2 *h2) {
    h2_session_free(h2->session);
    visit_done(&h2->visit);
    buf_done(&h2->out);
    text_done(&h2->host);
    free(h2);
}

static void h2_on_closed(uv_handle_t *handle) {
    h2_free(handle->data);
}

static bool send_out(struct h2 *h2);

/* Tell the server that the end is intended. If there is no room for it, closing the socket must
 * do. */
static void say_end(struct h2 *h2) {
    if (h2->fd < 0 || !h2->visit.records || h2->out.len) return;
    if (!records_are_open(h2->visit.records)) return;
    records_end(h2->visit.records, &h2->out);
    if (h2->out.len) (void)send_out(h2);
}

/* The connection is closed and off its list before its calls get the report, because they may start
 * others. */
static void h2_break(struct h2 *h2, const struct err *why) {
    h2_move(h2, H2_CLOSED);
    list_remove(&h2->link);
    timer_stop(&h2->timer);
    secure_wait_cancel(&h2->wait);
    dial_cancel(h2->dial);
    h2->dial = NULL;
    say_end(h2);
    h2_session_break(h2->session, why);
    task_cancel(&h2->settle);
    if (h2->fd < 0) {
        h2_free(h2);
        return;
    }
    uv_close((uv_handle_t *)&h2->poll, h2_on_closed);
    close(h2->fd);
    h2->fd = -1;
}

static void h2_break_at(struct h2 *h2, const char *text, const char *detail) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "%s%s%s%s", text, detail ? " (" : "", detail ? detail : "",
            detail ? ")" : "");
    h2_break(h2, &why);
}

/* Close it; it has no calls. */
static void h2_close(struct h2 *h2) {
    h2_break_at(h2, "the connection is not used any more", NULL);
}

void h2_close_all(struct place *place) {
    LIST_EACH(&place->shared, link) h2_close(CONTAINER_OF(link, struct h2, link));
}

/* --- sending ------------------------------------------------------------------------------ */

static void h2_on_ready(uv_poll_t *poll, int status, int events);

static void h2_watch(struct h2 *h2) {
    int events = UV_READABLE | (h2->out.len > h2->out_at ? UV_WRITABLE : 0);
    if (events == h2->events) return;
    h2->events = events;
    uv_poll_start(&h2->poll, events, h2_on_ready);
}

/* If encryption fails, the connection is lost; the next read reports it. */
static void h2_gather(struct h2 *h2) {
    struct str frame;
    while (h2->out.len < WRITE_BYTES && (frame = h2_session_pull(h2->session)).len) {
        if (h2->visit.records)
            (void)!records_seal(h2->visit.records, frame, &h2->out);
        else
            buf_append(&h2->out, frame);
    }
}

/* Whether everything was sent. A peer that stopped reading may have answered, which is known
 * when reading ends. */
static bool send_out(struct h2 *h2) {
    struct str rest = str_skip(buf_str(&h2->out), h2->out_at);
    ssize_t sent;
    do {
        sent = send(h2->fd, rest.at, rest.len, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
    h2->out_at += sent < 0 ? rest.len : (size_t)sent;
    if (h2->out_at < h2->out.len) return false;
    buf_release(&h2->out);
    h2->out_at = 0;
    return sent >= 0;
}

static void h2_send(struct h2 *h2) {
    do {
        if (!h2->out.len && h2->state != H2_SECURING) h2_gather(h2);
    } while (h2->out.len && send_out(h2));
    h2_watch(h2);
}

/* --- its time ----------------------------------------------------------------------------- */

static uint64_t h2_due_ms(const struct h2 *h2) {
    if (h2->idle_ms) return h2->idle_ms + PLACE_IDLE_MS;
    if (h2_session_ping_waits(h2->session) && !h2->adopted) return h2->heard_ms + h2->answer_ms;
    return h2->heard_ms + (h2->pinged ? H2_KEEPALIVE_APART_MS : h2->keepalive_ms);
}

/* heard_ms moves on with each read; the timer is moved only when it fires. */
static void h2_rearm(struct h2 *h2) {
    uint64_t now = loop_now_ms(h2->place->loop), due = h2_due_ms(h2);
    timer_start(&h2->timer, due > now ? due - now : 0);
}

static void h2_on_timer(void *ctx) {
    struct h2 *h2 = ctx;
    if (h2->state == H2_DIALLING || h2->state == H2_SECURING) {
        struct err why;
        err_set(&why, ERR_DEADLINE_EXCEEDED, "no connection in time");
        h2_break(h2, &why);
    } else if (h2_due_ms(h2) > loop_now_ms(h2->place->loop)) {
        h2_rearm(h2);
    } else if (h2->idle_ms) {
        h2_close(h2);
    } else if (h2_session_ping_waits(h2->session) && h2->adopted) {
        h2->heard_ms = loop_now_ms(h2->place->loop); /* its calls have limits of their own */
        h2_rearm(h2);
    } else if (h2_session_ping_waits(h2->session)) {
        h2_break_at(h2, "the server does not answer any more, not even a ping", NULL);
    } else {
        h2->pinged = true;
        h2->heard_ms = loop_now_ms(h2->place->loop); /* the time to answer starts now */
        h2_session_ping(h2->session);
        h2_rearm(h2);
    }
}

/* --- after everything that happens -------------------------------------------------------- */

/* Close the one that has been idle for longest, if there are too many. */
static void limit_idle(const struct place *place) {
    struct h2 *oldest = NULL;
    size_t count = 0;
    LIST_EACH(&place->shared, link) {
        struct h2 *h2 = CONTAINER_OF(link, struct h2, link);
        if (!h2->idle_ms || h2_session_streams(h2->session)) continue;
        count++;
        if (!oldest || h2->idle_ms < oldest->idle_ms) oldest = h2;
    }
    if (count > PLACE_IDLE_MAX) h2_close(oldest);
}

static void note_idle(struct h2 *h2) {
    bool idle = h2_session_streams(h2->session) == 0;
    if (idle == (h2->idle_ms != 0)) return;
    if (idle && h2->visit.records)
        records_release_buffers(h2->visit.records);
    else if (h2->visit.records)
        records_keep_buffers(h2->visit.records);
    h2->idle_ms = idle ? loop_now_ms(h2->place->loop) : 0;
    h2->heard_ms = loop_now_ms(h2->place->loop);
    h2_rearm(h2);
    if (idle) limit_idle(h2->place);
}

static void on_settle(void *ctx) {
    struct h2 *h2 = ctx;
    bool used = h2_session_streams(h2->session) > 0;
    if (h2->state == H2_DIALLING || h2->state == H2_SECURING) {
        if (!used) h2_close(h2); /* it has no call any more */
        return;
    }
    h2_send(h2);
    if (h2->state == H2_OPEN && h2_session_drains(h2->session)) h2_move(h2, H2_DRAINING);
    if (h2_session_over(h2->session)) {
        h2_break_at(h2, "the connection was ended", h2_session_farewell(h2->session));
    } else if (h2->state == H2_DRAINING && !used) {
        h2_close(h2);
    } else {
        note_idle(h2);
    }
}

static void h2_on_output(void *ctx) {
    struct h2 *h2 = ctx;
    if (h2->state != H2_CLOSED) loop_defer(h2->place->loop, &h2->settle);
}

/* --- receiving ---------------------------------------------------------------------------- */

/* False: the connection is closed. */
static bool h2_take(struct h2 *h2, struct str bytes) {
    struct err why;
    h2->heard_ms = loop_now_ms(h2->place->loop);
    if (!h2_session_ping_waits(h2->session)) h2->pinged = false;
    loop_defer(h2->place->loop, &h2->settle);
    if (h2_session_feed(h2->session, bytes, &why)) return true;
    h2_send(h2); /* our reaction to it */
    h2_break(h2, &why);
    return false;
}

/* --- TLS ---------------------------------------------------------------------------------- */

static void h2_open(struct h2 *h2) {
    h2_move(h2, H2_OPEN);
    if (h2->visit.records) records_keep_buffers(h2->visit.records);
    h2->heard_ms = loop_now_ms(h2->place->loop);
    h2_rearm(h2);
    loop_defer(h2->place->loop, &h2->settle);
}

/* The handshake is over. False: the connection is closed. */
static bool h2_secured(struct h2 *h2) {
    if (visit_protocol(&h2->visit) == VISIT_HTTP_2) {
        h2_open(h2);
        return true;
    }
    h2_break_at(h2, "the server does not offer HTTP/2 over TLS, which gRPC needs",
                "it did not choose h2 by ALPN");
    return false;
}

/* False: the connection is closed. */
static bool h2_unseal(struct h2 *h2, struct str sealed) {
    struct buf *plain = &h2->place->secure.plain;
    struct err why;
    buf_clear(plain);
    enum records_verdict verdict = records_receive(h2->visit.records, sealed, plain, &h2->out);
    bool through = h2->state == H2_SECURING && records_are_open(h2->visit.records);
    if (through && !h2_secured(h2)) return false;
    h2_send(h2);
    if (plain->len && !h2_take(h2, buf_str(plain))) return false;
    if (verdict == RECORDS_FINE) return true;
    if (verdict == RECORDS_ENDED) {
        h2_break_at(h2, "the server closed the connection", h2_session_farewell(h2->session));
    } else {
        visit_explain(&h2->visit, &why);
        h2_break(h2, &why);
    }
    return false;
}

static void h2_secure(struct h2 *h2, const struct trust *trust) {
    const struct visit_options options = {.host = text_str(h2->host),
                                          .protocols = VISIT_HTTP_2};
    visit_init(&h2->visit, trust, &options);
    (void)h2_unseal(h2, STR_EMPTY);
}

static void on_trust(struct trust *trust, const struct err *why, void *ctx) {
    struct h2 *h2 = ctx;
    if (trust)
        h2_secure(h2, trust);
    else
        h2_break(h2, why);
}

/* One read per wake-up, so that one busy peer does not delay the others. */
static bool h2_read_some(struct h2 *h2) {
    struct place *place = h2->place;
    if (!place->read) place->read = mem_alloc(PLACE_READ_BYTES);
    ssize_t len = recv(h2->fd, place->read, PLACE_READ_BYTES, 0);
    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
    struct str bytes = str_of(place->read, len > 0 ? (size_t)len : 0);
    if (len > 0) return h2->secure ? h2_unseal(h2, bytes) : h2_take(h2, bytes);
    const char *farewell = h2_session_farewell(h2->session);
    if (!farewell && len < 0) farewell = strerrordesc_np(errno);
    h2_break_at(h2,
                h2->state == H2_SECURING
                    ? "the server closed the connection in the TLS handshake"
                    : "the server closed the connection",
                farewell);
    return false;
}

static void h2_on_ready(uv_poll_t *poll, int status, int events) {
    struct h2 *h2 = poll->data;
    if (h2->state == H2_CLOSED) return;
    if (status < 0) { /* libuv has stopped watching; the read reports the error */
        h2->events = 0;
        events = UV_READABLE;
    }
    if (events & UV_WRITABLE) h2_send(h2);
    if (!(events & UV_READABLE) || h2_read_some(h2)) h2_watch(h2);
}

/* --- its beginning ------------------------------------------------------------------------ */

static void h2_attach(struct h2 *h2, int fd) {
    int failed = uv_poll_init(loop_uv(h2->place->loop), &h2->poll, fd);
    assert(failed == 0); /* the descriptor is nonblocking and has no other handle */
    (void)failed;
    h2->poll.data = h2;
    h2->fd = fd;
}

static void h2_on_dialled(int fd, const struct err *why, void *ctx) {
    struct h2 *h2 = ctx;
    h2->dial = NULL;
    if (fd < 0) {
        h2_break(h2, why);
        return;
    }
    h2_attach(h2, fd);
    if (!h2->secure) {
        h2_open(h2);
        return;
    }
    h2_move(h2, H2_SECURING);
    struct trust *trust = secure_trust(&h2->place->secure);
    if (trust)
        h2_secure(h2, trust);
    else
        secure_await(&h2->place->secure, &h2->wait);
}

static uint64_t or_usual(uint64_t ms, uint64_t usual_ms) {
    return ms ? ms : usual_ms;
}

static struct h2 *h2_make(struct place *place, const struct h2_server *server,
                          enum h2_opening opening) {
    struct h2 *h2 = MEM_NEW(struct h2);
    h2->place = place;
    h2->host = text_copy(server->host);
    h2->port = server->port;
    h2->secure = server->secure;
    h2->reach = HTTP_ANYWHERE;
    h2->fd = -1;
    h2->keepalive_ms = or_usual(server->keepalive_ms, H2_KEEPALIVE_MS);
    h2->answer_ms = or_usual(server->keepalive_answer_ms, H2_KEEPALIVE_ANSWER_MS);
    task_init(&h2->settle, on_settle, h2);
    timer_init(&h2->timer, place->loop, h2_on_timer, h2);
    secure_wait_init(&h2->wait, on_trust, h2);
    buf_init(&h2->out, OUT_MAX_BYTES);
    h2->session = h2_session_new(opening, h2_on_output, h2);
    list_append(&place->shared, &h2->link);
    return h2;
}

static struct h2 *h2_new(struct place *place, const struct h2_server *server) {
    struct h2 *h2 = h2_make(place, server, H2_ASKS_AT_ONCE);
    timer_start(&h2->timer, or_usual(server->connect_ms, H2_CONNECT_MS));
    h2->dial = dial_new(place, server->host, server->port, HTTP_ANYWHERE, h2_on_dialled, h2);
    return h2;
}

static bool h2_leads_to(const struct h2 *h2, struct str host, uint16_t port, bool secure) {
    return h2->port == port && h2->secure == secure &&
           str_equal_nocase(text_str(h2->host), host);
}

static struct h2 *h2_find(struct place *place, const struct h2_server *server) {
    LIST_EACH(&place->shared, link) {
        struct h2 *h2 = CONTAINER_OF(link, struct h2, link);
        bool leads_there = h2_leads_to(h2, server->host, server->port, server->secure);
        if (leads_there && h2->state != H2_DRAINING && !h2_session_drains(h2->session))
            return h2;
    }
    return NULL;
}

struct h2_stream *h2_start(struct place *place, const struct h2_server *server,
                           const struct h2_head *head, const struct h2_events *events,
                           void *ctx) {
    struct h2 *h2 = h2_find(place, server);
    if (!h2) h2 = h2_new(place, server);
    return h2_stream_new(h2->session, head, events, ctx);
}

/* --- requests that may go elsewhere, too -------------------------------------------------- */

struct h2 *h2_find_room(struct place *place, const struct url *url, enum http_reach reach) {
    LIST_EACH(&place->shared, link) {
        struct h2 *h2 = CONTAINER_OF(link, struct h2, link);
        if (h2->state == H2_OPEN && h2->reach >= reach && (h2->secure || h2->adopted) &&
            h2_leads_to(h2, url->host, url->port, url->secure) &&
            h2_session_has_room(h2->session))
            return h2;
    }
    return NULL;
}

static void h2_on_ticket(struct ssl_session_st *ticket, void *ctx) {
    struct h2 *h2 = ctx;
    struct place *place = h2->place;
    tickets_put(&place->secure.tickets, text_str(h2->host), h2->port, ticket,
                loop_now_ms(place->loop));
}

struct h2 *h2_adopt(struct place *place, const struct url *url, enum http_reach reach,
                    const struct link_rest *rest, struct err *e) {
    const struct h2_server server = {
        .host = url->host, .port = url->port, .secure = rest->visit != NULL};
    struct h2 *h2 =
        h2_make(place, &server, rest->visit ? H2_ASKS_AT_ONCE : H2_ASKS_AFTER_SETTINGS);
    h2->reach = reach;
    h2->adopted = true;
    h2_attach(h2, rest->fd);
    if (rest->visit) {
        visit_move(&h2->visit, rest->visit, h2_on_ticket, h2);
        records_keep_buffers(h2->visit.records);
    }
    buf_append(&h2->out, rest->unsent);
    h2_move(h2, H2_OPEN);
    h2->heard_ms = loop_now_ms(place->loop);
    h2_rearm(h2);
    loop_defer(place->loop, &h2->settle);
    if (!rest->received.len || h2_session_feed(h2->session, rest->received, e)) return h2;
    h2_break(h2, e);
    return NULL;
}

bool h2_is_secure(const struct h2 *h2) {
    return h2->secure;
}

struct h2_stream *h2_start_on(struct h2 *h2, const struct h2_head *head,
                              const struct h2_events *events, void *ctx) {
    return h2_stream_new(h2->session, head, events, ctx);
}

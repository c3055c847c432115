#include "client/link.h"

#include "base/mem.h"
#include "client/acks.h"
#include "tls/visit.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

/* A body up to this size is sent together with its head. */
#define JOIN_BYTES (16 * KIB)

/* Of a longer body, this much is encrypted at once: a few records. */
#define SEAL_BYTES (64 * KIB)

/* With room for what TLS adds. */
#define OUT_RAW_BYTES (2 * LINK_UNSENT_MAX_BYTES)

/* The most that one read can produce. */
#define UNREAD_MAX_BYTES (PLACE_READ_BYTES + 2 * RECORDS_ROOM_BYTES)

struct link {
    struct place *place;
    uv_poll_t poll;
    int fd, events; /* events the loop watches for */
    enum link_state state;
    struct list idle;   /* in place->idle */
    struct timer timer; /* runs while idle, up to the maximum age */
    uint64_t idle_ms;   /* when it became idle */
    struct task task;   /* starts a new link */

    /* The server. */
    struct text host;
    uint16_t port;
    bool secure;
    enum http_reach reach; /* the rule its address was checked by */
    struct visit visit;    /* TLS, once started */
    struct secure_wait wait;
    enum records_verdict verdict; /* when bytes last came, even if they are still unread */

    const struct link_events *to; /* the current call's */
    void *ctx;
    struct http1_response response;
    struct buf out; /* not sent yet: of the request (encrypted with TLS), and TLS's own bytes */
    size_t out_at;
    struct str body;   /* of the request: not sent or encrypted yet */
    struct buf unread; /* of the response, during a pause */
    struct acks acks;
    bool paused;
    bool reused;      /* it has carried an earlier request */
    bool written;     /* by link_write(), and more of the request may follow */
    bool send_failed; /* the peer may have answered nevertheless */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state link_states[LINK_STATE_COUNT] = {
    [LINK_SECURING] = {"securing", TO(LINK_BUSY) | TO(LINK_CLOSED)},
    [LINK_BUSY] = {"busy", TO(LINK_IDLE) | TO(LINK_CLOSED)},
    [LINK_IDLE] = {"idle", TO(LINK_BUSY) | TO(LINK_CLOSED)},
    [LINK_CLOSED] = {"closed", 0},
};

/* The only function that writes link->state. */
static void link_move(struct link *link, enum link_state next) {
    assert(states_allow(link_states, link->state, next));
    link->state = next;
}

/* --- watching the socket ------------------------------------------------------------------ */

static void link_on_ready(uv_poll_t *poll, int status, int events);

static bool has_more_to_send(const struct link *link) {
    return link->out.len > link->out_at || link->body.len;
}

/* A pause of the call does not stop the handshake. */
static bool link_reads(const struct link *link) {
    return !link->paused || link->state == LINK_SECURING;
}

static void link_watch(struct link *link) {
    int events = link_reads(link) ? UV_READABLE : 0;
    if (has_more_to_send(link)) events |= UV_WRITABLE;
    if (events == link->events || link->state == LINK_CLOSED) return;
    link->events = events;
    if (events)
        uv_poll_start(&link->poll, events, link_on_ready);
    else
        uv_poll_stop(&link->poll);
}

/* --- the end ------------------------------------------------------------------------------ */

static void link_on_closed(uv_handle_t *handle) {
    struct link *link = handle->data;
    http1_response_done(&link->response);
    visit_done(&link->visit);
    buf_done(&link->unread);
    buf_done(&link->out);
    text_done(&link->host);
    free(link);
}

static void leave_idle(struct link *link) {
    list_remove(&link->idle);
    timer_stop(&link->timer);
    link->place->idle_count--;
}

static size_t send_now(struct link *link, struct str bytes);

/* Send a close notification, so that the end does not look truncated. If it cannot be sent at
 * once, the socket is closed without it. */
static void say_end(struct link *link) {
    if (has_more_to_send(link) || link->send_failed || !records_are_open(link->visit.records))
        return;
    records_end(link->visit.records, &link->out);
    if (link->out.len) (void)send_now(link, buf_str(&link->out));
}

/* Take the descriptor out of the loop before closing it: another loop may get the same
 * number. */
static void link_close(struct link *link) {
    if (link->state == LINK_CLOSED) return;
    if (link->state == LINK_IDLE) leave_idle(link);
    if (link->visit.records) say_end(link);
    link_move(link, LINK_CLOSED);
    task_cancel(&link->task);
    secure_wait_cancel(&link->wait);
    uv_close((uv_handle_t *)&link->poll, link_on_closed);
    close(link->fd);
    link->fd = -1;
    link->to = NULL;
}

static void link_end(struct link *link, const struct err *why, bool lost) {
    const struct link_events *to = link->to;
    if (why) link_close(link);
    if (to) to->on_end(why, lost, link->ctx);
}

/* --- idle links --------------------------------------------------------------------------- */

static void on_old(void *ctx) {
    link_close(ctx);
}

static void become_idle(struct link *link) {
    struct place *place = link->place;
    link_move(link, LINK_IDLE);
    link->to = NULL;
    http1_response_done(&link->response);
    buf_release(&link->out);
    buf_release(&link->unread);
    list_append(&place->idle, &link->idle);
    timer_start(&link->timer, PLACE_IDLE_MS);
    link->idle_ms = loop_now_ms(place->loop);
    link_watch(link);
    /* The oldest stays: by its age forward.c sees that a server keeps connections open. */
    if (++place->idle_count > PLACE_IDLE_MAX)
        link_close(CONTAINER_OF(place->idle.next->next, struct link, idle));
}

static bool leads_to(const struct link *link, const struct url *url) {
    return link->secure == url->secure && link->port == url->port &&
           str_equal_nocase(text_str(link->host), url->host);
}

/* Newest first, because it is the least likely to have been closed. NULL: there is none. */
static struct link *link_pick(struct place *place, const struct url *url,
                              enum http_reach reach) {
    for (struct list *at = place->idle.prev; at != &place->idle; at = at->prev) {
        struct link *link = CONTAINER_OF(at, struct link, idle);
        if (leads_to(link, url) && link->reach >= reach) return link;
    }
    return NULL;
}

static struct link *link_reuse(struct link *link, const struct link_events *events, void *ctx) {
    leave_idle(link);
    link_move(link, LINK_BUSY);
    link->reused = true;
    link->to = events;
    link->ctx = ctx;
    return link;
}

struct link *link_find(struct place *place, const struct url *url, enum http_reach reach,
                       const struct link_events *events, void *ctx) {
    struct link *link = link_pick(place, url, reach);
    return link ? link_reuse(link, events, ctx) : NULL;
}

/* The end may wait in the socket, and the loop has not read it yet. Over TLS a ticket may. */
static bool is_open_still(const struct link *link) {
    char byte;
    ssize_t len = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (len > 0) return link->secure;
    return len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

struct link *link_find_fresh(struct place *place, const struct url *url, enum http_reach reach,
                             uint64_t idle_max_ms, const struct link_events *events,
                             void *ctx) {
    struct link *link;
    while ((link = link_pick(place, url, reach))) {
        if (loop_now_ms(place->loop) - link->idle_ms >= idle_max_ms) return NULL;
        if (is_open_still(link)) return link_reuse(link, events, ctx);
        link_close(link);
    }
    return NULL;
}

/* Its age alone says nothing: the loop may have stood still since it was closed. */
bool link_is_kept(const struct place *place, const struct url *url, uint64_t least_ms) {
    LIST_EACH(&place->idle, at) {
        const struct link *link = CONTAINER_OF(at, struct link, idle);
        if (!leads_to(link, url)) continue;
        return loop_now_ms(place->loop) - link->idle_ms >= least_ms && is_open_still(link);
    }
    return false;
}

void link_close_idle(struct place *place) {
    while (!list_empty(&place->idle))
        link_close(CONTAINER_OF(place->idle.next, struct link, idle));
}

/* --- sending ------------------------------------------------------------------------------ */

/* Returns the number of bytes sent. If the peer no longer reads, it may have answered already,
 * so the response is still read. */
static size_t send_now(struct link *link, struct str bytes) {
    ssize_t sent;
    do {
        sent = send(link->fd, bytes.at, bytes.len, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent >= 0) return (size_t)sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    link->send_failed = true;
    link->body = STR_EMPTY;
    link->out_at = link->out.len;
    return 0;
}

/* Encrypt the next part of the body; only a part, because the result is a copy. */
static void seal_some(struct link *link) {
    struct str part = str_head(link->body, SEAL_BYTES);
    link->body = str_skip(link->body, part.len);
    link->send_failed |= !records_seal(link->visit.records, part, &link->out);
}

static void send_some(struct link *link) {
    bool sealed = link->visit.records != NULL;
    if (sealed && link->out.len == link->out_at && link->body.len) seal_some(link);
    struct str head = str_skip(buf_str(&link->out), link->out_at);
    if (head.len) link->out_at += send_now(link, head);
    if (link->out_at < link->out.len) return;
    buf_release(&link->out);
    link->out_at = 0;
    if (!sealed && link->body.len)
        link->body = str_skip(link->body, send_now(link, link->body));
}

/* Encrypted bytes must be sent in the order in which they were encrypted. */
static void link_put(struct link *link, struct str bytes) {
    if (link->visit.records)
        link->send_failed |= !records_seal(link->visit.records, bytes, &link->out);
    else
        buf_append(&link->out, bytes);
}

void link_send(struct link *link, struct str head, struct str body, bool no_body) {
    assert(link->state == LINK_BUSY);
    bool joined = body.len <= JOIN_BYTES;
    http1_response_init(&link->response, no_body, &link->to->response, link->ctx);
    link->send_failed = false;
    link_put(link, head);
    if (joined) link_put(link, body);
    link->body = joined ? STR_EMPTY : body;
    send_some(link);
    link_watch(link);
}

size_t link_unsent(const struct link *link) {
    return link->out.len - link->out_at;
}

bool link_write(struct link *link, struct str bytes) {
    size_t most = link->to->on_raw ? LINK_UNSENT_MAX_BYTES : LINK_BODY_UNSENT_MAX_BYTES;
    assert(link->state == LINK_BUSY && !link->body.len);
    if (link_unsent(link) + bytes.len > most) return false;
    link->written = true;
    buf_drop(&link->out, link->out_at);
    link->out_at = 0;
    link_put(link, bytes);
    send_some(link);
    link_watch(link);
    return true;
}

void link_written_whole(struct link *link) {
    link->written = false;
}

/* --- receiving ---------------------------------------------------------------------------- */

static void link_break(struct link *link, enum err_code code, const char *text,
                       const char *detail) {
    struct err why;
    bool lost = link->reused && !link->response.began && link->response.events;
    err_set(&why, code, "%s%s%s%s", text, detail ? " (" : "", detail ? detail : "",
            detail ? ")" : "");
    link_end(link, &why, lost);
}

static void link_finish(struct link *link, bool reusable) {
    const struct link_events *to = link->to;
    void *ctx = link->ctx;
    link->paused = false;
    reusable = reusable && link->response.keeps_alive && link->reach != HTTP_PUBLIC_ONLY &&
               !has_more_to_send(link) && !link->written && !link->send_failed &&
               link->verdict == RECORDS_FINE;
    if (reusable)
        become_idle(link);
    else
        link_close(link);
    to->on_end(NULL, false, ctx);
}

/* As link_take(), for what is no HTTP. */
static bool take_raw(struct link *link, struct str bytes) {
    if (bytes.len) link->to->on_raw(bytes, link->ctx);
    return link->state != LINK_CLOSED && !link->paused;
}

/* False: the link is no longer this call's, or is paused. */
static bool link_take(struct link *link, struct str bytes) {
    size_t used;
    if (link->to->on_raw) return take_raw(link, bytes);
    if (link->to->on_bytes) link->to->on_bytes(bytes, link->ctx);
    if (link->state == LINK_CLOSED) return false;
    enum http1_verdict verdict = http1_response_feed(&link->response, bytes, &used);
    if (link->state == LINK_CLOSED) return false; /* the call left in a callback */
    switch (verdict) {
    case HTTP1_MORE: return true;
    case HTTP1_PAUSED:
        buf_append(&link->unread, str_skip(bytes, used)); /* kept until the pause ends */
        link_pause(link);
        return false;
    case HTTP1_END: link_finish(link, used == bytes.len); return false;
    case HTTP1_TOO_LARGE:
        link_break(link, ERR_TOO_LARGE, "the head of the answer is too long", NULL);
        return false;
    case HTTP1_STOPPED:
    case HTTP1_BAD: break;
    }
    link_break(link, ERR_UNAVAILABLE,
               "what the server answers, or where it sends us, is not HTTP",
               verdict == HTTP1_BAD ? llhttp_get_error_reason(&link->response.parser) : NULL);
    return false;
}

/* Whether the server itself ended the stream. With TLS a bare end of the socket proves
 * nothing. */
static bool end_is_proven(const struct link *link) {
    return !link->visit.records || link->verdict == RECORDS_ENDED;
}

static void link_on_eof(struct link *link) {
    if (link->state == LINK_SECURING) {
        link_break(link, ERR_UNAVAILABLE,
                   "the server closed the connection in the middle of the TLS handshake", NULL);
    } else if (link->to && link->to->on_raw) {
        link_break(link, ERR_UNAVAILABLE, "the server ended the connection", NULL);
    } else if (end_is_proven(link) && http1_response_finish(&link->response) == HTTP1_END) {
        if (link->state == LINK_CLOSED) return;
        link_finish(link, false);
    } else if (!link->response.began) {
        link_break(link, ERR_UNAVAILABLE, "the server closed the connection without an answer",
                   NULL);
    } else {
        link_break(link, ERR_UNAVAILABLE, "the answer was cut short",
                   end_is_proven(link) ? NULL : "the connection ended and TLS did not");
    }
}

static void link_on_error(struct link *link, int error) {
    const char *text = "the connection broke while the answer was read";
    if (link->send_failed) text = "the connection broke while the request was sent";
    if (link->state == LINK_SECURING)
        text = "the connection broke in the TLS handshake";
    else if (link->to && link->to->on_raw)
        text = "the connection broke";
    link_break(link, ERR_UNAVAILABLE, text, strerrordesc_np(error));
}

/* --- TLS ---------------------------------------------------------------------------------- */

static void link_open(struct link *link) {
    link_move(link, LINK_BUSY);
    link->to->on_ready(link->ctx);
}

static void link_on_broken(struct link *link) {
    struct err why;
    bool lost = link->reused && !link->response.began && link->response.events;
    visit_explain(&link->visit, &why);
    link_end(link, &why, lost);
}

/* Act on the verdict, once the response has been fed the bytes before it. */
static void link_judge(struct link *link) {
    if (link->verdict == RECORDS_ENDED)
        link_on_eof(link);
    else if (link->verdict == RECORDS_BROKEN)
        link_on_broken(link);
}

/* Take the decrypted bytes, then the verdict of the records. */
static void link_take_plain(struct link *link, struct str plain) {
    if (link->state == LINK_IDLE) { /* only tickets may arrive */
        if (plain.len || link->verdict != RECORDS_FINE) link_close(link);
    } else if (link->state == LINK_SECURING) { /* also for a call that is paused */
        link_judge(link);
    } else if (link->paused) {
        buf_append(&link->unread, plain);
    } else if (plain.len == 0 || link_take(link, plain)) {
        link_judge(link);
    }
}

static bool has_chosen_http2(const struct link *link) {
    return link->to->on_http2 && visit_protocol(&link->visit) == VISIT_HTTP_2;
}

/* The connection goes on without the link. */
static void link_hand_over(struct link *link, struct str received) {
    const struct link_events *to = link->to;
    const struct link_rest rest = {.fd = link->fd,
                                   .visit = &link->visit,
                                   .unsent = str_skip(buf_str(&link->out), link->out_at),
                                   .received = received};
    link_move(link, LINK_CLOSED);
    task_cancel(&link->task);
    uv_close((uv_handle_t *)&link->poll, link_on_closed);
    link->fd = -1;
    link->to = NULL;
    to->on_http2(&rest, link->ctx);
}

/* Our last handshake bytes and the request are sent together. */
static void link_receive(struct link *link, struct str sealed) {
    struct buf *plain = &link->place->secure.plain;
    buf_clear(plain);
    link->verdict = records_receive(link->visit.records, sealed, plain, &link->out);
    if (link->state == LINK_SECURING && records_are_open(link->visit.records)) {
        if (!has_chosen_http2(link)) {
            link_open(link);
        } else if (link->verdict == RECORDS_FINE) {
            link_hand_over(link, buf_str(plain));
            return;
        }
    }
    if (link->state == LINK_CLOSED) return;
    if (link->out.len) send_some(link);
    link_take_plain(link, buf_str(plain));
}

static void link_on_ticket(struct ssl_session_st *ticket, void *ctx) {
    struct link *link = ctx;
    struct place *place = link->place;
    tickets_put(&place->secure.tickets, text_str(link->host), link->port, ticket,
                loop_now_ms(place->loop));
}

/* A public-only link neither uses nor keeps tickets. */
static void link_secure(struct link *link, struct trust *trust) {
    struct place *place = link->place;
    struct visit_options options = {.host = text_str(link->host), .protocols = VISIT_HTTP_1};
    if (link->to->on_http2) options.protocols |= VISIT_HTTP_2;
    if (link->reach != HTTP_PUBLIC_ONLY) {
        options.ticket = tickets_take(&place->secure.tickets, text_str(link->host), link->port,
                                      loop_now_ms(place->loop));
        options.on_ticket = link_on_ticket;
        options.ctx = link;
    }
    visit_init(&link->visit, trust, &options);
    link_receive(link, STR_EMPTY);
    link_watch(link);
}

static void link_on_trust(struct trust *trust, const struct err *why, void *ctx) {
    struct link *link = ctx;
    if (trust)
        link_secure(link, trust);
    else
        link_end(link, why, false);
}

/* --- reading ------------------------------------------------------------------------------ */

/* One read per wake-up, so that one busy peer does not delay the others. */
static void link_read_some(struct link *link) {
    struct place *place = link->place;
    if (!place->read) place->read = mem_alloc(PLACE_READ_BYTES);
    ssize_t len = recv(link->fd, place->read, PLACE_READ_BYTES, 0);
    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (len > 0) acks_after_read(&link->acks, link->fd, (size_t)len, loop_now_ms(place->loop));
    if (len > 0 && link->visit.records) {
        link_receive(link, str_of(place->read, (size_t)len));
    } else if (link->state == LINK_IDLE) { /* unexpected bytes, or the end */
        link_close(link);
    } else if (len > 0) {
        (void)link_take(link, str_of(place->read, (size_t)len));
    } else if (len == 0) {
        link_on_eof(link);
    } else {
        link_on_error(link, errno);
    }
}

static void send_what_waits(struct link *link) {
    bool waited = has_more_to_send(link);
    send_some(link);
    link_watch(link);
    if (waited && !has_more_to_send(link) && link->to && link->to->on_sent)
        link->to->on_sent(link->ctx);
}

static void link_on_ready(uv_poll_t *poll, int status, int events) {
    struct link *link = poll->data;
    if (link->state == LINK_CLOSED) return;
    if (status < 0) { /* libuv has stopped watching; the reads report the error */
        link->events = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (events & UV_WRITABLE) send_what_waits(link);
    if ((events & UV_READABLE) && link_reads(link)) link_read_some(link);
    link_watch(link);
}

void link_pause(struct link *link) {
    link->paused = true;
    link_watch(link);
}

void link_resume(struct link *link) {
    struct buf unread = link->unread;
    if (!link->paused) return;
    link->paused = false;
    if (link->state == LINK_SECURING) return; /* no request was sent yet */
    buf_init(&link->unread, UNREAD_MAX_BYTES);
    /* Even without bytes: the end of a complete body has not been reported yet. */
    if (link_take(link, buf_str(&unread))) {
        link_judge(link);
        link_watch(link);
    }
    buf_done(&unread);
}

void link_leave(struct link *link) {
    link_close(link);
}

/* --- creating ----------------------------------------------------------------------------- */

static void link_begin(void *ctx) {
    struct link *link = ctx;
    struct trust *trust = secure_trust(&link->place->secure);
    if (!link->secure)
        link_open(link);
    else if (trust)
        link_secure(link, trust);
    else
        secure_await(&link->place->secure, &link->wait);
}

struct link *link_new(struct place *place, int fd, const struct url *url, enum http_reach reach,
                      const struct link_events *events, void *ctx) {
    struct link *link = MEM_NEW(struct link);
    link->place = place;
    link->fd = fd;
    link->host = text_copy(url->host);
    link->port = url->port;
    link->secure = url->secure;
    link->reach = reach;
    link->to = events;
    link->ctx = ctx;
    link->poll.data = link;
    list_init(&link->idle);
    timer_init(&link->timer, place->loop, on_old, link);
    task_init(&link->task, link_begin, link);
    secure_wait_init(&link->wait, link_on_trust, link);
    buf_init(&link->out, events->on_raw ? OUT_RAW_BYTES : 2 * HTTP_REQUEST_HEAD_MAX_BYTES);
    buf_init(&link->unread, UNREAD_MAX_BYTES);
    int failed = uv_poll_init(loop_uv(place->loop), &link->poll, fd);
    assert(failed == 0); /* the descriptor is nonblocking and has no other handle */
    (void)failed;
    loop_defer(place->loop, &link->task);
    return link;
}

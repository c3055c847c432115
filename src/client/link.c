#include "client/link.h"

#include "base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#define TO(state) (1u << (state))

/* A body up to this size leaves together with its head. */
#define JOIN_BYTES (16 * KIB)

struct link {
    struct place *place;
    uv_poll_t poll;
    int fd, events; /* events: what the loop watches now */
    enum link_state state;
    struct list idle;   /* in place->idle */
    struct timer timer; /* while idle: until it is too old */
    struct task task;   /* on_ready of a new link */

    /* who is at the other end */
    struct text host;
    uint16_t port;
    bool secure, private;

    const struct link_events *to; /* the call's */
    void *ctx;
    struct http1_response response;
    struct buf out; /* of the request, not sent yet */
    size_t out_at;
    struct str body;   /* of the request, not sent yet */
    struct buf unread; /* of the response, while the call is paused */
    bool paused;
    bool reused;      /* the request is not its first */
    bool send_failed; /* the peer may still have answered */
};

/* --- states ------------------------------------------------------------------------------- */

static const struct {
    struct str name;
    unsigned may_become;
} states[LINK_STATE_COUNT] = {
    [LINK_SECURING] = {STR_INIT("securing"), TO(LINK_BUSY) | TO(LINK_CLOSED)},
    [LINK_BUSY] = {STR_INIT("busy"), TO(LINK_IDLE) | TO(LINK_CLOSED)},
    [LINK_IDLE] = {STR_INIT("idle"), TO(LINK_BUSY) | TO(LINK_CLOSED)},
    [LINK_CLOSED] = {STR_INIT("closed"), 0},
};

bool link_may_become(enum link_state state, enum link_state next) {
    return states[state].may_become & TO(next);
}

struct str link_state_name(enum link_state state) {
    return states[state].name;
}

/* The only function that writes link->state. */
static void link_move(struct link *link, enum link_state next) {
    assert(link_may_become(link->state, next));
    link->state = next;
}

/* --- what the loop watches ---------------------------------------------------------------- */

static void on_ready(uv_poll_t *poll, int status, int events);

static bool has_more_to_send(const struct link *link) {
    return link->out.len > link->out_at || link->body.len;
}

static void link_watch(struct link *link) {
    int events = link->paused ? 0 : UV_READABLE;
    if (has_more_to_send(link)) events |= UV_WRITABLE;
    if (events == link->events || link->state == LINK_CLOSED) return;
    link->events = events;
    if (events)
        uv_poll_start(&link->poll, events, on_ready);
    else
        uv_poll_stop(&link->poll);
}

/* --- the end ------------------------------------------------------------------------------ */

static void link_on_closed(uv_handle_t *handle) {
    struct link *link = handle->data;
    http1_response_done(&link->response);
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

/* Out of the loop first: once it is closed, its number may be another loop's. */
static void link_close(struct link *link) {
    if (link->state == LINK_CLOSED) return;
    if (link->state == LINK_IDLE) leave_idle(link);
    link_move(link, LINK_CLOSED);
    task_cancel(&link->task);
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
    link_watch(link);
    if (++place->idle_count > PLACE_IDLE_MAX)
        link_close(CONTAINER_OF(place->idle.next, struct link, idle));
}

static bool leads_to(const struct link *link, const struct url *url) {
    return link->secure == url->secure && link->port == url->port &&
           str_equal_nocase(text_str(link->host), url->host);
}

/* The newest first: it is the least likely to be closed already. */
struct link *link_find(struct place *place, const struct url *url,
                       const struct link_events *events, void *ctx) {
    for (struct list *at = place->idle.prev; at != &place->idle; at = at->prev) {
        struct link *link = CONTAINER_OF(at, struct link, idle);
        if (!leads_to(link, url)) continue;
        leave_idle(link);
        link_move(link, LINK_BUSY);
        link->reused = true;
        link->to = events;
        link->ctx = ctx;
        return link;
    }
    return NULL;
}

void link_close_idle(struct place *place) {
    while (!list_empty(&place->idle))
        link_close(CONTAINER_OF(place->idle.next, struct link, idle));
}

/* --- sending ------------------------------------------------------------------------------ */

/* How much left. A peer that does not read any more may have answered. */
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

static void send_some(struct link *link) {
    struct str head = str_skip(buf_str(&link->out), link->out_at);
    if (head.len) link->out_at += send_now(link, head);
    if (link->out_at < link->out.len) return;
    buf_release(&link->out);
    link->out_at = 0;
    if (link->body.len) link->body = str_skip(link->body, send_now(link, link->body));
}

void link_send(struct link *link, struct str head, struct str body, bool no_body) {
    assert(link->state == LINK_BUSY);
    bool joined = body.len <= JOIN_BYTES;
    http1_response_init(&link->response, no_body, &link->to->response, link->ctx);
    link->send_failed = false;
    link->out_at = 0;
    buf_append(&link->out, head);
    if (joined) buf_append(&link->out, body);
    link->body = joined ? STR_EMPTY : body;
    send_some(link);
    link_watch(link);
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
    reusable = reusable && link->response.keeps_alive && !link->private &&
               !has_more_to_send(link) && !link->send_failed;
    if (reusable)
        become_idle(link);
    else
        link_close(link);
    to->on_end(NULL, false, ctx);
}

/* False: the link is not this call's any more, or paused. */
static bool link_take(struct link *link, struct str bytes) {
    size_t used;
    enum http1_verdict verdict = http1_response_feed(&link->response, bytes, &used);
    if (link->state == LINK_CLOSED) return false; /* left in a callback */
    switch (verdict) {
    case HTTP1_MORE: return true;
    case HTTP1_PAUSED:
        buf_append(&link->unread, str_skip(bytes, used)); /* for after the pause */
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

static void link_on_eof(struct link *link) {
    if (http1_response_finish(&link->response) == HTTP1_END) {
        if (link->state == LINK_CLOSED) return;
        link_finish(link, false);
    } else if (!link->response.began) {
        link_break(link, ERR_UNAVAILABLE, "the server closed the connection without an answer",
                   NULL);
    } else {
        link_break(link, ERR_UNAVAILABLE, "the answer was cut short", NULL);
    }
}

static void link_on_error(struct link *link, int error) {
    link_break(link, ERR_UNAVAILABLE,
               link->send_failed ? "the connection broke while the request was sent"
                                 : "the connection broke while the answer was read",
               strerrordesc_np(error));
}

/* One read a wake: what has more is woken again, and the others are not late. */
static void read_some(struct link *link) {
    struct place *place = link->place;
    if (!place->read) place->read = mem_alloc(PLACE_READ_BYTES);
    ssize_t len = recv(link->fd, place->read, PLACE_READ_BYTES, 0);
    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (link->state == LINK_IDLE) { /* it says something that nobody asked for, or its end */
        link_close(link);
    } else if (len > 0) {
        (void)link_take(link, str_of(place->read, (size_t)len));
    } else if (len == 0) {
        link_on_eof(link);
    } else {
        link_on_error(link, errno);
    }
}

static void on_ready(uv_poll_t *poll, int status, int events) {
    struct link *link = poll->data;
    if (link->state == LINK_CLOSED) return;
    if (status <
        0) { /* libuv has stopped watching; the reads say what is left, and which error it is */
        link->events = 0;
        events = UV_READABLE | UV_WRITABLE;
    }
    if (events & UV_WRITABLE) {
        send_some(link);
        link_watch(link);
    }
    if ((events & UV_READABLE) && !link->paused) read_some(link);
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
    buf_init(&link->unread, PLACE_READ_BYTES);
    /* Also without a byte: the end of a body that came whole has not been told. */
    if (link_take(link, buf_str(&unread))) link_watch(link);
    buf_done(&unread);
}

void link_leave(struct link *link) {
    link_close(link);
}

/* --- its beginning ------------------------------------------------------------------------ */

static void link_is_ready(void *ctx) {
    struct link *link = ctx;
    link_move(link, LINK_BUSY);
    link->to->on_ready(link->ctx);
}

struct link *link_new(struct place *place, int fd, const struct url *url, bool private,
                      const struct link_events *events, void *ctx) {
    struct link *link = MEM_NEW(struct link);
    link->place = place;
    link->fd = fd;
    link->host = text_copy(url->host);
    link->port = url->port;
    link->secure = url->secure;
    link->private = private;
    link->to = events;
    link->ctx = ctx;
    link->poll.data = link;
    list_init(&link->idle);
    timer_init(&link->timer, place->loop, on_old, link);
    task_init(&link->task, link_is_ready, link);
    buf_init(&link->out, 2 * HTTP_REQUEST_HEAD_MAX_BYTES);
    buf_init(&link->unread, PLACE_READ_BYTES);
    int failed = uv_poll_init(loop_uv(place->loop), &link->poll, fd);
    assert(failed == 0); /* a nonblocking descriptor that no other handle has */
    (void)failed;
    loop_defer(place->loop, &link->task);
    return link;
}

#include "client/forward.h"

#include "base/mem.h"
#include "base/text.h"
#include "client/dial.h"
#include "client/fault.h"
#include "client/link.h"

#include <assert.h>
#include <stdlib.h>

/* Of a request's body that waits for the connection. */
#define WAITING_MAX_BYTES (128 * MIB)

/* At most this much is handed to the connection at once. */
#define WRITE_BYTES (64 * KIB)

/* A server's limit for idle connections is above what a connection was seen to bear, so one that
 * was idle for half of that time only is not about to be closed. */
#define SEEN_OPEN_MS 2000
#define REUSED_WITHIN_MS 1000
#define DOUBTED_MS (10 * 60 * 1000)

/* How long something may take. */
struct limit {
    struct forward *forward;
    uint64_t ms; /* 0: for ever */
    const char *what;
    struct timer timer;
};

struct forward {
    struct place *place;
    struct text url_text;
    struct url url; /* views into url_text */
    struct buf out; /* of the request: not handed to the connection yet */
    struct text head, body;
    bool is_head, open, reuse;
    struct forward_habit *habit;
    struct forward_sink sink;
    void *ctx;
    struct limit connect, first_byte, stall, total;
    struct task begin;
    struct dial *dial;
    struct link *link; /* NULL: not connected */
    bool reused;       /* the connection is an earlier request's */
    bool ready;        /* the head was sent */
    bool has_pieces;   /* of a body that followed the head */
    bool whole;        /* no more of them follow */
    bool informs;      /* the head that comes is an informational one */
    bool headed, paused;
    unsigned inside; /* events on the stack */
    bool over;
};

/* --- the end ------------------------------------------------------------------------------ */

static void forward_free(struct forward *forward) {
    text_wipe(&forward->head);
    text_done(&forward->url_text);
    text_done(&forward->body);
    buf_done(&forward->out);
    free(forward);
}

static void forward_leave(struct forward *forward) {
    struct link *link = forward->link;
    forward->over = true;
    forward->link = NULL;
    timer_stop(&forward->connect.timer);
    timer_stop(&forward->first_byte.timer);
    timer_stop(&forward->stall.timer);
    timer_stop(&forward->total.timer);
    task_cancel(&forward->begin);
    dial_cancel(forward->dial);
    forward->dial = NULL;
    if (link) link_leave(link);
}

/* Call after a callback. False: the forward is over, and may be gone. */
static bool forward_came_back(struct forward *forward) {
    forward->inside--;
    if (!forward->over) return true;
    if (!forward->inside) forward_free(forward);
    return false;
}

static enum http_stage stage_of(const struct forward *forward) {
    if (forward->headed) return HTTP_READING;
    return forward->ready ? HTTP_WAITING : HTTP_CONNECTING;
}

static void forward_end(struct forward *forward, const struct err *why) {
    if (forward->over) return;
    enum http_stage stage = why ? stage_of(forward) : HTTP_COMPLETE;
    struct err kept = why ? *why : (struct err){0};
    forward_leave(forward);
    forward->inside++;
    forward->sink.on_end(why ? &kept : NULL, stage, forward->ctx);
    (void)forward_came_back(forward);
}

void forward_cancel(struct forward *forward) {
    if (forward->over) return; /* inside its on_end */
    forward_leave(forward);
    if (!forward->inside) forward_free(forward);
}

/* --- time --------------------------------------------------------------------------------- */

static void on_late(void *ctx) {
    const struct limit *limit = ctx;
    struct err why;
    fault_late(limit->ms, limit->what, &why);
    forward_end(limit->forward, &why);
}

static void watch(struct limit *limit) {
    if (limit->ms) timer_start(&limit->timer, limit->ms);
}

/* --- events of the link -------------------------------------------------------------------- */

/* Informational heads (1xx) come before the head that counts. */
static void note_head(struct forward *forward, struct str line) {
    if (str_starts(line, STR("HTTP/"))) forward->informs = str_find(line, STR(" 1")) < line.len;
    if (forward->headed || forward->informs || line.len) return;
    timer_stop(&forward->first_byte.timer);
    watch(&forward->stall);
    forward->headed = true;
}

static enum http1_go forward_on_line(struct str line, void *ctx) {
    struct forward *forward = ctx;
    note_head(forward, line);
    forward->inside++;
    forward->sink.on_line(line, forward->ctx);
    if (!forward_came_back(forward)) return HTTP1_STOP;
    return forward->paused ? HTTP1_PAUSE : HTTP1_GO;
}

static enum http1_go forward_on_body(struct str bytes, void *ctx) {
    struct forward *forward = ctx;
    watch(&forward->stall);
    forward->inside++;
    forward->sink.on_body(bytes, forward->ctx);
    if (!forward_came_back(forward)) return HTTP1_STOP;
    return forward->paused ? HTTP1_PAUSE : HTTP1_GO;
}

static void forward_on_bytes(struct str bytes, void *ctx) {
    struct forward *forward = ctx;
    forward->inside++;
    if (!forward->over) forward->sink.on_bytes(bytes, forward->ctx);
    (void)forward_came_back(forward);
}

/* Hand as much of the body to the connection as it takes now. */
static void forward_push(struct forward *forward) {
    while (forward->ready && forward->out.len && link_unsent(forward->link) < WRITE_BYTES) {
        struct str part = str_head(buf_str(&forward->out), WRITE_BYTES);
        if (!link_write(forward->link, part)) return;
        buf_drop(&forward->out, part.len);
    }
    if (forward->ready && forward->whole && !forward->out.len)
        link_written_whole(forward->link);
}

static void forward_on_ready(void *ctx) {
    struct forward *forward = ctx;
    timer_stop(&forward->connect.timer);
    forward->ready = true;
    link_send(forward->link, text_str(forward->head), text_str(forward->body),
              forward->is_head);
    forward_push(forward);
}

static void forward_on_sent(void *ctx) {
    struct forward *forward = ctx;
    forward_push(forward);
    if (forward->out.len || link_unsent(forward->link) || !forward->sink.on_sent) return;
    forward->inside++;
    forward->sink.on_sent(forward->ctx);
    (void)forward_came_back(forward);
}

static void forward_dial(struct forward *forward);

/* Requests that change nothing, or whose caller knows. The pieces of a body are gone once they are
 * sent. */
static bool may_be_repeated(const struct forward *forward) {
    struct str head = text_str(forward->head);
    bool harmless = forward->reuse || forward->is_head || str_starts(head, STR("GET "));
    return !forward->has_pieces && harmless;
}

static void doubt_habit(struct forward *forward) {
    forward->habit->keeps = false;
    forward->habit->doubted_until_ms = loop_now_ms(forward->place->loop) + DOUBTED_MS;
}

/* Lost: the connection was used before, and closed without a byte. The request may have been read
 * nevertheless. */
static void forward_on_end(const struct err *why, bool lost, void *ctx) {
    struct forward *forward = ctx;
    forward->link = NULL;
    if (lost && forward->habit) doubt_habit(forward);
    if (lost && may_be_repeated(forward))
        forward_dial(forward);
    else
        forward_end(forward, why);
}

static const struct link_events link_events = {
    .response = {forward_on_line, forward_on_body},
    .on_ready = forward_on_ready,
    .on_end = forward_on_end,
    .on_sent = forward_on_sent,
};

static const struct link_events seen_events = {
    .response = {forward_on_line, forward_on_body},
    .on_ready = forward_on_ready,
    .on_end = forward_on_end,
    .on_sent = forward_on_sent,
    .on_bytes = forward_on_bytes,
};

static const struct link_events *events_of(const struct forward *forward) {
    return forward->sink.on_bytes ? &seen_events : &link_events;
}

/* --- the connection ------------------------------------------------------------------------ */

static void forward_on_dialled(int fd, const struct err *why, void *ctx) {
    struct forward *forward = ctx;
    forward->dial = NULL;
    if (fd < 0) {
        forward_end(forward, why);
        return;
    }
    forward->link =
        link_new(forward->place, fd, &forward->url, HTTP_ANYWHERE, events_of(forward), forward);
}

static void forward_dial(struct forward *forward) {
    forward->reused = forward->ready = false;
    watch(&forward->connect);
    forward->dial = dial_new(forward->place, forward->url.host, forward->url.port,
                             HTTP_ANYWHERE, forward_on_dialled, forward);
}

static bool habit_allows(const struct forward *forward) {
    struct forward_habit *habit = forward->habit;
    if (!habit || loop_now_ms(forward->place->loop) < habit->doubted_until_ms) return false;
    habit->keeps = habit->keeps || link_is_kept(forward->place, &forward->url, SEEN_OPEN_MS);
    return habit->keeps;
}

static void forward_begin(void *ctx) {
    struct forward *forward = ctx;
    watch(&forward->first_byte);
    watch(&forward->total);
    if (habit_allows(forward))
        forward->link = link_find_fresh(forward->place, &forward->url, HTTP_ANYWHERE,
                                        REUSED_WITHIN_MS, events_of(forward), forward);
    else if (forward->reuse)
        forward->link = link_find(forward->place, &forward->url, HTTP_ANYWHERE,
                                  events_of(forward), forward);
    forward->reused = forward->link != NULL;
    if (forward->link)
        forward_on_ready(forward);
    else
        forward_dial(forward);
}

static void limit_init(struct limit *limit, struct forward *forward, uint64_t ms,
                       const char *what) {
    *limit = (struct limit){.forward = forward, .ms = ms, .what = what};
    timer_init(&limit->timer, forward->place->loop, on_late, limit);
}

bool forward_start(struct http_pool *pool, struct loop *loop,
                   const struct forward_request *request, const struct forward_sink *sink,
                   void *ctx, struct forward **ret, struct err *e) {
    struct forward_server server;
    if (!forward_server_of(request->url, &server, e)) return false;
    struct forward *forward = MEM_NEW(struct forward);
    forward->place = http_place_of(pool, loop);
    forward->url_text = text_copy(request->url);
    forward->head = text_copy(request->head);
    forward->body = text_copy(request->body);
    forward->open = request->open;
    forward->is_head = request->is_head;
    forward->habit = request->habit;
    forward->reuse = request->reuse;
    forward->sink = *sink;
    forward->ctx = ctx;
    buf_init(&forward->out, WAITING_MAX_BYTES);
    enum url_kind kind = url_read(text_str(forward->url_text), &forward->url);
    assert(kind == URL_FINE);
    (void)kind;
    limit_init(&forward->connect, forward, request->connect_ms, "no connection");
    limit_init(&forward->first_byte, forward, request->first_byte_ms, "no answer");
    limit_init(&forward->stall, forward, request->stall_ms, "nothing more of the answer came");
    limit_init(&forward->total, forward, request->total_ms, "the whole answer did not come");
    task_init(&forward->begin, forward_begin, forward);
    loop_defer(loop, &forward->begin);
    *ret = forward;
    return true;
}

/* --- between the callbacks ------------------------------------------------------------------ */

void forward_write(struct forward *forward, struct str bytes) {
    assert(forward->open && !forward->body.len);
    forward->has_pieces = true;
    buf_append(&forward->out, bytes);
    forward_push(forward);
}

void forward_written_whole(struct forward *forward) {
    forward->whole = true;
    forward_push(forward);
}

size_t forward_unsent(const struct forward *forward) {
    return forward->out.len + (forward->link ? link_unsent(forward->link) : 0);
}

void forward_pause(struct forward *forward) {
    if (forward->over || forward->paused) return;
    forward->paused = true;
    timer_stop(&forward->stall.timer);
    if (forward->link) link_pause(forward->link);
}

/* Not from inside one of its callbacks. */
void forward_resume(struct forward *forward) {
    if (forward->over || !forward->paused) return;
    forward->paused = false;
    if (forward->headed) watch(&forward->stall);
    if (forward->link) link_resume(forward->link);
}

bool forward_is_reused(const struct forward *forward) {
    return forward->reused;
}

bool forward_is_connected(const struct forward *forward) {
    return forward->ready;
}

void forward_close_idle(struct http_pool *pool, struct loop *loop) {
    link_close_idle(http_place_of(pool, loop));
}

bool forward_server_of(struct str url, struct forward_server *ret, struct err *e) {
    struct url parts;
    if (url_read(url, &parts) != URL_FINE)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is no URL; it should look like http://HOST:PORT",
                       STR_ARG(str_head(url, 200)));
    if (parts.user.at)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the URL names a user; leave everything up to '@' out");
    *ret = (struct forward_server){.authority = parts.authority,
                                   .host = parts.host,
                                   .port = parts.port,
                                   .secure = parts.secure,
                                   .path = parts.path,
                                   .query = parts.query};
    return true;
}

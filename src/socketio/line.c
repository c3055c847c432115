#include "socketio/line.h"

#include "base/mem.h"
#include "base/text.h"
#include "socketio/inner.h"

#include <stdlib.h>

/* Messages of one WebSocket that are on their way to another loop. */
#define UNDER_WAY_MAX_BYTES (4 * MIB)

struct line {
    atomic_uint refs;
    enum line_kind kind;
    struct loop *loop;
    struct peer *peer;
    atomic_size_t under_way_bytes;
    struct route_call *call;     /* of a GET or POST; NULL once answered or gone; on `loop` */
    struct route_socket *socket; /* NULL once closed */
};

/* --- lives --------------------------------------------------------------------------------- */

enum line_kind line_kind(const struct line *line) {
    return line->kind;
}

struct line *line_ref(struct line *line) {
    atomic_fetch_add_explicit(&line->refs, 1, memory_order_relaxed);
    return line;
}

void line_unref(struct line *line) {
    if (!line || atomic_fetch_sub_explicit(&line->refs, 1, memory_order_acq_rel) > 1) return;
    peer_unref(line->peer);
    free(line);
}

static struct line *line_new(struct peer *peer, enum line_kind kind, struct loop *loop) {
    struct line *line = MEM_NEW(struct line);
    atomic_init(&line->refs, 1);
    line->kind = kind;
    line->loop = loop;
    line->peer = peer;
    return line;
}

/* --- mail: calls between the two loops -------------------------------------------------- */

enum line_mail_kind {
    LINE_MAIL_ATTACH,
    LINE_MAIL_HEAR,
    LINE_MAIL_LOSE,
    LINE_MAIL_ANSWER,
    LINE_MAIL_SEND,
    LINE_MAIL_CLOSE,
};

struct line_mail {
    struct mail mail;
    enum line_mail_kind kind;
    struct line *line;     /* one reference */
    struct parcel *parcel; /* one reference, or NULL */
    struct str text;       /* borrowed during a direct call */
    struct text copy;      /* else its copy */
    int number;            /* a status, a code, or whether it lagged */
};

static void answer_call(struct line *line, int status, struct str text);
static void close_socket(struct line *line, unsigned code, struct str reason);

static void run(const struct line_mail *sent) {
    struct line *line = sent->line;
    switch (sent->kind) {
    case LINE_MAIL_ATTACH: peer_attach(line->peer, line, sent->text); break;
    case LINE_MAIL_HEAR: peer_hear(line->peer, line, sent->text); break;
    case LINE_MAIL_LOSE: peer_lose(line->peer, line, sent->number != 0); break;
    case LINE_MAIL_ANSWER: answer_call(line, sent->number, sent->text); break;
    case LINE_MAIL_SEND:
        if (line->socket) route_socket_send_frame(line->socket, parcel_frame(sent->parcel));
        break;
    case LINE_MAIL_CLOSE: close_socket(line, (unsigned)sent->number, sent->text); break;
    }
}

static void line_mail_on_arrived(void *ctx) {
    struct line_mail *sent = ctx;
    run(sent);
    if (sent->kind == LINE_MAIL_HEAR)
        atomic_fetch_sub_explicit(&sent->line->under_way_bytes, sent->text.len,
                                  memory_order_relaxed);
    line_unref(sent->line);
    parcel_unref(sent->parcel);
    text_done(&sent->copy);
    free(sent);
}

/* Run it on the loop that it is for: now when both sides share one. */
static void line_mail_send(struct line_mail sent, struct loop *loop) {
    if (sent.line->loop == peer_loop(sent.line->peer)) {
        run(&sent);
        return;
    }
    struct line_mail *mailed = mem_alloc(sizeof(*mailed));
    *mailed = sent;
    line_ref(mailed->line);
    if (mailed->parcel) parcel_ref(mailed->parcel);
    mailed->copy = text_copy(sent.text);
    mailed->text = text_str(mailed->copy);
    if (mailed->kind == LINE_MAIL_HEAR)
        atomic_fetch_add_explicit(&mailed->line->under_way_bytes, mailed->text.len,
                                  memory_order_relaxed);
    loop_post(loop, &mailed->mail, line_mail_on_arrived, mailed);
}

static void to_peer(enum line_mail_kind kind, struct line *line, struct str text, int number) {
    line_mail_send(
        (struct line_mail){.kind = kind, .line = line, .text = text, .number = number},
        peer_loop(line->peer));
}

static void to_line(enum line_mail_kind kind, struct line *line, struct str text, int number) {
    line_mail_send(
        (struct line_mail){.kind = kind, .line = line, .text = text, .number = number},
        line->loop);
}

void line_answer(struct line *line, int status, struct str text) {
    to_line(LINE_MAIL_ANSWER, line, text, status);
}

void line_send(struct line *line, struct parcel *parcel) {
    line_mail_send(
        (struct line_mail){
            .kind = LINE_MAIL_SEND, .line = line, .parcel = parcel, .text = STR_EMPTY},
        line->loop);
}

size_t line_queued(const struct line *line) {
    bool here = line->loop == peer_loop(line->peer);
    return here && line->socket ? route_socket_queued(line->socket) : 0;
}

void line_close(struct line *line, unsigned code, struct str reason) {
    to_line(LINE_MAIL_CLOSE, line, reason, (int)code);
}

/* --- long polling -------------------------------------------------------------------------- */

static void answer_call(struct line *line, int status, struct str text) {
    struct route_call *call = line->call;
    if (!call) return;
    line->call = NULL;
    if (status == 200) {
        route_reply(call, 200, STR("text/plain; charset=UTF-8"), text);
        return;
    }
    route_fail(call, &(struct route_failure){status, STR("3"), text, STR_EMPTY});
}

/* The client left, or the answer is out. */
static void poll_over(void *ctx) {
    struct line *line = ctx;
    bool left = line->call != NULL;
    line->call = NULL;
    if (left) to_peer(LINE_MAIL_LOSE, line, STR_EMPTY, false);
    line_unref(line);
}

static bool is_draining(const struct line *line) {
    return atomic_load(&line->peer->branch->server->draining);
}

static void poll_stopping(void *ctx) {
    struct line *line = ctx;
    const char close = ENGINEIO_CLOSE;
    if (is_draining(line)) return;
    if (line->kind != LINE_GET || !line->call) return;
    answer_call(line, 200, str_of(&close, 1));
    to_peer(LINE_MAIL_LOSE, line, STR_EMPTY, false);
}

static const struct route_watch poll_watch = {
    .left = poll_over, .closed = poll_over, .stopping = poll_stopping};

void line_poll(struct peer *peer, struct route_call *call, enum line_kind kind) {
    struct line *line = line_new(peer, kind, route_loop(call));
    line->call = call;
    route_watch(call, &poll_watch, line);
    to_peer(LINE_MAIL_ATTACH, line, lent_read(route_body(call)), 0);
}

/* --- WebSocket ----------------------------------------------------------------------------- */

static void close_socket(struct line *line, unsigned code, struct str reason) {
    if (line->socket) route_socket_close(line->socket, code, reason);
}

static void line_on_message(struct route_socket *socket, enum websocket_kind kind,
                            struct str data, void *ctx) {
    struct line *line = ctx;
    if (kind == WEBSOCKET_BINARY)
        route_socket_close(socket, WEBSOCKET_UNSUPPORTED,
                           STR("binary messages are not supported; send text"));
    else if (atomic_load(&line->under_way_bytes) > UNDER_WAY_MAX_BYTES)
        route_socket_close(socket, WEBSOCKET_POLICY, STR("messages come too fast"));
    else
        to_peer(LINE_MAIL_HEAR, line, data, 0);
}

static void line_on_closed(unsigned code, void *ctx) {
    struct line *line = ctx;
    bool lagged = line->socket && route_socket_lagged(line->socket);
    (void)code;
    line->socket = NULL;
    to_peer(LINE_MAIL_LOSE, line, STR_EMPTY, lagged);
    line_unref(line);
}

static void line_on_stopping(void *ctx) {
    struct line *line = ctx;
    if (!is_draining(line)) close_socket(line, WEBSOCKET_GOING_AWAY, STR("the server stops"));
}

static const struct route_socket_events socket_events = {
    .message = line_on_message, .closed = line_on_closed, .stopping = line_on_stopping};

struct line *line_accept(struct peer *peer, struct route_call *call,
                         const struct route_socket_options *options) {
    struct line *line = line_new(peer, LINE_SOCKET, route_loop(call));
    line->socket = route_socket_accept(call, options, &socket_events, line);
    if (line->socket) return line;
    line_unref(line);
    return NULL;
}

void line_attach(struct line *line) {
    to_peer(LINE_MAIL_ATTACH, line, STR_EMPTY, 0);
}

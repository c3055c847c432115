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

/* --- errands: calls between the two loops -------------------------------------------------- */

enum errand_kind {
    ERRAND_ATTACH,
    ERRAND_HEAR,
    ERRAND_LOSE,
    ERRAND_ANSWER,
    ERRAND_SEND,
    ERRAND_CLOSE,
};

struct errand {
    struct mail mail;
    enum errand_kind kind;
    struct line *line;     /* one reference */
    struct parcel *parcel; /* one reference, or NULL */
    struct str text;       /* borrowed during a direct call */
    struct text copy;      /* else its copy */
    int number;            /* a status, a code, or whether it lagged */
};

static void answer_call(struct line *line, int status, struct str text);
static void close_socket(struct line *line, unsigned code, struct str reason);

static void run(const struct errand *errand) {
    struct line *line = errand->line;
    switch (errand->kind) {
    case ERRAND_ATTACH: peer_attach(line->peer, line, errand->text); break;
    case ERRAND_HEAR: peer_hear(line->peer, line, errand->text); break;
    case ERRAND_LOSE: peer_lose(line->peer, line, errand->number != 0); break;
    case ERRAND_ANSWER: answer_call(line, errand->number, errand->text); break;
    case ERRAND_SEND:
        if (line->socket) route_socket_send_frame(line->socket, parcel_frame(errand->parcel));
        break;
    case ERRAND_CLOSE: close_socket(line, (unsigned)errand->number, errand->text); break;
    }
}

static void on_errand(void *ctx) {
    struct errand *errand = ctx;
    run(errand);
    if (errand->kind == ERRAND_HEAR)
        atomic_fetch_sub_explicit(&errand->line->under_way_bytes, errand->text.len,
                                  memory_order_relaxed);
    line_unref(errand->line);
    parcel_unref(errand->parcel);
    text_done(&errand->copy);
    free(errand);
}

/* Run it on the loop that it is for: now when both sides share one. */
static void send_on(struct errand errand, struct loop *loop) {
    if (errand.line->loop == peer_loop(errand.line->peer)) {
        run(&errand);
        return;
    }
    struct errand *mailed = mem_alloc(sizeof(*mailed));
    *mailed = errand;
    line_ref(mailed->line);
    if (mailed->parcel) parcel_ref(mailed->parcel);
    mailed->copy = text_copy(errand.text);
    mailed->text = text_str(mailed->copy);
    if (mailed->kind == ERRAND_HEAR)
        atomic_fetch_add_explicit(&mailed->line->under_way_bytes, mailed->text.len,
                                  memory_order_relaxed);
    loop_post(loop, &mailed->mail, on_errand, mailed);
}

static void to_peer(enum errand_kind kind, struct line *line, struct str text, int number) {
    send_on((struct errand){.kind = kind, .line = line, .text = text, .number = number},
            peer_loop(line->peer));
}

static void to_line(enum errand_kind kind, struct line *line, struct str text, int number) {
    send_on((struct errand){.kind = kind, .line = line, .text = text, .number = number},
            line->loop);
}

void line_answer(struct line *line, int status, struct str text) {
    to_line(ERRAND_ANSWER, line, text, status);
}

void line_send(struct line *line, struct parcel *parcel) {
    send_on(
        (struct errand){.kind = ERRAND_SEND, .line = line, .parcel = parcel, .text = STR_EMPTY},
        line->loop);
}

size_t line_queued(const struct line *line) {
    bool here = line->loop == peer_loop(line->peer);
    return here && line->socket ? route_socket_queued(line->socket) : 0;
}

void line_close(struct line *line, unsigned code, struct str reason) {
    to_line(ERRAND_CLOSE, line, reason, (int)code);
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
    if (left) to_peer(ERRAND_LOSE, line, STR_EMPTY, false);
    line_unref(line);
}

static void poll_stopping(void *ctx) {
    struct line *line = ctx;
    const char close = ENGINEIO_CLOSE;
    if (line->kind != LINE_GET || !line->call) return;
    answer_call(line, 200, str_of(&close, 1));
    to_peer(ERRAND_LOSE, line, STR_EMPTY, false);
}

static const struct route_watch poll_watch = {
    .left = poll_over, .closed = poll_over, .stopping = poll_stopping};

void line_poll(struct peer *peer, struct route_call *call, enum line_kind kind) {
    struct line *line = line_new(peer, kind, route_loop(call));
    line->call = call;
    route_watch(call, &poll_watch, line);
    to_peer(ERRAND_ATTACH, line, lent_read(route_body(call)), 0);
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
        to_peer(ERRAND_HEAR, line, data, 0);
}

static void line_on_closed(unsigned code, void *ctx) {
    struct line *line = ctx;
    bool lagged = line->socket && route_socket_lagged(line->socket);
    (void)code;
    line->socket = NULL;
    to_peer(ERRAND_LOSE, line, STR_EMPTY, lagged);
    line_unref(line);
}

static const struct route_socket_events socket_events = {.message = line_on_message,
                                                         .closed = line_on_closed};

struct line *line_accept(struct peer *peer, struct route_call *call,
                         const struct route_socket_options *options) {
    struct line *line = line_new(peer, LINE_SOCKET, route_loop(call));
    line->socket = route_socket_accept(call, options, &socket_events, line);
    if (line->socket) return line;
    line_unref(line);
    return NULL;
}

void line_attach(struct line *line) {
    to_peer(ERRAND_ATTACH, line, STR_EMPTY, 0);
}

#include "client/websocket_call.h"

#include "base/mem.h"
#include "base/text.h"
#include "client/call.h"
#include "client/dial.h"
#include "client/link.h"
#include "client/upgrade.h"

#include <assert.h>
#include <stdlib.h>

#define PING_MS 20000
#define STALL_MS 20000

struct websocket_call {
    struct place *place;
    struct loop *loop;
    enum websocket_call_state state;
    struct text url_text;
    struct url url;                   /* views into url_text */
    struct buf head;                  /* the request's, then what has come of the answer's */
    struct websocket_request request; /* url and headers are not valid */
    struct websocket_sink sink;
    void *ctx;
    struct task begin;
    struct dial *dial;
    struct link *link;
    struct timer opening; /* limits the handshake */
    struct timer silence; /* runs while it is open */
    bool pinged;          /* and nothing has come since */
    bool paused;
    size_t unsent; /* when `silence` last fired */
    char key[WEBSOCKET_KEY_BYTES];
    struct http1_response response; /* of a refusal */
    struct buf body;
    struct websocket *reader;
    struct websocket_end end;
    unsigned inside; /* callbacks on the stack */
};

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state websocket_call_states[WEBSOCKET_CALL_STATE_COUNT] = {
    [WEBSOCKET_CALL_DIALLING] = {"dialling", TO(WEBSOCKET_CALL_ASKING) | TO(WEBSOCKET_CALL_OVER)},
    [WEBSOCKET_CALL_ASKING]   = {"asking",   TO(WEBSOCKET_CALL_OPEN) | TO(WEBSOCKET_CALL_REFUSED) |
                                             TO(WEBSOCKET_CALL_OVER)},
    [WEBSOCKET_CALL_REFUSED]  = {"refused",  TO(WEBSOCKET_CALL_OVER)},
    [WEBSOCKET_CALL_OPEN]     = {"open",     TO(WEBSOCKET_CALL_OVER)},
    [WEBSOCKET_CALL_OVER]     = {"over",     0},
};
/* clang-format on */

/* The only function that writes call->state. */
static void websocket_call_move(struct websocket_call *call, enum websocket_call_state next) {
    assert(states_allow(websocket_call_states, call->state, next));
    call->state = next;
}

/* --- the end ------------------------------------------------------------------------------ */

static void call_release(struct websocket_call *call) {
    if (call->inside) return;
    http1_response_done(&call->response);
    websocket_free(call->reader);
    text_done(&call->url_text);
    buf_done(&call->head);
    buf_done(&call->body);
    free(call);
}

/* Call after a callback. False: the call is over, and perhaps freed. */
static bool came_back(struct websocket_call *call) {
    call->inside--;
    if (call->state != WEBSOCKET_CALL_OVER) return true;
    call_release(call);
    return false;
}

static void let_go(struct websocket_call *call) {
    struct link *link = call->link;
    websocket_call_move(call, WEBSOCKET_CALL_OVER);
    task_cancel(&call->begin);
    timer_stop(&call->opening);
    timer_stop(&call->silence);
    dial_cancel(call->dial);
    call->dial = NULL;
    call->link = NULL;
    if (link) link_leave(link);
}

static void call_end(struct websocket_call *call) {
    let_go(call);
    call->end.body = buf_str(&call->body);
    call->inside++;
    call->sink.on_end(&call->end, call->ctx);
    (void)came_back(call);
}

static void end_because(struct websocket_call *call, const struct err *why) {
    call->end.why = *why;
    call_end(call);
}

/* The connection takes it at once, or it is not sent. */
static void say_close(struct websocket_call *call, unsigned code) {
    struct buf out;
    buf_init(&out, KIB);
    if (websocket_append_close(&out, WEBSOCKET_CLIENT, code, STR_EMPTY))
        (void)!link_write(call->link, buf_str(&out));
    buf_done(&out);
}

void websocket_call_free(struct websocket_call *call) {
    if (!call || call->state == WEBSOCKET_CALL_OVER) return; /* inside its on_end */
    if (call->reader) websocket_stop(call->reader);
    if (call->state == WEBSOCKET_CALL_OPEN) say_close(call, WEBSOCKET_NORMAL);
    let_go(call);
    call_release(call);
}

/* --- sending ------------------------------------------------------------------------------ */

static bool send_frame(struct websocket_call *call, enum websocket_kind kind, struct str data) {
    struct buf out;
    buf_init(&out, data.len + 16);
    bool sent = websocket_append(&out, WEBSOCKET_CLIENT, kind, data) &&
                link_write(call->link, buf_str(&out));
    buf_done(&out);
    return sent;
}

bool websocket_call_send(struct websocket_call *call, struct str text) {
    assert(call->state == WEBSOCKET_CALL_OPEN);
    return send_frame(call, WEBSOCKET_TEXT, text);
}

size_t websocket_call_unsent(const struct websocket_call *call) {
    return call->link ? link_unsent(call->link) : 0;
}

/* --- silence ------------------------------------------------------------------------------ */

static uint64_t stall_ms(const struct websocket_call *call) {
    return call->request.stall_ms ? call->request.stall_ms : STALL_MS;
}

static void watch_silence(struct websocket_call *call) {
    uint64_t ping_ms = call->request.ping_ms ? call->request.ping_ms : PING_MS;
    call->pinged = false;
    timer_start(&call->silence, ping_ms);
}

/* A call that is paused hears nothing, so only what it sends shows whether the server lives. */
static void on_silence(void *ctx) {
    struct websocket_call *call = ctx;
    size_t unsent = link_unsent(call->link);
    bool stuck = unsent && call->unsent && unsent >= call->unsent;
    if (stuck || (call->pinged && !call->paused)) {
        struct err why;
        err_set(&why, ERR_DEADLINE_EXCEEDED, "the server %s any more",
                stuck ? "reads nothing" : "does not answer a ping");
        end_because(call, &why);
        return;
    }
    call->unsent = unsent;
    if (!call->paused && !unsent) call->pinged = send_frame(call, WEBSOCKET_PING, STR("weir"));
    timer_start(&call->silence, stall_ms(call));
}

/* --- an open call ------------------------------------------------------------------------- */

static void on_close(struct websocket_call *call, const struct websocket_message *message) {
    unsigned code = message->code;
    call->end.code = code;
    say_close(call, code == WEBSOCKET_NO_CODE ? WEBSOCKET_NORMAL : code);
    err_set(&call->end.why, code == WEBSOCKET_NORMAL ? ERR_NONE : ERR_UNAVAILABLE,
            "the server closed the WebSocket with %u%s" STR_FMT, code,
            message->data.len ? ": " : "", STR_ARG(message->data));
    call_end(call);
}

static void websocket_call_on_message(const struct websocket_message *message, void *ctx) {
    struct websocket_call *call = ctx;
    switch (message->kind) {
    case WEBSOCKET_PING:
        if (call->state == WEBSOCKET_CALL_OPEN)
            (void)send_frame(call, WEBSOCKET_PONG, message->data);
        return;
    case WEBSOCKET_PONG: return;
    case WEBSOCKET_CLOSE: on_close(call, message); return;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY: break;
    }
    if (call->state == WEBSOCKET_CALL_OPEN)
        call->sink.on_message(message->data, message->kind, call->ctx);
}

static void open_feed(struct websocket_call *call, struct str bytes) {
    struct err why;
    watch_silence(call);
    call->inside++;
    bool fine = websocket_feed(call->reader, bytes, &why);
    if (!came_back(call) || fine) return;
    say_close(call, websocket_fault(call->reader));
    err_add(&why, "what the server sends is no WebSocket, or too much");
    end_because(call, &why);
}

/* --- the handshake's answer --------------------------------------------------------------- */

/* `rest` came right after the head. */
static void call_opened(struct websocket_call *call, struct str rest) {
    struct buf more;
    buf_init(&more, rest.len + 1);
    buf_append(&more, rest); /* the head goes */
    websocket_call_move(call, WEBSOCKET_CALL_OPEN);
    timer_stop(&call->opening);
    call->end.opened = true;
    call->reader = websocket_new(WEBSOCKET_CLIENT, call->request.message_max_bytes,
                                 websocket_call_on_message, call);
    buf_release(&call->head);
    call->inside++;
    call->sink.on_open(call->ctx);
    if (came_back(call)) open_feed(call, buf_str(&more));
    buf_done(&more);
}

static void call_refused(struct websocket_call *call) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "the server answered %u instead of opening a WebSocket",
            call->end.status);
    end_because(call, &why);
}

static enum http1_go websocket_call_on_line(struct str line, void *ctx) {
    (void)line, (void)ctx;
    return HTTP1_GO;
}

static enum http1_go websocket_call_on_body(struct str bytes, void *ctx) {
    struct websocket_call *call = ctx;
    return buf_append(&call->body, bytes) ? HTTP1_GO : HTTP1_STOP;
}

static const struct http1_events refusal_events = {websocket_call_on_line,
                                                   websocket_call_on_body};

/* The body often says why. Whatever ends it, it was a refusal. */
static void refused_feed(struct websocket_call *call, struct str bytes) {
    size_t used;
    if (http1_response_feed(&call->response, bytes, &used) != HTTP1_MORE) call_refused(call);
}

static void refused_begin(struct websocket_call *call, unsigned status) {
    websocket_call_move(call, WEBSOCKET_CALL_REFUSED);
    call->end.status = status;
    http1_response_init(&call->response, false, &refusal_events, call);
    refused_feed(call, buf_str(&call->head));
}

static void head_judge(struct websocket_call *call, struct str head, struct str rest) {
    struct err why;
    unsigned status = upgrade_status(head);
    if (status == 0) {
        err_set(&why, ERR_UNAVAILABLE, "what the server answers is not HTTP/1.1");
        end_because(call, &why);
    } else if (status != 101) {
        refused_begin(call, status);
    } else if (upgrade_check(head, str_of(call->key, sizeof(call->key)), &why)) {
        call_opened(call, rest);
    } else {
        call->end.status = status;
        end_because(call, &why);
    }
}

/* An answer may be preceded by others, such as 103, which are passed over. */
static void asking_feed(struct websocket_call *call, struct str bytes) {
    static const struct str empty_line = STR_INIT("\r\n\r\n");
    struct err why;
    if (!buf_append(&call->head, bytes)) {
        err_set(&why, ERR_TOO_LARGE, "the head of the answer is too long");
        end_because(call, &why);
        return;
    }
    struct str came = buf_str(&call->head);
    for (size_t at; (at = str_find(came, empty_line)) < came.len;) {
        struct str head = str_head(came, at + empty_line.len);
        unsigned status = upgrade_status(head);
        struct str rest = str_skip(came, head.len);
        if (status < 100 || status > 199 || status == 101) {
            buf_drop(&call->head, (size_t)(came.at - call->head.at));
            came = buf_str(&call->head);
            head_judge(call, str_head(came, head.len), str_skip(came, head.len));
            return;
        }
        came = rest;
    }
    buf_drop(&call->head, call->head.len - came.len);
}

/* --- events of the link ------------------------------------------------------------------- */

static void on_raw(struct str bytes, void *ctx) {
    struct websocket_call *call = ctx;
    switch (call->state) {
    case WEBSOCKET_CALL_ASKING: asking_feed(call, bytes); break;
    case WEBSOCKET_CALL_REFUSED: refused_feed(call, bytes); break;
    case WEBSOCKET_CALL_OPEN: open_feed(call, bytes); break;
    default: break;
    }
}

static void websocket_call_on_sent(void *ctx) {
    struct websocket_call *call = ctx;
    call->unsent = 0;
    if (call->state != WEBSOCKET_CALL_OPEN || !call->sink.on_sent) return;
    call->inside++;
    call->sink.on_sent(call->ctx);
    (void)came_back(call);
}

static void websocket_call_on_ready(void *ctx) {
    struct websocket_call *call = ctx;
    struct text request = text_copy(buf_str(&call->head));
    websocket_call_move(call, WEBSOCKET_CALL_ASKING);
    buf_clear(&call->head);
    (void)!link_write(call->link, text_str(request));
    text_wipe(&request); /* it holds the key */
}

static void on_link_end(const struct err *why, bool lost, void *ctx) {
    struct websocket_call *call = ctx;
    (void)lost;
    call->link = NULL;
    if (call->state == WEBSOCKET_CALL_REFUSED) {
        call_refused(call);
        return;
    }
    call->end.why = *why;
    if (call->state == WEBSOCKET_CALL_OPEN && websocket_midway(call->reader))
        err_add(&call->end.why, "in the middle of a message");
    call_end(call);
}

static const struct link_events link_events = {
    .response = {websocket_call_on_line, websocket_call_on_body},
    .on_ready = websocket_call_on_ready,
    .on_end = on_link_end,
    .on_raw = on_raw,
    .on_sent = websocket_call_on_sent};

/* --- starting ----------------------------------------------------------------------------- */

static void websocket_call_on_dialled(int fd, const struct err *why, void *ctx) {
    struct websocket_call *call = ctx;
    call->dial = NULL;
    if (fd < 0) {
        end_because(call, why);
        return;
    }
    call->link = link_new(call->place, fd, &call->url, call->request.reach, &link_events, call);
}

static void websocket_call_on_late(void *ctx) {
    struct websocket_call *call = ctx;
    struct err why;
    err_set(&why, ERR_DEADLINE_EXCEEDED, "the WebSocket was not open in time: %s",
            call->link ? "the server did not answer" : "there was no connection");
    end_because(call, &why);
}

/* What was wrong with the request is reported here. */
static void websocket_call_begin(void *ctx) {
    struct websocket_call *call = ctx;
    if (call->end.why.code != ERR_NONE) {
        call_end(call);
        return;
    }
    timer_start(&call->opening, call->request.open_ms);
    call->dial = dial_new(call->place, call->url.host, call->url.port, call->request.reach,
                          websocket_call_on_dialled, call);
}

static bool websocket_call_read_request(struct websocket_call *call,
                                        const struct websocket_request *request,
                                        struct err *e) {
    call->url_text = text_copy(request->url);
    if (url_read(text_str(call->url_text), &call->url) != URL_FINE || call->url.user.at)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "a WebSocket needs an http: or https: URL without a user name");
    websocket_key(call->key);
    return websocket_load(e) &&
           upgrade_append(&call->url, request->headers, request->header_count,
                          str_of(call->key, sizeof(call->key)), &call->head, e);
}

struct websocket_call *websocket_call_start(struct http_pool *pool, struct loop *loop,
                                            const struct websocket_request *request,
                                            const struct websocket_sink *sink, void *ctx) {
    struct websocket_call *call = MEM_NEW(struct websocket_call);
    call->place = http_place_of(pool, loop);
    call->loop = loop;
    call->request = *request;
    if (!call->request.open_ms) call->request.open_ms = HTTP_CONNECT_MS;
    call->sink = *sink;
    call->ctx = ctx;
    buf_init(&call->head, HTTP_REQUEST_HEAD_MAX_BYTES);
    buf_init(&call->body, WEBSOCKET_REFUSAL_MAX_BYTES);
    task_init(&call->begin, websocket_call_begin, call);
    timer_init(&call->opening, loop, websocket_call_on_late, call);
    timer_init(&call->silence, loop, on_silence, call);
    if (websocket_call_read_request(call, request, &call->end.why))
        call->end.why.code = ERR_NONE;
    loop_defer(loop, &call->begin);
    return call;
}

/* --- pausing ------------------------------------------------------------------------------ */

void websocket_call_pause(struct websocket_call *call) {
    call->paused = true;
    if (call->link) link_pause(call->link);
}

void websocket_call_resume(struct websocket_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (call->state == WEBSOCKET_CALL_OPEN) watch_silence(call);
    if (call->link) link_resume(call->link);
}

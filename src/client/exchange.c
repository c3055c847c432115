#include "client/exchange.h"

#include "base/mem.h"
#include "base/text.h"
#include "client/dial.h"
#include "client/link.h"

#include <assert.h>
#include <stdlib.h>

struct exchange {
    struct place *place;
    struct text url_text, head;
    struct url url; /* views into url_text */
    struct str body;
    bool is_head, reuse;
    bool reused, connected;
    struct exchange_sink sink;
    void *ctx;
    struct task begin;
    struct dial *dial;
    struct link *link;
    unsigned inside; /* events of the link on the stack */
    bool over;
};

/* --- the end ------------------------------------------------------------------------------ */

static void exchange_free(struct exchange *exchange) {
    text_done(&exchange->url_text);
    text_wipe(&exchange->head);
    free(exchange);
}

/* Call after a callback. False: the exchange was cancelled in it, and is gone. */
static bool exchange_came_back(struct exchange *exchange) {
    exchange->inside--;
    if (!exchange->over) return true;
    if (!exchange->inside) exchange_free(exchange);
    return false;
}

static void exchange_end(struct exchange *exchange, const struct err *why) {
    if (exchange->over) return;
    exchange->over = true;
    exchange->inside++;
    exchange->sink.on_end(why, exchange->ctx);
    exchange->inside--;
    if (!exchange->inside) exchange_free(exchange);
}

void exchange_cancel(struct exchange *exchange) {
    if (exchange->over) return; /* inside its on_end */
    struct link *link = exchange->link;
    exchange->over = true;
    exchange->link = NULL;
    task_cancel(&exchange->begin);
    dial_cancel(exchange->dial);
    if (link) link_leave(link);
    if (!exchange->inside) exchange_free(exchange);
}

/* --- events of the link -------------------------------------------------------------------- */

static void exchange_on_bytes(struct str bytes, void *ctx) {
    struct exchange *exchange = ctx;
    exchange->inside++;
    if (!exchange->over) exchange->sink.on_bytes(bytes, exchange->ctx);
    (void)exchange_came_back(exchange);
}

static enum http1_go exchange_on_line(struct str line, void *ctx) {
    struct exchange *exchange = ctx;
    exchange->inside++;
    exchange->sink.on_line(line, exchange->ctx);
    return exchange_came_back(exchange) ? HTTP1_GO : HTTP1_STOP;
}

static enum http1_go exchange_on_body(struct str bytes, void *ctx) {
    struct exchange *exchange = ctx;
    exchange->inside++;
    exchange->sink.on_body(bytes, exchange->ctx);
    return exchange_came_back(exchange) ? HTTP1_GO : HTTP1_STOP;
}

static void exchange_on_ready(void *ctx) {
    struct exchange *exchange = ctx;
    exchange->connected = true;
    link_send(exchange->link, text_str(exchange->head), exchange->body, exchange->is_head);
}

static void exchange_dial(struct exchange *exchange);

static void exchange_on_end(const struct err *why, bool lost, void *ctx) {
    struct exchange *exchange = ctx;
    exchange->link = NULL;
    if (lost)
        exchange_dial(exchange); /* it was closed while idle, so the request was not read */
    else
        exchange_end(exchange, why);
}

static const struct link_events link_events = {.response = {exchange_on_line, exchange_on_body},
                                               .on_ready = exchange_on_ready,
                                               .on_end = exchange_on_end,
                                               .on_bytes = exchange_on_bytes};

/* --- the connection ------------------------------------------------------------------------ */

static void exchange_on_dialled(int fd, const struct err *why, void *ctx) {
    struct exchange *exchange = ctx;
    exchange->dial = NULL;
    if (fd < 0) {
        exchange_end(exchange, why);
        return;
    }
    exchange->link =
        link_new(exchange->place, fd, &exchange->url, HTTP_ANYWHERE, &link_events, exchange);
}

static void exchange_dial(struct exchange *exchange) {
    exchange->reused = exchange->connected = false;
    exchange->dial = dial_new(exchange->place, exchange->url.host, exchange->url.port,
                              HTTP_ANYWHERE, exchange_on_dialled, exchange);
}

static void exchange_begin(void *ctx) {
    struct exchange *exchange = ctx;
    if (exchange->reuse)
        exchange->link =
            link_find(exchange->place, &exchange->url, HTTP_ANYWHERE, &link_events, exchange);
    exchange->reused = exchange->link != NULL;
    if (exchange->link)
        exchange_on_ready(exchange);
    else
        exchange_dial(exchange);
}

bool exchange_start(struct http_pool *pool, struct loop *loop,
                    const struct exchange_request *request, const struct exchange_sink *sink,
                    void *ctx, struct exchange **ret, struct err *e) {
    struct exchange_server server;
    if (!exchange_server_of(request->url, &server, e)) return false;
    struct exchange *exchange = MEM_NEW(struct exchange);
    exchange->place = http_place_of(pool, loop);
    exchange->url_text = text_copy(request->url);
    exchange->head = text_copy(request->head);
    exchange->body = request->body;
    exchange->is_head = request->is_head;
    exchange->reuse = request->reuse;
    exchange->sink = *sink;
    exchange->ctx = ctx;
    enum url_kind kind = url_read(text_str(exchange->url_text), &exchange->url);
    assert(kind == URL_FINE);
    (void)kind;
    task_init(&exchange->begin, exchange_begin, exchange);
    loop_defer(loop, &exchange->begin);
    *ret = exchange;
    return true;
}

bool exchange_is_reused(const struct exchange *exchange) {
    return exchange->reused;
}

bool exchange_is_connected(const struct exchange *exchange) {
    return exchange->connected;
}

void exchange_forget(struct http_pool *pool, struct loop *loop) {
    link_close_idle(http_place_of(pool, loop));
}

/* --- URLs ---------------------------------------------------------------------------------- */

bool exchange_server_of(struct str url, struct exchange_server *ret, struct err *e) {
    struct url parts;
    if (url_read(url, &parts) != URL_FINE)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' is no URL; it should look like http://127.0.0.1:8080",
                       STR_ARG(str_head(url, 200)));
    if (parts.user.at)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the URL names a user; give the token with --token");
    *ret = (struct exchange_server){.authority = parts.authority,
                                    .host = parts.host,
                                    .port = parts.port,
                                    .secure = parts.secure,
                                    .path = parts.path};
    return true;
}

#include "client/direct.h"

#include "base/mem.h"
#include "client/dial.h"
#include "client/h2_request.h"
#include "client/link.h"
#include "client/request_line.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

/* Including the two that are added here. */
#define FIELDS_MAX 128

#define URL_MAX_BYTES (64 * KIB)

/* Limit for the body of a redirect; a longer one closes the connection. */
#define DROPPED_MAX_BYTES (64 * KIB)

struct direct {
    struct http_call *call;
    enum direct_state state;
    unsigned inside;                    /* number of the link's events on the stack */
    struct buf method, address, fields; /* address: the URL; fields: the request's */
    struct url url;                     /* views into address */
    struct str body;                    /* borrowed from the caller */
    bool has_body, once, posts;
    bool shared;    /* may go over HTTP/2 */
    bool repeated;  /* once more on a fresh connection; not again */
    bool elsewhere; /* redirected to another server: secrets are not sent */
    uint64_t connect_ms;
    struct timer connect;
    struct dial *dial;
    struct link *link;
    struct h2_request *stream; /* in place of a link: over HTTP/2 */
    struct buf location;       /* of the current head */
    size_t dropped_bytes;
    unsigned redirects;
    bool connected;
};

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state direct_states[DIRECT_STATE_COUNT] = {
    [DIRECT_NEW]        = {"new",        TO(DIRECT_DIALLING) | TO(DIRECT_ASKING) |
                                         TO(DIRECT_OVER)},
    [DIRECT_DIALLING]   = {"dialling",   TO(DIRECT_ASKING) | TO(DIRECT_OVER)},
    [DIRECT_ASKING]     = {"asking",     TO(DIRECT_DIALLING) | TO(DIRECT_REDIRECTED) |
                                         TO(DIRECT_READING) | TO(DIRECT_OVER)},
    [DIRECT_REDIRECTED] = {"redirected", TO(DIRECT_DIALLING) | TO(DIRECT_ASKING) |
                                         TO(DIRECT_OVER)},
    [DIRECT_READING]    = {"reading",    TO(DIRECT_OVER)},
    [DIRECT_OVER]       = {"over",       0},
};
/* clang-format on */

/* The only function that writes direct->state. */
static void direct_move(struct direct *direct, enum direct_state next) {
    assert(states_allow(direct_states, direct->state, next));
    direct->state = next;
}

/* --- the end ------------------------------------------------------------------------------ */

/* Frees the direct if it is the last on the stack, so do not touch it afterwards. */
static void direct_finish(struct direct *direct, const struct err *why) {
    struct http_call *call = direct->call;
    timer_stop(&direct->connect);
    direct_move(direct, DIRECT_OVER);
    http_call_ended(call, why);
}

/* While events of the link are on the stack, the call must not be freed. */
static bool direct_leave(struct http_call *call) {
    struct direct *direct = call->direct;
    struct link *link = direct->link;
    struct h2_request *stream = direct->stream;
    timer_stop(&direct->connect);
    dial_cancel(direct->dial);
    direct->dial = NULL;
    direct->link = NULL;
    direct->stream = NULL;
    if (direct->state != DIRECT_OVER) direct_move(direct, DIRECT_OVER);
    if (link) link_leave(link);
    if (stream) h2_request_leave(stream);
    return direct->inside == 0;
}

/* --- the request -------------------------------------------------------------------------- */

/* Fields that are only for the server of the original URL. */
static bool is_bound(struct str line) {
    struct str value, name = str_split(line, ':', &value);
    return str_equal_nocase(name, STR("host")) ||
           str_equal_nocase(name, STR("authorization")) ||
           str_equal_nocase(name, STR("cookie"));
}

static void append_fields(const struct direct *direct, struct buf *head) {
    struct str rest = buf_str(&direct->fields);
    while (rest.len) {
        size_t len = str_find(rest, STR("\r\n")) + 2;
        if (!direct->elsewhere || !is_bound(rest)) buf_append(head, str_head(rest, len));
        rest = str_skip(rest, len);
    }
}

static bool names(struct str fields, struct str name) {
    while (fields.len) {
        struct str value, field = str_split(fields, ':', &value);
        if (str_equal_nocase(field, name)) return true;
        fields = str_skip(fields, str_find(fields, STR("\r\n")) + 2);
    }
    return false;
}

static void direct_write_head(const struct direct *direct, struct buf *head) {
    buf_append(head, buf_str(&direct->method));
    buf_append_byte(head, ' ');
    url_append_target(&direct->url, head);
    buf_append(head, STR(" HTTP/1.1\r\n"));
    if (direct->elsewhere || !names(buf_str(&direct->fields), STR("host"))) {
        buf_append(head, STR("Host: "));
        buf_append(head, direct->url.authority);
        buf_append(head, STR("\r\n"));
    }
    append_fields(direct, head);
    if (direct->has_body) buf_printf(head, "Content-Length: %zu\r\n", direct->body.len);
    buf_append(head, STR("\r\n"));
}

static const struct link_events link_events;

/* Over the link, or as a stream of `h2`. */
static void direct_send(struct direct *direct, struct h2 *h2) {
    struct buf head;
    timer_stop(&direct->connect);
    direct_move(direct, DIRECT_ASKING);
    direct->connected = true;
    buf_init(&head, HTTP_REQUEST_HEAD_MAX_BYTES);
    direct_write_head(direct, &head);
    if (buf_ok(&head)) {
        if (h2)
            direct->stream =
                h2_request_new(h2, buf_str(&head), direct->body, &link_events, direct);
        else
            link_send(direct->link, buf_str(&head), direct->body,
                      str_equal(buf_str(&direct->method), STR("HEAD")));
        buf_done(&head);
        return;
    }
    struct err why;
    struct link *link = direct->link;
    buf_done(&head);
    direct->link = NULL;
    if (link) link_leave(link);
    err_set(&why, ERR_INVALID_ARGUMENT, "the headers of the request are too long");
    direct_finish(direct, &why);
}

static void direct_on_ready(void *ctx) {
    direct_send(ctx, NULL);
}

/* --- a connection ------------------------------------------------------------------------- */

static const struct link_events sharing_events;

/* The server has chosen HTTP/2, or without TLS may speak it. If another call has opened a connection
 * to it meanwhile, this one is not needed. A request that failed there once gets a connection of its
 * own. */
static void direct_on_http2(const struct link_rest *rest, void *ctx) {
    struct direct *direct = ctx;
    struct http_call *call = direct->call;
    struct err why;
    struct h2 *h2 =
        direct->repeated ? NULL : h2_find_room(call->place, &direct->url, call->reach);
    direct->link = NULL;
    if (h2)
        close(rest->fd);
    else
        h2 = h2_adopt(call->place, &direct->url, call->reach, rest, &why);
    if (h2)
        direct_send(direct, h2);
    else
        direct_finish(direct, &why);
}

static void direct_on_dialled(int fd, const struct err *why, void *ctx) {
    struct direct *direct = ctx;
    direct->dial = NULL;
    if (fd < 0) {
        direct_finish(direct, why);
        return;
    }
    if (direct->shared && !direct->url.secure) {
        const struct link_rest rest = {.fd = fd};
        direct_on_http2(&rest, direct);
        return;
    }
    direct->link = link_new(direct->call->place, fd, &direct->url, direct->call->reach,
                            direct->shared ? &sharing_events : &link_events, direct);
}

static void on_connect_late(void *ctx) {
    struct direct *direct = ctx;
    struct err why;
    struct link *link = direct->link;
    err_set(&why, ERR_DEADLINE_EXCEEDED, "no connection in time%s",
            link ? ": the server took it, and has not finished the TLS handshake" : "");
    dial_cancel(direct->dial);
    direct->dial = NULL;
    direct->link = NULL;
    if (link) link_leave(link);
    direct_finish(direct, &why);
}

static void direct_dial(struct direct *direct) {
    struct http_call *call = direct->call;
    direct_move(direct, DIRECT_DIALLING);
    direct->connected = false;
    timer_start(&direct->connect, direct->connect_ms);
    direct->dial = dial_new(call->place, direct->url.host, direct->url.port, call->reach,
                            direct_on_dialled, direct);
}

/* A public-only request uses no idle connection, nor does one that must not be repeated. */
static void direct_ask(struct direct *direct) {
    struct http_call *call = direct->call;
    bool fresh = direct->once || call->reach == HTTP_PUBLIC_ONLY;
    struct h2 *h2 = NULL;
    if (direct->shared) h2 = h2_find_room(call->place, &direct->url, call->reach);
    if (h2) {
        direct_send(direct, h2);
        return;
    }
    if (!fresh)
        direct->link = link_find(call->place, &direct->url, call->reach, &link_events, direct);
    if (direct->link)
        direct_on_ready(direct);
    else
        direct_dial(direct);
}

static void direct_begin(struct http_call *call) {
    direct_ask(call->direct);
}

/* --- redirects ---------------------------------------------------------------------------- */

static bool same_server(const struct url *a, const struct url *b) {
    return a->secure == b->secure && a->port == b->port && str_equal_nocase(a->host, b->host);
}

/* Like browsers: a redirected POST becomes a GET, unless the status forbids it. */
static void change_method(struct direct *direct) {
    unsigned status = direct->call->head.status;
    bool head = str_equal(buf_str(&direct->method), STR("HEAD"));
    bool becomes_get =
        (status == 303 && !head) || ((status == 301 || status == 302) && direct->posts);
    if (!becomes_get) return;
    buf_clear(&direct->method);
    buf_append(&direct->method, STR("GET"));
    direct->posts = direct->has_body = false;
    direct->body = STR_EMPTY;
}

static bool judge_redirect(const struct direct *direct, enum url_kind kind,
                           const struct url *url, struct err *e) {
    if (kind == URL_OTHER_SCHEME || (kind == URL_FINE && direct->call->secure && !url->secure))
        return direct->call->secure
                   ? err_set(e, ERR_UNAVAILABLE,
                             "the server redirects from https: to what is not https:, which is "
                             "not followed")
                   : err_set(e, ERR_UNAVAILABLE,
                             "what the server answers, or where it sends us, is not HTTP");
    if (kind != URL_FINE)
        return err_set(e, ERR_UNAVAILABLE, "the server redirects to what is no URL");
    if (url->user.at)
        return err_set(e, ERR_PERMISSION_DENIED, "a URL with a user name in it is not asked");
    return true;
}

static bool read_redirect(struct direct *direct, struct err *e) {
    struct buf next;
    struct url url;
    if (direct->redirects++ == direct->call->redirects_max)
        return err_set(e, ERR_FAILED_PRECONDITION, "it redirects too often (%u times)",
                       direct->call->redirects_max);
    buf_init(&next, URL_MAX_BYTES);
    bool fits = url_follow(&direct->url, buf_str(&direct->location), &next);
    enum url_kind kind = fits ? url_read(buf_str(&next), &url) : URL_BROKEN;
    if (!judge_redirect(direct, kind, &url, e)) {
        buf_done(&next);
        return false;
    }
    direct->elsewhere |= !same_server(&direct->url, &url);
    direct->call->secure |= url.secure;
    buf_done(&direct->address);
    direct->address = next;
    direct->url = url;
    change_method(direct);
    return true;
}

static void direct_follow(struct direct *direct) {
    struct err why;
    if (!read_redirect(direct, &why)) {
        direct_finish(direct, &why);
    } else {
        direct->repeated = false;
        direct_ask(direct);
    }
}

/* --- the response ------------------------------------------------------------------------- */

static void note_location(struct direct *direct, struct str line) {
    struct str value, name = str_split(line, ':', &value);
    if (str_starts(line, STR("HTTP/"))) buf_clear(&direct->location);
    if (!str_equal_nocase(name, STR("location"))) return;
    buf_clear(&direct->location);
    buf_append(&direct->location, str_trim(value));
}

/* Free what only the request needed. */
static void direct_slim(struct direct *direct) {
    buf_release(&direct->fields);
    buf_release(&direct->location);
    buf_release(&direct->address);
    direct->url = (struct url){0};
}

/* Call after a callback of the caller. False: the caller wants no more. */
static bool direct_came_back(struct direct *direct, bool good) {
    struct http_call *call = direct->call;
    direct->inside--;
    if (call->over && !direct->inside) http_call_left(call);
    return good;
}

static enum http1_go direct_on_line(struct str line, void *ctx) {
    struct direct *direct = ctx;
    struct http_call *call = direct->call;
    bool asking = direct->state == DIRECT_ASKING;
    if (asking) note_location(direct, line);
    direct->inside++;
    if (!direct_came_back(direct, http_call_on_line(call, line))) return HTTP1_STOP;
    if (asking && call->headed) {
        direct_move(direct, DIRECT_READING);
        direct_slim(direct);
    } else if (asking && line.len == 0 && call->head.status >= 200) {
        direct->dropped_bytes = 0;
        direct_move(direct, DIRECT_REDIRECTED);
    }
    return http_call_waits(call) ? HTTP1_PAUSE : HTTP1_GO;
}

static enum http1_go direct_on_body(struct str bytes, void *ctx) {
    struct direct *direct = ctx;
    struct http_call *call = direct->call;
    if (direct->state == DIRECT_REDIRECTED) {
        direct->dropped_bytes += bytes.len;
        return direct->dropped_bytes > DROPPED_MAX_BYTES ? HTTP1_STOP : HTTP1_GO;
    }
    direct->inside++;
    if (!direct_came_back(direct, http_call_on_bytes(call, bytes))) return HTTP1_STOP;
    return http_call_waits(call) ? HTTP1_PAUSE : HTTP1_GO;
}

static void direct_on_end(const struct err *why, bool lost, void *ctx) {
    struct direct *direct = ctx;
    direct->link = NULL;
    direct->stream = NULL;
    if (lost && direct->state == DIRECT_ASKING && !direct->repeated) {
        direct->repeated = true;
        direct_dial(direct); /* it was closed while idle, so the request was not read */
    } else if (direct->state == DIRECT_REDIRECTED && !direct->call->failed) {
        direct_follow(direct); /* the body is ignored, even if it broke off */
    } else {
        direct_finish(direct, why);
    }
}

/* The server has not begun with the request. Its redirects are not shared either. */
static void direct_on_http1(const struct err *why, void *ctx) {
    struct direct *direct = ctx;
    direct->stream = NULL;
    direct->shared = false;
    if (direct->state == DIRECT_ASKING)
        direct_dial(direct);
    else
        direct_finish(direct, why);
}

static const struct link_events link_events = {.response = {direct_on_line, direct_on_body},
                                               .on_ready = direct_on_ready,
                                               .on_end = direct_on_end,
                                               .on_http1 = direct_on_http1};

static const struct link_events sharing_events = {
    .response = {direct_on_line, direct_on_body},
    .on_ready = direct_on_ready,
    .on_end = direct_on_end,
    .on_http2 = direct_on_http2,
};

static void direct_free(struct http_call *call) {
    struct direct *direct = call->direct;
    buf_done(&direct->method);
    buf_done(&direct->address);
    buf_done(&direct->fields);
    buf_done(&direct->location);
    free(direct);
}

static void direct_pause(struct http_call *call) {
    if (call->direct->link) link_pause(call->direct->link);
    if (call->direct->stream) h2_request_pause(call->direct->stream);
}

static void direct_resume(struct http_call *call) {
    struct direct *direct = call->direct;
    if (direct->link)
        link_resume(direct->link);
    else if (direct->stream)
        h2_request_resume(direct->stream);
}

/* --- the carrier --------------------------------------------------------------------------- */

static bool direct_is_connected(const struct http_call *call) {
    return call->direct->connected;
}

static struct str direct_url(const struct http_call *call) {
    return buf_str(&call->direct->address);
}

static const struct carrier direct_carrier = {
    direct_begin, direct_pause,        direct_resume, direct_leave,
    direct_free,  direct_is_connected, direct_url,
};

static bool add_field(struct buf *fields, const struct http_header *header, struct err *e) {
    if (!request_check_header(header, e)) return false;
    size_t before = fields->len;
    buf_append(fields, header->name);
    buf_append(fields, header->value.len ? STR(": ") : STR(":"));
    buf_append(fields, header->value);
    buf_append(fields, STR("\r\n"));
    return (buf_ok(fields) && fields->len - before <= HTTP_LINE_MAX_BYTES) ||
           err_set(e, ERR_INVALID_ARGUMENT, "a header of the request is too long");
}

static bool set_fields(struct direct *direct, const struct http_request *request,
                       struct err *e) {
    struct buf *fields = &direct->fields;
    if (!http_call_has_header(request, STR("accept")))
        buf_append(fields, STR("Accept: */*\r\n"));
    for (size_t i = 0; i < request->header_count; i++) {
        if (!add_field(fields, &request->headers[i], e)) return false;
    }
    if (!http_call_has_header(request, STR("accept-encoding")))
        buf_append(fields, STR("Accept-Encoding: gzip\r\n"));
    return true;
}

bool direct_carry(struct http_call *call, const struct http_request *request, struct err *e) {
    struct direct *direct = call->direct = MEM_NEW(struct direct);
    call->carrier = &direct_carrier;
    direct->call = call;
    direct->body = request->body;
    direct->posts = str_equal(request->method, STR("POST"));
    direct->has_body =
        direct->posts || str_equal(request->method, STR("PUT")) || request->body.len;
    direct->once = request->once;
    direct->shared = request->shared && !request->once && request->reach != HTTP_PUBLIC_ONLY;
    direct->connect_ms = request->connect_ms ? request->connect_ms : HTTP_CONNECT_MS;
    timer_init(&direct->connect, call->place->loop, on_connect_late, direct);
    buf_init(&direct->method, 256);
    buf_init(&direct->address, URL_MAX_BYTES);
    buf_init(&direct->fields, HTTP_REQUEST_HEAD_MAX_BYTES);
    buf_init(&direct->location, URL_MAX_BYTES);
    if (!buf_append(&direct->method, request->method) ||
        !buf_append(&direct->address, request->url))
        return err_set(e, ERR_INVALID_ARGUMENT, "the URL is too long");
    if (url_read(buf_str(&direct->address), &direct->url) != URL_FINE)
        return err_set(e, ERR_INVALID_ARGUMENT, "this is no URL");
    if (request->header_count > FIELDS_MAX - 2)
        return err_set(e, ERR_INVALID_ARGUMENT, "the request has too many headers");
    return set_fields(direct, request, e);
}

#include "client/easy.h"

#include "base/buf.h"
#include "client/place.h"
#include "client/request_line.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Buffer for the request's body. libcurl keeps it while the answer streams; its default is 64
 * KiB. */
#define UPLOAD_BYTES (16L * 1024) /* the minimum of libcurl */
#define READ_BYTES (4L * 1024)    /* kept for the whole call; most pieces are a line or two */

/* libcurl does not check the type of an option's value, so there is one checking function per
 * type. */
static void set_long(const struct http_call *call, CURLoption option, long value) {
    assert(option / 10000 * 10000 == CURLOPTTYPE_LONG);
    call->easy->lane->curl->curl_easy_setopt(call->easy->transfer.easy, option, value);
}

static void set_object(const struct http_call *call, CURLoption option, const void *value) {
    assert(option / 10000 * 10000 == CURLOPTTYPE_OBJECTPOINT);
    call->easy->lane->curl->curl_easy_setopt(call->easy->transfer.easy, option, value);
}

static void set_text(const struct http_call *call, CURLoption option, struct str value) {
    char *text = str_dup(value);
    set_object(call, option, text); /* libcurl copies it */
    free(text);
}

static long to_long(uint64_t number) {
    return number < LONG_MAX ? (long)number : LONG_MAX;
}

/* --- addresses ---------------------------------------------------------------------------- */

static bool is_in_reach(enum http_reach reach, const struct curl_sockaddr *address) {
    const void *at = &address->addr;
    if (address->family == AF_INET) {
        struct sockaddr_in four;
        memcpy(&four, at, sizeof(four));
        return http_address_is_in_reach(reach, (const unsigned char *)&four.sin_addr, 4);
    }
    if (address->family == AF_INET6) {
        struct sockaddr_in6 six;
        memcpy(&six, at, sizeof(six));
        return http_address_is_in_reach(reach, (const unsigned char *)&six.sin6_addr, 16);
    }
    return reach == HTTP_ANYWHERE;
}

/* The check is made on the very address that is connected to. An earlier lookup of the name, or
 * the spelling in the URL, does not matter. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose,
                                 struct curl_sockaddr *address) {
    struct http_call *call = ctx;
    (void)purpose;
    if (!is_in_reach(call->reach, address)) {
        call->easy->sockets_refused++;
        return CURL_SOCKET_BAD;
    }
    call->easy->sockets++;
    int type = address->socktype | SOCK_CLOEXEC;
    return socket(address->family, type, address->protocol);
}

static void set_public_only(struct http_call *call) {
    /* No proxy, which would connect in our place, and no user name. */
    set_object(call, CURLOPT_PROXY, "");
    set_long(call, CURLOPT_DISALLOW_USERNAME_IN_URL, 1);
    /* No connection to which other rules were applied. */
    set_long(call, CURLOPT_FRESH_CONNECT, 1);
    set_long(call, CURLOPT_FORBID_REUSE, 1);
}

/* --- headers ------------------------------------------------------------------------------ */

static void options_add_line(struct http_call *call, const char *line) {
    struct curl_slist *more =
        call->easy->lane->curl->curl_slist_append(call->easy->headers, line);
    assert(more); /* fails only when memory is exhausted */
    call->easy->headers = more;
}

static bool options_add_header(struct http_call *call, const struct http_header *header,
                               struct err *e) {
    if (!request_check_header(header, e)) return false;
    struct buf line;
    buf_init(&line, HTTP_LINE_MAX_BYTES);
    buf_append(&line, header->name);
    /* libcurl's notation for an empty value. */
    buf_append(&line, header->value.len ? STR(": ") : STR(";"));
    buf_append(&line, header->value);
    buf_append_byte(&line, '\0');
    bool good = buf_ok(&line);
    if (good) options_add_line(call, line.at);
    buf_done(&line);
    return good || err_set(e, ERR_INVALID_ARGUMENT, "a header of the request is too long");
}

static bool set_headers(struct http_call *call, const struct http_request *request,
                        struct err *e) {
    for (size_t i = 0; i < request->header_count; i++) {
        if (!options_add_header(call, &request->headers[i], e)) return false;
    }
    if (!http_call_has_header(request, STR("accept-encoding")))
        options_add_line(call, "Accept-Encoding: gzip");
    /* Suppress what libcurl would add itself: a content type, and an Expect field, which costs
     * a second because servers do not answer it. */
    if (!http_call_has_header(request, STR("content-type")))
        options_add_line(call, "Content-Type:");
    if (!http_call_has_header(request, STR("expect"))) options_add_line(call, "Expect:");
    set_object(call, CURLOPT_HTTPHEADER, call->easy->headers);
    return true;
}

/* --- the request -------------------------------------------------------------------------- */

/* libcurl reads the body piece by piece and keeps no reference to it, so the caller may free it
 * right after a cancel, even while libcurl is on the stack. */
static size_t options_read_body(char *room, size_t size, size_t count, void *ctx) {
    struct http_call *call = ctx;
    if (call->over) return CURL_READFUNC_ABORT;
    struct str piece =
        str_head(str_skip(call->easy->body, call->easy->body_sent), size * count);
    if (piece.len) memcpy(room, piece.at, piece.len);
    call->easy->body_sent += piece.len;
    return piece.len;
}

/* Rewind to `offset`, for a redirect that repeats the body or after an idle connection that was
 * closed. */
static int seek_body(void *ctx, curl_off_t offset, int origin) {
    struct http_call *call = ctx;
    if (call->over || origin != SEEK_SET || offset < 0 || (size_t)offset > call->easy->body.len)
        return CURL_SEEKFUNC_FAIL;
    call->easy->body_sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

/* A short body is copied: the copy is smaller than the buffer for pieces, which libcurl keeps
 * until the answer has ended. */
static void set_body(struct http_call *call, struct str body) {
    const struct curl *curl = call->easy->lane->curl;
    curl->curl_easy_setopt(call->easy->transfer.easy, CURLOPT_POSTFIELDSIZE_LARGE,
                           (curl_off_t)body.len);
    if (body.len < UPLOAD_BYTES) {
        set_object(call, CURLOPT_COPYPOSTFIELDS, body.len ? body.at : "");
        return;
    }
    call->easy->body = body;
    curl->curl_easy_setopt(call->easy->transfer.easy, CURLOPT_READFUNCTION, options_read_body);
    curl->curl_easy_setopt(call->easy->transfer.easy, CURLOPT_SEEKFUNCTION, seek_body);
    set_object(call, CURLOPT_READDATA, call);
    set_object(call, CURLOPT_SEEKDATA, call);
    set_long(call, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BYTES);
}

/* With CUSTOMREQUEST the method is kept across redirects. Without it a redirected POST becomes
 * a GET, as in browsers. */
static void set_method(struct http_call *call, const struct http_request *request) {
    bool is_post = str_equal(request->method, STR("POST"));
    if (is_post || request->body.len) {
        set_long(call, CURLOPT_POST, 1);
        set_body(call, request->body);
    }
    if (str_equal(request->method, STR("HEAD"))) {
        set_long(call, CURLOPT_NOBODY, 1);
    } else if (!is_post && !(str_equal(request->method, STR("GET")) && !request->body.len)) {
        set_text(call, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

static void set_callbacks(struct http_call *call) {
    const struct curl *curl = call->easy->lane->curl;
    CURL *easy = call->easy->transfer.easy;
    curl->curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, easy_on_header);
    curl->curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, easy_on_body);
    curl->curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    set_object(call, CURLOPT_HEADERDATA, call);
    set_object(call, CURLOPT_WRITEDATA, call);
    set_object(call, CURLOPT_OPENSOCKETDATA, call);
    set_object(call, CURLOPT_ERRORBUFFER, call->easy->detail);
}

void easy_stay_secure(struct http_call *call) {
    call->secure = true;
    set_object(call, CURLOPT_REDIR_PROTOCOLS_STR, "https");
}

/* Without one of both libcurl would add the system's. */
static void set_authorities(struct http_call *call) {
    struct trust_options from = authorities_source(call->place->secure.authorities);
    if (!from.file.len && !from.folders.len) return;
    set_object(call, CURLOPT_CAINFO, NULL);
    set_object(call, CURLOPT_CAPATH, NULL);
    if (from.file.len) set_text(call, CURLOPT_CAINFO, from.file);
    if (from.folders.len) set_text(call, CURLOPT_CAPATH, from.folders);
}

static void set_connection(struct http_call *call, const struct http_request *request) {
    set_object(call, CURLOPT_PROTOCOLS_STR, "http,https");
    set_object(call, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    if (str_equal_nocase(str_head(request->url, 6), STR("https:"))) easy_stay_secure(call);
    set_long(call, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
    set_long(call, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1);
    set_long(call, CURLOPT_NOSIGNAL, 1);
    set_long(call, CURLOPT_QUICK_EXIT, 1); /* on a cancel, do not wait for a name server */
    set_long(call, CURLOPT_BUFFERSIZE, READ_BYTES);
    set_long(call, CURLOPT_TCP_NODELAY, 1);
    set_long(call, CURLOPT_TCP_KEEPALIVE, 1);
    set_long(call, CURLOPT_CONNECTTIMEOUT_MS,
             request->connect_ms ? to_long(request->connect_ms) : HTTP_CONNECT_MS);
    set_authorities(call);
    if (!call->redirects_max) return;
    set_long(call, CURLOPT_FOLLOWLOCATION, 1);
    set_long(call, CURLOPT_MAXREDIRS, (long)request->redirects_max);
}

bool easy_set_options(struct http_call *call, const struct http_request *request,
                      struct err *e) {
    set_text(call, CURLOPT_URL, request->url);
    set_callbacks(call);
    set_connection(call, request);
    set_method(call, request);
    if (call->reach == HTTP_PUBLIC_ONLY) set_public_only(call);
    /* libcurl does not know by which rule the address of an idle connection was checked. */
    if (call->reach == HTTP_NOT_LINK_LOCAL) set_long(call, CURLOPT_FRESH_CONNECT, 1);
    if (request->once) set_long(call, CURLOPT_FRESH_CONNECT, 1);
    return set_headers(call, request, e);
}

#include "client/http1_response.h"

#include "client/call.h"

#include <stdio.h>

/* --- lines -------------------------------------------------------------------------------- */

/* Make llhttp return an error; `stopped` says that it was ours. */
static int stop(struct http1_response *response) {
    response->stopped = true;
    return HPE_USER;
}

static int give_line(struct http1_response *response, struct str line) {
    enum http1_go go = response->events->on_line(line, response->ctx);
    buf_clear(&response->line);
    return go == HTTP1_STOP ? stop(response) : HPE_OK;
}

static int http1_collect(struct http1_response *response, struct str part) {
    if (buf_append(&response->line, part)) return HPE_OK;
    response->too_large = true;
    return HPE_USER;
}

/* The reason phrase is not kept, but its length is limited. */
static int on_status(llhttp_t *parser, const char *at, size_t len) {
    return http1_collect(parser->data, str_of(at, len));
}

static int on_status_line(llhttp_t *parser) {
    struct http1_response *response = parser->data;
    char line[32];
    buf_clear(&response->line);
    snprintf(line, sizeof(line), "HTTP/%u.%u %03u", parser->http_major, parser->http_minor,
             parser->status_code);
    return give_line(response, str_from(line));
}

static int on_field(llhttp_t *parser, const char *at, size_t len) {
    return http1_collect(parser->data, str_of(at, len));
}

static int on_field_end(llhttp_t *parser) {
    return http1_collect(parser->data, STR(": "));
}

/* Codings other than chunked would reach the caller undecoded. */
static bool coding_is_known(struct str line) {
    struct str value, name = str_split(line, ':', &value);
    if (!str_equal_nocase(name, STR("transfer-encoding"))) return true;
    return str_equal_nocase(str_trim(value), STR("chunked"));
}

static int on_value_end(llhttp_t *parser) {
    struct http1_response *response = parser->data;
    struct str line = buf_str(&response->line);
    return coding_is_known(line) ? give_line(response, line) : stop(response);
}

/* RFC 9112 6.3, rule 1. llhttp would wait for the body that a 304 gives a length for. */
static bool has_no_body(const struct http1_response *response) {
    unsigned status = response->parser.status_code;
    return response->no_body || status == 204 || status == 304;
}

/* For llhttp, 1 means that the response has no body. */
static int on_head_end(llhttp_t *parser) {
    struct http1_response *response = parser->data;
    enum http1_go go = response->events->on_line(STR_EMPTY, response->ctx);
    buf_release(&response->line);
    if (go == HTTP1_STOP) return stop(response);
    if (parser->status_code == 101) return -1; /* no upgrade was requested */
    if (has_no_body(response)) return 1;
    return go == HTTP1_PAUSE ? HPE_PAUSED : 0;
}

/* --- body and end ------------------------------------------------------------------------- */

static int http1_response_on_body(llhttp_t *parser, const char *at, size_t len) {
    struct http1_response *response = parser->data;
    if (len == 0) return HPE_OK;
    switch (response->events->on_body(str_of(at, len), response->ctx)) {
    case HTTP1_STOP: return stop(response);
    case HTTP1_PAUSE: return HPE_PAUSED;
    case HTTP1_GO: break;
    }
    return HPE_OK;
}

static int on_message_end(llhttp_t *parser) {
    struct http1_response *response = parser->data;
    if (parser->status_code < 200) return HPE_OK;
    response->ended = true;
    response->keeps_alive = llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_status = on_status,
    .on_status_complete = on_status_line,
    .on_header_field = on_field,
    .on_header_field_complete = on_field_end,
    .on_header_value = on_field,
    .on_header_value_complete = on_value_end,
    .on_headers_complete = on_head_end,
    .on_body = http1_response_on_body,
    .on_message_complete = on_message_end,
};

/* --- public functions --------------------------------------------------------------------- */

void http1_response_init(struct http1_response *response, bool no_body,
                         const struct http1_events *events, void *ctx) {
    *response = (struct http1_response){.events = events, .ctx = ctx, .no_body = no_body};
    buf_init(&response->line, HTTP_HEAD_MAX_BYTES);
    llhttp_init(&response->parser, HTTP_RESPONSE, &settings);
    response->parser.data = response;
}

void http1_response_done(struct http1_response *response) {
    buf_done(&response->line);
}

static enum http1_verdict verdict_of(struct http1_response *response, llhttp_errno_t error) {
    if (response->ended) return HTTP1_END;
    if (response->too_large) return HTTP1_TOO_LARGE;
    if (response->stopped) return HTTP1_STOPPED;
    switch (error) {
    case HPE_OK: return HTTP1_MORE;
    case HPE_PAUSED: return HTTP1_PAUSED;
    default: return HTTP1_BAD;
    }
}

enum http1_verdict http1_response_feed(struct http1_response *response, struct str bytes,
                                       size_t *ret_used) {
    llhttp_t *parser = &response->parser;
    response->began |= bytes.len > 0;
    llhttp_errno_t error = llhttp_execute(parser, bytes.at, bytes.len);
    *ret_used = bytes.len;
    if (error != HPE_OK) *ret_used = (size_t)(llhttp_get_error_pos(parser) - bytes.at);
    if (error == HPE_PAUSED) llhttp_resume(parser);
    return verdict_of(response, error);
}

enum http1_verdict http1_response_finish(struct http1_response *response) {
    llhttp_errno_t error = llhttp_finish(&response->parser);
    enum http1_verdict verdict = verdict_of(response, error);
    return verdict == HTTP1_END ? HTTP1_END : HTTP1_BAD;
}

#include "server/http2_head.h"

#include "base/arena.h"

/* --- reading ------------------------------------------------------------------------------ */

static void keep_pseudo(struct exchange *exchange, struct str name, struct str value) {
    struct request *request = exchange->request;
    static const struct {
        struct str name;
        size_t offset;
    } pseudo[] = {
        {STR_INIT(":method"), offsetof(struct request, method)},
        {STR_INIT(":path"), offsetof(struct request, path)},
        {STR_INIT(":authority"), offsetof(struct request, authority)},
    };
    for (size_t i = 0; i < ARRAY_LEN(pseudo); i++) {
        if (!str_equal(name, pseudo[i].name)) continue;
        struct str *place = (struct str *)(void *)((char *)request + pseudo[i].offset);
        if (!arena_str(request->arena, value, place)) exchange->too_large = true;
    }
}

static void keep_field(struct exchange *exchange, struct str name, struct str value) {
    struct request *request = exchange->request;
    bool room = request->field_count < exchange->conn->limits->fields_max;
    struct field *field = room ? request_add(request) : NULL;
    struct str copy;
    if (!field) {
        exchange->too_large = true;
        return;
    }
    *field = (struct field){STR_EMPTY, STR_EMPTY};
    if (arena_str(request->arena, name, &copy)) field->name = copy;
    if (arena_str(request->arena, value, &copy)) field->value = copy;
    if (field->name.len != name.len || field->value.len != value.len)
        exchange->too_large = true;
}

void http2_head_field(struct exchange *exchange, struct str name, struct str value) {
    bool pseudo = name.len > 0 && name.at[0] == ':';
    if (!pseudo) exchange->head_bytes += name.len + value.len + HTTP2_FIELD_EXTRA_BYTES;
    if (exchange->head_bytes > exchange->conn->limits->fields_max_bytes)
        exchange->too_large = true;
    if (exchange->too_large) return;
    if (pseudo)
        keep_pseudo(exchange, name, value);
    else
        keep_field(exchange, name, value);
}

/* :authority and Host must agree, or two servers in a row could route the request
 * differently. */
static bool read_authority(struct request *request) {
    const struct field *host = request_find(request, STR("host"));
    if (request->authority.len == 0 && host) request->authority = host->value;
    if (host && !str_equal_nocase(host->value, request->authority)) return false;
    return request_authority_ok(request->authority);
}

static void read_wishes(struct exchange *exchange) {
    struct request *request = exchange->request;
    const struct field *length = request_find(request, STR("content-length"));
    const struct field *expect = request_find(request, STR("expect"));
    uint64_t number;
    if (length && str_to_u64(length->value, &number) && number <= INT64_MAX)
        request->content_length = (int64_t)number;
    exchange->wants_trailers = true;
    exchange->is_head = str_equal(request->method, STR("HEAD"));
    exchange->expects_continue = expect && !exchange->request_ended &&
                                 str_equal_nocase(expect->value, STR("100-continue"));
}

/* Returns 0, or the status with which to refuse the request. */
static int http2_head_check(const struct exchange *exchange, struct str target) {
    if (exchange->too_large) return 431;
    if (target.len > exchange->conn->limits->target_max_bytes) return 414;
    if (str_equal(exchange->request->method, STR("CONNECT"))) return 501;
    if (str_find_byte(target, '#') < target.len) return 400;
    return 0;
}

int http2_head_end(struct exchange *exchange, bool ends) {
    struct str target = exchange->request->path;
    exchange->request_ended = ends;
    int status = http2_head_check(exchange, target);
    if (status) return status;
    if (!read_authority(exchange->request)) return HTTP2_HEAD_MALFORMED;
    request_set_target(exchange->request, target);
    read_wishes(exchange);
    return 0;
}

/* --- writing ------------------------------------------------------------------------------ */

/* Fields about an HTTP/1 connection (RFC 9113 8.2.2). */
static bool is_of_http1(struct str name) {
    static const struct str names[] = {STR_INIT("connection"), STR_INIT("keep-alive"),
                                       STR_INIT("transfer-encoding"), STR_INIT("upgrade"),
                                       STR_INIT("proxy-connection")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (str_equal(name, names[i])) return true;
    }
    return false;
}

static void http2_head_add(struct http2_section *out, struct str name, struct str value) {
    out->nv[out->count++] =
        (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at, name.len,
                     value.len, NGHTTP2_NV_FLAG_NONE};
}

void http2_head_write(const struct section *section, struct http2_section *ret) {
    ret->count = 0;
    if (section->status) {
        for (int i = 2, rest = section->status; i >= 0; i--, rest /= 10)
            ret->status[i] = (char)('0' + rest % 10);
        http2_head_add(ret, STR(":status"), str_of(ret->status, sizeof(ret->status)));
    }
    for (size_t i = 0; i < section->count; i++) {
        const struct field *field = &section->fields[i];
        if (!is_of_http1(field->name)) http2_head_add(ret, field->name, field->value);
    }
}

#include "sidecar/proxy_head.h"

#include "client/forward.h"

#include <stdio.h>

#define HEAD_MAX_BYTES (128 * KIB)
#define ARENA_MAX_BYTES (64 * KIB)

/* Fields of one connection. */
static const char *const hop_by_hop[] = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    NULL,
};

/* Fields of a request that are written by us. */
static const char *const rewritten[] = {
    "host", "content-length", "expect", "x-forwarded-for", "cookie", NULL};

/* Fields that only the sidecar sets. */
static const char *const tracing[] = {"x-trace-id", "traceparent", NULL};
static const char *const ours[] = {"x-trace-id", "x-latency-ms", NULL};

static bool is_one_of(struct str name, const char *const *names) {
    for (; *names; names++) {
        if (str_equal_nocase(name, str_from(*names))) return true;
    }
    return false;
}

/* Whether the value of a Connection field names this field. */
static bool names_field(struct str connection, struct str name) {
    while (connection.len) {
        struct str token = str_trim(str_split(connection, ',', &connection));
        if (str_equal_nocase(token, name)) return true;
    }
    return false;
}

bool proxy_is_type(struct str content_type, struct str wanted) {
    struct str rest;
    return str_equal_nocase(str_trim(str_split(content_type, ';', &rest)), wanted);
}

bool proxy_is_json(struct str content_type) {
    struct str rest, type = str_trim(str_split(content_type, ';', &rest));
    size_t plus = str_find(type, STR("+json"));
    return str_equal_nocase(type, STR("application/json")) ||
           (type.len && plus + 5 == type.len);
}

/* --- requests --------------------------------------------------------------------------------- */

static bool is_bound(const struct exchange *exchange, struct str name) {
    size_t count;
    const struct field *fields = exchange_fields(exchange, &count);
    for (size_t i = 0; i < count; i++) {
        if (str_equal(fields[i].name, STR("connection")) && names_field(fields[i].value, name))
            return true;
    }
    return false;
}

static void put(struct buf *out, struct str name, struct str value) {
    buf_append(out, name);
    buf_append(out, STR(": "));
    buf_append(out, value);
    buf_append(out, STR("\r\n"));
}

static bool passes(const struct proxy_request *request, struct str name) {
    if (is_one_of(name, hop_by_hop) || is_one_of(name, rewritten)) return false;
    if (request->trace && is_one_of(name, tracing)) return false;
    if (request->plain && str_equal(name, STR("accept-encoding"))) return false;
    if (!request->keeps_authorization && str_equal(name, STR("authorization"))) return false;
    return !is_bound(request->exchange, name);
}

static void put_fields(const struct proxy_request *request, struct buf *out) {
    size_t count;
    const struct field *fields = exchange_fields(request->exchange, &count);
    for (size_t i = 0; i < count; i++) {
        if (passes(request, fields[i].name)) put(out, fields[i].name, fields[i].value);
    }
}

/* HTTP/2 may split a cookie into several fields (RFC 9113 8.2.3). */
static void put_joined(const struct exchange *exchange, const char *name, struct str separator,
                       struct str last, struct buf *out) {
    size_t count, before = out->len;
    const struct field *fields = exchange_fields(exchange, &count);
    buf_printf(out, "%s: ", name);
    size_t empty = out->len;
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(fields[i].name, str_from(name))) continue;
        if (out->len > empty) buf_append(out, separator);
        buf_append(out, fields[i].value);
    }
    if (last.len && out->len > empty) buf_append(out, separator);
    buf_append(out, last);
    bool none = out->len == empty;
    buf_append(out, STR("\r\n"));
    if (none) out->len = before;
}

/* The peer's address without its port. */
static struct str proxy_head_address_of(const struct exchange *exchange) {
    struct str peer = exchange_peer(exchange);
    for (size_t i = peer.len; i-- > 0;) {
        if (peer.at[i] != ':') continue;
        peer = str_head(peer, i);
        break;
    }
    bool bracketed = peer.len > 2 && peer.at[0] == '[';
    return bracketed ? str_of(peer.at + 1, peer.len - 2) : peer;
}

static void put_trace(const struct trace *trace, struct buf *out) {
    char parent[TRACE_PARENT_BYTES + 1];
    trace_write_parent(trace, parent);
    put(out, STR("X-Trace-Id"), trace_id(trace));
    put(out, STR("traceparent"), str_from(parent));
}

static void put_framing(int64_t body, struct buf *out) {
    if (body == PROXY_BODY_CHUNKED)
        put(out, STR("Transfer-Encoding"), STR("chunked"));
    else if (body != PROXY_BODY_NONE)
        buf_printf(out, "Content-Length: %lld\r\n", (long long)body);
}

/* The server's path and query come before the request's. */
static void put_target(const struct proxy_request *request, const struct forward_server *server,
                       struct buf *out) {
    struct str query = exchange_query(request->exchange), path = request->path;
    struct str base = server->path;
    while (str_ends(base, STR("/"))) base = str_head(base, base.len - 1);
    buf_append(out, base);
    if (!path.len && !base.len) path = STR("/");
    buf_append(out, path);
    buf_append(out, server->query);
    if (!query.at) return;
    buf_append_byte(out, server->query.len ? '&' : '?');
    buf_append(out, query);
}

bool proxy_write_request(const struct proxy_request *request, struct buf *out, struct err *e) {
    struct forward_server server;
    const struct exchange *exchange = request->exchange;
    struct str host = exchange_authority(exchange);
    if (!forward_server_of(request->base_url, &server, e)) return false;
    buf_append(out, exchange_method(exchange));
    buf_append_byte(out, ' ');
    put_target(request, &server, out);
    buf_append(out, STR(" HTTP/1.1\r\n"));
    put(out, STR("Host"), host.len && request->keeps_authorization ? host : server.authority);
    put_fields(request, out);
    put_joined(exchange, "cookie", STR("; "), STR_EMPTY, out);
    put_joined(exchange, "x-forwarded-for", STR(", "), proxy_head_address_of(exchange), out);
    if (request->trace) put_trace(request->trace, out);
    if (request->plain) put(out, STR("Accept-Encoding"), STR("identity"));
    put_framing(request->body, out);
    buf_append(out, STR("\r\n"));
    return (buf_ok(out) && out->len <= HEAD_MAX_BYTES) ||
           err_set(e, ERR_TOO_LARGE, "the headers of the request are too long");
}

/* --- responses -------------------------------------------------------------------------------- */

void proxy_response_init(struct proxy_response *response) {
    *response = (struct proxy_response){.arena = arena_new(ARENA_MAX_BYTES)};
}

void proxy_response_done(struct proxy_response *response) {
    arena_free(response->arena);
    *response = (struct proxy_response){0};
}

static bool lower_copy(struct arena *arena, struct str text, struct str *ret) {
    if (!arena_str(arena, text, ret)) return false;
    char *at = (char *)ret->at;
    for (size_t i = 0; i < ret->len; i++) {
        if (at[i] >= 'A' && at[i] <= 'Z') at[i] |= 32;
    }
    return true;
}

static void add_field(struct proxy_response *response, struct str name, struct str value) {
    struct field field;
    if (response->count == PROXY_FIELDS_MAX ||
        !lower_copy(response->arena, name, &field.name) ||
        !arena_str(response->arena, value, &field.value)) {
        response->overflows = true;
        return;
    }
    response->fields[response->count++] = field;
}

static void drop_names(struct proxy_response *response, struct str names) {
    while (names.len) {
        struct str name = str_trim(str_split(names, ',', &names));
        if (name.len) (void)proxy_response_set(response, name, STR_EMPTY);
    }
}

/* The head is complete: keep what passes. */
static void keep_passing(struct proxy_response *response) {
    for (size_t i = 0; i < response->count; i++) {
        struct field field = response->fields[i];
        if (str_equal(field.name, STR("connection"))) {
            response->fields[i].name = STR_EMPTY; /* so that it is handled once */
            drop_names(response, field.value);
            i = (size_t)-1;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < response->count; i++) {
        struct field field = response->fields[i];
        if (field.name.len && !is_one_of(field.name, hop_by_hop) &&
            !is_one_of(field.name, ours))
            response->fields[kept++] = field;
    }
    response->count = kept;
}

static int proxy_head_status_of(struct str line) {
    uint64_t status;
    struct str rest = str_skip(line, str_find_byte(line, ' ') + 1);
    return str_to_u64(str_head(rest, 3), &status) ? (int)status : 0;
}

bool proxy_response_line(struct proxy_response *response, struct str line) {
    struct str value;
    if (str_starts(line, STR("HTTP/"))) {
        response->count = 0;
        response->status = proxy_head_status_of(line);
        return false;
    }
    if (!line.len) {
        if (response->status < 200) return false;
        keep_passing(response);
        return true;
    }
    struct str name = str_split(line, ':', &value);
    add_field(response, str_trim(name), str_trim(value));
    return false;
}

struct str proxy_response_find(const struct proxy_response *response, struct str name) {
    for (size_t i = 0; i < response->count; i++) {
        if (str_equal(response->fields[i].name, name)) return response->fields[i].value;
    }
    return STR_EMPTY;
}

bool proxy_response_set(struct proxy_response *response, struct str name, struct str value) {
    size_t kept = 0;
    for (size_t i = 0; i < response->count; i++) {
        if (!str_equal_nocase(response->fields[i].name, name))
            response->fields[kept++] = response->fields[i];
    }
    response->count = kept;
    if (!value.len) return true;
    bool before = response->overflows;
    add_field(response, name, value);
    bool added = response->overflows == before;
    response->overflows = before;
    return added;
}

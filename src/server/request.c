/* The header section of one request, in its own arena. */
#include "base/arena.h"
#include "server/conn.h"

#include <assert.h>

/* Twice the limits, to allow for alignment and the growth of `fields`. */
static size_t arena_limit(const struct server_limits *limits) {
    return 2 * (limits->target_max_bytes + limits->fields_max_bytes +
                2 * limits->fields_max * sizeof(struct field)) +
           4 * KIB;
}

struct request *request_new(const struct server_limits *limits) {
    struct arena *arena = arena_new(arena_limit(limits));
    struct request *request = ARENA_NEW(arena, struct request);
    assert(request);
    request->arena = arena;
    request->method = request->path = request->authority = STR_EMPTY;
    request->content_length = -1;
    return request;
}

void request_free(struct request *request) {
    if (request) arena_free(request->arena);
}

#define FIELDS_FIRST 8

struct field *request_add(struct request *request) {
    if (request->field_count == request->field_room) {
        size_t room = request->field_room ? request->field_room * 2 : FIELDS_FIRST;
        struct field *fields = arena_alloc(request->arena, room * sizeof(struct field));
        if (!fields) return NULL;
        for (size_t i = 0; i < request->field_count; i++) fields[i] = request->fields[i];
        request->fields = fields;
        request->field_room = room;
    }
    return &request->fields[request->field_count++];
}

const struct field *request_find(const struct request *request, struct str name) {
    for (size_t i = 0; i < request->field_count; i++)
        if (str_equal(request->fields[i].name, name)) return &request->fields[i];
    return NULL;
}

void request_set_target(struct request *request, struct str target) {
    request->path = str_split(target, '?', &request->query);
}

static bool is_port(struct str port) {
    for (size_t i = 0; i < port.len; i++)
        if (port.at[i] < '0' || port.at[i] > '9') return false;
    return port.len <= 5;
}

/* RFC 3986 3.2.2 and 3.2.3, without user information, which RFC 9110 4.2.4 forbids. */
bool request_authority_ok(struct str authority) {
    if (authority.len == 0) return false;
    if (authority.at[0] == '[') {
        size_t end = str_find_byte(authority, ']');
        if (end == authority.len || end == 1) return false;
        struct str after = str_skip(authority, end + 1);
        return str_is_plain(str_head(str_skip(authority, 1), end - 1), ":.%-_~") &&
               (after.len == 0 || (after.at[0] == ':' && is_port(str_skip(after, 1))));
    }
    struct str port;
    struct str host = str_split(authority, ':', &port);
    return host.len > 0 && str_is_plain(host, "-._~%!$&'()*+,;=") && is_port(port);
}

/* The reason phrase of a status, for people; clients ignore it. */
const char *status_text(int status) {
    static const struct {
        int status;
        const char *text;
    } rows[] = {
        /* clang-format off */
        {101, "Switching Protocols"},
        {200, "OK"},                   {201, "Created"},
        {202, "Accepted"},             {204, "No Content"},
        {206, "Partial Content"},      {301, "Moved Permanently"},
        {302, "Found"},                {303, "See Other"},
        {304, "Not Modified"},         {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},   {400, "Bad Request"},
        {401, "Unauthorized"},         {403, "Forbidden"},
        {404, "Not Found"},            {405, "Method Not Allowed"},
        {406, "Not Acceptable"},       {408, "Request Timeout"},
        {409, "Conflict"},             {410, "Gone"},
        {411, "Length Required"},      {412, "Precondition Failed"},
        {413, "Content Too Large"},    {414, "URI Too Long"},
        {415, "Unsupported Media Type"}, {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},  {422, "Unprocessable Content"},
        {426, "Upgrade Required"},     {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {499, "Client Closed Request"}, {500, "Internal Server Error"},
        {501, "Not Implemented"},      {502, "Bad Gateway"},
        {503, "Service Unavailable"},  {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].status == status) return rows[i].text;
    return "Other";
}

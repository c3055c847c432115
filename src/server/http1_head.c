#include "server/http1_head.h"

#include "base/arena.h"
#include "server/guard.h"

/* --- callbacks of llhttp ------------------------------------------------------------------ */

static int on_field(llhttp_t *parser, const char *at, size_t len) {
    struct http1_head *head = parser->data;
    struct field *field = request_add(head->request);
    if (field) *field = (struct field){str_of(at, len), STR_EMPTY};
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t len) {
    struct http1_head *head = parser->data;
    struct request *request = head->request;
    if (request->field_count == 0) return 0;
    request->fields[request->field_count - 1].value = str_trim(str_of(at, len));
    return 0;
}

static int on_section_end(llhttp_t *parser) {
    struct http1_head *head = parser->data;
    head->keeps_alive = llhttp_should_keep_alive(parser); /* llhttp loses this later */
    parser->upgrade = 0; /* no h2c or other upgrade: it stays plain HTTP/1.1 */
    return 0;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_section_end,
};

/* --- the request line --------------------------------------------------------------------- */

static void http1_head_lower(struct str text) {
    char *at = (char *)(uintptr_t)text.at; /* our own copy, in the arena */
    for (size_t i = 0; i < text.len; i++)
        if (at[i] >= 'A' && at[i] <= 'Z') at[i] = (char)(at[i] | 32);
}

static int read_version(struct http1_head *head, struct str version) {
    if (str_equal(version, STR("HTTP/1.1"))) {
        head->http = EXCHANGE_HTTP_1_1;
        return 0;
    }
    if (str_equal(version, STR("HTTP/1.0"))) {
        head->http = EXCHANGE_HTTP_1_0;
        return 0;
    }
    bool shaped = version.len == 8 && str_starts(version, STR("HTTP/")) &&
                  version.at[5] >= '0' && version.at[5] <= '9' && version.at[6] == '.' &&
                  version.at[7] >= '0' && version.at[7] <= '9';
    return shaped ? 505 : 400;
}

static bool starts_nocase(struct str s, struct str head) {
    return s.len >= head.len && str_equal_nocase(str_head(s, head.len), head);
}

/* In "http://host/path" the authority takes the place of Host. */
static int read_absolute(struct request *request, struct str target) {
    size_t scheme = starts_nocase(target, STR("http://"))    ? 7
                    : starts_nocase(target, STR("https://")) ? 8
                                                             : 0;
    if (scheme == 0) return 400;
    struct str rest = str_skip(target, scheme);
    size_t end = 0;
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != '?') end++;
    request->authority = str_head(rest, end);
    if (!request_authority_ok(request->authority)) return 400;
    request_set_target(request, str_skip(rest, end));
    if (request->path.len == 0) request->path = STR("/");
    return 0;
}

static int read_target(struct request *request, struct str target,
                       const struct server_limits *limits) {
    if (target.len > limits->target_max_bytes) return 414;
    if (target.len == 0 || str_find_byte(target, '#') < target.len) return 400;
    if (str_equal(request->method, STR("CONNECT"))) return 501;
    bool asterisk = str_equal(target, STR("*")) && str_equal(request->method, STR("OPTIONS"));
    if (target.at[0] != '/' && !asterisk) return read_absolute(request, target);
    request_set_target(request, target);
    return 0;
}

/* Read "GET /path HTTP/1.1": exactly two single spaces. */
static int read_line(struct http1_head *head, struct str section,
                     const struct server_limits *limits) {
    struct str line = str_head(section, str_find_byte(section, '\r'));
    struct str rest;
    head->request->method = str_split(line, ' ', &rest);
    if (!rest.at || !guard_is_token(head->request->method)) return 400;
    struct str version;
    struct str target = str_split(rest, ' ', &version);
    if (!version.at) return 400;
    int status = read_version(head, version);
    if (status) return status;
    head->is_head = str_equal(head->request->method, STR("HEAD"));
    return read_target(head->request, target, limits);
}

/* --- fields that decide about framing ----------------------------------------------------- */

static size_t http1_head_count_of(const struct request *request, struct str name) {
    size_t count = 0;
    for (size_t i = 0; i < request->field_count; i++)
        count += str_equal(request->fields[i].name, name);
    return count;
}

/* Exactly one Host; HTTP/1.0 may omit it. */
static int check_host(struct http1_head *head) {
    struct request *request = head->request;
    const struct field *host = request_find(request, STR("host"));
    if (http1_head_count_of(request, STR("host")) > 1) return 400;
    if (!host) return head->http == EXCHANGE_HTTP_1_0 ? 0 : 400;
    if (!request_authority_ok(host->value)) return 400;
    if (request->authority.len == 0) request->authority = host->value;
    return 0;
}

/* At most one length or one coding, in the only spelling that all parsers read alike. */
static int check_length(struct http1_head *head) {
    struct request *request = head->request;
    const struct field *length = request_find(request, STR("content-length"));
    const struct field *coding = request_find(request, STR("transfer-encoding"));
    if (coding) {
        if (length || head->http == EXCHANGE_HTTP_1_0) return 400;
        if (http1_head_count_of(request, STR("transfer-encoding")) > 1) return 400;
        if (!str_equal_nocase(coding->value, STR("chunked"))) return 400;
        /* White space after it is legal, but some parsers do not trim it. The byte after the
         * value in the section shows whether there is any. */
        if (coding->value.at[coding->value.len] != '\r') return 400;
        head->is_chunked = true;
    }
    if (!length) return 0;
    uint64_t number;
    if (http1_head_count_of(request, STR("content-length")) > 1) return 400;
    if (!str_to_u64(length->value, &number) || number > INT64_MAX) return 400;
    request->content_length = (int64_t)number;
    return 0;
}

/* Whether a comma-separated list names `token`. */
static bool list_names(struct str list, struct str token) {
    while (list.at) {
        struct str item = str_split(list, ',', &list);
        if (str_equal_nocase(str_trim(str_head(item, str_find_byte(item, ';'))), token))
            return true;
    }
    return false;
}

static int check_wishes(struct http1_head *head) {
    const struct field *expect = request_find(head->request, STR("expect"));
    const struct field *te = request_find(head->request, STR("te"));
    head->wants_trailers = te && list_names(te->value, STR("trailers"));
    if (!expect || head->http == EXCHANGE_HTTP_1_0) return 0;
    if (!str_equal_nocase(expect->value, STR("100-continue"))) return 417;
    head->expects_continue = head->is_chunked || head->request->content_length > 0;
    return 0;
}

/* --- the fields --------------------------------------------------------------------------- */

static bool read_with(struct http1_head *head, llhttp_t *parser, struct str method,
                      struct str rest) {
    llhttp_init(parser, HTTP_REQUEST, &settings);
    parser->data = head;
    bool read = llhttp_execute(parser, method.at, method.len) == HPE_OK &&
                llhttp_execute(parser, rest.at, rest.len) == HPE_OK;
    parser->data = NULL;
    return read;
}

/* llhttp accepts a fixed list of methods, some with rules of their own. The routes decide which
 * methods a path accepts, so a method that llhttp does not know is parsed as POST. */
static bool read_fields(struct http1_head *head, llhttp_t *parser, struct str section) {
    struct str method = head->request->method;
    struct str rest = str_skip(section, method.len);
    if (read_with(head, parser, method, rest)) return true;
    bool unknown = parser->error == HPE_INVALID_METHOD || parser->error == HPE_INVALID_CONSTANT;
    head->request->field_count = 0;
    return unknown && read_with(head, parser, STR("POST"), rest);
}

/* --- the whole section -------------------------------------------------------------------- */

int http1_head_read(struct http1_head *head, llhttp_t *parser, struct str section,
                    const struct server_limits *limits) {
    struct str copy;
    if (!arena_str(head->request->arena, section, &copy)) return 431;
    if (str_starts(copy, STR("\r\n"))) copy = str_skip(copy, 2);
    int status = read_line(head, copy, limits);
    if (status) return status;

    if (!read_fields(head, parser, copy)) return 400;
    for (size_t i = 0; i < head->request->field_count; i++)
        http1_head_lower(head->request->fields[i].name);

    if ((status = check_host(head))) return status;
    if ((status = check_length(head))) return status;
    return check_wishes(head);
}

#include "tool/web_fetch.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/charset.h"
#include "text/html.h"
#include "tool/web_call.h"

#include <stdlib.h>

#define ADDRESS_MAX_BYTES 2048
#define BODY_MAX_BYTES (200 * KIB)
#define REASON_BYTES 256 /* of the body of a refusal */
#define TIMEOUT_S 10
#define TIMEOUT_MAX_S 60
#define REDIRECTS_MAX 5
#define READING_MS 2000 /* for converting a page to text */

struct web_fetch {
    struct tool base;
    struct http_pool *pool;
};

struct tool_call {
    struct web_call web;
    uint64_t give_up_ms; /* the worker's */
};

/* ---- What came, as text. On a worker. ---- */

enum page_kind { PAGE_OTHER, PAGE_TEXT, PAGE_HTML };

/* Other types are text if they begin with "text/" or end in +json or +xml. */
static const struct {
    struct str type;
    enum page_kind kind;
} page_types[] = {
    {STR_INIT("text/html"), PAGE_HTML},
    {STR_INIT("application/xhtml+xml"), PAGE_HTML},
    {STR_INIT("application/json"), PAGE_TEXT},
    {STR_INIT("application/xml"), PAGE_TEXT},
    {STR_INIT("application/javascript"), PAGE_TEXT},
    {STR_INIT("application/x-ndjson"), PAGE_TEXT},
    {STR_INIT("application/yaml"), PAGE_TEXT},
};

static struct str media_type(struct str content_type) {
    return str_trim(str_head(content_type, str_find_byte(content_type, ';')));
}

static bool ends_nocase(struct str text, struct str tail) {
    return text.len >= tail.len && str_equal_nocase(str_skip(text, text.len - tail.len), tail);
}

static enum page_kind kind_of_type(struct str type) {
    for (size_t i = 0; i < ARRAY_LEN(page_types); i++) {
        if (str_equal_nocase(type, page_types[i].type)) return page_types[i].kind;
    }
    bool text = str_equal_nocase(str_head(type, 5), STR("text/")) ||
                ends_nocase(type, STR("+json")) || ends_nocase(type, STR("+xml"));
    return text ? PAGE_TEXT : PAGE_OTHER;
}

/* For servers that send no type: text contains no NUL. */
static enum page_kind kind_of_bytes(struct str body) {
    if (str_find_byte(body, '\0') < body.len) return PAGE_OTHER;
    return str_starts(str_trim(body), STR("<")) ? PAGE_HTML : PAGE_TEXT;
}

static bool may_go_on(void *ctx) {
    const struct tool_call *call = ctx;
    return !atomic_load_explicit(&call->web.abandoned, memory_order_relaxed) &&
           clock_mono_ms() < call->give_up_ms;
}

static bool to_text(struct tool_call *call, enum page_kind kind, struct buf *out) {
    struct str body = buf_str(&call->web.get.body), type = buf_str(&call->web.get.type);
    struct str charset = charset_of_type(type);
    /* Do not end inside a character; in other encodings at most three characters are lost. */
    if (call->web.get.truncated) body.len -= utf8_pending(body);
    if (!charset.len && kind == PAGE_HTML) charset = charset_of_page(body);
    if (kind == PAGE_TEXT) {
        charset_append(out, charset, body);
        return true;
    }
    struct html_options options = {
        .url = buf_str(&call->web.get.url), .go_on = may_go_on, .ctx = call};
    struct buf page;
    buf_init(&page, out->max_bytes);
    charset_append(&page, charset, body);
    bool read = html_text(buf_str(&page), &options, out, &call->web.why);
    if (!buf_ok(&page)) call->web.get.truncated = true;
    buf_done(&page);
    return read;
}

static void put_result(struct tool_call *call, struct str text) {
    static const size_t frame = sizeof "{\"url\":,\"body\":,\"truncated\":true}" - 1;
    struct buf url, quoted;
    buf_init(&url, SIZE_MAX);
    buf_init(&quoted, SIZE_MAX);
    get_put_address(&url, buf_str(&call->web.get.url));
    json_put_str(&quoted, local_fit(buf_str(&url), LOCAL_RESULT_MAX_BYTES / 4));

    struct str body = local_fit(text, LOCAL_RESULT_MAX_BYTES - frame - quoted.len);
    struct json_writer w = json_writer(&call->web.result);
    json_open_object(&w);
    json_member_raw(&w, "url", buf_str(&quoted));
    json_member_str(&w, "body", body);
    if (call->web.get.truncated || body.len < text.len) json_member_bool(&w, "truncated", true);
    json_close(&w);
    buf_done(&quoted);
    buf_done(&url);
}

static bool read_page(struct tool_call *call) {
    call->give_up_ms = clock_mono_ms() + READING_MS;
    struct buf text;
    buf_init(&text, 4 * BODY_MAX_BYTES); /* no charset needs more than 4 bytes for one */
    struct str type = media_type(buf_str(&call->web.get.type));
    enum page_kind kind =
        type.len ? kind_of_type(type) : kind_of_bytes(buf_str(&call->web.get.body));
    bool read = kind != PAGE_OTHER || err_set(&call->web.why, ERR_INVALID_ARGUMENT,
                                              "the content is not text, and has no type");
    if (read) read = to_text(call, kind, &text);
    if (read && !buf_ok(&text)) call->web.get.truncated = true;
    if (read) put_result(call, buf_str(&text));
    buf_done(&text);
    return read && local_result(&call->web.result, &call->web.why);
}

/* ---- Fetching. On the loop. ---- */

static bool web_fetch_on_head(struct get *get, void *ctx) {
    (void)ctx;
    struct str type = media_type(buf_str(&get->type));
    if (get->status >= 400) get->keep_bytes = REASON_BYTES;
    if (get->status >= 300) return get->status >= 400;
    return type.len == 0 || kind_of_type(type) != PAGE_OTHER;
}

static bool refused_status(struct tool_call *call) {
    struct buf said;
    buf_init(&said, 4 * REASON_BYTES);
    struct str body = str_trim(buf_str(&call->web.get.body));
    utf8_append_repaired(&said, str_head(body, body.len - utf8_pending(body)));
    err_set(&call->web.why, ERR_UNAVAILABLE, "the server answered %u%s" STR_FMT,
            call->web.get.status, said.len ? ": " : "", STR_ARG(buf_str(&said)));
    buf_done(&said);
    return false;
}

/* Whether there is a page to convert. */
static bool web_fetch_judge(struct tool_call *call, const struct err *failed) {
    struct str type = media_type(buf_str(&call->web.get.type));
    if (failed) {
        call->web.why = *failed;
        return false;
    }
    if (call->web.get.status >= 400) return refused_status(call);
    if (call->web.get.status >= 300)
        return err_set(&call->web.why, ERR_UNAVAILABLE,
                       "the server answered %u, a redirect that leads nowhere or too far",
                       call->web.get.status);
    if (type.len && kind_of_type(type) == PAGE_OTHER)
        return err_set(&call->web.why, ERR_INVALID_ARGUMENT,
                       "the content is not text, it is " STR_FMT, STR_ARG(str_head(type, 80)));
    return true;
}

static void web_fetch_call_free(struct tool_call *call) {
    free(call);
}

static const struct web_call_kind fetching = {web_fetch_judge, read_page, web_fetch_call_free};

/* Check that the address can be requested and holds no secret. */
static bool check_address(struct str url, struct err *e) {
    bool web = str_equal_nocase(str_head(url, 7), STR("http://")) ||
               str_equal_nocase(str_head(url, 8), STR("https://"));
    if (!web)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'url' must begin with http:// or https://, nothing else is fetched");
    if (url.len > ADDRESS_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "'url' is longer than %d bytes",
                       ADDRESS_MAX_BYTES);
    if (get_has_user(url))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'url' names a user or a password; such addresses are not fetched");
    for (size_t i = 0; i < url.len; i++) {
        if ((unsigned char)url.at[i] <= ' ' || url.at[i] == 0x7F)
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "'url' has a space or a control character in it; write %%20 for a "
                           "space");
    }
    return true;
}

static void web_fetch_ask(struct tool_call *call, struct http_pool *pool, struct json args,
                          struct str url) {
    static const struct http_header headers[] = {
        {STR_INIT("user-agent"), STR_INIT("weir (web_fetch; on behalf of a user)")},
        {STR_INIT("accept"),
         STR_INIT(
             "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,*/*;q=0.1")},
    };
    struct http_request request = {
        .method = STR("GET"),
        .url = url,
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .total_ms =
            1000 * local_number(args, STR("timeout_seconds"), 1, TIMEOUT_MAX_S, TIMEOUT_S),
        .redirects_max = REDIRECTS_MAX,
        .reach = HTTP_PUBLIC_ONLY,
    };
    size_t keep = local_number(args, STR("max_bytes"), 1, BODY_MAX_BYTES, BODY_MAX_BYTES);
    web_call_get(call, pool, &request, keep, web_fetch_on_head);
}

/* False: `why` says what is wrong with the arguments. */
static bool web_fetch_begin(struct tool_call *call, struct http_pool *pool, struct str text) {
    struct json args;
    struct str url;
    struct arena *arena = arena_new(2 * text.len + 4 * KIB);
    bool begun = local_args(text, &args, &call->web.why) &&
                 (json_str(json_find(args, STR("url")), arena, &url) ||
                  err_set(&call->web.why, ERR_INVALID_ARGUMENT, "'url' must be a string"));
    if (begun) begun = check_address(str_trim(url), &call->web.why);
    if (begun) web_fetch_ask(call, pool, args, str_trim(url));
    arena_free(arena);
    return begun;
}

static struct tool_call *fetch_start(struct tool *tool, struct loop *loop,
                                     const struct tool_request *request, tool_done_fn *done,
                                     void *ctx) {
    struct tool_call *call = MEM_NEW(struct tool_call);
    struct http_pool *pool = CONTAINER_OF(tool, struct web_fetch, base)->pool;
    web_call_init(call, &fetching, loop, done, ctx);
    if (!web_fetch_begin(call, pool, request->args)) web_call_refuse(call);
    return call;
}

static const struct tool_kind web_fetch_kind = {
    .name = "web_fetch",
    .start = fetch_start,
    .cancel = web_call_cancel,
    .free = local_tool_free,
};

static const struct str parameters = STR_INIT(
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"url\"],\"properties\":"
    "{"
    "\"url\":{\"type\":\"string\",\"minLength\":1,"
    "\"description\":\"A public address that begins with http:// or https://.\"},"
    "\"max_bytes\":{\"type\":\"integer\",\"minimum\":1,"
    "\"description\":\"Read no more of the page; at most 204800, which is the default.\"},"
    "\"timeout_seconds\":{\"type\":\"integer\",\"minimum\":1,"
    "\"description\":\"Give up after so long; 10 when left out, at most "
    "60.\"}," LOCAL_DESCRIPTION "}}");

struct tool *web_fetch_tool_new(struct http_pool *pool) {
    struct web_fetch *tool = MEM_NEW(struct web_fetch);
    tool->pool = pool;
    tool->base = (struct tool){.kind = &web_fetch_kind,
                               .name = STR("web_fetch"),
                               .description = STR("Read a page of the web as text."),
                               .parameters = parameters,
                               .idempotent = true,
                               .timeout_ms = 1000 * TIMEOUT_MAX_S + READING_MS};
    local_tool_init(&tool->base);
    return &tool->base;
}

#include "tool/web_search.h"

#include "base/mem.h"
#include "tool/web_call.h"

#include <stdlib.h>

#define ANSWER_MAX_BYTES (4 * MIB)
#define TIMEOUT_MS 10000
#define RESULTS 5
#define RESULTS_MAX 15
#define ADDRESS_MAX_BYTES 2048
#define TITLE_MAX_BYTES 400
#define SNIPPET_MAX_BYTES 1600

/* How to query one search engine, and where its answer holds what. */
struct backend {
    struct str name;
    struct str base_url;   /* empty: must be configured */
    struct str path;       /* with the query string, except the query itself */
    struct str count;      /* the parameter for the number of results; empty: none */
    struct str key_header; /* empty: no key is needed */
    struct str list[2];    /* path to the array of results */
    struct str snippet;    /* members of a result */
    struct str engine;
    const char *refusal; /* the usual reason for a refusal */
};

static const struct backend backends[] = {
    {
        .name = STR_INIT("searxng"),
        .path = STR_INIT("/search?format=json&safesearch=0&language=en"),
        .list = {STR_INIT("results")},
        .snippet = STR_INIT("content"),
        .engine = STR_INIT("engine"),
        .refusal = "a SearXNG instance must allow the format json in its settings",
    },
    {
        .name = STR_INIT("brave"),
        .base_url = STR_INIT("https://api.search.brave.com"),
        .path = STR_INIT("/res/v1/web/search?safesearch=off&text_decorations=false"),
        .count = STR_INIT("count"),
        .key_header = STR_INIT("x-subscription-token"),
        .list = {STR_INIT("web"), STR_INIT("results")},
        .snippet = STR_INIT("description"),
        .refusal = "its key may be wrong or used up",
    },
};

struct web_search {
    struct tool base;
    struct http_pool *pool;
    const struct backend *backend;
    char *base_url, *key; /* secret: never shown */
};

struct tool_call {
    struct web_call web;
    const struct backend *backend;
    struct arena *arena; /* used by the worker while it reads, like the body and the result */
    struct str query;    /* in the arena */
    size_t results_max;
};

/* ---- Settings ---- */

static const struct backend *find_backend(struct str name) {
    for (size_t i = 0; i < ARRAY_LEN(backends); i++) {
        if (str_equal(name, backends[i].name)) return &backends[i];
    }
    return NULL;
}

static bool is_address(struct str url) {
    bool web = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.at[i];
        if (c <= ' ' || c >= 0x7F || c == '?' || c == '#') return false;
    }
    return web && url.len <= ADDRESS_MAX_BYTES;
}

/* Check that the key is valid as a header value. */
static bool is_key(struct str key) {
    for (size_t i = 0; i < key.len; i++) {
        if ((unsigned char)key.at[i] <= ' ' || (unsigned char)key.at[i] >= 0x7F) return false;
    }
    return true;
}

bool web_search_check(const struct web_search_options *options, struct err *e) {
    const struct backend *backend = find_backend(options->backend);
    if (!backend)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "no search backend '" STR_FMT "'; there are searxng and brave",
                       STR_ARG(str_head(options->backend, 40)));
    if (!options->base_url.len && !backend->base_url.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the search backend " STR_FMT " needs its address, such as "
                       "http://127.0.0.1:8888",
                       STR_ARG(backend->name));
    if (options->base_url.len && !is_address(options->base_url))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the search backend's address must begin with http:// or https:// and "
                       "end before any ? or #");
    if (backend->key_header.len && !options->key.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "the search backend " STR_FMT " needs a key",
                       STR_ARG(backend->name));
    return is_key(options->key) ||
           err_set(
               e, ERR_INVALID_ARGUMENT,
               "the search backend's key holds a space or a line break; check how it is set");
}

/* ---- The answer. On a worker. ---- */

static struct str web_search_member(struct json row, struct str name, struct arena *arena) {
    struct str text;
    return json_str(json_find(row, name), arena, &text) ? str_trim(text) : STR_EMPTY;
}

/* False: the row has no usable address. */
static bool web_search_put_row(const struct backend *backend, struct json row,
                               struct arena *arena, struct buf *out) {
    struct str title = web_search_member(row, STR("title"), arena);
    struct str url = web_search_member(row, STR("url"), arena);
    struct str engine =
        backend->engine.len ? web_search_member(row, backend->engine, arena) : backend->name;
    struct str snippet = web_search_member(row, backend->snippet, arena);
    if (!title.len || !url.len || url.len > ADDRESS_MAX_BYTES) return false;

    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "title", local_fit(title, TITLE_MAX_BYTES));
    json_member_str(&w, "url", url);
    json_member_str(&w, "snippet", local_fit(snippet, SNIPPET_MAX_BYTES));
    json_member_str(&w, "engine", local_fit(engine, 100));
    json_close(&w);
    return true;
}

/* Write as many rows as were requested and fit. */
static void put_rows(struct tool_call *call, struct json list, struct json_writer *w) {
    size_t count = 0;
    struct json row;
    struct json_reader reader = json_enter(list);
    while (count < call->results_max && json_next_item(&reader, &row)) {
        struct buf text;
        buf_init(&text, LOCAL_RESULT_MAX_BYTES);
        bool usable =
            web_search_put_row(call->backend, row, call->arena, &text) && buf_ok(&text);
        bool fits = call->web.result.len + text.len + 8 < LOCAL_RESULT_MAX_BYTES;
        if (usable && fits) {
            json_write_raw(w, buf_str(&text));
            count++;
        }
        buf_done(&text);
        if (usable && !fits) return;
    }
}

/* Find the array of results. It is empty when nothing was found; some engines then leave it
 * out. Any other answer without it is an error. */
static bool find_rows(const struct tool_call *call, struct json answer, struct json *ret) {
    *ret = answer;
    for (size_t i = 0; i < ARRAY_LEN(call->backend->list) && call->backend->list[i].len; i++)
        *ret = json_find(*ret, call->backend->list[i]);
    return answer.kind == JSON_OBJECT && (ret->kind == JSON_ARRAY || ret->kind == JSON_NONE);
}

static bool web_search_read_answer(struct tool_call *call) {
    struct json answer, rows;
    struct err inner; /* quotes the answer, which may be anything */
    if (!json_read(buf_str(&call->web.get.body), &answer, &inner) ||
        !find_rows(call, answer, &rows))
        return err_set(&call->web.why, ERR_UNAVAILABLE,
                       "the search backend's answer is malformed");

    struct json_writer w = json_writer(&call->web.result);
    json_open_object(&w);
    json_member_str(&w, "query", local_fit(call->query, SNIPPET_MAX_BYTES));
    json_member_array(&w, "results");
    put_rows(call, rows, &w);
    json_close(&w);
    json_close(&w);
    return local_result(&call->web.result, &call->web.why);
}

/* ---- The call ---- */

static void web_search_call_free(struct tool_call *call) {
    arena_free(call->arena);
    free(call);
}

/* Report the failure without the client's own text, which contains the address. */
static bool unreachable(struct tool_call *call, const struct err *failed) {
    const char *what = "cannot be reached";
    if (failed->code == ERR_DEADLINE_EXCEEDED) what = "did not answer in time";
    return err_set(&call->web.why, failed->code, "the search backend %s", what);
}

static bool web_search_judge(struct tool_call *call, const struct err *failed) {
    if (failed) return unreachable(call, failed);
    if (call->web.get.status >= 300)
        return err_set(&call->web.why, ERR_UNAVAILABLE, "the search backend answered %u; %s",
                       call->web.get.status,
                       call->web.get.status < 500 ? call->backend->refusal : "try again later");
    return !call->web.get.truncated ||
           err_set(&call->web.why, ERR_UNAVAILABLE,
                   "the search backend's answer is larger than %zu bytes", ANSWER_MAX_BYTES);
}

static const struct web_call_kind searching = {web_search_judge, web_search_read_answer,
                                               web_search_call_free};

static void put_url(const struct web_search *search, const struct tool_call *call,
                    struct buf *out) {
    struct str base =
        search->base_url[0] ? str_from(search->base_url) : call->backend->base_url;
    while (str_ends(base, STR("/"))) base.len--;
    buf_append(out, base);
    buf_append(out, call->backend->path);
    if (call->backend->count.len)
        buf_printf(out, "&" STR_FMT "=%zu", STR_ARG(call->backend->count), call->results_max);
    buf_append(out, STR("&q="));
    buf_append_percent(out, call->query, "-._~");
}

static void web_search_ask(const struct web_search *search, struct tool_call *call) {
    struct http_header headers[] = {
        {STR("user-agent"), STR("weir (web_search)")},
        {STR("accept"), STR("application/json")},
        {call->backend->key_header, str_from(search->key)},
    };
    struct buf url;
    buf_init(&url, SIZE_MAX);
    put_url(search, call, &url);
    struct http_request request = {
        .method = STR("GET"),
        .url = buf_str(&url),
        .headers = headers,
        .header_count = ARRAY_LEN(headers) - (call->backend->key_header.len ? 0 : 1),
    };
    web_call_get(call, search->pool, &request, ANSWER_MAX_BYTES, NULL);
    buf_done(&url);
}

static bool take_args(struct tool_call *call, struct str text) {
    struct json args;
    if (!local_args(text, &args, &call->web.why)) return false;
    if (!json_str(json_find(args, STR("query")), call->arena, &call->query))
        return err_set(&call->web.why, ERR_INVALID_ARGUMENT, "'query' must be a string");
    call->query = str_trim(call->query);
    call->results_max = local_number(args, STR("max_results"), 1, RESULTS_MAX, RESULTS);
    return call->query.len > 0 || err_set(&call->web.why, ERR_INVALID_ARGUMENT,
                                          "'query' is empty; say what to search for");
}

static struct tool_call *search_start(struct tool *tool, struct loop *loop,
                                      const struct tool_request *request, tool_done_fn *done,
                                      void *ctx) {
    const struct web_search *search = CONTAINER_OF(tool, struct web_search, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    call->backend = search->backend;
    web_call_init(call, &searching, loop, done, ctx);
    call->arena = arena_new(request->args.len + 2 * ANSWER_MAX_BYTES);
    struct str args;
    if (!arena_str(call->arena, request->args, &args)) abort(); /* the arena was sized for it */
    if (take_args(call, args)) {
        web_search_ask(search, call);
    } else {
        web_call_refuse(call);
    }
    return call;
}

/* ---- The tool ---- */

static void search_free(struct tool *tool) {
    struct web_search *search = CONTAINER_OF(tool, struct web_search, base);
    local_tool_done(tool);
    free(search->base_url);
    free(search->key);
    free(search);
}

static const struct tool_kind web_search_kind = {
    .name = "web_search",
    .start = search_start,
    .cancel = web_call_cancel,
    .free = search_free,
};

static const struct str parameters = STR_INIT(
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"query\"],"
    "\"properties\":{"
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":400,"
    "\"description\":\"What to search for.\"},"
    "\"max_results\":{\"type\":\"integer\",\"minimum\":1,"
    "\"description\":\"How many pages; 5 when left out, at most 15.\"}," LOCAL_DESCRIPTION
    "}}");

struct tool *web_search_tool_new(const struct web_search_options *options) {
    struct web_search *search = MEM_NEW(struct web_search);
    search->pool = options->pool;
    search->backend = find_backend(options->backend);
    search->base_url = str_dup(options->base_url);
    search->key = str_dup(options->key);
    search->base = (struct tool){.kind = &web_search_kind,
                                 .name = STR("web_search_tool"),
                                 .description = STR("Search the web for pages."),
                                 .parameters = parameters,
                                 .idempotent = true,
                                 .timeout_ms = TIMEOUT_MS};
    local_tool_init(&search->base);
    return &search->base;
}

#include "mcp/post.h"

#include "base/log.h"

#define CONNECT_MS 10000
#define EXCERPT_BYTES 200
#define STREAM_MAX_BYTES (64 * MIB) /* of all that comes before an answer, and with it */

/* --- the answer --------------------------------------------------------------------------- */

static const struct {
    int64_t code;
    enum err_code means;
} refusals[] = {
    {-32602, ERR_INVALID_ARGUMENT},
    {-32601, ERR_UNIMPLEMENTED},
    {-32600, ERR_INTERNAL},
};

static enum err_code meaning_of(int64_t code) {
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (refusals[i].code == code) return refusals[i].means;
    }
    return ERR_UNKNOWN;
}

static void post_refuse(struct post *post, const struct jsonrpc *message) {
    struct buf text;
    buf_init(&text, POST_ANSWER_MAX_BYTES);
    json_text(message->message, &text);
    err_set(&post->why, meaning_of(message->code), "the MCP server says: " STR_FMT " (%lld)",
            STR_ARG(str_head(buf_str(&text), 2 * EXCERPT_BYTES)), (long long)message->code);
    buf_done(&text);
    post->refusal_code = message->code;
    post->refusal_data = message->data;
    post->broken = true;
}

static bool post_take_message(const struct jsonrpc *message, void *ctx) {
    struct post *post = ctx;
    bool about_nothing = message->kind == JSONRPC_ERROR &&
                         (message->id.kind == JSON_NULL || message->id.kind == JSON_NONE);
    if (message->kind == JSONRPC_REQUEST || message->kind == JSONRPC_NOTIFICATION) {
        post->sink->asked(message, post->ctx);
    } else if (about_nothing || jsonrpc_answers(message, post->id)) {
        if (message->kind == JSONRPC_ERROR) {
            post_refuse(post, message);
        } else {
            post->answered = true;
            post->result = message->result;
        }
    }
    return !post->answered && !post->broken;
}

/* Keep the answer; the event's bytes are only lent. */
static void take_data(struct post *post, struct str data) {
    buf_clear(&post->got);
    buf_append(&post->got, data);
    jsonrpc_each(buf_str(&post->got), &post->mended, post_take_message, post);
}

static void post_on_event(const struct sse_event *event, void *ctx) {
    struct post *post = ctx;
    if (!str_equal(event->type, STR("message")) || post->answered || post->broken) return;
    take_data(post, event->data);
    if (post->answered || post->broken) sse_stop(post->sse);
}

/* --- the end ------------------------------------------------------------------------------ */

static void leave_pipe(struct post *post) {
    if (post->pipe_posts) list_remove(&post->link);
    post->pipe_posts = NULL;
}

static void post_finish(struct post *post, enum post_outcome outcome) {
    if (post->call) http_cancel(post->call);
    post->call = NULL;
    timer_stop(&post->late);
    task_cancel(&post->accepted);
    leave_pipe(post);
    post->sink->done(post, outcome, post->ctx);
}

static void post_fail(struct post *post, enum err_code code, const char *what) {
    err_set(&post->why, code, "the MCP server %s", what);
    post_finish(post, POST_FAILED);
}

/* A short readable part of a refusal's body. */
static struct str excerpt(struct post *post) {
    struct str text = str_head(str_trim(buf_str(&post->got)), EXCERPT_BYTES);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte < ' ' || byte >= 0x7F) return str_head(text, i);
    }
    return text;
}

static enum err_code post_code_of(unsigned status) {
    if (status == 401) return ERR_UNAUTHENTICATED;
    if (status == 403) return ERR_PERMISSION_DENIED;
    if (status == 404) return ERR_NOT_FOUND;
    if (status == 429) return ERR_RESOURCE_EXHAUSTED;
    return ERR_UNAVAILABLE;
}

/* A refusal by status may say more in its body. */
static void note_refusal(struct post *post) {
    struct jsonrpc message;
    struct json value;
    struct err e;
    if (!post->is_json || !json_read(buf_str(&post->got), &value, &e) ||
        !jsonrpc_read(value, &message, &e) || message.kind != JSONRPC_ERROR)
        return;
    post->refusal_code = message.code;
    post->refusal_data = message.data;
}

static void fail_status(struct post *post) {
    struct str text = excerpt(post);
    note_refusal(post);
    post->unsure = post->status >= 500 && post->status != 503; /* 503: it had no effect */
    err_set(&post->why, post_code_of(post->status), "the MCP server answered %u%s" STR_FMT,
            post->status, text.len ? ": " : "", STR_ARG(text));
    post_finish(post, POST_FAILED);
}

static void conclude(struct post *post) {
    if (post->answered) {
        post_finish(post, POST_ANSWERED);
    } else if (post->broken) {
        post_finish(post, POST_FAILED);
    } else {
        post->cut = post->sse != NULL;
        post->unsure = true;
        post_fail(post, ERR_UNAVAILABLE,
                  post->cut ? "ended its stream before the answer came"
                            : "answered with something that is not an answer");
    }
}

/* Report the failure without the client's own text, which may contain the address. */
static void fail_call(struct post *post, const struct err *failed, enum http_stage stage) {
    post->unsure = stage != HTTP_CONNECTING;
    if (failed->code == ERR_TOO_LARGE) {
        post_fail(post, ERR_TOO_LARGE,
                  post->sse ? "sent more than 64 MiB and no answer"
                            : "answered with more than 4 MiB");
    } else if (failed->code == ERR_DEADLINE_EXCEEDED) {
        post_fail(post, ERR_DEADLINE_EXCEEDED, "did not answer in time");
    } else {
        post->cut = failed->code == ERR_UNAVAILABLE;
        post->unsent = post->cut && stage == HTTP_CONNECTING;
        post_fail(post, ERR_UNAVAILABLE,
                  post->unsent ? "cannot be reached" : "closed the connection");
    }
}

/* --- the response ------------------------------------------------------------------------- */

bool post_is_type(struct str type, struct str wanted) {
    struct str rest;
    return str_equal_nocase(str_trim(str_split(type, ';', &rest)), wanted);
}

static void post_on_head(const struct http_head *head, void *ctx) {
    struct post *post = ctx;
    post->status = head->status;
    if (!buf_append(&post->session, head->session)) {
        post->unsure = true;
        post_fail(post, ERR_TOO_LARGE, "gave its session an id of more than 8 KiB");
    } else if (head->status == 404 && post->had_session) {
        post_finish(post, POST_LOST);
    } else if (head->status < 300 && !post->id) {
        post_finish(post, POST_ACCEPTED);
    } else if (head->status < 300 &&
               post_is_type(head->content_type, STR("text/event-stream"))) {
        post->sse = sse_new(POST_ANSWER_MAX_BYTES, post_on_event, post);
    } else {
        post->is_json = post_is_type(head->content_type, STR("application/json"));
    }
}

static void post_on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct post *post = ctx;
    struct err e;
    bool fits = post->sse ? sse_feed(post->sse, bytes, &e) : buf_append(&post->got, bytes);
    if (!fits) {
        post->unsure = true;
        post_fail(post, ERR_TOO_LARGE, "answered with more than 4 MiB");
    } else if (post->answered || post->broken) {
        conclude(post);
    }
}

static void post_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct post *post = ctx;
    post->call = NULL;
    if (failed) {
        fail_call(post, failed, stage);
    } else if (post->status >= 300) {
        fail_status(post);
    } else {
        if (post->is_json)
            jsonrpc_each(buf_str(&post->got), &post->mended, post_take_message, post);
        conclude(post);
    }
}

static const struct http_sink http_sink = {post_on_head, post_on_body, post_on_end};

/* --- the request -------------------------------------------------------------------------- */

/* No byte that could end a header, or be invisible in one. */
static bool post_is_plain(struct str value) {
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.at[i] < ' ' || (unsigned char)value.at[i] >= 0x7F)
            return false;
    }
    return true;
}

/* Returns how many there are. */
static size_t write_headers(const struct post_request *request,
                            struct http_header ret[POST_HEADERS_MAX]) {
    bool is_get = request->body.len == 0;
    const struct http_header wished[] = {
        {STR("content-type"), is_get ? STR_EMPTY : STR("application/json")},
        {STR("accept"),
         is_get ? STR("text/event-stream") : STR("application/json, text/event-stream")},
        {STR("user-agent"), STR("weir (mcp)")},
        {STR("authorization"), request->authorization},
        {STR("mcp-session-id"), request->session},
        {STR("mcp-protocol-version"), request->version},
        {STR("mcp-method"), request->method},
        {STR("mcp-name"), request->name},
        {STR("last-event-id"), request->last_id},
    };
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(wished); i++) {
        if (wished[i].value.len && post_is_plain(wished[i].value)) ret[count++] = wished[i];
    }
    for (size_t i = 0; i < request->header_count && count < POST_HEADERS_MAX; i++) {
        if (post_is_plain(request->headers[i].value)) ret[count++] = request->headers[i];
    }
    return count;
}

struct http_call *post_over_http(struct http_pool *pool, struct loop *loop,
                                 const struct post_request *request,
                                 const struct http_sink *sink, void *ctx) {
    struct http_header headers[POST_HEADERS_MAX];
    bool is_get = request->body.len == 0;
    struct http_request http = {.method = is_get ? STR("GET") : STR("POST"),
                                .url = request->url,
                                .headers = headers,
                                .header_count = write_headers(request, headers),
                                .body = request->body,
                                .connect_ms = CONNECT_MS,
                                .total_ms = request->total_ms,
                                .once = request->once,
                                .body_max_bytes = is_get ? 0 : STREAM_MAX_BYTES};
    return http_start(pool, loop, &http, sink, ctx);
}

/* --- resumed ------------------------------------------------------------------------------ */

struct str post_last_id(const struct post *post) {
    bool cut = post->sse && post->cut && post_is_plain(sse_last_id(post->sse));
    return cut ? sse_last_id(post->sse) : STR_EMPTY;
}

bool post_retry_ms(const struct post *post, uint64_t *ret_retry_ms) {
    return post->sse && sse_retry_ms(post->sse, ret_retry_ms);
}

void post_hear(struct post *post, struct str data) {
    take_data(post, data);
    if (!post->answered && !post->broken) return;
    post->cut = post->unsure = false;
    conclude(post);
}

/* --- in a pipe ---------------------------------------------------------------------------- */

static void post_on_late(void *ctx) {
    struct post *post = ctx;
    post->unsure = true;
    post_fail(post, ERR_DEADLINE_EXCEEDED, "did not answer in time");
}

static void fail_down(struct post *post, const char *what) {
    post->cut = true;
    post->unsure = !post->unsent;
    post_fail(post, ERR_UNAVAILABLE, what);
}

static void on_accepted(void *ctx) {
    struct post *post = ctx;
    if (post->unsent) {
        fail_down(post, "accepts no more messages");
    } else {
        post_finish(post, POST_ACCEPTED);
    }
}

static void start_in_pipe(struct post *post, struct loop *loop,
                          const struct post_request *request) {
    post->pipe_posts = request->pipe_posts;
    list_append(&post->pipe_posts->waiting, &post->link);
    timer_init(&post->late, loop, post_on_late, post);
    post->unsent = !pipe_send(request->pipe_posts->pipe, request->body);
    if (!post->id || post->unsent) {
        loop_defer(loop, &post->accepted);
    } else if (request->total_ms) {
        timer_start(&post->late, request->total_ms);
    }
}

/* A call whose answer cannot be read would only wait for its time limit. */
static void conclude_unreadable(struct pipe_posts *pipe_posts, struct json id) {
    LIST_EACH(&pipe_posts->waiting, link) {
        struct post *post = CONTAINER_OF(link, struct post, link);
        if (!post->id || !jsonrpc_is_number(id, post->id)) continue;
        conclude(post);
        return;
    }
}

static void take_unreadable(struct pipe_posts *pipe_posts, struct json value,
                            const struct err *why) {
    struct json id = jsonrpc_refused_id(value);
    log_often(LOG_WARNING, "a message of an MCP server cannot be read: %s", why->text);
    conclude_unreadable(pipe_posts, id);
}

void post_take_unread(struct pipe_posts *pipe_posts, struct str line) {
    struct json id = jsonrpc_unread_id(line);
    conclude_unreadable(pipe_posts, id);
}

bool post_take(struct pipe_posts *pipe_posts, struct json value) {
    struct jsonrpc message;
    struct err e;
    if (!jsonrpc_read(value, &message, &e)) {
        take_unreadable(pipe_posts, value, &e);
        return true;
    }
    if (message.kind != JSONRPC_RESULT && message.kind != JSONRPC_ERROR) return false;
    LIST_EACH(&pipe_posts->waiting, link) {
        struct post *post = CONTAINER_OF(link, struct post, link);
        if (!post->id || !jsonrpc_answers(&message, post->id)) continue;
        post_take_message(&message, post);
        conclude(post);
        return true;
    }
    return true; /* its call was cancelled */
}

void post_pipe_down(struct pipe_posts *pipe_posts) {
    struct list failed, *link;
    list_init(&failed);
    list_move(&pipe_posts->waiting, &failed);
    while ((link = list_pop(&failed)))
        fail_down(CONTAINER_OF(link, struct post, link), "ended before it answered");
}

/* --- any ---------------------------------------------------------------------------------- */

void post_start(struct post *post, struct http_pool *pool, struct loop *loop,
                const struct post_request *request, const struct post_sink *sink, void *ctx) {
    *post = (struct post){
        .sink = sink, .ctx = ctx, .id = request->id, .had_session = request->session.len > 0};
    task_init(&post->accepted, on_accepted, post);
    buf_init(&post->sent, SIZE_MAX);
    buf_init(&post->got, POST_ANSWER_MAX_BYTES);
    buf_init(&post->mended, POST_ANSWER_MAX_BYTES);
    buf_init(&post->session, POST_SESSION_MAX_BYTES);
    if (request->pipe_posts) {
        start_in_pipe(post, loop, request);
        return;
    }
    buf_append(&post->sent, request->body);
    struct post_request kept = *request;
    kept.body = buf_str(&post->sent);
    post->call = post_over_http(pool, loop, &kept, &http_sink, post);
}

void post_stop(struct post *post) {
    if (post->call) http_cancel(post->call);
    post->call = NULL;
    timer_stop(&post->late);
    if (post->sink) task_cancel(&post->accepted); /* it has been started */
    leave_pipe(post);
    sse_free(post->sse);
    post->sse = NULL;
    buf_done(&post->sent);
    buf_done(&post->got);
    buf_done(&post->mended);
    buf_done(&post->session);
}

#include "mcp/sending.h"

static bool survives_header(struct str id) {
    for (size_t i = 0; i < id.len; i++) {
        if (id.at[i] < ' ' || id.at[i] > '~') return false;
    }
    return str_trim(id).len == id.len;
}

static bool check_id(const char *whose, struct str id, struct str header, struct err *e) {
    return !header.len || survives_header(id) ||
           err_set(
               e, ERR_INVALID_ARGUMENT,
               "the call was not sent: the id of the %s cannot stand in the header '" STR_FMT
               "', which carries printable ASCII without a space at either end",
               whose, STR_ARG(header));
}

bool mcp_caller_check(const struct mcp_client *client, const struct mcp_caller *caller,
                      struct err *e) {
    const struct mcp_options *options = &client->options;
    if (client->pipe_posts.pipe) return true; /* it has no headers */
    return check_id("user", caller->user, options->user_header, e) &&
           check_id("conversation", caller->conversation, options->conversation_header, e);
}

static size_t headers_for(const struct mcp_client *client, const struct mcp_sending *sending,
                          struct http_header *out) {
    const struct mcp_options *options = &client->options;
    const struct mcp_caller *caller = sending->caller;
    size_t room = POST_HEADERS_MAX - 2 - sending->more_count;
    const struct http_header of_caller[] = {
        {options->user_header, caller->user},
        {options->conversation_header, caller->conversation},
    };
    size_t count = 0;
    for (; count < options->header_count && count < room; count++)
        out[count] = options->headers[count];
    for (size_t i = 0; i < ARRAY_LEN(of_caller); i++) {
        if (of_caller[i].name.len && of_caller[i].value.len) out[count++] = of_caller[i];
    }
    for (size_t i = 0; i < sending->more_count; i++) out[count++] = sending->more[i];
    return count;
}

/* What a request borrows while it is made. */
struct prepared {
    struct http_header headers[POST_HEADERS_MAX];
    struct buf authorization;
    struct post_request request;
};

/* The caller ends it with buf_done() on the authorization, also after a failure. */
static bool sending_prepare(struct mcp_client *client, const struct mcp_sending *sending,
                            struct prepared *ret, struct err *e) {
    const struct mcp_options *options = &client->options;
    const struct mcp_session *session = sending->session;
    const char *version = sending->version;
    buf_init(&ret->authorization, 8 * KIB);
    if (options->authorize &&
        !options->authorize(sending->caller, &ret->authorization, options->ctx, e))
        return false;
    if (!version && session) version = session->version;
    ret->request = (struct post_request){
        .pipe_posts = client->pipe_posts.pipe ? &client->pipe_posts : NULL,
        .url = str_from(client->endpoint),
        .headers = ret->headers,
        .header_count = headers_for(client, sending, ret->headers),
        .authorization = buf_str(&ret->authorization),
        .session = session ? buf_str(&session->id) : STR_EMPTY,
        .version = str_from(version),
        .method = sending->method,
        .name = sending->name,
        .last_id = sending->last_id,
        .body = sending->body,
        .id = sending->id,
        .total_ms = sending->total_ms,
        .once = sending->once,
    };
    return true;
}

bool mcp_send(struct mcp_client *client, const struct mcp_sending *sending, struct post *post,
              const struct post_sink *sink, void *ctx, struct err *e) {
    struct prepared prepared;
    bool authorized = sending_prepare(client, sending, &prepared, e);
    if (authorized) {
        post_stop(post);
        post_start(post, client->pool, client->loop, &prepared.request, sink, ctx);
    }
    buf_done(&prepared.authorization);
    return authorized;
}

bool mcp_get(struct mcp_client *client, const struct mcp_sending *sending,
             const struct http_sink *sink, void *ctx, struct http_call **ret, struct err *e) {
    struct prepared prepared;
    bool authorized = sending_prepare(client, sending, &prepared, e);
    if (authorized)
        *ret = post_over_http(client->pool, client->loop, &prepared.request, sink, ctx);
    buf_done(&prepared.authorization);
    return authorized;
}

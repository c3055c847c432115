#include "mcp/sending.h"

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

bool mcp_send(struct mcp_client *client, const struct mcp_sending *sending, struct post *post,
              const struct post_sink *sink, void *ctx, struct err *e) {
    const struct mcp_session *session = sending->session;
    const char *version = sending->version;
    struct http_header headers[POST_HEADERS_MAX];
    struct buf authorization;
    buf_init(&authorization, 8 * KIB);
    bool authorized =
        !client->options.authorize ||
        client->options.authorize(sending->caller, &authorization, client->options.ctx, e);
    if (!version && session) version = session->version;
    if (authorized) {
        post_stop(post);
        post_start(post, client->pool, client->loop,
                   &(struct post_request){
                       .desk = client->desk.pipe ? &client->desk : NULL,
                       .url = str_from(client->endpoint),
                       .headers = headers,
                       .header_count = headers_for(client, sending, headers),
                       .authorization = buf_str(&authorization),
                       .session = session ? buf_str(&session->id) : STR_EMPTY,
                       .version = str_from(version),
                       .method = sending->method,
                       .name = sending->name,
                       .body = sending->body,
                       .id = sending->id,
                       .total_ms = sending->total_ms,
                       .once = sending->once,
                   },
                   sink, ctx);
    }
    buf_done(&authorization);
    return authorized;
}

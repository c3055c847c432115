#include "tool/get.h"

#define TYPE_MAX_BYTES 256
#define URL_MAX_BYTES (8 * KIB)
/* Margin over the kept bytes, so that the client does not fail a call that ends here anyway. */
#define SLACK_BYTES (64 * KIB)

/* End the call, even if the server sends more. */
static void get_stop(struct get *get) {
    struct http_call *call = get->call;
    get->call = NULL;
    get->stage = HTTP_READING;
    http_cancel(call);
    get->done(NULL, get->ctx);
}

static void get_on_head(const struct http_head *head, void *ctx) {
    struct get *get = ctx;
    get->status = head->status;
    buf_append(&get->type, str_head(head->content_type, TYPE_MAX_BYTES));
    buf_append(&get->url, str_head(head->url, URL_MAX_BYTES));
    if (get->on_head && !get->on_head(get, get->ctx)) get_stop(get);
}

static void get_on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct get *get = ctx;
    size_t room = get->keep_bytes - get->body.len;
    buf_append(&get->body, str_head(bytes, room));
    if (bytes.len <= room) return;
    get->truncated = true;
    get_stop(get);
}

static void get_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct get *get = ctx;
    get->call = NULL;
    get->stage = stage;
    if (failed && failed->code == ERR_TOO_LARGE && stage == HTTP_READING) {
        get->truncated = true;
        failed = NULL;
    }
    get->done(failed, get->ctx);
}

static const struct http_sink sink = {get_on_head, get_on_body, get_on_end};

void get_start(struct get *get, struct http_pool *pool, struct loop *loop,
               const struct http_request *request, size_t keep_bytes, get_head_fn *head_fn,
               get_done_fn *done, void *ctx) {
    *get = (struct get){.keep_bytes = keep_bytes, .on_head = head_fn, .done = done, .ctx = ctx};
    buf_init(&get->type, TYPE_MAX_BYTES);
    buf_init(&get->url, URL_MAX_BYTES);
    buf_init(&get->body, keep_bytes);
    struct http_request bounded = *request;
    bounded.body_max_bytes = keep_bytes + SLACK_BYTES;
    get->call = http_start(pool, loop, &bounded, &sink, get);
}

void get_end(struct get *get) {
    if (get->call) http_cancel(get->call);
    get->call = NULL;
    buf_done(&get->type);
    buf_done(&get->url);
    buf_done(&get->body);
}

/* ---- Addresses ---- */

/* The part between "://" and the path; `ret_at` is its offset. */
static struct str authority(struct str url, size_t *ret_at) {
    size_t scheme = str_find(url, STR("://"));
    *ret_at = scheme == url.len ? url.len : scheme + 3;
    struct str rest = str_skip(url, *ret_at);
    size_t len = 0;
    while (len < rest.len && !strchr("/?#\\", rest.at[len])) len++;
    return str_head(rest, len);
}

/* Length up to and including the last '@'; 0 when there is none. */
static size_t user_len(struct str authority_text) {
    size_t len = authority_text.len;
    while (len > 0 && authority_text.at[len - 1] != '@') len--;
    return len;
}

bool get_has_user(struct str url) {
    size_t at;
    return user_len(authority(url, &at)) > 0;
}

void get_put_address(struct buf *out, struct str url) {
    size_t at;
    size_t user = user_len(authority(url, &at));
    buf_append(out, str_head(url, at));
    buf_append(out, str_skip(url, at + user));
}

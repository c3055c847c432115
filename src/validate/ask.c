#include "validate/ask.h"

#include "base/clock.h"

#include <assert.h>

#define HEAD_MAX_BYTES (64 * KIB)
#define SEEN_BODY_BYTES (1 * KIB)

struct forward_ask {
    struct asker *asker;
    struct reply *reply;
    struct forward *forward; /* NULL: over */
    struct timer timer;
    enum ask_until until;
    bool head_over;
};

/* --- the asker ----------------------------------------------------------------------------- */

void asker_init(struct asker *asker) {
    struct err e;
    *asker = (struct asker){.loop = loop_new(), .pool = http_pool_new()};
    http_pool_add(asker->pool, asker->loop);
    bool ready = http_pool_need(asker->pool, &e); /* what is forwarded uses no proxy */
    (void)ready;
}

void asker_done(struct asker *asker) {
    http_pool_leave(asker->pool, asker->loop);
    loop_free(asker->loop);
    http_pool_free(asker->pool);
}

void asker_hide(struct asker *asker, struct str secret) {
    if (secret.len == 0) return;
    assert(asker->secret_count < ASK_SECRETS_MAX);
    asker->secrets[asker->secret_count++] = secret;
}

static void ask_on_waited(void *ctx) {
    loop_stop(ctx);
}

void asker_wait(struct asker *asker, uint64_t ms) {
    struct timer timer;
    timer_init(&timer, asker->loop, ask_on_waited, asker->loop);
    timer_start(&timer, ms);
    loop_run(asker->loop);
    timer_stop(&timer);
}

/* --- the response -------------------------------------------------------------------------- */

static void ask_over(struct forward_ask *ask) {
    ask->forward = NULL;
    timer_stop(&ask->timer);
    loop_stop(ask->asker->loop);
}

/* Hang up. It frees the request, also inside its callbacks. */
static void hang_up(struct forward_ask *ask) {
    struct forward *forward = ask->forward;
    ask->reply->connected = forward_is_connected(forward);
    ask->reply->reused = forward_is_reused(forward);
    ask_over(ask);
    forward_cancel(forward);
}

static void ask_on_bytes(struct str bytes, void *ctx) {
    struct forward_ask *ask = ctx;
    struct buf *raw = &ask->reply->raw;
    buf_append(raw, str_head(bytes, REPLY_RAW_MAX_BYTES - raw->len));
}

/* A response may be preceded by heads with a status below 200. */
static void ask_on_line(struct str line, void *ctx) {
    struct forward_ask *ask = ctx;
    struct reply *reply = ask->reply;
    if (ask->head_over) return; /* trailers */
    if (str_starts(line, STR("HTTP/"))) {
        uint64_t status = 0;
        buf_clear(&reply->head);
        if (str_to_u64(str_skip(line, line.len - 3), &status)) reply->status = (unsigned)status;
    } else if (line.len == 0) {
        ask->head_over = reply->status >= 200;
    } else {
        buf_append(&reply->head, line);
        if (buf_append_byte(&reply->head, '\n')) return;
        err_set(&reply->failed, ERR_TOO_LARGE, "the head has more than %zu bytes",
                (size_t)REPLY_HEAD_MAX_BYTES);
        hang_up(ask);
    }
}

static void ask_on_body(struct str bytes, void *ctx) {
    struct forward_ask *ask = ctx;
    struct reply *reply = ask->reply;
    if (!reply->first_byte_ms) reply->first_byte_ms = clock_mono_ms();
    if (!buf_append(&reply->body, bytes)) {
        err_set(&reply->failed, ERR_TOO_LARGE, "the body has more than %zu bytes",
                (size_t)REPLY_BODY_MAX_BYTES);
        hang_up(ask);
    } else if (ask->until == ASK_TO_FIRST_BYTE) {
        reply->hung_up = true;
        hang_up(ask);
    }
}

static void ask_on_end(const struct err *why, enum http_stage stage, void *ctx) {
    struct forward_ask *ask = ctx;
    (void)stage;
    ask->reply->connected = forward_is_connected(ask->forward);
    ask->reply->reused = forward_is_reused(ask->forward);
    if (why) ask->reply->failed = *why;
    ask_over(ask);
}

static const struct forward_sink sink = {.on_line = ask_on_line,
                                         .on_body = ask_on_body,
                                         .on_end = ask_on_end,
                                         .on_bytes = ask_on_bytes};

static void ask_on_late(void *ctx) {
    struct forward_ask *ask = ctx;
    struct reply *reply = ask->reply;
    reply->timed_out = true;
    err_set(&reply->failed, ERR_DEADLINE_EXCEEDED, "%s",
            reply->status         ? "the response did not end in time"
            : reply->raw.len == 0 ? "no byte of a response came in time"
                                  : "the head of the response did not end in time");
    hang_up(ask);
}

/* --- the request --------------------------------------------------------------------------- */

static void ask_write_body(const struct question *question, struct buf *out) {
    size_t half = question->body.len / 2;
    if (question->how == ASK_LENGTH) {
        buf_append(out, question->body);
        return;
    }
    buf_printf(out, "%zx\r\n" STR_FMT "\r\n", half, STR_ARG(str_head(question->body, half)));
    buf_printf(out, "%zx\r\n" STR_FMT "\r\n0\r\n\r\n", question->body.len - half,
               STR_ARG(str_skip(question->body, half)));
}

static struct str base_path(struct str path) {
    while (str_ends(path, STR("/"))) path.len--;
    return path;
}

static void ask_write_head(const struct question *question, const struct forward_server *server,
                           struct buf *out) {
    buf_printf(out, STR_FMT " " STR_FMT STR_FMT " HTTP/1.1\r\nHost: " STR_FMT "\r\n",
               STR_ARG(question->method), STR_ARG(base_path(server->path)),
               STR_ARG(question->path), STR_ARG(server->authority));
    buf_append(out, STR("User-Agent: weir-validate\r\nAccept: */*\r\n"));
    buf_append(out, question->fields);
    if (question->how == ASK_CHUNKED)
        buf_append(out, STR("Transfer-Encoding: chunked\r\n"));
    else if (question->body.len || str_equal(question->method, STR("POST")))
        buf_printf(out, "Content-Length: %zu\r\n", question->body.len);
    buf_append(out, STR("\r\n"));
}

static void describe_question(const struct asker *asker, const struct question *question,
                              struct reply *reply) {
    struct buf text;
    buf_init(&text, 64 * KIB);
    buf_printf(&text, STR_FMT " " STR_FMT, STR_ARG(question->method), STR_ARG(question->path));
    struct str rest = question->shown;
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        buf_printf(&text, "\n" STR_FMT, STR_ARG(str_trim(line)));
    }
    if (question->body.len) {
        buf_append_byte(&text, '\n');
        buf_append(&text, str_head(question->body, SEEN_BODY_BYTES));
        if (question->body.len > SEEN_BODY_BYTES)
            buf_printf(&text, " ... (%zu bytes)", question->body.len);
    }
    evidence_append(&reply->sent_text, buf_str(&text), asker->secrets, asker->secret_count);
    buf_done(&text);
}

static void describe_reply(const struct asker *asker, struct reply *reply) {
    struct buf text;
    buf_init(&text, REPLY_HEAD_MAX_BYTES + 64 * KIB);
    if (reply->status) {
        buf_printf(&text, "HTTP/1.1 %u\n", reply->status);
        buf_append(&text, buf_str(&reply->head));
        buf_append_byte(&text, '\n');
        buf_append(&text, str_head(buf_str(&reply->body), SEEN_BODY_BYTES));
        if (reply->body.len > SEEN_BODY_BYTES)
            buf_printf(&text, " ... (%zu bytes)", reply->body.len);
    } else {
        buf_append(&text, buf_str(&reply->raw));
    }
    if (reply->failed.code) buf_printf(&text, "\n(%s)", reply->failed.text);
    evidence_append(&reply->seen_text, str_trim(buf_str(&text)), asker->secrets,
                    asker->secret_count);
    buf_done(&text);
}

static void reply_init(struct reply *reply) {
    *reply = (struct reply){.began_ms = clock_mono_ms()};
    buf_init(&reply->head, REPLY_HEAD_MAX_BYTES);
    buf_init(&reply->body, REPLY_BODY_MAX_BYTES);
    buf_init(&reply->raw, REPLY_RAW_MAX_BYTES);
    buf_init(&reply->sent_text, FINDING_SEEN_MAX_BYTES);
    buf_init(&reply->seen_text, FINDING_SEEN_MAX_BYTES);
}

void reply_done(struct reply *reply) {
    buf_done(&reply->head);
    buf_done(&reply->body);
    buf_done(&reply->raw);
    buf_done(&reply->sent_text);
    buf_done(&reply->seen_text);
}

static void ask_read_body(struct reply *reply) {
    if (!json_read(buf_str(&reply->body), &reply->json, &reply->not_json))
        reply->json = (struct json){.kind = JSON_NONE};
}

/* Run the request; the loop ends when it is over. */
static void forward_blocking(struct forward_ask *ask, const struct question *question,
                             const struct buf *head, const struct buf *body) {
    struct asker *asker = ask->asker;
    struct forward_request request = {.url = question->url,
                                      .head = buf_str(head),
                                      .body = buf_str(body),
                                      .is_head = str_equal(question->method, STR("HEAD")),
                                      .reuse = question->reuse};
    struct reply *reply = ask->reply;
    if (!forward_start(asker->pool, asker->loop, &request, &sink, ask, &ask->forward,
                       &reply->failed))
        return;
    timer_init(&ask->timer, asker->loop, ask_on_late, ask);
    timer_start(&ask->timer, question->timeout_ms);
    loop_run(asker->loop);
    if (!question->keep) forward_close_idle(asker->pool, asker->loop);
}

void ask(struct asker *asker, const struct question *question, struct reply *ret) {
    struct forward_ask ask = {.asker = asker, .reply = ret, .until = question->until};
    struct forward_server server;
    struct buf head, body;
    reply_init(ret);
    asker_wait(asker, 0); /* the report may have waited long for its reader */
    ret->began_ms = clock_mono_ms();
    buf_init(&head, HEAD_MAX_BYTES);
    buf_init(&body, question->body.len + 256);
    if (forward_server_of(question->url, &server, &ret->failed)) {
        ask_write_head(question, &server, &head);
        ask_write_body(question, &body);
        forward_blocking(&ask, question, &head, &body);
    }
    ret->end_ms = clock_mono_ms();
    if (ret->failed.code != ERR_TOO_LARGE) ask_read_body(ret);
    describe_question(asker, question, ret);
    describe_reply(asker, ret);
    if (ret->failed.code == ERR_TOO_LARGE) buf_release(&ret->body); /* many may be kept */
    ret->evidence = (struct evidence){buf_str(&ret->sent_text), buf_str(&ret->seen_text)};
    buf_done(&head);
    buf_done(&body);
}

struct str reply_field(const struct reply *reply, struct str name) {
    struct str rest = buf_str(&reply->head);
    while (rest.len) {
        struct str value, line = str_split(rest, '\n', &rest);
        struct str field = str_split(line, ':', &value);
        if (str_equal_nocase(field, name)) return str_trim(value);
    }
    return (struct str){0};
}

size_t reply_field_count(const struct reply *reply, struct str name) {
    struct str rest = buf_str(&reply->head);
    size_t count = 0;
    while (rest.len) {
        struct str value, line = str_split(rest, '\n', &rest);
        count += str_equal_nocase(str_split(line, ':', &value), name);
    }
    return count;
}

bool reply_is_type(const struct reply *reply, struct str type) {
    struct str rest, field = reply_field(reply, STR("content-type"));
    return str_equal_nocase(str_trim(str_split(field, ';', &rest)), type);
}

bool reply_is_unreachable(const struct reply *reply) {
    return !reply->connected && !reply->status && reply->raw.len == 0;
}

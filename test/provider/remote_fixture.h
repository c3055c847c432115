/* remote_fixture: one call of a remote provider, in a dialect of the tests, on a fake loop with
 * a fake server; what it reports is recorded as "text(Hi) done(m) ".
 */
#ifndef WEIR_TEST_PROVIDER_REMOTE_FIXTURE_H
#define WEIR_TEST_PROVIDER_REMOTE_FIXTURE_H

#include "provider/remote.h"

#include "fake/http_fake.h"
#include "helper/assert_str.h"
#include "helper/reply_heard.h"

#include "base/mem.h"

#include <stdlib.h>

#define KEY "canary-0815-4711-abcdef"
#define GATEWAY_KEY "gateway-secret-98765"

/* --- a dialect of the tests --------------------------------------------------------------- */

/* Each word of an event is one thing said:
 *
 *     t:TEXT  h:THINKING  c:ID  u  o:BYTES  bad  done  cut  m:MODEL  finished  over
 *
 * An answer that comes as a whole holds the same words under "morse".
 */

struct morse {
    struct reply base;
    enum reply_outcome outcome;
    struct buf model;
};

static inline void morse_url(const struct dialect_settings *settings,
                             const struct provider_request *request, struct buf *out) {
    struct str model = request->model.len ? request->model : settings->model;
    buf_printf(out, STR_FMT "/morse/" STR_FMT, STR_ARG(settings->base_url), STR_ARG(model));
    if (settings->query.len) buf_printf(out, "?" STR_FMT, STR_ARG(settings->query));
}

static inline bool morse_body(const struct dialect_settings *settings,
                              const struct provider_request *request, struct buf *out,
                              struct err *e) {
    if (request->schema.len) return err_set(e, ERR_INVALID_ARGUMENT, "Morse knows no schema");
    return buf_printf(out, "{\"say\":\"" STR_FMT "\"%s}", STR_ARG(request->messages[0].text),
                      settings->whole ? ",\"whole\":true" : "");
}

static inline struct reply *morse_new(reply_event_fn *on_reply, void *ctx) {
    struct morse *morse = MEM_NEW(struct morse);
    morse->base = (struct reply){.on_reply = on_reply, .ctx = ctx};
    morse->outcome = OUTCOME_FAILED;
    buf_init(&morse->model, 64);
    return &morse->base;
}

static inline void morse_say(struct reply *reply, enum reply_kind kind, struct str text) {
    struct reply_event event = {kind, .text = text};
    if (kind == REPLY_OPAQUE) event.dialect = STR("morse");
    reply->on_reply(&event, reply->ctx);
}

static inline void morse_call(struct reply *reply, struct str id) {
    reply->on_reply(&(struct reply_event){REPLY_TOOL_CALL, .call_id = id, .tool = STR("look"),
                                          .args = STR("{}")},
                    reply->ctx);
}

static inline bool morse_words(struct reply *reply, struct str rest) {
    struct morse *morse = CONTAINER_OF(reply, struct morse, base);
    while (rest.len && !reply->stopped) {
        struct str word = str_split(rest, ' ', &rest), text = str_skip(word, 2);
        if (str_starts(word, STR("t:"))) morse_say(reply, REPLY_TEXT, text);
        if (str_starts(word, STR("h:"))) morse_say(reply, REPLY_THINKING, text);
        if (str_starts(word, STR("c:"))) morse_call(reply, text);
        if (str_starts(word, STR("o:"))) morse_say(reply, REPLY_OPAQUE, text);
        if (str_equal(word, STR("u"))) {
            struct event_usage usage = {.model = STR("m-1"), .prompt = 3, .completion = 4};
            reply->on_reply(&(struct reply_event){REPLY_USAGE, .usage = &usage}, reply->ctx);
        }
        if (str_equal(word, STR("bad")))
            return reply_fail(reply, ERR_UNAVAILABLE, PROVIDER_ERROR,
                              "Morse sent an error with " KEY);
        if (str_starts(word, STR("m:"))) buf_append(&morse->model, text);
        if (str_equal(word, STR("done"))) morse->outcome = OUTCOME_DONE;
        if (str_equal(word, STR("cut"))) morse->outcome = OUTCOME_CUT;
        if (str_equal(word, STR("finished"))) reply->finished = true;
        if (str_equal(word, STR("over"))) reply->over = true;
    }
    return true;
}

static inline bool morse_feed(struct reply *reply, const struct sse_event *event) {
    return reply->over || morse_words(reply, event->data);
}

static inline bool morse_read(struct reply *reply, struct json answer) {
    struct json words = json_find(answer, STR("morse"));
    struct buf text;
    buf_init(&text, 64 * MIB);
    json_text(words, &text);
    bool fine = morse_words(reply, buf_str(&text));
    buf_done(&text);
    return fine;
}

static inline enum reply_outcome morse_end(struct reply *reply, struct str *ret_model) {
    struct morse *morse = CONTAINER_OF(reply, struct morse, base);
    *ret_model = buf_str(&morse->model);
    if (morse->outcome == OUTCOME_FAILED)
        reply_fail(reply, ERR_UNAVAILABLE, PROVIDER_BROKEN, "the answer stopped half way");
    if (morse->outcome == OUTCOME_DONE && morse->model.len)
        morse_say(reply, REPLY_OPAQUE, STR("last"));
    return morse->outcome;
}

static inline void morse_free(struct reply *reply) {
    struct morse *morse = CONTAINER_OF(reply, struct morse, base);
    buf_done(&morse->model);
    free(morse);
}

static const struct http_header morse_headers[] = {{STR_INIT("morse-version"), STR_INIT("7")}};

static const struct reply_reader morse_reader = {morse_new, morse_feed, morse_read, morse_end,
                                                 morse_free};

static const struct dialect morse = {
    .name = "morse",
    .title = "Morse",
    .url = morse_url,
    .key_header = "authorization",
    .key_prefix = "Bearer ",
    .headers = morse_headers,
    .header_count = ARRAY_LEN(morse_headers),
    .body = morse_body,
    .reader = &morse_reader,
};

/* --- one call and what is heard of it ----------------------------------------------------- */

struct fixture {
    struct loop *loop;
    struct http_pool *pool;
    struct provider *provider;
    struct provider_call *call; /* NULL once it is gone */
    struct message message;
    struct provider_request request;
    struct remote_options options;
    struct buf heard;
    struct err why;       /* of REPLY_FAILED */
    enum reply_then then; /* what the callback number `then_at` makes us do */
    size_t then_at, callbacks;
    bool paused;
};

static const char *const forms[REPLY_KIND_COUNT] = {[REPLY_TOOL_CALL] = "call($i) "};

static inline void assert_said(const struct reply_event *event) {
    if (event->kind == REPLY_TOOL_CALL) assert_str(event->tool, "look");
    if (event->kind == REPLY_TOOL_CALL) assert_str(event->args, "{}");
    if (event->kind == REPLY_USAGE) assert_int_equal(event->usage->prompt, 3);
    if (event->kind == REPLY_OPAQUE) assert_str(event->dialect, "morse");
}

static inline void on_reply(const struct reply_event *event, void *ctx) {
    struct fixture *f = ctx;
    assert_said(event);
    reply_heard(&f->heard, forms, event);
    if (reply_event_ends(event)) f->call = NULL;
    if (event->kind == REPLY_FAILED)
        err_set(&f->why, event->code, STR_FMT, STR_ARG(event->text));
    assert_false(f->paused); /* nothing is heard during a pause */
    if (f->callbacks++ != f->then_at || !f->call) return;
    f->paused = f->then == PAUSE;
    reply_then(f->then, f->provider, &f->call);
}

static inline void fixture_init(struct fixture *f) {
    *f = (struct fixture){.loop = loop_new_fake(), .pool = http_pool_new()};
    static const struct http_header further[] = {
        {STR_INIT("x-gateway"), STR_INIT(GATEWAY_KEY)},
        {STR_INIT("Morse-Version"), STR_INIT("8")},
    };
    f->options = remote_defaults;
    f->options.name = STR("acme");
    f->options.dialect = &morse;
    f->options.settings = (struct dialect_settings){.base_url = STR("https://acme.test/v1"),
                                                    .model = STR("default-model"),
                                                    .key = STR(KEY "\n")};
    f->options.headers = further;
    f->options.header_count = ARRAY_LEN(further);
    f->options.pool = f->pool;
    f->provider = remote_provider_new(&f->options);
    f->message = (struct message){.role = MESSAGE_USER, .text = STR("hi")};
    f->request = (struct provider_request){
        .agent = STR("manager"),
        .messages = &f->message,
        .message_count = 1,
        .by_operator = true}; /* so that failures say all; see what_is_told_to_whom */
    buf_init(&f->heard, 4 * KIB);
}

/* Ask, with the options as the test has changed them. */
static inline void begin(struct fixture *f) {
    provider_free(f->provider);
    f->provider = remote_provider_new(&f->options);
    f->callbacks = 0;
    f->call = provider_call_start(f->provider, f->loop, &f->request, on_reply, f);
    assert_int_equal(f->heard.len, 0); /* never before start has returned */
}

static inline void fixture_done(struct fixture *f) {
    if (f->call) f->provider->kind->cancel(f->call);
    assert_int_equal(fake_http_calls(f->pool), 0);
    provider_free(f->provider);
    http_pool_free(f->pool);
    buf_done(&f->heard);
    loop_free(f->loop);
}

#include "helper/heap_fixture.h"

static inline void heard(struct fixture *f, const char *expected) {
    assert_str(buf_str(&f->heard), expected);
    buf_clear(&f->heard);
}

static inline void resume(struct fixture *f) {
    f->paused = false;
    f->provider->kind->resume(f->call);
}

static inline void pause_call(struct fixture *f) {
    f->provider->kind->pause(f->call);
    f->paused = true;
}

/* The request that is out. */
static inline struct http_call *asked(const struct fixture *f) {
    assert_int_equal(fake_http_calls(f->pool), 1);
    return fake_http_call(f->pool, 0);
}

static inline void stream(struct fixture *f) {
    assert_true(fake_http_head(asked(f), 200, "text/event-stream; charset=utf-8"));
}

static inline bool send(struct fixture *f, const char *bytes) {
    return fake_http_body(asked(f), str_from(bytes));
}

/* A whole answer that is no stream. */
static inline void answer(struct fixture *f, unsigned status, const char *type,
                          const char *body, int64_t retry_after_ms) {
    struct http_call *call = asked(f);
    assert_true(fake_http_head_retry(call, status, type, retry_after_ms));
    if (*body) assert_true(fake_http_body(call, str_from(body)));
    fake_http_end(call);
}

static inline void assert_why(const struct fixture *f, const char *part) {
    struct str text = err_text(&f->why);
    if (str_find(text, str_from(part)) == text.len)
        fail_msg("\"%s\" does not say \"%s\"", f->why.text, part);
}

/* One reply, and what is heard of it: seven things before the ending. */
#define REPLY                                                                                  \
    "data: h:hm t:Hi\n\ndata: t:there c:c1\n\ndata: u\n\ndata: o:x m:m-1\n\ndata: done\n\n"
#define REPLY_HEARD                                                                            \
    "thinking(hm) text(Hi) text(there) call(c1) usage(m-1) opaque(x) opaque(last) done(m-1) "

#endif

#include "fake/http_fake.h"

#include "base/mem.h"
#include "base/text.h"
#include "client/place.h"

#include <assert.h>
#include <stdlib.h>

#define CALLS_MAX 1024

struct http_pool {
    struct http_call *calls[CALLS_MAX];
    size_t count, ever, cancels;
    bool needed;
    enum err_code need_fails;
};

struct http_call {
    struct http_pool *pool;
    struct loop *loop;
    struct http_request request; /* all copied */
    struct str lent;             /* the body as the caller has it */
    struct http_sink sink;
    void *ctx;
    bool headed, paused, over;
    unsigned inside; /* callbacks on the stack */
};

/* --- the pool ----------------------------------------------------------------------------- */

struct http_pool *http_pool_new(void) {
    return MEM_NEW(struct http_pool);
}

void http_pool_trust(struct http_pool *pool, struct str path) {
    assert(pool && path.at); /* a fake call meets no certificate */
}

/* Where the calls that have no stand-in keep their connections: a test with this one makes none. */
struct place *http_place_of(const struct http_pool *pool, const struct loop *loop) {
    (void)pool, (void)loop;
    abort();
}

void http_pool_add(struct http_pool *pool, struct loop *loop) {
    assert(pool && loop);
}

bool http_pool_need(struct http_pool *pool, struct err *e) {
    pool->needed = true;
    if (pool->need_fails == ERR_NONE) return true;
    return err_set(e, pool->need_fails, "the fake pool was told to fail");
}

void http_pool_leave(struct http_pool *pool, struct loop *loop) {
    for (size_t i = 0; i < pool->count; i++) assert(pool->calls[i]->loop != loop);
}

void http_pool_free(struct http_pool *pool) {
    if (!pool) return;
    assert(pool->count == 0);
    free(pool);
}

bool fake_http_needed(const struct http_pool *pool) {
    return pool->needed;
}

void fake_http_need_fails(struct http_pool *pool, enum err_code code) {
    pool->need_fails = code;
}

/* --- a call ------------------------------------------------------------------------------- */

/* In a block of its own, so that a sanitizer sees reads past its end. */
static struct str copy(struct str bytes) {
    char *at = mem_alloc(bytes.len);
    if (bytes.len) memcpy(at, bytes.at, bytes.len);
    return str_of(at, bytes.len);
}

static void free_copy(struct str bytes) {
    free((void *)(uintptr_t)bytes.at);
}

static bool one_line(struct str text) {
    return str_find_byte(text, '\n') == text.len && str_find_byte(text, '\r') == text.len;
}

static void copy_request(struct http_request *to, const struct http_request *from) {
    struct http_header *headers = mem_zero(from->header_count, sizeof(*headers));
    for (size_t i = 0; i < from->header_count; i++) {
        assert(from->headers[i].name.len && one_line(from->headers[i].name));
        assert(one_line(from->headers[i].value));
        headers[i] =
            (struct http_header){copy(from->headers[i].name), copy(from->headers[i].value)};
    }
    *to = *from;
    to->method = copy(from->method);
    to->url = copy(from->url);
    to->body = copy(from->body);
    to->headers = headers;
}

static void free_call(struct http_call *call) {
    struct http_request *request = &call->request;
    for (size_t i = 0; i < request->header_count; i++) {
        free_copy(request->headers[i].name);
        free_copy(request->headers[i].value);
    }
    free((void *)(uintptr_t)request->headers);
    free_copy(request->method);
    free_copy(request->url);
    free_copy(request->body);
    free(call);
}

struct http_call *http_start(struct http_pool *pool, struct loop *loop,
                             const struct http_request *request, const struct http_sink *sink,
                             void *ctx) {
    assert(loop && pool->count < CALLS_MAX);
    assert(sink->on_head && sink->on_body && sink->on_end);
    struct http_call *call = MEM_NEW(struct http_call);
    *call = (struct http_call){.pool = pool, .loop = loop, .sink = *sink, .ctx = ctx};
    copy_request(&call->request, request);
    call->lent = request->body;
    pool->calls[pool->count++] = call;
    pool->ever++;
    return call;
}

static void take_off(struct http_call *call) {
    struct http_pool *pool = call->pool;
    size_t at = 0;
    while (pool->calls[at] != call) {
        at++;
        assert(at < pool->count);
    }
    pool->count--;
    memmove(&pool->calls[at], &pool->calls[at + 1],
            (pool->count - at) * sizeof(struct http_call *));
    call->over = true;
}

void http_pause(struct http_call *call) {
    assert(!call->over);
    call->paused = true;
}

void http_resume(struct http_call *call) {
    assert(!call->over);
    call->paused = false;
}

void http_cancel(struct http_call *call) {
    assert(!call->over);
    take_off(call);
    call->pool->cancels++;
    if (!call->inside) free_call(call);
}

/* --- what it asked ------------------------------------------------------------------------ */

size_t fake_http_calls(const struct http_pool *pool) {
    return pool->count;
}

size_t fake_http_calls_ever(const struct http_pool *pool) {
    return pool->ever;
}

size_t fake_http_cancels(const struct http_pool *pool) {
    return pool->cancels;
}

struct http_call *fake_http_call(const struct http_pool *pool, size_t index) {
    assert(index < pool->count);
    return pool->calls[index];
}

const struct http_request *fake_http_request(const struct http_call *call) {
    return &call->request;
}

struct str fake_http_header(const struct http_call *call, const char *name) {
    for (size_t i = 0; i < call->request.header_count; i++) {
        if (str_equal_nocase(call->request.headers[i].name, str_from(name)))
            return call->request.headers[i].value;
    }
    return STR_EMPTY;
}

struct loop *fake_http_loop(const struct http_call *call) {
    return call->loop;
}

bool fake_http_paused(const struct http_call *call) {
    return call->paused;
}

/* --- what it hears ------------------------------------------------------------------------ */

static void enter(struct http_call *call) {
    assert(!call->over);
    assert(str_equal(call->lent, call->request.body)); /* the caller still has it, unchanged */
    call->inside++;
}

static bool leave(struct http_call *call) {
    call->inside--;
    if (!call->over) return true;
    if (!call->inside) free_call(call);
    return false;
}

static bool tell_head(struct http_call *call, struct http_head head, const char *content_type,
                      const char *session) {
    assert(!call->headed && !call->paused);
    call->headed = true;
    head.content_type = copy(str_from(content_type));
    head.url = copy(call->request.url);
    head.session = copy(str_from(session));
    enter(call);
    call->sink.on_head(&head, call->ctx);
    free_copy(head.content_type);
    free_copy(head.url);
    free_copy(head.session);
    return leave(call);
}

bool fake_http_head_retry(struct http_call *call, unsigned status, const char *content_type,
                          int64_t retry_after_ms) {
    struct http_head head = {.status = status, .retry_after_ms = retry_after_ms};
    return tell_head(call, head, content_type, "");
}

bool fake_http_head_session(struct http_call *call, unsigned status, const char *content_type,
                            const char *session) {
    struct http_head head = {.status = status, .retry_after_ms = -1};
    return tell_head(call, head, content_type, session);
}

bool fake_http_head(struct http_call *call, unsigned status, const char *content_type) {
    return fake_http_head_retry(call, status, content_type, -1);
}

bool fake_http_body(struct http_call *call, struct str bytes) {
    assert(call->headed && !call->paused && bytes.len);
    struct str lent = copy(bytes);
    enter(call);
    call->sink.on_body(lent_of(lent), call->ctx);
    free_copy(lent);
    return leave(call);
}

bool fake_http_head_object(struct http_call *call, const struct http_head *from) {
    struct http_head head = *from;
    struct str *texts[] = {&head.etag, &head.range, &head.region};
    struct text copies[ARRAY_LEN(texts)];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        copies[i] = text_copy(*texts[i]);
        *texts[i] = text_str(copies[i]);
    }
    bool there = tell_head(call, head, "application/xml", "");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) text_done(&copies[i]);
    return there;
}

static void end(struct http_call *call, const struct err *failed, enum http_stage stage) {
    enter(call);
    take_off(call);
    call->sink.on_end(failed, stage, call->ctx);
    (void)leave(call);
}

void fake_http_end(struct http_call *call) {
    assert(call->headed && !call->paused);
    end(call, NULL, HTTP_COMPLETE);
}

void fake_http_fail(struct http_call *call, enum err_code code, enum http_stage stage) {
    struct err failed;
    assert(code != ERR_NONE && call->headed == (stage >= HTTP_READING));
    err_set(&failed, code, "the fake server was told to fail");
    end(call, &failed, stage);
}

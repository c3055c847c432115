#include "tool/web_call.h"

static struct web_call *web_of(struct tool_call *call) {
    return (struct web_call *)call; /* the first member */
}

static void web_call_free(struct tool_call *call) {
    struct web_call *web = web_of(call);
    timer_stop(&web->refused);
    get_end(&web->get);
    buf_done(&web->result);
    web->kind->free(call);
}

static void web_call_end(struct tool_call *call, bool succeeded) {
    struct web_call *web = web_of(call);
    web->done(buf_str(&web->result), succeeded ? NULL : &web->why, web->ctx);
    web_call_free(call);
}

static void web_call_on_refused(void *ctx) {
    web_call_end(ctx, false);
}

void web_call_init(struct tool_call *call, const struct web_call_kind *kind, struct loop *loop,
                   tool_done_fn *done, void *ctx) {
    struct web_call *web = web_of(call);
    web->kind = kind;
    web->loop = loop;
    web->done = done;
    web->ctx = ctx;
    atomic_init(&web->abandoned, false);
    buf_init(&web->result, LOCAL_RESULT_MAX_BYTES);
    timer_init(&web->refused, loop, web_call_on_refused, call);
}

static void on_worker(void *ctx) {
    struct web_call *web = web_of(ctx);
    web->succeeded = web->kind->read(ctx);
}

static void web_call_on_read(void *ctx) {
    struct web_call *web = web_of(ctx);
    if (atomic_load_explicit(&web->abandoned, memory_order_relaxed)) {
        web_call_free(ctx);
    } else {
        web_call_end(ctx, web->succeeded);
    }
}

static void web_call_on_got(const struct err *failed, void *ctx) {
    struct web_call *web = web_of(ctx);
    if (!web->kind->judge(ctx, failed)) {
        web_call_end(ctx, false);
        return;
    }
    web->reading = true;
    job_start(&web->job, web->loop, on_worker, web_call_on_read, ctx);
}

void web_call_get(struct tool_call *call, struct http_pool *pool,
                  const struct http_request *request, size_t keep_bytes, get_head_fn *on_head) {
    struct web_call *web = web_of(call);
    get_start(&web->get, pool, web->loop, request, keep_bytes, on_head, web_call_on_got, call);
}

void web_call_refuse(struct tool_call *call) {
    timer_start(&web_of(call)->refused, 0);
}

void web_call_cancel(struct tool_call *call) {
    struct web_call *web = web_of(call);
    atomic_store_explicit(&web->abandoned, true, memory_order_relaxed);
    if (!web->reading || job_cancel(&web->job)) web_call_free(call);
}

#include "provider/chain.h"

#include "base/mem.h"
#include "provider/dialect.h"

#include <assert.h>
#include <stdlib.h>

#define NOTE_MAX_BYTES KIB

struct chain {
    struct provider base;
    struct chain_link *links;
    size_t count;
};

struct provider_call {
    const struct chain *chain;
    struct loop *loop;
    struct provider_request request; /* the caller's, with the model of this link */
    struct str model;                /* the caller's */
    struct provider_sink sink;
    void *ctx;
    size_t at;                   /* the link that is asked */
    struct provider_call *inner; /* its call; NULL between two of them */
    bool spoke;                  /* something was said: nobody else is asked */
    bool paused, over;
    unsigned inside; /* callbacks on the stack: the last one to leave frees */
};

static const struct provider_sink link_sink;

static struct provider *provider_of(const struct provider_call *call) {
    return call->chain->links[call->at].provider;
}

/* --- asking ------------------------------------------------------------------------------- */

static void ask(struct provider_call *call) {
    struct str model = call->chain->links[call->at].model;
    call->request.model = model.len ? model : call->model;
    call->inner =
        provider_call_start(provider_of(call), call->loop, &call->request, &link_sink, call);
    if (call->paused) provider_of(call)->kind->pause(call->inner);
}

/* Failures of one model that say nothing about another. */
static const char *const own_failures[] = {
    PROVIDER_UNREACHABLE, PROVIDER_TIMEOUT, PROVIDER_RATE_LIMITED, PROVIDER_QUOTA,
    PROVIDER_OVERLOADED,  PROVIDER_ERROR,   PROVIDER_AUTH,
};

static bool hands_on(const struct provider_call *call, struct str reason) {
    if (call->spoke || call->at + 1 == call->chain->count) return false;
    for (size_t i = 0; i < ARRAY_LEN(own_failures); i++) {
        if (str_equal(reason, str_from(own_failures[i]))) return true;
    }
    return false;
}

/* The model where one is named, else the provider. */
static struct str label(const struct provider_call *call, size_t at) {
    const struct chain_link *link = &call->chain->links[at];
    if (link->model.len) return link->model;
    return call->model.len ? call->model : link->provider->name;
}

static void tell_hand_on(struct provider_call *call, const struct err *why) {
    struct buf note;
    struct str failed = label(call, call->at), next = label(call, call->at + 1);
    struct str what = str_head(err_text(why), str_find(err_text(why), STR("; try again")));
    buf_init(&note, NOTE_MAX_BYTES);
    buf_printf(&note, STR_FMT " did not answer (" STR_FMT "), asking " STR_FMT,
               STR_ARG(str_head(failed, 100)), STR_ARG(what), STR_ARG(str_head(next, 100)));
    if (str_equal(failed, next)) { /* the same model, of somebody else */
        struct str name = call->chain->links[call->at + 1].provider->name;
        buf_printf(&note, " of " STR_FMT, STR_ARG(str_head(name, 100)));
    }
    call->sink.on_note(buf_str(&note), call->ctx);
    buf_done(&note);
}

/* --- what a link says --------------------------------------------------------------------- */

static struct provider_call *enter(void *ctx) {
    struct provider_call *call = ctx;
    call->inside++;
    return call;
}

static void leave(struct provider_call *call) {
    call->inside--;
    if (call->over && !call->inside) free(call);
}

static struct provider_call *enter_speaking(void *ctx) {
    struct provider_call *call = enter(ctx);
    call->spoke = true;
    return call;
}

static void on_text(struct str text, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_text(text, call->ctx);
    leave(call);
}

static void on_thinking(struct str text, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_thinking(text, call->ctx);
    leave(call);
}

static void on_tool_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_tool_call(call_id, tool, args, call->ctx);
    leave(call);
}

/* A reply that was counted is paid for, and is counted once. */
static void on_usage(const struct event_usage *usage, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_usage(usage, call->ctx);
    leave(call);
}

static void on_opaque(struct str dialect, struct str bytes, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_opaque(dialect, bytes, call->ctx);
    leave(call);
}

static void on_approval(struct str call_id, struct str question, struct str tool,
                        struct str args, void *ctx) {
    struct provider_call *call = enter_speaking(ctx);
    call->sink.on_approval(call_id, question, tool, args, call->ctx);
    leave(call);
}

static void on_note(struct str text, void *ctx) {
    struct provider_call *call = enter(ctx);
    call->sink.on_note(text, call->ctx);
    leave(call);
}

static void on_done(struct str model, void *ctx) {
    struct provider_call *call = enter(ctx);
    call->inner = NULL;
    call->over = true;
    call->sink.on_done(model, call->ctx);
    leave(call);
}

static void on_failed(const struct err *why, struct str reason, void *ctx) {
    struct provider_call *call = enter(ctx);
    call->inner = NULL;
    if (hands_on(call, reason)) {
        tell_hand_on(call, why);
        if (!call->over) {
            call->at++;
            ask(call);
        }
    } else {
        call->over = true;
        call->sink.on_failed(why, reason, call->ctx);
    }
    leave(call);
}

static const struct provider_sink link_sink = {
    .on_text = on_text,
    .on_thinking = on_thinking,
    .on_tool_call = on_tool_call,
    .on_usage = on_usage,
    .on_opaque = on_opaque,
    .on_note = on_note,
    .on_approval = on_approval,
    .on_done = on_done,
    .on_failed = on_failed,
};

/* --- the provider ------------------------------------------------------------------------- */

static struct provider_call *chain_start(struct provider *provider, struct loop *loop,
                                         const struct provider_request *request,
                                         const struct provider_sink *sink, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->chain = CONTAINER_OF(provider, struct chain, base);
    call->loop = loop;
    call->request = *request;
    call->model = request->model;
    call->sink = *sink;
    call->ctx = ctx;
    ask(call);
    return call;
}

static void chain_pause(struct provider_call *call) {
    if (call->paused) return;
    call->paused = true;
    if (call->inner) provider_of(call)->kind->pause(call->inner);
}

static void chain_resume(struct provider_call *call) {
    if (!call->paused) return;
    call->paused = false;
    if (call->inner) provider_of(call)->kind->resume(call->inner);
}

static void chain_cancel(struct provider_call *call) {
    assert(!call->over);
    call->over = true;
    if (call->inner) provider_of(call)->kind->cancel(call->inner);
    if (!call->inside) free(call);
}

static void chain_free(struct provider *provider) {
    struct chain *chain = CONTAINER_OF(provider, struct chain, base);
    free(chain->links);
    free(chain);
}

static const struct provider_kind chain_kind = {
    .name = "chain",
    .start = chain_start,
    .pause = chain_pause,
    .resume = chain_resume,
    .cancel = chain_cancel,
    .free = chain_free,
};

struct provider *chain_provider_new(struct str name, const struct chain_link *links,
                                    size_t count) {
    assert(count);
    struct chain *chain = MEM_NEW(struct chain);
    chain->base = (struct provider){&chain_kind, name};
    chain->links = mem_zero(count, sizeof(*links));
    chain->count = count;
    memcpy(chain->links, links, count * sizeof(*links));
    return &chain->base;
}

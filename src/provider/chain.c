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
    struct provider_request request; /* the caller's, with this link's model */
    struct str model;                /* the caller's */
    reply_event_fn *on_reply;
    void *ctx;
    size_t at;                   /* the current link */
    struct provider_call *inner; /* the call to it; NULL between two links */
    bool spoke;                  /* it produced output: no fallback any more */
    bool paused, over;
    unsigned inside; /* callbacks on the stack; the last one to return frees the call */
};

static reply_event_fn on_link;

static struct provider *provider_of(const struct provider_call *call) {
    return call->chain->links[call->at].provider;
}

/* --- calling a link ----------------------------------------------------------------------- */

static void chain_ask(struct provider_call *call) {
    struct str model = call->chain->links[call->at].model;
    call->request.model = model.len ? model : call->model;
    call->inner =
        provider_call_start(provider_of(call), call->loop, &call->request, on_link, call);
    if (call->paused) provider_of(call)->kind->pause(call->inner);
}

/* Failures that the next model may not share. */
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

/* The model's name, or the provider's when no model is named. */
static struct str label(const struct provider_call *call, size_t at) {
    const struct chain_link *link = &call->chain->links[at];
    if (link->model.len) return link->model;
    return call->model.len ? call->model : link->provider->name;
}

static void report_fallback(struct provider_call *call, struct str why) {
    struct buf note;
    struct str failed = label(call, call->at), next = label(call, call->at + 1);
    struct str what = str_head(why, str_find(why, STR("; try again")));
    buf_init(&note, NOTE_MAX_BYTES);
    buf_printf(&note, STR_FMT " did not answer (" STR_FMT "), asking " STR_FMT,
               STR_ARG(str_head(failed, 100)), STR_ARG(what), STR_ARG(str_head(next, 100)));
    if (str_equal(failed, next)) { /* the same model at another provider */
        struct str name = call->chain->links[call->at + 1].provider->name;
        buf_printf(&note, " of " STR_FMT, STR_ARG(str_head(name, 100)));
    }
    call->on_reply(&(struct reply_event){REPLY_NOTE, .text = buf_str(&note)}, call->ctx);
    buf_done(&note);
}

/* --- events of a link --------------------------------------------------------------------- */

static void chain_leave(struct provider_call *call) {
    call->inside--;
    if (call->over && !call->inside) free(call);
}

static void chain_end(struct provider_call *call, const struct reply_event *event) {
    call->over = true;
    call->on_reply(event, call->ctx);
}

static void chain_failed(struct provider_call *call, const struct reply_event *event) {
    if (!hands_on(call, event->reason)) {
        chain_end(call, event);
        return;
    }
    report_fallback(call, event->text);
    if (call->over) return;
    call->at++;
    chain_ask(call);
}

/* Everything except a note counts as output, usage too: a reply with usage is paid for, and
 * must be counted once. */
static void on_link(const struct reply_event *event, void *ctx) {
    struct provider_call *call = ctx;
    call->inside++;
    if (reply_event_ends(event)) call->inner = NULL;
    switch (event->kind) {
    case REPLY_FAILED: chain_failed(call, event); break;
    case REPLY_DONE: chain_end(call, event); break;
    default: call->spoke |= event->kind != REPLY_NOTE; call->on_reply(event, call->ctx);
    }
    chain_leave(call);
}

/* --- the provider ------------------------------------------------------------------------- */

static struct provider_call *chain_start(struct provider *provider, struct loop *loop,
                                         const struct provider_request *request,
                                         reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->chain = CONTAINER_OF(provider, struct chain, base);
    call->loop = loop;
    call->request = *request;
    call->model = request->model;
    call->on_reply = on_reply;
    call->ctx = ctx;
    chain_ask(call);
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

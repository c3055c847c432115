#include "fake/provider_fake.h"

#include "base/mem.h"
#include "fake/calls_out.h"

#include <assert.h>
#include <stdlib.h>

/* --- the provider ------------------------------------------------------------------------- */

struct fake_provider {
    struct provider base;
    struct calls_out out;
};

struct provider_call {
    struct fake_provider *provider;
    const struct provider_request *request;
    reply_event_fn *on_reply;
    void *ctx;
    bool paused, over;
    unsigned inside; /* callbacks on the stack */
};

static struct provider_call *start(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   reply_event_fn *on_reply, void *ctx) {
    struct fake_provider *fake = CONTAINER_OF(provider, struct fake_provider, base);
    assert(loop);
    struct provider_call *call = MEM_NEW(struct provider_call);
    *call = (struct provider_call){
        .provider = fake, .request = request, .on_reply = on_reply, .ctx = ctx};
    calls_out_add(&fake->out, call);
    return call;
}

static void take_off(struct provider_call *call) {
    calls_out_remove(&call->provider->out, call);
    call->over = true;
}

static void pause(struct provider_call *call) {
    assert(!call->over && !call->paused);
    call->paused = true;
}

static void resume(struct provider_call *call) {
    assert(!call->over && call->paused);
    call->paused = false;
}

static void cancel(struct provider_call *call) {
    assert(!call->over);
    take_off(call);
    if (!call->inside) free(call);
}

static void free_provider(struct provider *provider) {
    struct fake_provider *fake = CONTAINER_OF(provider, struct fake_provider, base);
    assert(fake->out.count == 0);
    free(fake);
}

static const struct provider_kind provider_kind = {
    .name = "fake",
    .start = start,
    .pause = pause,
    .resume = resume,
    .cancel = cancel,
    .free = free_provider,
};

void fake_reads_turn_only(struct provider *provider) {
    static struct provider_kind kind;
    kind = provider_kind;
    kind.reads_turn_only = true;
    provider->kind = &kind;
}

struct provider *fake_provider_new(void) {
    struct fake_provider *fake = MEM_NEW(struct fake_provider);
    fake->base = (struct provider){&provider_kind, STR("fake")};
    return &fake->base;
}

size_t fake_calls(const struct provider *provider) {
    return CONTAINER_OF(provider, struct fake_provider, base)->out.count;
}

size_t fake_calls_ever(const struct provider *provider) {
    return CONTAINER_OF(provider, struct fake_provider, base)->out.ever;
}

struct provider_call *fake_call(const struct provider *provider, size_t index) {
    return calls_out_at(&CONTAINER_OF(provider, struct fake_provider, base)->out, index);
}

const struct provider_request *fake_request(const struct provider_call *call) {
    return call->request;
}

bool fake_paused(const struct provider_call *call) {
    return call->paused;
}

/* In a block of its own that is gone afterwards. */
static struct str lend(struct str text) {
    char *at = mem_alloc(text.len);
    if (text.len) memcpy(at, text.at, text.len);
    return str_of(at, text.len);
}

static void take_back(struct str text) {
    free((char *)(uintptr_t)text.at);
}

/* False: the call is gone. */
static bool report(struct provider_call *call, struct reply_event event) {
    struct reply_copy *lent = reply_event_copy(&event);
    if (event.kind == REPLY_TEXT) lent->event.pieces = event.pieces;
    assert(!call->over && !call->paused);
    call->inside++;
    if (reply_event_ends(&event)) take_off(call);
    call->on_reply(&lent->event, call->ctx);
    reply_copy_free(lent);
    call->inside--;
    if (!call->over) return true;
    free(call);
    return false;
}

bool fake_text(struct provider_call *call, struct str text) {
    return report(call, (struct reply_event){REPLY_TEXT, .text = text});
}

bool fake_pieces(struct provider_call *call, struct str text, const uint32_t *lens,
                 size_t count) {
    const struct reply_pieces pieces = {.lens = lens, .count = count};
    assert(call->request->takes_pieces);
    return report(call, (struct reply_event){REPLY_TEXT, .text = text, .pieces = &pieces});
}

bool fake_thinking(struct provider_call *call, struct str text) {
    return report(call, (struct reply_event){REPLY_THINKING, .text = text});
}

bool fake_tool_call(struct provider_call *call, const char *id, const char *tool,
                    const char *args) {
    return report(call, (struct reply_event){REPLY_TOOL_CALL, .call_id = str_from(id),
                                             .tool = str_from(tool), .args = str_from(args)});
}

bool fake_approval(struct provider_call *call, const char *id, const char *question) {
    return report(call, (struct reply_event){REPLY_APPROVAL, .call_id = str_from(id),
                                             .text = str_from(question), .args = STR("{}")});
}

bool fake_opaque(struct provider_call *call, const char *dialect, const char *bytes) {
    return report(call, (struct reply_event){REPLY_OPAQUE, .dialect = str_from(dialect),
                                             .text = str_from(bytes)});
}

bool fake_note(struct provider_call *call, const char *text) {
    return report(call, (struct reply_event){REPLY_NOTE, .text = str_from(text)});
}

bool fake_own_call(struct provider_call *call, const char *id, const char *tool,
                   const char *args) {
    return report(call, (struct reply_event){REPLY_OWN_CALL, .call_id = str_from(id),
                                             .tool = str_from(tool), .args = str_from(args)});
}

bool fake_own_result(struct provider_call *call, const char *id, const char *result,
                     const char *why) {
    return report(call,
                  (struct reply_event){REPLY_OWN_RESULT, .call_id = str_from(id),
                                       .text = str_from(result), .reason = str_from(why)});
}

bool fake_usage(struct provider_call *call, int64_t prompt, int64_t completion) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.model = STR("fake-1");
    usage.prompt = prompt;
    usage.completion = completion;
    if (prompt >= 0 && completion >= 0) usage.total = prompt + completion;
    usage.cached = 0;
    usage.call_sequence = 77; /* not the provider's to say */
    return report(call, (struct reply_event){REPLY_USAGE, .usage = &usage});
}

bool fake_thoughts(struct provider_call *call, int64_t thoughts) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.model = STR("fake-1");
    usage.thoughts = thoughts;
    return report(call, (struct reply_event){REPLY_USAGE, .usage = &usage});
}

void fake_done(struct provider_call *call, const char *model) {
    report(call, (struct reply_event){REPLY_DONE, .model = str_from(model)});
}

void fake_fail(struct provider_call *call, enum err_code code, const char *reason) {
    report(call, (struct reply_event){REPLY_FAILED, .code = code, .reason = str_from(reason),
                                      .text = STR("the fake model failed")});
}

/* --- the tool ----------------------------------------------------------------------------- */

struct fake_tool {
    struct tool base;
    struct calls_out out;
};

struct tool_call {
    struct fake_tool *tool;
    struct str args;
    tool_done_fn *done;
    void *ctx;
};

static struct tool_call *start_tool(struct tool *tool, struct loop *loop,
                                    const struct tool_request *request, tool_done_fn *done,
                                    void *ctx) {
    struct fake_tool *fake = CONTAINER_OF(tool, struct fake_tool, base);
    assert(loop);
    struct tool_call *call = MEM_NEW(struct tool_call);
    *call = (struct tool_call){fake, request->args, done, ctx};
    calls_out_add(&fake->out, call);
    return call;
}

static void cancel_tool(struct tool_call *call) {
    calls_out_remove(&call->tool->out, call);
    free(call);
}

static void free_tool(struct tool *tool) {
    struct fake_tool *fake = CONTAINER_OF(tool, struct fake_tool, base);
    assert(fake->out.count == 0);
    free(fake);
}

static const struct tool_kind tool_kind = {"fake", start_tool, cancel_tool, free_tool};

struct tool *fake_tool_new(const char *name) {
    struct fake_tool *fake = MEM_NEW(struct fake_tool);
    fake->base = (struct tool){.kind = &tool_kind,
                               .name = str_from(name),
                               .description = STR("a fake"),
                               .parameters = STR("{}")};
    return &fake->base;
}

size_t fake_tool_calls(const struct tool *tool) {
    return CONTAINER_OF(tool, struct fake_tool, base)->out.count;
}

static struct tool_call *tool_call_at(const struct tool *tool, size_t index) {
    return calls_out_at(&CONTAINER_OF(tool, struct fake_tool, base)->out, index);
}

struct str fake_tool_args(const struct tool *tool, size_t index) {
    return tool_call_at(tool, index)->args;
}

static void end_tool(struct tool_call *call, struct str result, const struct err *failed) {
    tool_done_fn *done = call->done;
    void *ctx = call->ctx;
    cancel_tool(call);
    done(result, failed, ctx);
}

void fake_tool_answer(struct tool *tool, size_t index, const char *result) {
    struct str lent = lend(str_from(result));
    end_tool(tool_call_at(tool, index), lent, NULL);
    take_back(lent);
}

void fake_tool_fail(struct tool *tool, size_t index, enum err_code code) {
    struct err why;
    err_set(&why, code, "the fake tool failed");
    end_tool(tool_call_at(tool, index), STR_EMPTY, &why);
}

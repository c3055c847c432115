#include "tool/scripted.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Limit for a result with its holes filled; arguments are no larger. */
#define RESULT_MAX_BYTES (16 * MIB)

struct scripted {
    struct tool base;
    const struct script_tool *script;
    struct schema *schema; /* of its arguments; NULL: not checked */
    atomic_size_t calls;   /* number of calls so far, on all loops */
};

struct tool_call {
    const struct script_answer *answer;
    struct script_values values;
    struct timer timer;
    tool_done_fn *done;
    void *ctx;
};

static void scripted_call_free(struct tool_call *call) {
    timer_stop(&call->timer);
    free(call);
}

static bool render(const struct tool_call *call, struct buf *out, struct err *e) {
    if (call->answer->error)
        return err_set(e, ERR_UNKNOWN, STR_FMT, STR_ARG(call->answer->message));
    if (script_text_render(&call->answer->result, &call->values, out)) return true;
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "the scripted result grew past %zu bytes",
                   (size_t)RESULT_MAX_BYTES);
}

static void scripted_answer(void *ctx) {
    struct tool_call *call = ctx;
    struct err why;
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    bool done = render(call, &result, &why);
    tool_done_fn *tell = call->done;
    void *tell_ctx = call->ctx;
    scripted_call_free(
        call); /* free first: a cancel from inside the callback would be a mistake */
    tell(buf_str(&result), done ? NULL : &why, tell_ctx);
    buf_done(&result);
}

static struct tool_call *scripted_start(struct tool *tool, struct loop *loop,
                                        const struct tool_request *request, tool_done_fn *done,
                                        void *ctx) {
    struct scripted *scripted = CONTAINER_OF(tool, struct scripted, base);
    const struct script_tool *script = scripted->script;
    size_t turn = atomic_fetch_add_explicit(&scripted->calls, 1, memory_order_relaxed);

    struct tool_call *call = MEM_NEW(struct tool_call);
    call->answer = &script->answers[turn % script->answer_count];
    call->values = (struct script_values){.input = STR_EMPTY,
                                          .result = STR_EMPTY,
                                          .answer = STR_EMPTY,
                                          .agent = request->agent,
                                          .args = request->args};
    call->done = done;
    call->ctx = ctx;
    timer_init(&call->timer, loop, scripted_answer, call);
    if (!call->answer->stall) timer_start(&call->timer, (call->answer->after_us + 999) / 1000);
    return call;
}

static void scripted_free(struct tool *tool) {
    struct scripted *scripted = CONTAINER_OF(tool, struct scripted, base);
    schema_free(scripted->schema);
    free(scripted);
}

static const struct tool_kind scripted_kind = {
    .name = "scripted",
    .start = scripted_start,
    .cancel = scripted_call_free,
    .free = scripted_free,
};

struct tool *scripted_tool_new(const struct script_tool *script) {
    struct scripted *scripted = MEM_NEW(struct scripted);
    scripted->base = (struct tool){.kind = &scripted_kind,
                                   .name = script->name,
                                   .description = script->description,
                                   .parameters = script->parameters};
    scripted->script = script;
    struct err e; /* arguments that cannot be checked are passed on */
    if (script->parameters.len && !schema_read(script->parameters, &scripted->schema, &e))
        scripted->schema = NULL;
    scripted->base.schema = scripted->schema;
    return &scripted->base;
}

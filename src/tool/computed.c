#include "tool/computed.h"

#include "base/mem.h"
#include "loop/job.h"
#include "tool/local.h"

#include <stdlib.h>

/* For unescaped arguments and the computation's own memory. */
#define ARENA_EXTRA_BYTES (64 * KIB)

struct computed_tool {
    struct tool base;
    const struct computed *what;
};

struct tool_call {
    const struct computed *what;
    struct job job;
    struct arena *arena;
    struct str args; /* in the arena */
    struct buf result;
    struct err why;
    bool succeeded;
    bool abandoned; /* the caller left; the call is freed when the worker is done */
    tool_done_fn *done;
    void *ctx;
};

static void computed_call_free(struct tool_call *call) {
    buf_done(&call->result);
    arena_free(call->arena);
    free(call);
}

/* Runs on a worker. */
static void computed_work(void *ctx) {
    struct tool_call *call = ctx;
    struct json args;
    call->succeeded = local_args(call->args, &args, &call->why) &&
                      call->what->compute(args, call->arena, &call->result, &call->why) &&
                      local_result(&call->result, &call->why);
}

static void worked(void *ctx) {
    struct tool_call *call = ctx;
    if (!call->abandoned)
        call->done(buf_str(&call->result), call->succeeded ? NULL : &call->why, call->ctx);
    computed_call_free(call);
}

static struct tool_call *computed_start(struct tool *tool, struct loop *loop,
                                        const struct tool_request *request, tool_done_fn *done,
                                        void *ctx) {
    struct tool_call *call = MEM_NEW(struct tool_call);
    call->what = CONTAINER_OF(tool, struct computed_tool, base)->what;
    call->arena = arena_new(2 * request->args.len + ARENA_EXTRA_BYTES);
    if (!arena_str(call->arena, request->args, &call->args))
        abort(); /* the arena was sized for it */
    buf_init(&call->result, LOCAL_RESULT_MAX_BYTES);
    call->done = done;
    call->ctx = ctx;
    job_start(&call->job, loop, computed_work, worked, call);
    return call;
}

static void computed_cancel(struct tool_call *call) {
    call->abandoned = true;
    if (job_cancel(&call->job)) computed_call_free(call);
}

static const struct tool_kind computed_kind = {
    .name = "computed",
    .start = computed_start,
    .cancel = computed_cancel,
    .free = local_tool_free,
};

struct tool *computed_tool_new(const struct computed *what) {
    struct computed_tool *tool = MEM_NEW(struct computed_tool);
    tool->what = what;
    tool->base = (struct tool){.kind = &computed_kind,
                               .name = what->name,
                               .description = what->description,
                               .parameters = what->parameters,
                               .idempotent = what->idempotent};
    local_tool_init(&tool->base);
    return &tool->base;
}

#include "tool/file_tool.h"

#include "base/mem.h"
#include "loop/job.h"
#include "tool/local.h"

#include <stdlib.h>

/* In addition to the arguments, copied and unescaped: paths, and what is read of a file. */
#define ARENA_EXTRA_BYTES (256 * KIB)

#define PATH_MAX_BYTES (8 * KIB)

struct file_tool {
    struct tool base;
    const struct file_tool_kind *kind;
    struct root *root;
};

struct tool_call {
    const struct file_tool_kind *kind;
    struct root *root; /* a reference; a worker may outlive the tool */
    struct job job;
    struct arena *arena;
    struct str args, workspace; /* in the arena */
    struct buf result;
    struct err why;
    bool succeeded;
    atomic_bool stop; /* the caller left */
    tool_done_fn *done;
    void *ctx;
};

static void call_free(struct tool_call *call) {
    buf_done(&call->result);
    arena_free(call->arena);
    root_unref(call->root);
    free(call);
}

static bool read_key(struct tool_call *call, struct json args, struct str *ret, struct err *e) {
    return json_str(json_find(args, STR("key")), call->arena, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "the argument 'key' must be a string");
}

static bool perform(struct tool_call *call, struct err *e) {
    struct file_request request = {
        .root = call->root, .arena = call->arena, .stop = &call->stop};
    struct buf path;
    buf_init(&path, PATH_MAX_BYTES);
    bool done = local_args(call->args, &request.args, e) &&
                read_key(call, request.args, &request.key, e) &&
                root_path(call->workspace, request.key, &path, e);
    request.path = buf_str(&path);
    done = done && call->kind->perform(&request, &call->result, e) &&
           local_result(&call->result, e);
    buf_done(&path);
    return done;
}

/* Runs on a worker. */
static void work(void *ctx) {
    struct tool_call *call = ctx;
    call->succeeded = perform(call, &call->why);
    if (!call->succeeded) err_add(&call->why, STR_FMT, STR_ARG(call->kind->name));
}

static void worked(void *ctx) {
    struct tool_call *call = ctx;
    if (!atomic_load_explicit(&call->stop, memory_order_relaxed))
        call->done(buf_str(&call->result), call->succeeded ? NULL : &call->why, call->ctx);
    call_free(call);
}

static struct tool_call *file_start(struct tool *tool, struct loop *loop,
                                    const struct tool_request *request, tool_done_fn *done,
                                    void *ctx) {
    struct file_tool *file = CONTAINER_OF(tool, struct file_tool, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    call->kind = file->kind;
    call->root = root_ref(file->root);
    call->arena = arena_new(2 * request->args.len + request->workspace.len + ARENA_EXTRA_BYTES);
    if (!arena_str(call->arena, request->args, &call->args) ||
        !arena_str(call->arena, request->workspace, &call->workspace))
        abort(); /* the arena was sized for it */
    buf_init(&call->result, LOCAL_RESULT_MAX_BYTES);
    atomic_init(&call->stop, false);
    call->done = done;
    call->ctx = ctx;
    job_start(&call->job, loop, work, worked, call);
    return call;
}

static void file_cancel(struct tool_call *call) {
    atomic_store_explicit(&call->stop, true, memory_order_relaxed);
    if (job_cancel(&call->job)) call_free(call);
}

static void file_free(struct tool *tool) {
    struct file_tool *file = CONTAINER_OF(tool, struct file_tool, base);
    local_tool_done(tool);
    root_unref(file->root);
    free(file);
}

static const struct tool_kind file_kind = {
    .name = "file",
    .start = file_start,
    .cancel = file_cancel,
    .free = file_free,
};

bool file_tool_new(const struct file_tool_kind *kind, struct str root, struct tool **ret,
                   struct err *e) {
    struct root *opened;
    if (!root_open(root, &opened, e)) return err_add(e, STR_FMT, STR_ARG(kind->name));
    struct file_tool *file = MEM_NEW(struct file_tool);
    file->kind = kind;
    file->root = opened;
    /* Writing the same content again gives the same file. */
    file->base = (struct tool){.kind = &file_kind,
                               .name = kind->name,
                               .description = kind->description,
                               .parameters = kind->parameters,
                               .idempotent = true};
    local_tool_init(&file->base);
    *ret = &file->base;
    return true;
}

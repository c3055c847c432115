#include "tool/file_tool.h"

#include "base/mem.h"
#include "tool/local.h"

#include <stdlib.h>

/* In addition to the arguments, copied and unescaped: paths, and what is read of a file. */
#define ARENA_EXTRA_BYTES (256 * KIB)

#define PATH_MAX_BYTES (8 * KIB)
#define TYPE_MAX_BYTES 256

struct file_tool {
    struct tool base;
    const struct file_tool_kind *kind;
    struct file_place *place;
};

struct tool_call {
    const struct file_tool_kind *kind;
    struct file_place *place; /* a reference; a move may outlive the tool */
    struct job job;
    struct arena *arena;
    struct str args, workspace; /* in the arena */
    struct file_request request;
    struct file_content content;
    struct place_move move;
    struct buf path, result;
    struct err why;
    bool prepared, moving, left; /* left: the caller is gone */
    tool_done_fn *done;
    void *ctx;
};

static void call_free(struct tool_call *call) {
    buf_done(&call->path);
    buf_done(&call->result);
    buf_done(&call->move.bytes);
    buf_done(&call->move.type);
    arena_free(call->arena);
    place_unref(call->place);
    free(call);
}

static void call_end(struct tool_call *call, bool succeeded) {
    if (!succeeded) err_add(&call->why, STR_FMT, STR_ARG(call->kind->name));
    if (!call->left)
        call->done(buf_str(&call->result), succeeded ? NULL : &call->why, call->ctx);
    call_free(call);
}

/* --- preparing, on a worker --------------------------------------------------------------- */

static bool file_tool_read_key(struct tool_call *call, struct json args, struct str *ret,
                               struct err *e) {
    return json_str(json_find(args, STR("key")), call->arena, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "the argument 'key' must be a string");
}

static bool file_tool_prepare(struct tool_call *call, struct err *e) {
    struct file_request *request = &call->request;
    request->arena = call->arena;
    if (!local_args(call->args, &request->args, e) ||
        !file_tool_read_key(call, request->args, &request->key, e) ||
        !root_path(call->workspace, request->key, &call->path, e))
        return false;
    request->path = buf_str(&call->path);
    return !call->kind->prepare ||
           (call->kind->prepare(request, &call->content, &call->result, e) &&
            local_result(&call->result, e));
}

static void file_tool_work(void *ctx) {
    struct tool_call *call = ctx;
    call->prepared = file_tool_prepare(call, &call->why);
}

/* --- moving ------------------------------------------------------------------------------- */

static void explain(struct tool_call *call, const struct err *failed) {
    call->why = *failed;
    if (!call->kind->prepare && failed->code == ERR_NOT_FOUND)
        err_set(&call->why, ERR_NOT_FOUND, "no file at key \"" STR_FMT "\" in this workspace",
                STR_ARG(call->request.key));
    else
        err_add(&call->why, "%s key \"" STR_FMT "\"", call->kind->prepare ? "write" : "read",
                STR_ARG(call->request.key));
}

static void on_moved(struct place_move *move, const struct err *failed) {
    struct tool_call *call = CONTAINER_OF(move, struct tool_call, move);
    bool good = !failed;
    if (failed) explain(call, failed);
    if (good && call->kind->show && !call->left) {
        call->content =
            (struct file_content){buf_str(&move->bytes), buf_str(&move->type), move->size};
        good = call->kind->show(&call->request, &call->content, &call->result, &call->why) &&
               local_result(&call->result, &call->why);
    }
    call_end(call, good);
}

static void worked(void *ctx) {
    struct tool_call *call = ctx;
    if (!call->prepared || call->left) {
        call_end(call, false);
        return;
    }
    call->move.path = call->request.path;
    call->move.writes = call->kind->prepare != NULL;
    call->move.content = call->content.bytes;
    call->move.content_type = call->content.type;
    call->move.done = on_moved;
    call->moving = true;
    place_start(call->place, &call->move);
}

/* --- the tool ----------------------------------------------------------------------------- */

static struct tool_call *file_start(struct tool *tool, struct loop *loop,
                                    const struct tool_request *request, tool_done_fn *done,
                                    void *ctx) {
    struct file_tool *file = CONTAINER_OF(tool, struct file_tool, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    call->kind = file->kind;
    call->place = place_ref(file->place);
    call->arena = arena_new(2 * request->args.len + request->workspace.len + ARENA_EXTRA_BYTES);
    if (!arena_str(call->arena, request->args, &call->args) ||
        !arena_str(call->arena, request->workspace, &call->workspace))
        abort(); /* the arena was sized for it */
    buf_init(&call->path, PATH_MAX_BYTES);
    buf_init(&call->result, LOCAL_RESULT_MAX_BYTES);
    buf_init(&call->move.bytes, LOCAL_RESULT_MAX_BYTES); /* the most that a result can show */
    buf_init(&call->move.type, TYPE_MAX_BYTES);
    call->move.loop = loop;
    call->done = done;
    call->ctx = ctx;
    job_start(&call->job, loop, file_tool_work, worked, call);
    return call;
}

static void file_cancel(struct tool_call *call) {
    call->left = true;
    if (call->moving ? place_cancel(&call->move) : job_cancel(&call->job)) call_free(call);
}

static void file_free(struct tool *tool) {
    struct file_tool *file = CONTAINER_OF(tool, struct file_tool, base);
    local_tool_done(tool);
    place_unref(file->place);
    free(file);
}

static const struct tool_kind file_kind = {
    .name = "file",
    .start = file_start,
    .cancel = file_cancel,
    .free = file_free,
};

/* Takes the place. */
static struct tool *file_tool_new(const struct file_tool_kind *kind, struct file_place *place) {
    struct file_tool *file = MEM_NEW(struct file_tool);
    file->kind = kind;
    file->place = place;
    /* Writing the same content again gives the same file. */
    file->base = (struct tool){.kind = &file_kind,
                               .name = kind->name,
                               .description = kind->description,
                               .parameters = kind->parameters,
                               .idempotent = true};
    local_tool_init(&file->base);
    return &file->base;
}

bool file_tool_new_folder(const struct file_tool_kind *kind, struct str root, struct tool **ret,
                          struct err *e) {
    struct file_place *place;
    if (!place_new_folder(root, &place, e)) return err_add(e, STR_FMT, STR_ARG(kind->name));
    *ret = file_tool_new(kind, place);
    return true;
}

struct tool *file_tool_new_bucket(const struct file_tool_kind *kind, struct bucket *bucket) {
    return file_tool_new(kind, place_new_bucket(bucket));
}

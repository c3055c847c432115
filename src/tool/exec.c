#include "tool/exec.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "loop/child.h"
#include "loop/job.h"
#include "loop/slots.h"
#include "tool/exec_folder.h"
#include "tool/local.h"
#include "tool/root.h"
#include "wire/json.h"

#include <errno.h>
#include <fts.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define WAITING_MAX 1000                        /* calls */
#define WATCH_MS 200                            /* how often the folder is measured */
#define FILES_MAX 50000                         /* in the folder of a workspace */
#define FILE_LEAST_BYTES ((uint64_t)(64 * KIB)) /* also in a full workspace */
#define GRACE_MS 5000 /* after its own limit: the turn's would hide the reason */
#define RESULT_REST_BYTES 512
#define COMMAND_MAX_BYTES (100 * KIB) /* one word of a command line has at most 128 KiB */

/* The tool holds one reference, and each call one: the mail of a slot may come late. */
struct exec {
    struct tool base;
    atomic_uint refs;
    struct sandbox *sandbox;
    struct slots *slots;
    char *root;
    enum exec_scope scope;
    uint64_t idle_ms, disk_bytes, output_bytes, timeout_ms;
    pthread_mutex_t folders; /* held while one is made, or removed */
};

/* What lies in a folder, as far as it was looked at. */
struct tree {
    uint64_t bytes, files;
    bool unreadable; /* some of it */
};

struct tool_call {
    struct exec *exec; /* a reference */
    struct loop *loop;
    struct slot slot;
    struct task begin;         /* has a slot: make the folder */
    struct job job;            /* makes the folder, or measures it */
    struct timer limit, watch; /* while it runs */
    struct child *child;       /* NULL: not running */
    bool working, abandoned, slot_gone;
    char *command, *folder, *whole; /* folder, and all of its workspace: once they are made */
    struct exec_whose whose;        /* in `ids` */
    struct buf ids;
    struct buf output, errors;
    struct {                    /* the job's part */
        struct tree all;        /* the folders of the workspace */
        struct tree own, first; /* this call's: now, and when it began */
        bool made;
        struct err why;
    } disk;
    tool_done_fn *done;
    void *ctx;
};

/* --- the end ------------------------------------------------------------------------------ */

static void exec_unref(struct exec *exec) {
    if (atomic_fetch_sub(&exec->refs, 1) != 1) return;
    local_tool_done(&exec->base);
    sandbox_free(exec->sandbox);
    slots_free(exec->slots);
    pthread_mutex_destroy(&exec->folders);
    free(exec->root);
    free(exec);
}

/* Once neither the slot's mail nor a worker comes any more. */
static void exec_settle(struct tool_call *call) {
    if (!call->abandoned || !call->slot_gone || call->working) return;
    free(call->command);
    free(call->folder);
    free(call->whole);
    buf_done(&call->ids);
    buf_done(&call->output);
    buf_done(&call->errors);
    exec_unref(call->exec);
    free(call);
}

static void exec_call_leave(struct tool_call *call) {
    call->abandoned = true;
    task_cancel(&call->begin);
    timer_stop(&call->limit);
    timer_stop(&call->watch);
    if (call->child) child_kill(call->child);
    call->child = NULL;
    if (call->working && job_cancel(&call->job)) call->working = false;
    call->slot_gone = slots_withdraw(&call->slot) || slots_leave(&call->slot);
    exec_settle(call);
}

/* `done` may look at nothing of the call afterwards. */
static void call_answer(struct tool_call *call, struct str result, const struct err *failed) {
    tool_done_fn *done = call->done;
    void *ctx = call->ctx;
    exec_call_leave(call);
    done(failed ? STR_EMPTY : result, failed, ctx);
}

/* --- its result --------------------------------------------------------------------------- */

static void exec_write_text(struct json_writer *json, const char *key, const struct buf *bytes,
                            size_t max_bytes) {
    struct buf text;
    buf_init(&text, 3 * bytes->len + 8);
    utf8_append_repaired(&text, buf_str(bytes));
    json_member_str(json, key, local_fit(buf_str(&text), max_bytes));
    buf_done(&text);
}

/* What a signal means here. */
static const char *signal_reason(int exit_code) {
    if (exit_code == 128 + SIGXCPU || exit_code == 128 + SIGKILL)
        return "it was killed: probably its limit of processor time or memory";
    if (exit_code == 128 + SIGXFSZ)
        return "it reached the limit of a file's size, or filled the workspace";
    return exit_code > 128 ? "a signal ended it" : NULL;
}

static void answer_result(struct tool_call *call, int exit_code, const char *ended) {
    struct buf result;
    struct json_writer json = json_writer(&result);
    size_t room = LOCAL_RESULT_MAX_BYTES - RESULT_REST_BYTES;
    size_t of_errors = call->errors.len < room / 3 ? room / 3 : room / 2;
    buf_init(&result, LOCAL_RESULT_MAX_BYTES);
    json_open_object(&json);
    if (exit_code >= 0) json_member_i64(&json, "exit_code", exit_code);
    if (!ended) ended = signal_reason(exit_code);
    if (ended) json_member_str(&json, "ended", str_from(ended));
    exec_write_text(&json, "stdout", &call->output, room - of_errors);
    exec_write_text(&json, "stderr", &call->errors, of_errors);
    json_close(&json);
    call_answer(call, buf_str(&result), NULL);
    buf_done(&result);
}

/* `why` may be part of the call, which is freed before its caller gets the report. */
static void answer_error(struct tool_call *call, const struct err *why) {
    struct err kept = *why;
    err_add(&kept, "exec");
    call_answer(call, STR_EMPTY, &kept);
}

/* --- while it runs ------------------------------------------------------------------------ */

/* Both outputs share one limit. */
static void exec_take_output(struct tool_call *call, struct str bytes, struct buf *out) {
    size_t used = call->output.len + call->errors.len;
    size_t left = call->exec->output_bytes > used ? call->exec->output_bytes - used : 0;
    buf_append(out, str_head(bytes, left));
    if (bytes.len > left)
        answer_result(call, -1, "it said more than the output limit, and was ended");
}

static void exec_on_output(struct str bytes, void *ctx) {
    struct tool_call *call = ctx;
    exec_take_output(call, bytes, &call->output);
}

static void exec_on_complaint(struct str bytes, void *ctx) {
    struct tool_call *call = ctx;
    exec_take_output(call, bytes, &call->errors);
}

static void exec_on_end(const struct child_end *end, void *ctx) {
    struct tool_call *call = ctx;
    call->child = NULL;
    answer_result(call, end->signal ? 128 + end->signal : end->exit_code, NULL);
}

static void on_limit(void *ctx) {
    answer_result(ctx, -1, "it took longer than the time limit, and was ended");
}

/* --- its folder --------------------------------------------------------------------------- */

/* Links are not followed. */
static struct tree measure_tree(char *folder) {
    char *const roots[] = {folder, NULL};
    struct tree tree = {0};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    FTSENT *entry;
    while (walk && tree.files <= FILES_MAX && (entry = fts_read(walk))) {
        bool unreadable = entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
                          entry->fts_info == FTS_NS;
        if (entry->fts_info == FTS_DP) continue;
        if (unreadable && entry->fts_errno != ENOENT) tree.unreadable = true;
        if (!unreadable) tree.bytes += (uint64_t)entry->fts_statp->st_blocks * 512;
        tree.files++;
    }
    if (walk) fts_close(walk);
    return tree;
}

static void measure(struct tool_call *call) {
    call->disk.own = measure_tree(call->folder);
    call->disk.all = measure_tree(call->whole);
}

static void measure_work(void *ctx) {
    measure(ctx);
}

/* A call is ended when its own folder grows in a full workspace. A workspace that is too full
 * already may be emptied, and what another call fills meanwhile is that one's. */
static const char *disk_reason(const struct tool_call *call) {
    const struct tree *own = &call->disk.own, *first = &call->disk.first;
    bool grows = own->bytes > first->bytes || own->files > first->files;
    bool full = call->disk.all.bytes > call->exec->disk_bytes;
    /* it would be a hiding place */
    if (own->unreadable) return "the workspace has a folder that cannot be read";
    if (grows && full) return "it filled the workspace beyond its limit, and was ended";
    return grows && call->disk.all.files > FILES_MAX ? "the workspace has too many files"
                                                     : NULL;
}

static void measured(void *ctx) {
    struct tool_call *call = ctx;
    call->working = false;
    const char *ended = disk_reason(call);
    if (call->abandoned) {
        exec_settle(call);
    } else if (ended) {
        answer_result(call, -1, ended);
    } else {
        timer_start(&call->watch, WATCH_MS);
    }
}

static void on_watch(void *ctx) {
    struct tool_call *call = ctx;
    call->working = true;
    job_start(&call->job, call->loop, measure_work, measured, call);
}

static bool make_folder(struct tool_call *call, struct err *e) {
    struct exec *exec = call->exec;
    pthread_mutex_lock(&exec->folders);
    bool done = exec_folder_make(exec->root, exec->scope, exec->idle_ms, &call->whose,
                                 &call->folder, &call->whole, e);
    pthread_mutex_unlock(&exec->folders);
    return done;
}

static void make_work(void *ctx) {
    struct tool_call *call = ctx;
    call->disk.made = make_folder(call, &call->disk.why);
    if (call->disk.made) measure(call);
    call->disk.first = call->disk.own;
}

/* --- its start ---------------------------------------------------------------------------- */

/* One file cannot fill the workspace beyond its limit, however fast it is written. */
static uint64_t file_room(const struct tool_call *call) {
    uint64_t most = call->exec->disk_bytes, used = call->disk.all.bytes;
    return used + FILE_LEAST_BYTES < most ? most - used : FILE_LEAST_BYTES;
}

static bool start_command(struct tool_call *call, struct err *e) {
    static const struct child_sink sink = {exec_on_output, exec_on_end, exec_on_complaint};
    static const char *const environment[] = {"PATH=/usr/bin:/bin", NULL};
    const struct sandbox_command command = {call->folder, call->command, file_room(call)};
    const char **args = sandbox_args(call->exec->sandbox, &command);
    struct child_options options = {.path = SANDBOX_PROGRAM,
                                    .args = args,
                                    .environment = environment,
                                    .input = sandbox_input(call->exec->sandbox),
                                    .reports = true,
                                    .guard = CHILD_GUARD_SELF};
    bool started = child_start(call->loop, &options, &sink, call, &call->child, e);
    free(args);
    return started;
}

static void made(void *ctx) {
    struct tool_call *call = ctx;
    struct err why;
    call->working = false;
    if (call->abandoned) {
        exec_settle(call);
    } else if (!call->disk.made) {
        answer_error(call, &call->disk.why);
    } else if (!start_command(call, &why)) {
        answer_error(call, &why);
    } else {
        timer_start(&call->limit, call->exec->timeout_ms);
        timer_start(&call->watch, WATCH_MS);
    }
}

static void exec_begin(void *ctx) {
    struct tool_call *call = ctx;
    call->working = true;
    job_start(&call->job, call->loop, make_work, made, call);
}

static void exec_on_slot(void *ctx) {
    struct tool_call *call = ctx;
    if (!call->abandoned) {
        exec_begin(call);
        return;
    }
    call->slot_gone = true;
    exec_settle(call);
}

static void refuse_call(void *ctx) {
    struct tool_call *call = ctx;
    answer_error(call, &call->disk.why);
}

static bool exec_read_command(const struct tool_request *request, char **ret, struct err *e) {
    struct arena *arena = arena_new(2 * request->args.len + 4 * KIB);
    struct json args;
    struct str command;
    bool done = local_args(request->args, &args, e);
    if (done && !json_str(json_find(args, STR("command")), arena, &command))
        done = err_set(e, ERR_INVALID_ARGUMENT, "the argument 'command' must be a string");
    if (done && str_find_byte(command, '\0') < command.len)
        done = err_set(e, ERR_INVALID_ARGUMENT, "a command has no NUL byte");
    if (done && command.len > COMMAND_MAX_BYTES)
        done = err_set(e, ERR_INVALID_ARGUMENT,
                       "a command has at most %d KiB; write longer ones to a file in pieces",
                       (int)(COMMAND_MAX_BYTES / KIB));
    if (done) *ret = str_dup(command);
    arena_free(arena);
    return done;
}

static void keep_whose(struct tool_call *call, const struct tool_request *request) {
    struct exec_whose *whose = &call->whose;
    *whose = (struct exec_whose){request->workspace, request->user, request->session};
    struct str *texts[] = {&whose->workspace, &whose->user, &whose->session};
    buf_keep_texts(&call->ids, texts, ARRAY_LEN(texts));
}

static struct tool_call *exec_start(struct tool *tool, struct loop *loop,
                                    const struct tool_request *request, tool_done_fn *done,
                                    void *ctx) {
    struct exec *exec = CONTAINER_OF(tool, struct exec, base);
    struct tool_call *call = MEM_NEW(struct tool_call);
    atomic_fetch_add(&exec->refs, 1);
    call->exec = exec;
    call->loop = loop;
    keep_whose(call, request);
    call->done = done;
    call->ctx = ctx;
    call->slot = (struct slot){.loop = loop, .granted = exec_on_slot, .ctx = call};
    buf_init(&call->output, exec->output_bytes);
    buf_init(&call->errors, exec->output_bytes);
    timer_init(&call->limit, loop, on_limit, call);
    timer_init(&call->watch, loop, on_watch, call);
    bool good = exec_read_command(request, &call->command, &call->disk.why);
    enum slots_answer answer = slots_enter(exec->slots, STR_EMPTY, SLOTS_NO_LIMIT, &call->slot);
    if (good && answer == SLOTS_FULL)
        good = err_set(&call->disk.why, ERR_RESOURCE_EXHAUSTED, "%d calls wait already",
                       WAITING_MAX);
    task_init(&call->begin, good ? exec_begin : refuse_call, call);
    if (!good || answer != SLOTS_WAITING) loop_defer(loop, &call->begin);
    return call;
}

/* --- the tool ----------------------------------------------------------------------------- */

static void exec_free(struct tool *tool) {
    exec_unref(CONTAINER_OF(tool, struct exec, base));
}

static const struct tool_kind kind = {
    .name = "exec", .start = exec_start, .cancel = exec_call_leave, .free = exec_free};

static const char parameters[] =
    "{\"type\":\"object\",\"properties\":{\"command\":{\"type\":\"string\",\"description\":"
    "\"A command line or script for /bin/sh.\"}," LOCAL_DESCRIPTION
    "},\"required\":[\"command\"],\"additionalProperties\":false}";

static const char description[] =
    "Run a command in a sandbox and read what it says. It starts in /workspace, whose files "
    "stay; "
    "everything else is read-only or gone afterwards. There is no network unless the operator "
    "allows it, and time, memory and output are limited.";

/* Commands are tried in the root itself: it exists, and access to it means access to all. */
static bool make_root(const struct exec_options *options, struct exec *exec, struct err *e) {
    struct root *root;
    if (!root_open(options->root, &root, e)) return false;
    root_free(root);
    exec->root = realpath(options->root.at, NULL);
    return exec->root ||
           err_set(e, ERR_UNAVAILABLE, "'" STR_FMT "' cannot be found", STR_ARG(options->root));
}

bool exec_tool_new(const struct exec_options *options, struct tool **ret, struct err *e) {
    struct exec *exec = MEM_NEW(struct exec);
    atomic_init(&exec->refs, 1);
    pthread_mutex_init(&exec->folders, NULL);
    exec->scope = (enum exec_scope)options->scope;
    exec->idle_ms = options->idle_ms + options->timeout_ms + GRACE_MS;
    exec->disk_bytes = options->disk_bytes;
    exec->output_bytes = options->output_bytes;
    exec->timeout_ms = options->timeout_ms;
    exec->slots =
        slots_new(&(struct slots_limits){.all = options->at_once, .queue_max = WAITING_MAX});
    exec->base = (struct tool){.kind = &kind,
                               .name = STR("exec"),
                               .description = str_from(description),
                               .parameters = str_from(parameters),
                               .asks = true,
                               .timeout_ms = options->timeout_ms + GRACE_MS};
    local_tool_init(&exec->base);
    if (!make_root(options, exec, e) || !sandbox_new(&options->limits, &exec->sandbox, e) ||
        !sandbox_probe(exec->sandbox, exec->root, e)) {
        exec_unref(exec);
        return false;
    }
    *ret = &exec->base;
    return true;
}

bool exec_works(struct err *why) {
    const struct sandbox_limits limits = {.memory_bytes = 256 * MIB,
                                          .cpu_s = 5,
                                          .processes = 16,
                                          .file_bytes = MIB,
                                          .scratch_bytes = MIB};
    struct sandbox *sandbox;
    if (!sandbox_new(&limits, &sandbox, why)) return false;
    bool works = sandbox_probe(sandbox, "/usr", why);
    sandbox_free(sandbox);
    return works;
}

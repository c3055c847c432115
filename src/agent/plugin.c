/* plugin: agents that are shared libraries (include/weir/agent.h).
 *
 * Each turn runs on its own thread. Its output goes through a queue to the loop of its call,
 * which turns it into reply events. The thread waits while the queue is long, so a slow caller
 * slows it down.
 *
 *     thread: turn() ─ say, call ... ─▶ queue ─▶ loop: events ─▶ the listener
 *                                                  │ cancelled, silent for too long
 *     thread: functions answer WEIR_OVER ◀─────────┘
 *
 * A thread that does not return is abandoned. If a library has THREADS_MAX threads, further
 * turns fail.
 *
 * Memory   a library is counted by its providers and its threads. It is never unloaded.
 * Threads  a call: its loop. What both sides use is in struct shared, with its lock.
 * Source   include/weir/agent.h; docs/plugin-agents.md. */
#include "agent/answer.h"
#include "agent/kind.h"
#include "agent/plugin_turn.h"
#include "base/log.h"
#include "base/mem.h"
#include <weir/agent.h>

#include <dlfcn.h>
#include <stdlib.h>

#define SYMBOL "weir_agent"
#define TAKEN_MAX 256 /* events in one turn of the loop: a library may be faster than we are */

struct plugin_provider {
    struct provider base;
    struct plugin *plugin;
    struct buf name;
    uint64_t silence_ms;
};

struct provider_call {
    struct plugin_provider *provider;
    struct loop *loop;
    struct plugin_turn *turn; /* NULL: it has ended */
    struct answer answer;
    struct buf model; /* the requested model, or the one that answered */
    struct task task; /* continues after a pause */
    struct timer silence;
};

/* --- a call ------------------------------------------------------------------------------- */

static void plugin_call_free(struct answer *answer) {
    struct provider_call *call = CONTAINER_OF(answer, struct provider_call, answer);
    timer_stop(&call->silence);
    task_cancel(&call->task);
    answer_done(answer);
    buf_done(&call->model);
    free(call);
}

static void leave_turn(struct provider_call *call) {
    struct plugin_turn *turn = call->turn;
    call->turn = NULL;
    timer_stop(&call->silence);
    if (turn) plugin_turn_leave(turn);
}

static void plugin_end_call(struct provider_call *call, const struct reply_event *event) {
    leave_turn(call);
    (void)answer_give(&call->answer, event);
}

static void fail_call(struct provider_call *call, enum err_code code, const char *reason,
                      const char *why) {
    struct err e;
    err_set(&e, code, "the agent '" STR_FMT "' %s", STR_ARG(buf_str(&call->provider->name)),
            why);
    log_warning("%s", e.text);
    struct reply_event failed = reply_event_failed(&e, str_from(reason));
    plugin_end_call(call, &failed);
}

static void fail_as_said(struct provider_call *call, const struct reply_event *said) {
    struct err e;
    err_set(&e, said->code, "the agent '" STR_FMT "' failed%s" STR_FMT,
            STR_ARG(buf_str(&call->provider->name)), said->text.len ? ": " : "",
            STR_ARG(said->text));
    struct reply_event failed = reply_event_failed(&e, said->reason);
    plugin_end_call(call, &failed);
}

static void end_well(struct provider_call *call) {
    leave_turn(call);
    if (call->answer.model.len) {
        buf_clear(&call->model);
        buf_append(&call->model, buf_str(&call->answer.model));
    }
    struct reply_event done = {.kind = REPLY_DONE, .model = buf_str(&call->model)};
    (void)answer_give(&call->answer, &done);
}

/* False: the call has ended. */
static bool plugin_take(struct provider_call *call, const struct reply_event *event) {
    switch (event->kind) {
    case REPLY_USAGE:
        answer_count(&call->answer, event->usage, event->usage->model);
        return true;
    case REPLY_DONE: end_well(call); return false;
    case REPLY_FAILED: fail_as_said(call, event); return false;
    default: return answer_give(&call->answer, event);
    }
}

static void plugin_on_ready(void *ctx) {
    struct provider_call *call = ctx;
    struct reply_copy *copy = NULL;
    for (size_t taken = 0; taken < TAKEN_MAX; taken++) {
        if (answer_paused(&call->answer) || !(copy = plugin_turn_next(call->turn))) return;
        timer_start(&call->silence, call->provider->silence_ms);
        bool goes_on = plugin_take(call, &copy->event);
        reply_copy_free(copy);
        if (!goes_on) return;
    }
    loop_defer(call->loop, &call->task);
}

static void plugin_go_on(void *ctx) {
    struct provider_call *call = ctx;
    if (!call->turn) { /* its ending was kept; the call is freed with it */
        (void)answer_release(&call->answer);
        return;
    }
    if (answer_release(&call->answer) && !answer_paused(&call->answer)) plugin_on_ready(call);
}

static void on_silence(void *ctx) {
    struct provider_call *call = ctx;
    if (answer_paused(&call->answer)) {
        timer_start(&call->silence, call->provider->silence_ms);
    } else {
        fail_call(call, ERR_DEADLINE_EXCEEDED, AGENT_STALLED, "said nothing for too long");
    }
}

/* In the first turn of the loop after the start. */
static void fail_later(struct provider_call *call, const struct err *why) {
    struct err e = *why;
    err_add(&e, "the agent '" STR_FMT "'", STR_ARG(buf_str(&call->provider->name)));
    struct reply_event failed = reply_event_failed(&e, STR(AGENT_START));
    gate_keep(&call->answer.gate, &failed);
    loop_defer(call->loop, &call->task);
}

static struct provider_call *plugin_start(struct provider *provider, struct loop *loop,
                                          const struct provider_request *request,
                                          reply_event_fn *on_reply, void *ctx) {
    struct provider_call *call = MEM_NEW(struct provider_call);
    struct err e;
    call->provider = CONTAINER_OF(provider, struct plugin_provider, base);
    call->loop = loop;
    buf_init(&call->model, KIB);
    buf_append(&call->model, str_head(request->model, KIB));
    answer_init(&call->answer, on_reply, ctx, plugin_call_free);
    task_init(&call->task, plugin_go_on, call);
    timer_init(&call->silence, loop, on_silence, call);
    if (plugin_turn_start(call->provider->plugin, loop, request, plugin_on_ready, call,
                          &call->turn, &e)) {
        timer_start(&call->silence, call->provider->silence_ms);
    } else {
        fail_later(call, &e);
    }
    return call;
}

static void plugin_pause_call(struct provider_call *call) {
    call->answer.gate.closed = true;
}

static void resume_call(struct provider_call *call) {
    call->answer.gate.closed = false;
    loop_defer(call->loop, &call->task);
}

static void plugin_cancel(struct provider_call *call) {
    leave_turn(call);
    answer_drop(&call->answer);
}

/* --- the kind ----------------------------------------------------------------------------- */

static void free_provider(struct provider *provider) {
    struct plugin_provider *own = CONTAINER_OF(provider, struct plugin_provider, base);
    plugin_unref(own->plugin);
    buf_done(&own->name);
    free(own);
}

static const struct provider_kind kind = {.name = "plugin",
                                          .start = plugin_start,
                                          .pause = plugin_pause_call,
                                          .resume = resume_call,
                                          .cancel = plugin_cancel,
                                          .free = free_provider};

typedef const struct weir_agent *weir_agent_fn(void);

static bool plugin_check(const struct weir_agent *agent, const char *path, struct err *e) {
    if (!agent || agent->size < sizeof(*agent) || !agent->turn)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "%s: its " SYMBOL "() answers no whole struct weir_agent", path);
    return agent->abi == WEIR_AGENT_ABI ||
           err_set(e, ERR_FAILED_PRECONDITION,
                   "%s is made for version %u of weir/agent.h and this weir has version %d; "
                   "build it anew",
                   path, agent->abi, WEIR_AGENT_ABI);
}

/* Libraries are never unloaded, because a thread may not have returned. */
static bool plugin_load(const char *path, const struct weir_agent **ret, struct err *e) {
    weir_agent_fn *find;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): one a thread */
        return err_set(e, ERR_NOT_FOUND, "it cannot be loaded: %s", why);
    }
    void *symbol = dlsym(library, SYMBOL);
    if (!symbol) {
        dlclose(library);
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "%s has no function " SYMBOL "(); weir/agent.h describes it", path);
    }
    memcpy(&find, &symbol, sizeof(find)); /* POSIX: a function's address is one like this */
    *ret = find();
    dlclose(library);
    return plugin_check(*ret, path, e);
}

/* dlopen() searches the system's folders for a name without a folder. */
static bool load_beside(struct str library, const struct weir_agent **ret, struct err *e) {
    struct buf path;
    buf_init(&path, library.len + 8);
    if (str_find_byte(library, '/') == library.len) buf_append(&path, STR("./"));
    buf_append(&path, library);
    buf_append_byte(&path, '\0');
    bool loaded = plugin_load(path.at, ret, e);
    buf_done(&path);
    return loaded;
}

static bool plugin_make(const struct agent_options *options, struct provider **ret,
                        struct err *e) {
    const struct weir_agent *agent = NULL;
    if (!load_beside(options->library, &agent, e)) return false;
    struct plugin_provider *own = MEM_NEW(struct plugin_provider);
    struct plugin *plugin = own->plugin = MEM_NEW(struct plugin);
    atomic_init(&plugin->refs, 1);
    plugin->agent = agent;
    buf_init(&plugin->config, options->config.len + KIB);
    buf_append(&plugin->config, options->config.len ? options->config : STR("{}"));
    buf_append_byte(&plugin->config, '\0');
    buf_init(&own->name, options->name.len + 1);
    buf_append(&own->name, options->name);
    own->base = (struct provider){&kind, buf_str(&own->name)};
    own->silence_ms = options->silence_ms;
    *ret = &own->base;
    return true;
}

const struct agent_kind plugin_agent = {"plugin", "library", plugin_make};

#include "agent/plugin_turn.h"

#include "agent/kind.h"
#include "agent/process_turn.h"
#include "base/mem.h"
#include "wire/json.h"
#include <weir/agent.h>

#include <signal.h>
#include <stdlib.h>

#define THREADS_MAX 256
#define STACK_BYTES (MIB)
#define QUEUED_MAX_BYTES (64 * KIB)
#define EVENT_BYTES ((size_t)256) /* of one, beside its texts */
#define TURN_MAX_BYTES (64 * MIB)
#define CALLS_MAX 64
#define ERROR_MAX_BYTES 400

struct plugin_turn {
    struct plugin *plugin;
    struct loop *loop;
    atomic_uint refs;
    struct mail mail;
    task_fn *on_ready; /* both belong to the loop */
    void *ctx;

    struct { /* used by both sides */
        pthread_mutex_t lock;
        pthread_cond_t moved; /* the queue got shorter, or the turn is over */
        struct list queue;    /* struct reply_copy */
        size_t bytes;
        bool posted;         /* the mail was sent and not received */
        bool over;           /* there is no listener any more */
        bool ended;          /* the ending is queued */
        size_t made;         /* calls requested so far */
        struct arena *arena; /* what was lent */
    } shared;

    /* read-only while the agent has the turn */
    struct buf line; /* the request, in the form that a process gets */
    struct json calls;
    size_t recorded; /* calls with a result */
};

static struct plugin *plugin_ref(struct plugin *plugin) {
    atomic_fetch_add(&plugin->refs, 1);
    return plugin;
}

void plugin_unref(struct plugin *plugin) {
    if (!plugin || atomic_fetch_sub(&plugin->refs, 1) > 1) return;
    buf_done(&plugin->config);
    free(plugin);
}

static void plugin_turn_free(struct plugin_turn *turn) {
    LIST_EACH(&turn->shared.queue, link) {
        reply_copy_free(CONTAINER_OF(link, struct reply_copy, link));
    }
    pthread_cond_destroy(&turn->shared.moved);
    pthread_mutex_destroy(&turn->shared.lock);
    arena_free(turn->shared.arena);
    buf_done(&turn->line);
    plugin_unref(turn->plugin);
    free(turn);
}

static void turn_unref(struct plugin_turn *turn) {
    if (atomic_fetch_sub(&turn->refs, 1) == 1) plugin_turn_free(turn);
}

/* What an event counts for in the queue. */
static size_t weight(const struct reply_event *event) {
    return EVENT_BYTES + event->text.len + event->args.len;
}

/* --- the loop's side ---------------------------------------------------------------------- */

static void plugin_turn_on_mail(void *ctx) {
    struct plugin_turn *turn = ctx;
    pthread_mutex_lock(&turn->shared.lock);
    turn->shared.posted = false;
    bool over = turn->shared.over;
    pthread_mutex_unlock(&turn->shared.lock);
    if (!over) turn->on_ready(turn->ctx);
    turn_unref(turn);
}

struct reply_copy *plugin_turn_next(struct plugin_turn *turn) {
    pthread_mutex_lock(&turn->shared.lock);
    struct list *first = list_pop(&turn->shared.queue);
    struct reply_copy *copy = first ? CONTAINER_OF(first, struct reply_copy, link) : NULL;
    if (copy) {
        turn->shared.bytes -= weight(&copy->event);
        pthread_cond_signal(&turn->shared.moved);
    }
    pthread_mutex_unlock(&turn->shared.lock);
    return copy;
}

void plugin_turn_leave(struct plugin_turn *turn) {
    pthread_mutex_lock(&turn->shared.lock);
    turn->shared.over = true;
    pthread_cond_broadcast(&turn->shared.moved);
    pthread_mutex_unlock(&turn->shared.lock);
    turn_unref(turn);
}

/* --- the queue ---------------------------------------------------------------------------- */

/* Nothing is posted to the loop once there is no listener, so the loop may be gone by then. */
static int plugin_turn_put(struct plugin_turn *turn, const struct reply_event *event) {
    struct reply_copy *copy = reply_event_copy(event);
    pthread_mutex_lock(&turn->shared.lock);
    while (!turn->shared.over && turn->shared.bytes > QUEUED_MAX_BYTES)
        pthread_cond_wait(&turn->shared.moved, &turn->shared.lock);
    bool over = turn->shared.over || turn->shared.ended;
    if (!over) {
        list_append(&turn->shared.queue, &copy->link);
        turn->shared.bytes += weight(&copy->event);
        turn->shared.ended = reply_event_ends(event);
        if (!turn->shared.posted) {
            turn->shared.posted = true;
            atomic_fetch_add(&turn->refs, 1);
            loop_post(turn->loop, &turn->mail, plugin_turn_on_mail, turn);
        }
    }
    pthread_mutex_unlock(&turn->shared.lock);
    if (over) reply_copy_free(copy);
    return over ? WEIR_OVER : WEIR_OK;
}

static int end_with(struct plugin_turn *turn, const struct reply_event *event) {
    (void)plugin_turn_put(turn, event);
    return WEIR_OVER;
}

static int plugin_turn_fail_with(struct plugin_turn *turn, enum err_code code,
                                 const char *reason, struct str message) {
    return end_with(turn, &(struct reply_event){.kind = REPLY_FAILED,
                                                .code = code,
                                                .reason = str_from(reason),
                                                .text = str_head(message, ERROR_MAX_BYTES)});
}

/* --- what a library calls ----------------------------------------------------------------- */

/* The text was already reported, before a call that has its result. */
static bool was_said(struct plugin_turn *turn) {
    pthread_mutex_lock(&turn->shared.lock);
    bool said = turn->shared.made < turn->recorded;
    pthread_mutex_unlock(&turn->shared.lock);
    return said;
}

static int report(void *ctx, enum reply_kind kind, const char *text) {
    struct plugin_turn *turn = ctx;
    if (was_said(turn) || !text || !*text) return WEIR_OK;
    return plugin_turn_put(turn, &(struct reply_event){kind, .text = str_from(text)});
}

static int plugin_turn_say(void *ctx, const char *text) {
    return report(ctx, REPLY_TEXT, text);
}

static int think(void *ctx, const char *text) {
    return report(ctx, REPLY_THINKING, text);
}

static int plugin_turn_step(void *ctx, const char *text) {
    return report(ctx, REPLY_NOTE, text);
}

static int plugin_turn_fail(void *ctx, const char *code, const char *message) {
    struct str name = str_from(code ? code : "");
    return plugin_turn_fail_with(ctx, name.len ? err_code_named(name) : ERR_INTERNAL,
                                 AGENT_FAILED, str_from(message ? message : ""));
}

static int usage(void *ctx, const char *model, int64_t input, int64_t output) {
    struct plugin_turn *turn = ctx;
    struct event_usage counts = USAGE_UNKNOWN;
    if (was_said(turn)) return WEIR_OK;
    counts.model = str_from(model ? model : "");
    counts.prompt = input < 0 ? TOKENS_UNKNOWN : input;
    counts.completion = output < 0 ? TOKENS_UNKNOWN : output;
    if (input >= 0 && output >= 0) counts.total = usage_sum(input, output);
    return plugin_turn_put(turn, &(struct reply_event){.kind = REPLY_USAGE, .usage = &counts});
}

static int cancelled(void *ctx) {
    struct plugin_turn *turn = ctx;
    pthread_mutex_lock(&turn->shared.lock);
    bool over = turn->shared.over || turn->shared.ended;
    pthread_mutex_unlock(&turn->shared.lock);
    return over;
}

/* Lent texts end with NUL. */
static const char *lend(struct plugin_turn *turn, struct str text) {
    pthread_mutex_lock(&turn->shared.lock);
    char *at = arena_alloc(turn->shared.arena, text.len + 1);
    pthread_mutex_unlock(&turn->shared.lock);
    if (!at) return "";
    if (text.len) memcpy(at, text.at, text.len);
    at[text.len] = '\0';
    return at;
}

/* Take the call's result from the record. False: it is not the call that was made. */
static bool take_recorded(struct plugin_turn *turn, struct str tool, struct weir_result *ret) {
    pthread_mutex_lock(&turn->shared.lock);
    size_t index = turn->shared.made++;
    pthread_mutex_unlock(&turn->shared.lock);
    struct json call = json_at(turn->calls, index);
    if (!json_is(json_find(call, STR("tool")), tool)) return false;
    bool failed = false;
    if (!json_bool(json_find(call, STR("error")), &failed)) failed = false;
    *ret = (struct weir_result){lend(turn, json_find(call, STR("result")).raw), failed};
    return true;
}

static int differs(struct plugin_turn *turn) {
    return plugin_turn_fail_with(
        turn, ERR_INTERNAL, AGENT_PROTOCOL,
        STR("its turn was begun anew, and made another call than before"));
}

/* The reply ends with its calls. When they have results, the turn starts again. */
static int leave_off(struct plugin_turn *turn) {
    return end_with(turn, &(struct reply_event){.kind = REPLY_DONE, .model = STR_EMPTY});
}

static int call(void *ctx, const struct weir_call *calls, size_t count,
                struct weir_result *results) {
    struct plugin_turn *turn = ctx;
    if (!calls || !results || count == 0 || count > CALLS_MAX)
        return plugin_turn_fail_with(turn, ERR_INVALID_ARGUMENT, AGENT_PROTOCOL,
                                     STR("it makes 1 to 64 calls at once"));
    if (was_said(turn)) {
        for (size_t i = 0; i < count; i++) {
            if (!was_said(turn) || !take_recorded(turn, str_from(calls[i].tool), &results[i]))
                return differs(turn);
        }
        return WEIR_OK;
    }
    for (size_t i = 0; i < count; i++) {
        struct reply_event event = {.kind = REPLY_TOOL_CALL,
                                    .call_id = STR_EMPTY,
                                    .tool = str_from(calls[i].tool),
                                    .args = str_from(calls[i].args ? calls[i].args : "{}")};
        if (plugin_turn_put(turn, &event) == WEIR_OVER) return WEIR_OVER;
    }
    return leave_off(turn);
}

static int plugin_turn_ask(void *ctx, const char *question, struct weir_result *result) {
    struct plugin_turn *turn = ctx;
    if (was_said(turn))
        return take_recorded(turn, STR("request_approval"), result) ? WEIR_OK : differs(turn);
    struct reply_event event = {
        .kind = REPLY_APPROVAL, .text = str_from(question ? question : ""), .args = STR("{}")};
    if (plugin_turn_put(turn, &event) == WEIR_OVER) return WEIR_OVER;
    return leave_off(turn);
}

/* --- the thread --------------------------------------------------------------------------- */

static const char *plugin_turn_text_of(struct plugin_turn *turn, struct json asked,
                                       const char *key) {
    struct str text;
    if (!json_str(json_find(asked, str_from(key)), turn->shared.arena, &text)) text = STR_EMPTY;
    return lend(turn, text);
}

static void run(struct plugin_turn *turn) {
    struct json asked = json_of(str_trim(buf_str(&turn->line)));
    const struct weir_turn what = {.size = sizeof(what),
                                   .agent = plugin_turn_text_of(turn, asked, "agent"),
                                   .workspace = plugin_turn_text_of(turn, asked, "workspace"),
                                   .user = plugin_turn_text_of(turn, asked, "user"),
                                   .session = plugin_turn_text_of(turn, asked, "session"),
                                   .input = plugin_turn_text_of(turn, asked, "input"),
                                   .config = turn->plugin->config.at,
                                   .turn = lend(turn, asked.raw)};
    const struct weir_host host = {.size = sizeof(host),
                                   .ctx = turn,
                                   .say = plugin_turn_say,
                                   .think = think,
                                   .step = plugin_turn_step,
                                   .call = call,
                                   .ask = plugin_turn_ask,
                                   .usage = usage,
                                   .fail = plugin_turn_fail,
                                   .cancelled = cancelled};
    turn->calls = json_find(asked, STR("calls"));
    turn->recorded = json_count(turn->calls);
    turn->plugin->agent->turn(&what, &host);
    (void)leave_off(turn); /* does nothing if it has ended */
}

static void *on_thread(void *ctx) {
    struct plugin_turn *turn = ctx;
    run(turn);
    atomic_fetch_sub(&turn->plugin->threads, 1);
    turn_unref(turn);
    return NULL;
}

/* Signals are for the main thread. */
static bool plugin_turn_start_thread(struct plugin_turn *turn) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, on_thread, turn) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

static struct plugin_turn *turn_new(struct plugin *plugin, struct loop *loop, task_fn *on_ready,
                                    void *ctx) {
    struct plugin_turn *turn = MEM_NEW(struct plugin_turn);
    turn->plugin = plugin_ref(plugin);
    turn->loop = loop;
    turn->on_ready = on_ready;
    turn->ctx = ctx;
    turn->shared.arena = arena_new(4 * TURN_MAX_BYTES);
    atomic_init(&turn->refs, 1);
    buf_init(&turn->line, TURN_MAX_BYTES);
    list_init(&turn->shared.queue);
    pthread_mutex_init(&turn->shared.lock, NULL);
    pthread_cond_init(&turn->shared.moved, NULL);
    return turn;
}

bool plugin_turn_start(struct plugin *plugin, struct loop *loop,
                       const struct provider_request *request, task_fn *on_ready, void *ctx,
                       struct plugin_turn **ret, struct err *e) {
    struct plugin_turn *turn = turn_new(plugin, loop, on_ready, ctx);
    bool fits = process_turn_append(request, STR_EMPTY, &turn->line);
    if (!fits) {
        plugin_turn_free(turn);
        return err_set(e, ERR_TOO_LARGE, "the conversation is too long for it");
    }
    atomic_fetch_add(&turn->refs, 1); /* the thread's */
    bool room = atomic_fetch_add(&plugin->threads, 1) < THREADS_MAX;
    if (room && plugin_turn_start_thread(turn)) {
        *ret = turn;
        return true;
    }
    atomic_fetch_sub(&plugin->threads, 1);
    plugin_turn_free(turn); /* no thread has it */
    return err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "it has no thread for one more turn; %d run, or have not come back",
                   THREADS_MAX);
}

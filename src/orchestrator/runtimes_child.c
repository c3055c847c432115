/* A program of ours for each workspace.
 *
 *     starting ─▶ serving ─▶ ending ─▶ gone
 *         └──────────┴──────────────────▲
 *
 * The first turn of a workspace starts its program with a free port, and its health is asked
 * until it serves. Turns that come meanwhile wait together. When no turn has needed it for some
 * time it is ended; one that dies is started again by the next turn. Turns that come while it ends
 * wait until it is gone, because it may still hold the files that the next one needs. */
#include "orchestrator/runtimes_child.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "client/grpc_call.h"
#include "loop/child.h"
#include "loop/free_port.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEALTH "/grpc.health.v1.Health/Check"
#define HEALTH_MS 2000
#define AGAIN_MS 100
#define WORDS_MAX 64
#define VARIABLES_MAX 16
#define COMPLAINT_MAX_BYTES 400

extern char **environ;

struct children {
    struct runtimes_options options;
    struct text command, key, mcp;
    struct map *by_workspace; /* to struct own_runtime */
    struct list all;
    bool stopping;
};

struct own_runtime {
    struct list link;
    struct children *children;
    enum child_runtime_state state;
    struct text workspace, user, address;
    uint16_t port;
    struct child *child;
    struct grpc_call *health; /* NULL: not being asked */
    bool serves;              /* what the health check has said */
    struct timer timer;       /* STARTING: the next question; SERVING: idle; ENDING: kill */
    uint64_t give_up_ms;
    struct text complaint; /* the end of its standard error */
    struct list needs;
    size_t need_count;
    struct task told; /* reports to needs that came while it served */
};

struct child_need {
    struct runtimes_need base;
    struct list link; /* in own->needs */
    struct own_runtime *own;
    bool told;
};

/* --- states ------------------------------------------------------------------------------- */

const struct state child_runtime_states[CHILD_RUNTIME_STATE_COUNT] = {
    [CHILD_RUNTIME_STARTING] = {"starting", TO(CHILD_RUNTIME_SERVING) | TO(CHILD_RUNTIME_GONE)},
    [CHILD_RUNTIME_SERVING] = {"serving", TO(CHILD_RUNTIME_ENDING) | TO(CHILD_RUNTIME_GONE)},
    [CHILD_RUNTIME_ENDING] = {"ending", TO(CHILD_RUNTIME_GONE)},
    [CHILD_RUNTIME_GONE] = {"gone", 0},
};

/* The only function that writes own->state. */
static void child_runtime_move(struct own_runtime *own, enum child_runtime_state next) {
    assert(states_allow(child_runtime_states, own->state, next));
    own->state = next;
}

/* --- telling those who need it ---------------------------------------------------------------- */

static void tell(struct own_runtime *own, const struct err *failed) {
    LIST_EACH(&own->needs, link) {
        struct child_need *need = CONTAINER_OF(link, struct child_need, link);
        if (need->told) continue;
        need->told = true;
        need->base.found(text_str(own->address), failed, need->base.ctx);
    }
}

static void tell_found(void *ctx) {
    struct own_runtime *own = ctx;
    if (own->state == CHILD_RUNTIME_SERVING) tell(own, NULL);
}

/* A new turn starts a new one; turns that it still has keep the memory. */
static void forget(struct own_runtime *own) {
    struct str workspace = text_str(own->workspace);
    if (map_find(own->children->by_workspace, workspace) == own)
        (void)map_remove(own->children->by_workspace, workspace);
}

static void own_free(struct own_runtime *own) {
    forget(own);
    timer_stop(&own->timer);
    task_cancel(&own->told);
    list_remove(&own->link);
    text_done(&own->workspace);
    text_done(&own->user);
    text_done(&own->address);
    text_done(&own->complaint);
    free(own);
}

/* The process is gone, or was killed. */
static void own_gone(struct own_runtime *own, const struct err *why) {
    child_runtime_move(own, CHILD_RUNTIME_GONE);
    forget(own);
    timer_stop(&own->timer);
    if (own->health) grpc_call_cancel(own->health);
    own->health = NULL;
    own->child = NULL;
    own->need_count++; /* so that it outlives the report */
    tell(own, why);
    if (--own->need_count == 0) own_free(own);
}

static void own_kill(struct own_runtime *own, const struct err *why) {
    struct child *child = own->child;
    own_gone(own, why);
    child_kill(child);
}

/* --- is it serving? --------------------------------------------------------------------------- */

static void serving(struct own_runtime *own) {
    child_runtime_move(own, CHILD_RUNTIME_SERVING);
    timer_stop(&own->timer);
    log_info("the runtime of workspace '" STR_FMT "' serves on " STR_FMT,
             STR_ARG(text_str(own->workspace)), STR_ARG(text_str(own->address)));
    loop_defer(own->children->options.loop, &own->told);
    if (own->need_count == 0) timer_start(&own->timer, own->children->options.idle_ms);
}

static void on_health_message(struct lent message, void *ctx) {
    struct own_runtime *own = ctx;
    own->serves = str_equal(lent_read(message), STR("\x08\x01")); /* status: SERVING */
}

/* A runtime without the health service that answers at all serves. */
static void on_health_end(const struct grpc_call_end *end, void *ctx) {
    struct own_runtime *own = ctx;
    own->health = NULL;
    if (own->serves || (end->from_server && end->code == ERR_UNIMPLEMENTED))
        serving(own);
    else
        timer_start(&own->timer, AGAIN_MS);
}

static const struct grpc_call_sink health_sink = {.on_message = on_health_message,
                                                  .on_end = on_health_end};

static void ask_health(struct own_runtime *own) {
    const struct runtimes_options *options = &own->children->options;
    const struct grpc_call_request request = {.host = STR("127.0.0.1"),
                                              .port = own->port,
                                              .path = STR(HEALTH),
                                              .deadline_ms = HEALTH_MS};
    struct err e;
    own->serves = false;
    if (!grpc_call_start(options->http, options->loop, &request, &health_sink, own,
                         &own->health, &e) ||
        !grpc_call_send(own->health, STR_EMPTY, &e)) {
        timer_start(&own->timer, AGAIN_MS);
        return;
    }
    grpc_call_finish(own->health);
}

static void runtimes_child_on_timer(void *ctx) {
    struct own_runtime *own = ctx;
    struct err e;
    if (own->state == CHILD_RUNTIME_SERVING) {
        log_info("the runtime of workspace '" STR_FMT "' is idle and ends",
                 STR_ARG(text_str(own->workspace)));
        child_runtime_move(own, CHILD_RUNTIME_ENDING);
        child_stop(own->child);
    } else if (loop_now_ms(own->children->options.loop) < own->give_up_ms) {
        ask_health(own);
    } else {
        err_set(&e, ERR_UNAVAILABLE, "Assistant is still starting");
        log_warning("the runtime of workspace '" STR_FMT "' does not serve in time",
                    STR_ARG(text_str(own->workspace)));
        own_kill(own, &e);
    }
}

/* --- the process ------------------------------------------------------------------------------ */

static void runtimes_child_on_output(struct str bytes, void *ctx) {
    struct own_runtime *own = ctx;
    log_debug("runtime '" STR_FMT "': " STR_FMT, STR_ARG(text_str(own->workspace)),
              STR_ARG(str_trim(bytes)));
}

/* It comes in pieces; the end of it says most. */
static void runtimes_child_on_complaint(struct str bytes, void *ctx) {
    struct own_runtime *own = ctx;
    struct buf all;
    runtimes_child_on_output(bytes, ctx);
    buf_init(&all, COMPLAINT_MAX_BYTES + bytes.len);
    buf_append(&all, text_str(own->complaint));
    buf_append(&all, bytes);
    size_t more = all.len > COMPLAINT_MAX_BYTES ? all.len - COMPLAINT_MAX_BYTES : 0;
    text_done(&own->complaint);
    own->complaint = text_copy(str_skip(buf_str(&all), more));
    buf_done(&all);
}

static bool own_new(struct children *children, struct str workspace, struct str user,
                    struct own_runtime **ret, struct err *e);

/* Start the program again for the turns that have waited for its end. Without a new one they
 * stay, and are notified. */
static void succeed(struct own_runtime *own) {
    struct own_runtime *next;
    struct err e;
    if (list_empty(&own->needs) || own->children->stopping) return;
    forget(own);
    if (!own_new(own->children, text_str(own->workspace), text_str(own->user), &next, &e)) {
        log_warning("the runtime of workspace '" STR_FMT "' cannot be started: %s",
                    STR_ARG(text_str(own->workspace)), e.text);
        return;
    }
    while (!list_empty(&own->needs)) {
        struct list *link = list_pop(&own->needs);
        CONTAINER_OF(link, struct child_need, link)->own = next;
        list_append(&next->needs, link);
    }
    next->need_count = own->need_count;
    own->need_count = 0;
}

static void runtimes_child_on_end(const struct child_end *end, void *ctx) {
    struct own_runtime *own = ctx;
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the assistant's runtime has ended");
    if (own->state != CHILD_RUNTIME_ENDING)
        log_warning("the runtime of workspace '" STR_FMT "' has ended with status %d: " STR_FMT,
                    STR_ARG(text_str(own->workspace)), end->exit_code,
                    STR_ARG(str_trim(text_str(own->complaint))));
    else
        succeed(own);
    own_gone(own, &e);
}

static const struct child_sink child_sink = {.on_output = runtimes_child_on_output,
                                             .on_end = runtimes_child_on_end,
                                             .on_complaint = runtimes_child_on_complaint};

/* The words and the variables of one start, as child_start() takes them. */
struct start {
    struct buf texts, path;
    const char *words[WORDS_MAX + 1];
    size_t word_count;
    const char **environment;
};

/* An endpoint that the operator names stays. */
static bool inherited(const char *variable) {
    static const struct str ours[] = {
        STR_INIT("CRAWBL_MCP_SIGNING_KEY="), STR_INIT("CRAWBL_GRPC_LISTEN="),
        STR_INIT("CRAWBL_WORKSPACE_ID="), STR_INIT("CRAWBL_USER_ID="), STR_INIT("PORT=")};
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        if (str_starts(str_from(variable), ours[i])) return false;
    }
    return true;
}

/* Appends a text that ends in NUL. The buffer has its whole room from the start. */
static const char *runtimes_child_keep(struct start *start, const char *name,
                                       struct str value) {
    size_t from = start->texts.len;
    buf_printf(&start->texts, "%s" STR_FMT, name, STR_ARG(value));
    buf_append_byte(&start->texts, '\0');
    return start->texts.at + from;
}

static void set_environment(struct start *start, const struct own_runtime *own) {
    size_t count = 0, at = 0;
    while (environ[count]) count++;
    start->environment = mem_zero(count + VARIABLES_MAX, sizeof(*start->environment));
    for (size_t i = 0; i < count; i++) {
        if (inherited(environ[i])) start->environment[at++] = environ[i];
    }
    start->environment[at++] =
        runtimes_child_keep(start, "CRAWBL_GRPC_LISTEN=", text_str(own->address));
    start->environment[at++] =
        runtimes_child_keep(start, "CRAWBL_WORKSPACE_ID=", text_str(own->workspace));
    start->environment[at++] =
        runtimes_child_keep(start, "CRAWBL_USER_ID=", text_str(own->user));
    if (own->children->key.at)
        start->environment[at++] =
            runtimes_child_keep(start, "CRAWBL_MCP_SIGNING_KEY=", text_str(own->children->key));
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): it is never set */
    if (own->children->mcp.len && !getenv("CRAWBL_MCP_ENDPOINT"))
        start->environment[at++] =
            runtimes_child_keep(start, "CRAWBL_MCP_ENDPOINT=", text_str(own->children->mcp));
}

/* An id as one name of a folder, and no option of the program: letters, digits, '_' and '-' stay,
 * all else is percent-encoded. */
static void put_name(struct buf *out, struct str id) {
    for (size_t i = 0; i < id.len; i++) {
        char c = id.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || c == '_' || (c == '-' && i > 0);
        if (plain)
            buf_append_byte(out, c);
        else
            buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

static bool set_words(struct start *start, const struct own_runtime *own, struct err *e) {
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)own->port);
    struct buf workspace, user;
    buf_init(&workspace, KIB);
    buf_init(&user, KIB);
    put_name(&workspace, text_str(own->workspace));
    put_name(&user, text_str(own->user));
    const struct runtimes_word values[] = {{STR("{port}"), str_from(port)},
                                           {STR("{workspace}"), buf_str(&workspace)},
                                           {STR("{user}"), buf_str(&user)}};
    struct str rest = text_str(own->children->command);
    while (rest.len && start->word_count < WORDS_MAX) {
        struct str word = str_split(rest, ' ', &rest);
        if (!word.len) continue;
        struct buf filled;
        buf_init(&filled, 4 * KIB);
        runtimes_fill(word, values, ARRAY_LEN(values), &filled);
        start->words[start->word_count++] = runtimes_child_keep(start, "", buf_str(&filled));
        buf_done(&filled);
    }
    buf_done(&workspace);
    buf_done(&user);
    const char *path = getenv("PATH"); /* NOLINT(concurrency-mt-unsafe): it is never set */
    if (start->word_count &&
        child_find(str_from(start->words[0]), str_from(path), &start->path))
        return true;
    return err_set(e, ERR_NOT_FOUND, "there is no program '%s' (orchestrator.runtime.command)",
                   start->word_count ? start->words[0] : "");
}

static bool own_start(struct own_runtime *own, struct err *e) {
    struct start start = {0};
    buf_init(&start.texts, 64 * KIB);
    (void)buf_room(&start.texts, 64 * KIB);
    buf_init(&start.path, 8 * KIB);
    set_environment(&start, own);
    bool good = set_words(&start, own, e);
    if (good) {
        const struct child_options options = {.path = start.path.at,
                                              .args = start.words,
                                              .environment = start.environment,
                                              .reports = true,
                                              .guard = CHILD_GUARD_SELF};
        good = child_start(own->children->options.loop, &options, &child_sink, own, &own->child,
                           e);
    }
    free(start.environment);
    buf_done(&start.texts);
    buf_done(&start.path);
    return good;
}

static bool own_new(struct children *children, struct str workspace, struct str user,
                    struct own_runtime **ret, struct err *e) {
    struct own_runtime *own = MEM_NEW(struct own_runtime);
    char address[32];
    own->children = children;
    own->state = CHILD_RUNTIME_STARTING;
    own->workspace = text_copy(workspace);
    own->user = text_copy(user);
    list_init(&own->needs);
    list_append(&children->all, &own->link);
    timer_init(&own->timer, children->options.loop, runtimes_child_on_timer, own);
    task_init(&own->told, tell_found, own);
    own->give_up_ms = loop_now_ms(children->options.loop) + children->options.start_ms;
    bool good = free_port(&own->port, e);
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)own->port);
    own->address = text_copy(str_from(address));
    if (!good || !own_start(own, e)) {
        own_free(own);
        return false;
    }
    (void)map_put(children->by_workspace, workspace, own);
    timer_start(&own->timer, AGAIN_MS);
    *ret = own;
    return true;
}

/* --- the driver --------------------------------------------------------------------------------- */

static bool children_open(const struct runtimes_options *options, void **ret, struct err *e) {
    if (!str_trim(options->command).len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the runtime driver 'child' needs orchestrator.runtime.command, such as "
                       "weir serve --grpc 127.0.0.1:{port} --http off");
    struct children *children = MEM_NEW(struct children);
    children->options = *options;
    children->command = text_copy(options->command);
    if (options->key.len) children->key = text_copy(options->key);
    if (options->mcp.len) children->mcp = text_copy(options->mcp);
    children->by_workspace = map_new();
    list_init(&children->all);
    *ret = children;
    return true;
}

/* A child that could not be started. Those who need it learn this later. */
static void tell_failed(void *ctx) {
    struct own_runtime *own = ctx;
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the assistant's runtime cannot be started");
    own->need_count++;
    tell(own, &e);
    if (--own->need_count == 0) own_free(own);
}

static struct own_runtime *own_failed(struct children *children) {
    struct own_runtime *own = MEM_NEW(struct own_runtime);
    own->children = children;
    own->state = CHILD_RUNTIME_GONE;
    list_init(&own->needs);
    list_append(&children->all, &own->link);
    timer_init(&own->timer, children->options.loop, runtimes_child_on_timer, own);
    task_init(&own->told, tell_failed, own);
    loop_defer(children->options.loop, &own->told);
    return own;
}

static struct runtimes_need *children_need(void *ctx, struct str workspace, struct str user) {
    struct children *children = ctx;
    struct own_runtime *own = map_find(children->by_workspace, workspace);
    struct child_need *need = MEM_NEW(struct child_need);
    struct err e;
    if (!own && !own_new(children, workspace, user, &own, &e)) {
        log_warning("the runtime of workspace '" STR_FMT "' cannot be started: %s",
                    STR_ARG(workspace), e.text);
        own = own_failed(children);
    }
    need->own = own;
    list_append(&own->needs, &need->link);
    own->need_count++;
    if (own->state == CHILD_RUNTIME_SERVING) {
        timer_stop(&own->timer);
        loop_defer(children->options.loop, &own->told);
    }
    return &need->base;
}

static void children_leave(struct runtimes_need *base) {
    struct child_need *need = CONTAINER_OF(base, struct child_need, base);
    struct own_runtime *own = need->own;
    list_remove(&need->link);
    free(need);
    if (--own->need_count) return;
    if (own->state == CHILD_RUNTIME_GONE)
        own_free(own);
    else if (own->state == CHILD_RUNTIME_SERVING)
        timer_start(&own->timer, own->children->options.idle_ms);
}

static void children_stop(void *ctx) {
    struct children *children = ctx;
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "the orchestrator stops");
    children->stopping = true;
    LIST_EACH(&children->all, link) {
        struct own_runtime *own = CONTAINER_OF(link, struct own_runtime, link);
        if (own->child) own_kill(own, &e);
    }
}

static void children_close(void *ctx) {
    struct children *children = ctx;
    map_free(children->by_workspace);
    text_done(&children->command);
    text_done(&children->mcp);
    text_wipe(&children->key);
    free(children);
}

const struct runtimes_driver runtimes_child = {.name = STR_INIT("child"),
                                               .open = children_open,
                                               .need = children_need,
                                               .leave = children_leave,
                                               .stop = children_stop,
                                               .close = children_close};

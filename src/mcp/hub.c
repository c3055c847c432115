#include "mcp/hub.h"

#include "base/arena.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/hub_inner.h"
#include "mcp/pins.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define RETRY_FIRST_MS 500
#define RETRY_MAX_MS 60000
#define TOOLS_MAX_BYTES (16 * MIB)
#define OPTIONS_MAX_BYTES (2 * MIB)

/* Between two times that it listens; longer where they are short. */
#define CHANGES_APART_MS 1000
#define CHANGES_APART_MAX_MS 60000
#define LISTEN_AGAIN_MS 1000
#define LISTEN_AGAIN_MAX_MS 60000
#define LISTEN_LONG_MS 10000

struct mcp_hub {
    struct http_pool *pool;
    struct loop *loop;
    char *pins_path;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mutex; /* guards the members below, and the published parts of servers */
    pthread_cond_t settled;
    bool stopped; /* no more mail is taken */
    bool halted;  /* its servers have ended */
    struct list servers;
    struct loop *watcher; /* NULL: no watcher */
    struct mail watch_mail;
    bool watch_out;
    task_fn *watch_fn;
    void *watch_ctx;
    struct mail halt;
};

bool mcp_hub_post(struct mcp_hub *hub, struct mail *mail, task_fn *fn, void *ctx) {
    pthread_mutex_lock(&hub->mutex);
    bool runs = !hub->stopped;
    if (runs) loop_post(hub->loop, mail, fn, ctx);
    pthread_mutex_unlock(&hub->mutex);
    return runs;
}

/* --- watching ----------------------------------------------------------------------------- */

static void on_watch(void *ctx) {
    struct mcp_hub *hub = ctx;
    pthread_mutex_lock(&hub->mutex);
    hub->watch_out = false;
    pthread_mutex_unlock(&hub->mutex);
    hub->watch_fn(hub->watch_ctx);
}

/* Called with the mutex held. */
static void report_watcher(struct mcp_hub *hub) {
    pthread_cond_broadcast(&hub->settled);
    if (!hub->watcher || hub->watch_out || hub->stopped) return;
    hub->watch_out = true;
    loop_post(hub->watcher, &hub->watch_mail, on_watch, hub);
}

void mcp_hub_watch(struct mcp_hub *hub, struct loop *loop, task_fn *fn, void *ctx) {
    pthread_mutex_lock(&hub->mutex);
    hub->watcher = loop;
    hub->watch_fn = fn;
    hub->watch_ctx = ctx;
    pthread_mutex_unlock(&hub->mutex);
}

static bool all_settled(const struct mcp_hub *hub) {
    LIST_EACH(&hub->servers, link) {
        const struct mcp_server *server = CONTAINER_OF(link, struct mcp_server, link);
        if (server->state == MCP_SERVER_STARTING) return false;
    }
    return true;
}

void mcp_hub_wait(struct mcp_hub *hub, uint64_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(ms / 1000);
    pthread_mutex_lock(&hub->mutex);
    while (!all_settled(hub) &&
           pthread_cond_timedwait(&hub->settled, &hub->mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&hub->mutex);
}

void mcp_server_advise(const struct mcp_server *server, const struct err *failed,
                       struct err *ret) {
    *ret = *failed;
    if (failed->code == ERR_UNAUTHENTICATED)
        err_add(ret,
                "the MCP server '" STR_FMT
                "' wants to know who asks; set key_env or headers in "
                "its entry of mcp (there is no OAuth here)",
                STR_ARG(server->options.name));
}

/* --- what a server lists ------------------------------------------------------------------ */

static struct mcp_tools *copy_tools(const struct mcp_tool_info *from, size_t count) {
    struct mcp_tools *tools = MEM_NEW(struct mcp_tools);
    atomic_init(&tools->refs, 1);
    tools->arena = arena_new(TOOLS_MAX_BYTES);
    tools->tools = mem_zero(count + 1, sizeof(*tools->tools));
    for (size_t i = 0; i < count; i++) {
        struct mcp_tool_info *tool = &tools->tools[tools->count];
        *tool = from[i];
        if (arena_str(tools->arena, from[i].name, &tool->name) &&
            arena_str(tools->arena, from[i].description, &tool->description) &&
            arena_str(tools->arena, from[i].schema, &tool->schema))
            tools->count++;
    }
    return tools;
}

void mcp_tools_unref(struct mcp_tools *tools) {
    if (!tools || atomic_fetch_sub(&tools->refs, 1) != 1) return;
    arena_free(tools->arena);
    free(tools->tools);
    free(tools);
}

struct mcp_tools *mcp_server_tools(struct mcp_server *server) {
    pthread_mutex_lock(&server->hub->mutex);
    struct mcp_tools *tools = server->tools;
    if (tools) atomic_fetch_add(&tools->refs, 1);
    pthread_mutex_unlock(&server->hub->mutex);
    return tools;
}

bool mcp_server_settled(const struct mcp_server *server) {
    pthread_mutex_lock(&server->hub->mutex);
    bool settled = server->state != MCP_SERVER_STARTING;
    pthread_mutex_unlock(&server->hub->mutex);
    return settled;
}

static bool same_tools(const struct mcp_tools *a, const struct mcp_tools *b) {
    if (!a || !b || a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        if (!mcp_tool_same(&a->tools[i], &b->tools[i]) ||
            a->tools[i].changed != b->tools[i].changed)
            return false;
    }
    return true;
}

const struct state mcp_server_states[MCP_SERVER_STATE_COUNT] = {
    /* clang-format off */
    [MCP_SERVER_STARTING] = {"starting", TO(MCP_SERVER_LISTED) | TO(MCP_SERVER_AWAY)},
    [MCP_SERVER_LISTED]   = {"listed",   TO(MCP_SERVER_LISTED) | TO(MCP_SERVER_AWAY)},
    [MCP_SERVER_AWAY]     = {"away",     TO(MCP_SERVER_LISTED) | TO(MCP_SERVER_AWAY)},
    /* clang-format on */
};

/* The only function that writes server->state. tools: taken; NULL: the listing failed. */
static void hub_publish(struct mcp_server *server, enum mcp_server_state state,
                        struct mcp_tools *tools) {
    pthread_mutex_lock(&server->hub->mutex);
    bool news =
        server->state == MCP_SERVER_STARTING || (tools && !same_tools(server->tools, tools));
    struct mcp_tools *before = tools ? server->tools : NULL;
    assert(states_allow(mcp_server_states, server->state, state));
    server->state = state;
    if (tools) server->tools = tools;
    if (news) report_watcher(server->hub);
    pthread_mutex_unlock(&server->hub->mutex);
    mcp_tools_unref(before);
}

static void list_tools(struct mcp_server *server);
static void list_change(struct mcp_server *server);

static void list_later(struct mcp_server *server) {
    uint64_t doubled = server->retry_ms * 2;
    server->retry_ms = doubled < RETRY_FIRST_MS ? RETRY_FIRST_MS : doubled;
    if (server->retry_ms > RETRY_MAX_MS) server->retry_ms = RETRY_MAX_MS;
    timer_start(&server->retry, server->retry_ms);
}

/* --- changes that a stateless server reports ---------------------------------------------- */

/* What changed meanwhile the next list says, after which it listens again. */
static void on_listened(struct json result, const struct err *failed, void *ctx) {
    struct mcp_server *server = ctx;
    uint64_t lasted_ms = loop_now_ms(server->hub->loop) - server->listening_since_ms;
    (void)result;
    (void)failed;
    server->listening = NULL;
    server->listen_ms = lasted_ms < LISTEN_LONG_MS ? 2 * server->listen_ms : LISTEN_AGAIN_MS;
    if (server->listen_ms > LISTEN_AGAIN_MAX_MS) server->listen_ms = LISTEN_AGAIN_MAX_MS;
    if (!timer_waits(&server->retry)) timer_start(&server->retry, server->listen_ms);
}

static void listen_to(struct mcp_server *server) {
    static const struct mcp_request request = {
        .caller = {STR_INIT(""), STR_INIT(""), STR_INIT("")},
        .method = "subscriptions/listen",
        .name = STR_INIT(""),
        .schema = STR_INIT(""),
        .params = STR_INIT("{\"notifications\":{\"toolsListChanged\":true}}"),
        .repeatable = true};
    if (server->listening || !mcp_client_may_listen(server->client)) return;
    server->listening_since_ms = loop_now_ms(server->hub->loop);
    server->listening = mcp_call_start(server->client, &request, on_listened, server);
}

/* Some servers report a change with each list. The first one is listed at once, later ones once a
 * second, and less often while nothing differs. */
static void pace_changes(struct mcp_server *server, const struct mcp_tools *tools) {
    uint64_t doubled = 2 * server->apart_ms;
    bool reported = server->change_reported;
    bool same = same_tools(server->tools, tools); /* only this thread writes it */
    server->listed_ms = loop_now_ms(server->hub->loop);
    server->change_reported = false;
    if (!reported) return;
    if (!same || doubled < CHANGES_APART_MS) doubled = CHANGES_APART_MS;
    server->apart_ms = doubled < CHANGES_APART_MAX_MS ? doubled : CHANGES_APART_MAX_MS;
}

static void take_list(struct mcp_server *server) {
    struct mcp_hub *hub = server->hub;
    size_t count;
    const struct mcp_tool_info *listed = mcp_listing_tools(server->listing, &count);
    struct mcp_tools *tools = copy_tools(listed, count);
    pins_check(str_from(hub->pins_path), server->options.name, tools->tools, tools->count);
    server->retry_ms = 0;
    log_debug("the MCP server '" STR_FMT "' has %zu tools", STR_ARG(server->options.name),
              tools->count);
    pace_changes(server, tools);
    hub_publish(server, MCP_SERVER_LISTED, tools);
    listen_to(server);
}

static void hub_on_listed(const struct err *failed, void *ctx) {
    struct mcp_server *server = ctx;
    if (failed) {
        struct err why;
        mcp_server_advise(server, failed, &why);
        if (!server->retry_ms)
            log_warning("the tools of the MCP server '" STR_FMT "' are not known: %s",
                        STR_ARG(server->options.name), why.text);
        hub_publish(server, MCP_SERVER_AWAY, NULL);
        list_later(server);
    } else {
        take_list(server);
    }
    mcp_listing_free(server->listing);
    server->listing = NULL;
    if (server->again && !failed) list_change(server);
}

static void list_tools(struct mcp_server *server) {
    static const struct mcp_caller no_caller = {STR_INIT(""), STR_INIT(""), STR_INIT("")};
    timer_stop(&server->retry);
    server->again = server->listing != NULL;
    if (server->again) return;
    server->listing = mcp_list(server->client, &no_caller, hub_on_listed, server);
}

static void on_retry(void *ctx) {
    list_tools(ctx);
}

static void list_change(struct mcp_server *server) {
    server->change_reported = true;
    uint64_t passed_ms = loop_now_ms(server->hub->loop) - server->listed_ms;
    if (server->listing || passed_ms >= server->apart_ms) {
        list_tools(server);
    } else {
        timer_start(&server->retry, server->apart_ms - passed_ms);
    }
}

static void on_changed(void *ctx) {
    list_change(ctx);
}

/* List again after a while, which restarts the program. */
static void on_down(void *ctx) {
    struct mcp_server *server = ctx;
    if (!server->listing) list_later(server);
}

/* --- life of a server --------------------------------------------------------------------- */

static void on_begin(void *ctx) {
    struct mcp_server *server = ctx;
    server->listen_ms = LISTEN_AGAIN_MS;
    timer_init(&server->retry, server->hub->loop, on_retry, server);
    server->client = mcp_client_new(&server->options);
    list_tools(server);
}

static void end_server(struct mcp_server *server) {
    mcp_listing_free(server->listing);
    server->listing = NULL;
    if (server->listening) mcp_call_cancel(server->listening);
    server->listening = NULL;
    timer_stop(&server->retry);
    mcp_remote_cut_all(server);
    mcp_client_unref(server->client);
    server->client = NULL;
}

static void free_server(struct mcp_server *server) {
    mcp_tools_unref(server->tools);
    buf_done(&server->key);
    arena_free(server->arena);
    free(server);
}

static void on_close(void *ctx) {
    struct mcp_server *server = ctx;
    end_server(server);
    free_server(server);
}

struct mcp_server *mcp_server_ref(struct mcp_server *server) {
    atomic_fetch_add(&server->refs, 1);
    return server;
}

void mcp_server_unref(struct mcp_server *server) {
    if (!server) return;
    struct mcp_hub *hub = server->hub;
    pthread_mutex_lock(&hub->mutex);
    bool last = atomic_fetch_sub(&server->refs, 1) == 1;
    bool runs = !hub->stopped, halts = hub->stopped && !hub->halted;
    if (last && !halts) list_remove(&server->link);
    if (last && runs) loop_post(hub->loop, &server->close, on_close, server);
    pthread_mutex_unlock(&hub->mutex);
    if (last && !runs && !halts) free_server(server);
}

/* --- finding one -------------------------------------------------------------------------- */

static void write_strings(struct buf *out, const char *const *strings) {
    for (size_t i = 0; strings && strings[i]; i++)
        buf_append(out, str_of(strings[i], strlen(strings[i]) + 1));
    buf_append(out, str_of("", 1));
}

static void write_str(struct buf *out, struct str text) {
    buf_append_u64(out, text.len);
    buf_append_byte(out, ':');
    buf_append(out, text);
}

static void hub_write_key(const struct mcp_server_options *options, struct buf *out) {
    write_str(out, options->name);
    write_strings(out, options->program);
    write_strings(out, options->program ? options->environment : NULL);
    write_str(out, options->endpoint);
    write_str(out, options->key);
    write_str(out, options->user_header);
    write_str(out, options->conversation_header);
    buf_append_u64(out, options->elicitation);
    for (size_t i = 0; i < options->header_count; i++) {
        write_str(out, options->headers[i].name);
        write_str(out, options->headers[i].value);
    }
}

static struct str hub_keep(struct mcp_server *server, struct str text) {
    struct str kept = STR_EMPTY;
    if (!arena_str(server->arena, text, &kept)) abort(); /* the settings are limited to less */
    return kept;
}

static const char *const *keep_strings(struct mcp_server *server, const char *const *from) {
    size_t count = 0;
    if (!from) return NULL;
    while (from[count]) count++;
    const char **kept = arena_alloc(server->arena, (count + 1) * sizeof(char *));
    for (size_t i = 0; i < count; i++) kept[i] = hub_keep(server, str_from(from[i])).at;
    kept[count] = NULL;
    return kept;
}

static void keep_headers(struct mcp_server *server, const struct mcp_server_options *from) {
    struct http_header *headers =
        arena_alloc(server->arena, (from->header_count + 1) * sizeof(*headers));
    size_t count = 0;
    for (; count < from->header_count; count++)
        headers[count] = (struct http_header){hub_keep(server, from->headers[count].name),
                                              hub_keep(server, from->headers[count].value)};
    if (from->key.len) {
        struct buf text;
        buf_init(&text, 8 * KIB);
        buf_append(&text, STR("Bearer "));
        buf_append(&text, from->key);
        headers[count++] =
            (struct http_header){STR("authorization"), hub_keep(server, buf_str(&text))};
        buf_done(&text);
    }
    server->options.headers = headers;
    server->options.header_count = count;
}

static struct mcp_server *server_new(struct mcp_hub *hub,
                                     const struct mcp_server_options *from) {
    struct mcp_server *server = MEM_NEW(struct mcp_server);
    server->hub = hub;
    atomic_init(&server->refs, 1);
    buf_init(&server->key, OPTIONS_MAX_BYTES);
    list_init(&server->remotes);
    server->arena = arena_new(OPTIONS_MAX_BYTES);
    server->options = (struct mcp_options){
        .pool = hub->pool,
        .loop = hub->loop,
        .endpoint = hub_keep(server, from->endpoint),
        .probes = true,
        .streams = true,
        .elicitation = from->elicitation,
        .ctx = server,
        .name = hub_keep(server, from->name),
        .program = keep_strings(server, from->program),
        .environment = keep_strings(server, from->environment),
        .user_header = hub_keep(server, from->user_header),
        .conversation_header = hub_keep(server, from->conversation_header),
        .changed = on_changed,
        .down = on_down,
    };
    keep_headers(server, from);
    hub_write_key(from, &server->key);
    return server;
}

static void *run_hub(void *ctx) {
    struct mcp_hub *hub = ctx;
    loop_run(hub->loop);
    return NULL;
}

/* Called with the mutex held. */
static void hub_start_thread(struct mcp_hub *hub) {
    sigset_t all, before;
    if (hub->has_thread) return;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    hub->has_thread = pthread_create(&hub->thread, NULL, run_hub, hub) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!hub->has_thread) log_error("the thread of the MCP servers could not be started");
}

static struct mcp_server *find_server(struct mcp_hub *hub, struct str key) {
    LIST_EACH(&hub->servers, link) {
        struct mcp_server *server = CONTAINER_OF(link, struct mcp_server, link);
        if (str_equal(buf_str(&server->key), key)) return server;
    }
    return NULL;
}

struct mcp_server *mcp_server_get(struct mcp_hub *hub,
                                  const struct mcp_server_options *options) {
    struct buf key;
    buf_init(&key, OPTIONS_MAX_BYTES);
    hub_write_key(options, &key);
    pthread_mutex_lock(&hub->mutex);
    struct mcp_server *server = find_server(hub, buf_str(&key));
    if (server) {
        mcp_server_ref(server);
    } else {
        server = server_new(hub, options);
        list_append(&hub->servers, &server->link);
        hub_start_thread(hub);
        if (!hub->stopped) loop_post(hub->loop, &server->begin, on_begin, server);
    }
    pthread_mutex_unlock(&hub->mutex);
    buf_done(&key);
    return server;
}

/* --- life of the hub ---------------------------------------------------------------------- */

struct mcp_hub *mcp_hub_new(struct http_pool *pool, struct str pins_path) {
    struct mcp_hub *hub = MEM_NEW(struct mcp_hub);
    hub->pool = pool;
    hub->loop = loop_new();
    hub->pins_path = str_dup(pins_path);
    pthread_mutex_init(&hub->mutex, NULL);
    pthread_cond_init(&hub->settled, NULL);
    list_init(&hub->servers);
    http_pool_add(pool, hub->loop);
    return hub;
}

/* The last mail that the hub gets. Some of the servers may have no owner any more: what is
 * released while the hub stops is left for this. */
static void on_halt(void *ctx) {
    struct mcp_hub *hub = ctx;
    struct list ending, *link;
    list_init(&ending);
    pthread_mutex_lock(&hub->mutex);
    hub->halted = true;
    list_move(&hub->servers, &ending);
    LIST_EACH(&ending, each) mcp_server_ref(CONTAINER_OF(each, struct mcp_server, link));
    pthread_mutex_unlock(&hub->mutex);
    while ((link = list_pop(&ending))) {
        struct mcp_server *server = CONTAINER_OF(link, struct mcp_server, link);
        end_server(server);
        mcp_server_unref(server);
    }
    http_pool_leave(hub->pool, hub->loop);
    loop_stop(hub->loop);
}

void mcp_hub_stop(struct mcp_hub *hub) {
    if (!hub || hub->stopped) return;
    pthread_mutex_lock(&hub->mutex);
    hub->stopped = true;
    if (hub->has_thread) loop_post(hub->loop, &hub->halt, on_halt, hub);
    pthread_mutex_unlock(&hub->mutex);
    if (hub->has_thread) {
        pthread_join(hub->thread, NULL);
    } else {
        hub->halted = true;
        http_pool_leave(hub->pool, hub->loop);
    }
    loop_free(hub->loop);
}

void mcp_hub_free(struct mcp_hub *hub) {
    if (!hub) return;
    mcp_hub_stop(hub);
    pthread_cond_destroy(&hub->settled);
    pthread_mutex_destroy(&hub->mutex);
    free(hub->pins_path);
    free(hub);
}

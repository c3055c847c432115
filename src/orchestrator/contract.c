#include "orchestrator/contract.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "orchestrator/agent_asks.h"
#include "orchestrator/outbox.h"
#include "orchestrator/readers.h"
#include "orchestrator/sockets.h"
#include "orchestrator/tables.h"
#include "orchestrator/toolbox.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool orchestrator_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct orchestrator_options *options = orchestrator_options(from->config);
    if (!options->database.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "weir orchestrate needs a PostgreSQL database: set "
                       "WEIR_ORCHESTRATOR_DATABASE=postgres://user@host/name, or name a file "
                       "with it in orchestrator.database_file");
    if (!options->gateway && !options->key.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "weir orchestrate needs a key that callers' tokens are signed with: set "
                       "WEIR_ORCHESTRATOR_KEY, or orchestrator.gateway behind a gateway that "
                       "names the user");
    if (!orchestrator_nats_check(options, e)) return false;
    if (from->pool && !http_pool_need(from->pool, e)) return false;
    *ret = MEM_NEW(const struct config *);
    *(const struct config **)*ret = from->config;
    return true;
}

/* --- callers ------------------------------------------------------------------------------------ */

bool orchestrator_caller(const struct orchestrator *orchestrator, struct str uid,
                         struct str authorization, size_t count,
                         struct orchestrator_caller *ret, struct err *e) {
    struct token token;
    if (orchestrator->options->gateway) {
        if (str_find_byte(uid, ',') < uid.len)
            return err_set(e, ERR_UNAUTHENTICATED,
                           "X-Firebase-UID names more than one user; it is sent once");
        ret->user = uid;
        ret->workspace = STR_EMPTY;
        return (uid.len && id_ok(uid)) ||
               err_set(e, ERR_UNAUTHENTICATED, "missing authentication");
    }
    if (uid.len)
        return err_set(e, ERR_UNAUTHENTICATED,
                       "X-Firebase-UID is not believed here: send a bearer token");
    if (!token_from_header(orchestrator->keys, authorization, count, clock_unix_ms() / 1000,
                           ret->room, &token, e))
        return false;
    ret->user = token.user;
    ret->workspace = token.workspace;
    return true;
}

/* Another user's workspace is not found, like one that does not exist. */
struct workspace_question orchestrator_question(const struct orchestrator_caller *caller,
                                                struct str workspace, struct str conversation) {
    bool other = caller->workspace.len && !str_equal(caller->workspace, workspace);
    return (struct workspace_question){.user = caller->user,
                                       .id = other ? STR_EMPTY : workspace,
                                       .conversation = conversation,
                                       .make = caller->workspace.len && !other};
}

/* --- stopping ------------------------------------------------------------------------------------ */

#define LOOK_MS 50
#define COME_MS 5000 /* a poller that has not come by then is gone */

void orchestrator_let_go(struct orchestrator *orchestrator) {
    if (orchestrator->holds) server_let_go(orchestrator->server);
    orchestrator->holds = false;
}

static bool is_busy(const struct orchestrator *orchestrator) {
    return orchestrator->talks &&
           (!talks_idle(orchestrator->talks) || !agent_asks_idle(orchestrator->asks) ||
            orchestrator->auditing);
}

/* Whether somebody may still come for the end of a turn. */
static bool is_awaited(struct orchestrator *orchestrator) {
    uint64_t now_ms = loop_now_ms(orchestrator->loop);
    if (!orchestrator->idle_since_ms) orchestrator->idle_since_ms = now_ms;
    return sockets_owe(orchestrator->sockets) && now_ms - orchestrator->idle_since_ms < COME_MS;
}

/* Clients stay until their turns have ended. */
static void contract_on_idle(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    if (is_busy(orchestrator)) {
        orchestrator->idle_since_ms = 0;
        timer_start(&orchestrator->idle, LOOK_MS);
    } else if (!orchestrator->sockets) {
        orchestrator_let_go(orchestrator);
    } else if (is_awaited(orchestrator)) {
        timer_start(&orchestrator->idle, LOOK_MS);
    } else {
        sockets_stop(orchestrator->sockets);
    }
}

/* --- the process -------------------------------------------------------------------------- */

static void *orchestrator_open(const struct contract_process *process) {
    struct contract_process *means = MEM_NEW(struct contract_process);
    *means = *process;
    return means;
}

/* For programs of ours on this machine, whatever address we listen on. */
static struct text mcp_url(const struct contract_process *process) {
    struct buf url;
    int port = server_port(process->server, STR("orchestrator"));
    buf_init(&url, 64);
    if (port) buf_printf(&url, "http://127.0.0.1:%d/mcp/v1", port);
    struct text own = text_copy(buf_str(&url));
    buf_done(&url);
    return own;
}

/* --- an instance -------------------------------------------------------------------------- */

static bool open_runtimes(struct orchestrator *orchestrator, struct err *e) {
    const struct orchestrator_options *options = orchestrator->options;
    return runtimes_open(
        str_from(orchestrator_drivers[options->driver]),
        &(struct runtimes_options){.loop = orchestrator->loop,
                                   .http = orchestrator->http,
                                   .address = options->address,
                                   .command = options->command,
                                   .key = options->key,
                                   .mcp = text_str(orchestrator->mcp),
                                   .start_ms = options->start_ms,
                                   .idle_ms = options->idle_ms,
                                   .kubernetes =
                                       {
                                           .url = options->kubernetes.url,
                                           .namespace = options->kubernetes.namespace,
                                           .token_file = options->kubernetes.token_file,
                                           .ca_file = options->kubernetes.ca_file,
                                           .image = options->kubernetes.image,
                                           .arguments = options->kubernetes.arguments,
                                           .secret = options->kubernetes.secret,
                                       }},
        &orchestrator->runtimes, e);
}

static bool make_keys(struct orchestrator *orchestrator, struct err *e) {
    bool trimmed;
    if (!orchestrator->options->key.len) return true;
    const struct config *config = orchestrator->config;
    orchestrator->keys = token_keys_new(config->tokens.strict ? TOKEN_STRICT : TOKEN_LENIENT,
                                        (int64_t)config->tokens.window_ms / 1000);
    return token_keys_add(orchestrator->keys, orchestrator->options->key, &trimmed, e) &&
           (!config->tokens.previous.len ||
            token_keys_add(orchestrator->keys, config->tokens.previous, &trimmed, e));
}

static void *orchestrator_init(const struct contract_loop *loop, const void *settings,
                               void *state) {
    struct orchestrator *orchestrator = MEM_NEW(struct orchestrator);
    orchestrator->mcp = mcp_url(state);
    orchestrator->server = ((const struct contract_process *)state)->server;
    orchestrator->config = *(const struct config *const *)settings;
    orchestrator->options = orchestrator_options(orchestrator->config);
    orchestrator->loop = loop->loop;
    orchestrator->http = loop->pool;
    timer_init(&orchestrator->idle, loop->loop, contract_on_idle, orchestrator);
    if (!make_keys(orchestrator, &orchestrator->refused) ||
        !open_runtimes(orchestrator, &orchestrator->refused) ||
        !sockets_new(orchestrator, &orchestrator->sockets, &orchestrator->refused))
        log_error("%s", orchestrator->refused.text);
    toolbox_init(orchestrator, loop->store);
    return orchestrator;
}

/* --- the database --------------------------------------------------------------------------- */

static void on_emit(struct str workspace, const char *event, struct str json, void *ctx) {
    const struct orchestrator *orchestrator = ctx;
    if (orchestrator->sockets) sockets_emit(orchestrator->sockets, workspace, event, json);
}

static void contract_on_usage(void *ctx) {
    const struct orchestrator *orchestrator = ctx;
    if (orchestrator->outbox) outbox_wake(orchestrator->outbox);
}

static void contract_begin(struct orchestrator *orchestrator) {
    const struct orchestrator_options *options = orchestrator->options;
    orchestrator->driver =
        driver_new(&(struct driver_options){.loop = orchestrator->loop,
                                            .http = orchestrator->http,
                                            .runtimes = orchestrator->runtimes,
                                            .secure = options->tls,
                                            .per_turn = options->per_turn,
                                            .keys = orchestrator->keys,
                                            .stall_ms = options->silence_ms});
    const struct talks_options talks = {.loop = orchestrator->loop,
                                        .database = &orchestrator->queries,
                                        .driver = orchestrator->driver,
                                        .emit = on_emit,
                                        .ctx = orchestrator,
                                        .turns_max = options->turns,
                                        .wait_ms = options->wait_ms,
                                        .stale_ms = options->stale_ms,
                                        .on_usage = contract_on_usage};
    orchestrator->talks = talks_new(&talks);
    orchestrator->asks = agent_asks_new(&talks, orchestrator->talks);
    struct str nats = orchestrator_nats(options);
    if (nats.len)
        orchestrator->outbox = outbox_new(orchestrator->loop, &orchestrator->queries, nats);
    if (orchestrator->sockets) sockets_admit(orchestrator->sockets);
    log_info("the orchestrator's tables are found; the driver of runtimes is '%s'",
             orchestrator_drivers[options->driver]);
}

static void check_tables(struct orchestrator *orchestrator);

static void on_tables(const struct postgres_request *rows, const struct err *failed,
                      void *ctx) {
    struct orchestrator *orchestrator = ctx;
    if (orchestrator->stopping) return;
    if (failed && failed->code != ERR_FAILED_PRECONDITION) {
        check_tables(orchestrator); /* the database is away; it answers at its deadline */
        return;
    }
    int64_t version = failed ? 0 : postgres_number(postgres_rows(rows, 0), 0, 0);
    orchestrator->known = version == (int64_t)tables_newest;
    if (orchestrator->known && !orchestrator->refused.code) {
        contract_begin(orchestrator);
    } else if (!orchestrator->known) {
        err_set(&orchestrator->refused, ERR_FAILED_PRECONDITION,
                "the database's tables have version %lld and this weir needs %zu: run weir "
                "orchestrate --migrate with the same settings%s",
                (long long)version, tables_newest,
                version > (int64_t)tables_newest ? " of a newer weir" : "");
        log_error("%s", orchestrator->refused.text);
    }
}

static void check_tables(struct orchestrator *orchestrator) {
    struct query *query = query_new();
    query_step(query, TABLES_READ, NULL, 0);
    query_ask(query, &orchestrator->queries, QUERY_REPEATABLE, on_tables, orchestrator);
}

static void orchestrator_serving(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    const struct orchestrator_options *options = orchestrator->options;
    const struct postgres_options database = {
        .loop = orchestrator->loop, .url = options->database, .schema = options->schema};
    queries_open(&orchestrator->queries, orchestrator->loop, &database);
    orchestrator->queries.readers =
        readers_new(&(struct readers_options){.loop = orchestrator->loop,
                                              .database = &database,
                                              .connections = options->connections,
                                              .most = options->reads});
    orchestrator->open = true;
    server_hold(orchestrator->server);
    orchestrator->holds = true;
    check_tables(orchestrator);
}

/* --- the end ------------------------------------------------------------------------------------ */

static void orchestrator_stopping(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    orchestrator->stopping = true;
    if (orchestrator->sockets) sockets_drain(orchestrator->sockets);
    contract_on_idle(orchestrator);
}

static void nothing(void *ctx) {
    (void)ctx;
}

static void stop_talks(struct orchestrator *orchestrator) {
    if (!orchestrator->talks) return;
    agent_asks_stop(orchestrator->asks);
    talks_stop(orchestrator->talks, nothing, NULL);
}

static void orchestrator_cut(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    stop_talks(orchestrator);
    toolserver_cut(&orchestrator->endpoint.server);
    if (orchestrator->sockets) sockets_stop(orchestrator->sockets);
}

/* What is not stored by now is ended as stale by the next process. */
static void orchestrator_finish(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    timer_stop(&orchestrator->idle);
    orchestrator_let_go(orchestrator);
    if (orchestrator->sockets) sockets_stop(orchestrator->sockets);
    if (orchestrator->outbox) outbox_stop(orchestrator->outbox);
    stop_talks(orchestrator);
    if (orchestrator->runtimes) runtimes_stop(orchestrator->runtimes);
    if (orchestrator->open) {
        readers_close(orchestrator->queries.readers);
        orchestrator->open = false;
        queries_close(&orchestrator->queries, nothing, NULL);
    }
}

static void orchestrator_done(void *ctx) {
    struct orchestrator *orchestrator = ctx;
    sockets_free(orchestrator->sockets);
    outbox_free(orchestrator->outbox);
    agent_asks_free(orchestrator->asks);
    talks_free(orchestrator->talks);
    readers_free(orchestrator->queries.readers);
    driver_free(orchestrator->driver);
    runtimes_free(orchestrator->runtimes);
    token_keys_free(orchestrator->keys);
    text_done(&orchestrator->mcp);
    free(orchestrator);
}

/* --- the row ------------------------------------------------------------------------------------ */

static struct str address(const struct config *config) {
    return orchestrator_options(config)->listen;
}

static const struct contract_listener listeners[] = {
    {.name = "orchestrator", .wire = CONTRACT_HTTP, .address = address},
};

static const struct contract_routes routes[] = {{"orchestrator", sockets_routes},
                                                {"orchestrator", toolbox_routes},
                                                {"orchestrator", orchestrator_routes}};

const struct contract orchestrator_contract = {
    .name = STR_INIT("orchestrator"),
    .rows = &orchestrator_rows,
    .listeners = listeners,
    .listener_count = ARRAY_LEN(listeners),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = orchestrator_read, .drop = free},
    .process = {.open = orchestrator_open, .close = free},
    .instance = {.init = orchestrator_init,
                 .serving = orchestrator_serving,
                 .stopping = orchestrator_stopping,
                 .cut = orchestrator_cut,
                 .finish = orchestrator_finish,
                 .done = orchestrator_done},
};

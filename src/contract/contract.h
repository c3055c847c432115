/* contract: one wire dialect, as the daemon sees it: a row of a table.
 *
 * How a contract decodes requests and projects events is private to its folder. This header
 * holds what the daemon must know to serve it: its listeners, the services and routes on them
 * with their guards, and the functions to call as the daemon starts, reloads and stops. The
 * daemon, its workers and its snapshots loop over a table of contracts and know none by name.
 * The table of this program is in cli/contracts.c.
 *
 *     settings  one a snapshot   read ─▶ drop
 *     process   one a process    open ─▶ ready ─▶ use* ─▶ stopping ─▶ stopped ─▶ close
 *     instance  one a loop       init ─▶ serving ─▶ use* ─▶ stopping ─▶ cut ─▶ finish ─▶ leave
 *                                                                                    ─▶ done
 *
 * A daemon that stops before it has served skips the steps in between. `cut` is called only
 * when the shutdown deadline is near. Every function except instance.init may be NULL.
 *
 * Memory   a table and its rows are constant. Each `void *` belongs to the contract, from the
 *          function that returned it to the one that ends it.
 * Threads  settings: any thread, read-only once made. Process: the daemon's own loop, except
 *          healthy(), which any loop may call. Instance: its loop, except init and done.
 */
#ifndef WEIR_CONTRACT_CONTRACT_H
#define WEIR_CONTRACT_CONTRACT_H

#include "client/http.h"
#include "route/route.h"
#include "rpc/rpc.h"
#include "server/server.h"
#include "session/session.h"
#include "store/audit_writer.h"
#include "store/store.h"
#include "turn/recover.h"

struct config;
struct setting_rows;
struct team;

/* --- services and routes ------------------------------------------------------------------ */

enum contract_wire { CONTRACT_GRPC, CONTRACT_HTTP };

/* An address of its own. */
struct contract_listener {
    const char *name; /* "http": for services and routes, logs and the ports file */
    enum contract_wire wire;
    struct str (*address)(const struct config *config); /* empty: off */

    /* Whether its callers present a token. Until one has, a connection counts as a stranger's
     * and gets fewer streams. NULL: no caller presents a token. */
    bool (*strangers)(const void *settings);

    /* HTTP only. */
    const struct refusal_form *refusal; /* of what never became a request; NULL: plain text */
    const struct page_rules *(*pages)(const void *settings); /* NULL: the strictest */
    void (*sign)(struct route_table *guest); /* the tables that other contracts have here */

    /* gRPC only. The listener also serves grpc.health.v1 and, if reflects() is true,
     * reflection. */
    bool (*reflects)(const struct config *config);
    void (*prepare)(const void *instance, struct rpc_site *site);
    bool handlers_admit; /* handlers decide what is let in while the daemon starts or stops */
};

/* A gRPC service, on this contract's listener or on another's. Each method says who may call
 * it (enum rpc_auth), and rpc_service_ok() is true of what fill() makes. fill() runs again
 * after use(); the method array does not move. */
struct contract_service {
    const char *listener;
    const struct str *descriptor; /* the FileDescriptorSet that defines it, for reflection */
    void (*fill)(void *instance, struct rpc_service *ret);
};

/* A table of routes, in the same way. Each route says who may use it (enum route_door), and
 * route_table_ok() is true of the table. Paths are looked up in the guests' tables first, then
 * in those of the listener's own contract; the last table answers 404. */
struct contract_routes {
    const char *listener;
    void (*fill)(void *instance, struct route_table *ret);
};

/* --- what the daemon provides ------------------------------------------------------------- */

/* What a contract's settings are built from. */
struct contract_source {
    const struct config *config; /* lives as long as the settings */
    const struct config *first;  /* read at the start; some values may not change later (K34) */
    const struct team *team;     /* lives as long as the settings */
    struct str demo_key;         /* if not empty, used in place of configured signing keys */
    struct http_pool *pool;      /* NULL: the settings are only checked, not served */
    uint64_t body_stretch_ms;    /* as in struct route_table */
    size_t body_stretch_bytes;
};

/* Valid until close(). */
struct contract_process {
    const struct config *config; /* read at the start */
    struct loop *loop;           /* the daemon's own */
    struct http_pool *pool;
    struct server *server;             /* already listening */
    struct audit_writer *audit;        /* of the daemon's own loop */
    void (*health_changed)(void *ctx); /* call it when the result of healthy() changes */
    void *ctx;
};

/* The identity a bearer token names. Its text points into `room` or into the settings. */
#define CONTRACT_IDENTITY_BYTES 1024

struct contract_identity {
    struct str workspace, user; /* user empty: every user of the workspace */
    char room[CONTRACT_IDENTITY_BYTES];
};

/* Identifies callers by the tokens of every contract in the table. */
struct contract_callers {
    bool (*secured)(void *ctx); /* whether the operator set a key or a token for callers */
    bool (*identify)(struct str bearer, struct contract_identity *ret, void *ctx);
    void *ctx;
};

/* What an instance works with; it outlives the instance. */
struct contract_loop {
    struct loop *loop;
    struct run_host *host; /* its engine is the newest snapshot's */
    struct http_pool *pool;
    struct store *store;
    struct audit_writer *audit;
    struct contract_callers callers;
};

/* A pending question. It is the first member of the contract's own struct. */
struct contract_ask {
    void (*leave)(struct contract_ask *ask); /* withdraw it: no answer will come */
};

/* --- the row ------------------------------------------------------------------------------ */

struct contract {
    struct str name; /* recorded with its runs: "crawbl" */

    const struct contract_listener *listeners;
    size_t listener_count;
    const struct contract_service *services;
    size_t service_count;
    const struct contract_routes *routes;
    size_t routes_count;

    /* Whether this configuration uses the contract at all. If not, it gets no process state, no
     * instances and no listeners. NULL: always. */
    bool (*wanted)(const struct config *config);

    /* Whether it asks media providers (struct team). They are only made if it is wanted. NULL:
     * never. */
    bool (*asks_media)(const struct config *config);

    /* Its own settings, in addition to the daemon's. NULL: it has none. */
    const struct setting_rows *rows;

    struct {
        bool (*read)(const struct contract_source *from, void **ret, struct err *e);
        void (*drop)(void *settings);

        /* For struct contract_callers. */
        bool (*secured)(const void *settings);
        bool (*identify)(const void *settings, struct str bearer,
                         struct contract_identity *ret);
    } settings;

    struct {
        void *(*open)(const struct contract_process *process);
        void (*ready)(void *state,
                      const void *settings);            /* the store is open; serving starts */
        void (*use)(void *state, const void *settings); /* new settings; only while serving */
        void (*stopping)(void *state);
        void (*stopped)(void *state, bool forced); /* forced: turns had to be cut */
        void (*close)(void *state);
        bool (*healthy)(void *state); /* called while serving; NULL: always healthy */
    } process;

    struct {
        /* `state` is what open() returned, or NULL. Never returns NULL. */
        void *(*init)(const struct contract_loop *loop, const void *settings, void *state);
        void (*use)(void *instance, const void *settings); /* new turns use these settings */
        void (*serving)(void *instance);
        void (*stopping)(void *instance); /* called before its listeners notify their calls */
        void (*cut)(void *instance);      /* likewise */
        void (*finish)(void *instance);   /* no connection is left; detached work ends */
        void (*leave)(void *instance);    /* last call on the loop: start no more requests */
        void (*done)(void *instance);     /* the loop has stopped */

        /* Find the agents of a conversation of this contract, as in struct recover_agents.
         * NULL: the configured agents. */
        struct engine *(*find_agents)(void *instance, const struct session_name *name,
                                      recover_engine_fn *answer, void *answer_ctx,
                                      struct contract_ask **ret_ask);

        /* Resume a job, as in struct recover_jobs. At most one contract of a table has this. */
        bool (*take_job)(uint64_t run, const struct store_section *sections, size_t count,
                         bool whole, void *instance);
    } instance;
};

struct contract_table {
    const struct contract *const *rows;
    size_t count;
};

bool contract_is_wanted(const struct contract *contract, const struct config *config);

/* How many listeners this configuration opens. */
size_t contract_listeners(const struct contract_table *table, const struct config *config);

/* The index of this contract in the table, or table->count. */
size_t contract_find(const struct contract_table *table, struct str name);

/* The setting rows of the contracts that have any, by index, for struct config_input. ctx is a
 * const struct contract_table. */
const struct setting_rows *contract_rows(size_t index, const void *ctx);

/* For tests: whether names are unique, every service and route table has its listener, and no
 * required member is NULL. */
bool contract_table_ok(const struct contract_table *table);

#endif

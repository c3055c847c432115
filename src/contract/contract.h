/* contract: one wire dialect, as the daemon sees it: a row of a table.
 *
 * How a contract decodes requests and projects events is the affair of its folder. Here stands
 * what the daemon must know to carry it: the listeners it brings, the services and routes it
 * has on them, each behind its guard, and what it wants to hear of the daemon's life. The
 * daemon, its workers and its editions loop over a table of contracts and know none by name;
 * ours is cli/contracts.c.
 *
 *     settings  one an edition   read ─▶ drop
 *     process   one a process    open ─▶ ready ─▶ use* ─▶ stopping ─▶ stopped ─▶ close
 *     desk      one a loop       init ─▶ serving ─▶ use* ─▶ stopping ─▶ cut ─▶ finish ─▶ leave
 *                                                                                    ─▶ done
 *
 * A daemon that stops before it served skips what lies between; `cut` comes only when the
 * shutdown deadline is near. Every function may be NULL, but for desk.init.
 *
 * Memory   a table and its rows are constant. Each `void *` belongs to the contract, from the
 *          function that returned it to the one that ends it.
 * Threads  settings: any thread, read-only once made. Process: the daemon's own loop, but for
 *          healthy(), which any loop may call. Desk: its loop, but for init and done.
 */
#ifndef WEIR_CONTRACT_CONTRACT_H
#define WEIR_CONTRACT_CONTRACT_H

#include "client/http.h"
#include "route/route.h"
#include "rpc/rpc.h"
#include "run/recover.h"
#include "run/session.h"
#include "server/server.h"
#include "store/store.h"

struct config;
struct setting_rows;
struct team;

/* --- what it serves ----------------------------------------------------------------------- */

enum contract_wire { CONTRACT_GRPC, CONTRACT_HTTP };

/* An address of its own. */
struct contract_listener {
    const char *name; /* "http": for services and routes, logs and the ports file */
    enum contract_wire wire;
    struct str (*address)(const struct config *config); /* empty: off */

    /* Whether its callers show a token: until one has, a connection is a stranger's, with
     * fewer streams. NULL: none does. */
    bool (*strangers)(const void *settings);

    /* Of HTTP. */
    const struct refusal_form *refusal; /* of what never became a request; NULL: in words */
    const struct page_rules *(*pages)(const void *settings); /* NULL: the strictest */
    void (*sign)(struct route_table *guest); /* the tables that other contracts have here */

    /* Of gRPC, which also carries grpc.health.v1 and, if reflects() says so, reflection. */
    bool (*reflects)(const struct config *config);
    void (*prepare)(const void *desk, struct rpc_site *site);
    bool handlers_admit; /* they decide what is let in while the daemon starts or stops */
};

/* A gRPC service, on a listener of its own or of another contract. Each method says who may
 * call it (enum rpc_auth), and rpc_service_ok() holds for what fill() makes. fill() runs again
 * after use(); the methods stay where they are. */
struct contract_service {
    const char *listener;
    const struct str *descriptor; /* the FileDescriptorSet that it stands in, for reflection */
    void (*fill)(void *desk, struct rpc_service *ret);
};

/* A table of routes, likewise: each says who may come in (enum route_door), and
 * route_table_ok() holds. Tables of guests are asked for a path before the listener's own,
 * whose last one answers 404. */
struct contract_routes {
    const char *listener;
    void (*fill)(void *desk, struct route_table *ret);
};

/* --- what it is given --------------------------------------------------------------------- */

/* What its settings are made of. */
struct contract_source {
    const struct config *config; /* lives as long as the settings */
    const struct config *first;  /* read at the start: what nobody may change later (K34) */
    const struct team *team;     /* lives as long as the settings */
    struct str demo_key;         /* stands for configured signing keys when not empty */
    struct http_pool *pool;      /* NULL: it is only looked at */
    uint64_t body_stretch_ms;    /* as in struct route_table */
    size_t body_stretch_bytes;
};

/* Valid until close(). */
struct contract_process {
    const struct config *config; /* read at the start */
    struct loop *loop;           /* the daemon's own */
    struct http_pool *pool;
    const struct server *server;       /* which listens by now */
    void (*health_changed)(void *ctx); /* healthy() answers something else now */
    void *ctx;
};

/* Whom a bearer token names. The text lies in `room` or in the settings. */
#define CONTRACT_IDENTITY_BYTES 1024

struct contract_identity {
    struct str workspace, user; /* user empty: every user of the workspace */
    char room[CONTRACT_IDENTITY_BYTES];
};

/* Callers, by the tokens of every contract of the table. */
struct contract_callers {
    bool (*secured)(void *ctx); /* whether the operator set a key or a token for callers */
    bool (*identify)(struct str bearer, struct contract_identity *ret, void *ctx);
    void *ctx;
};

/* What a desk works with; it outlives the desk. */
struct contract_loop {
    struct loop *loop;
    struct run_host *host; /* its engine is the newest edition's */
    struct http_pool *pool;
    struct store *store;
    struct contract_callers callers;
};

/* A question that waits for its answer, first member of the contract's own struct. */
struct contract_ask {
    void (*leave)(struct contract_ask *ask); /* it is not answered any more */
};

/* --- the row ------------------------------------------------------------------------------ */

struct contract {
    struct str name; /* as its runs carry it: "crawbl" */

    const struct contract_listener *listeners;
    size_t listener_count;
    const struct contract_service *services;
    size_t service_count;
    const struct contract_routes *routes;
    size_t routes_count;

    /* Whether it is there at all: without it there is no process and no desk, and none of its
     * listeners. NULL: always. */
    bool (*wanted)(const struct config *config);

    /* Its own settings, beside the daemon's. NULL: it has none. */
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
        void (*ready)(void *state, const void *settings); /* the store is open, it serves */
        void (*use)(void *state, const void *settings);   /* only while it serves */
        void (*stopping)(void *state);
        void (*stopped)(void *state, bool forced); /* forced: turns had to be cut */
        void (*close)(void *state);
        bool (*healthy)(void *state); /* while it serves; NULL: always */
    } process;

    struct {
        /* `state` is what open() returned, or NULL. Never returns NULL. */
        void *(*init)(const struct contract_loop *loop, const void *settings, void *state);
        void (*use)(void *desk, const void *settings); /* new turns begin with these */
        void (*serving)(void *desk);
        void (*stopping)(void *desk); /* before its listeners say so to their calls */
        void (*cut)(void *desk);      /* likewise */
        void (*finish)(void *desk);   /* no connection is left; what runs detached ends */
        void (*leave)(void *desk);    /* last of all on the loop: ask nobody any more */
        void (*done)(void *desk);     /* the loop has stopped */

        /* Whose agents a conversation of this contract has, as in struct recover_agents.
         * NULL: those of the settings. */
        struct engine *(*find_agents)(void *desk, const struct session_name *name,
                                      recover_engine_fn *answer, void *answer_ctx,
                                      struct contract_ask **ret_ask);

        /* Go on with a job, as in struct recover_jobs; one contract of a table at most. */
        void (*take_job)(uint64_t run, const struct store_section *sections, size_t count,
                         void *desk);
    } desk;
};

struct contract_table {
    const struct contract *const *rows;
    size_t count;
};

bool contract_is_wanted(const struct contract *contract, const struct config *config);

/* The place of this contract in the table, or table->count. */
size_t contract_find(const struct contract_table *table, struct str name);

/* The rows of the contracts that have some, for struct config_input; ctx is a const struct
 * contract_table. */
const struct setting_rows *contract_rows(size_t index, const void *ctx);

/* For tests: whether names differ, listeners are there for all that is served, and what must
 * not be NULL is not. */
bool contract_table_ok(const struct contract_table *table);

#endif

/* config: every setting, from every source.
 *
 * Flags beat environment, environment beats file, file beats defaults. The parsers, --help and
 * docs/config.md all use one table of settings (settings.c), so they cannot disagree. Every
 * mistake is reported with its place, the reason and the fix, and for an unknown name with the
 * nearest one that exists. Secrets come only from the environment or from files that the
 * environment or the settings name, and are never printed.
 *
 * Memory   one arena; all text ends with config_free().
 * Threads  read-only once loaded. config_load() reads files: call it before the loops run, or
 *          from a worker.
 */
#ifndef WEIR_CONFIG_CONFIG_H
#define WEIR_CONFIG_CONFIG_H

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/rate_limits.h"
#include "budget/ledger.h"
#include "config/lists.h"
#include "engine/engine.h"
#include "object/bucket.h"
#include "provider/price.h"
#include "server/server.h"
#include "store/store.h"
#include "tape/tape.h"
#include "turn/run.h"

struct setting;
struct setting_rows;

/* Which addresses callers may name for notifications. */
enum config_webhooks { CONFIG_WEBHOOKS_PUBLIC, CONFIG_WEBHOOKS_ANY, CONFIG_WEBHOOKS_OFF };

enum config_log_form { CONFIG_LOG_AUTO, CONFIG_LOG_PLAIN, CONFIG_LOG_JSON };

/* Limits in bytes, counts and milliseconds, grouped by the module that uses them. */
struct config_limits {
    struct server_limits server; /* a connection */
    struct run_limits run;       /* a turn, and its questions to a human */
    uint64_t message_bytes, body_bytes, body_grace_ms, body_bytes_per_s, heartbeat_ms;
    uint64_t idempotency_ms, shutdown_ms, memory_bytes;
    struct rate_limit rates[RATE_SCOPES]; /* of requests */
};

struct config {
    /* Addresses are host:port, [v6]:port, :port (every address) or unix:/path; empty = off.
     * Contracts bring the settings of their own listeners. */
    struct {
        struct str cert, key, ca; /* files; empty = none. With none, no TLS */
        struct str trust;         /* file or folder; empty = the system's authorities */
    } tls;
    struct str data; /* folder of the store */
    struct {
        struct str url;     /* of a PostgreSQL server; empty: SQLite, in `data` */
        struct str schema;  /* where its tables are; empty: as the server has it */
        struct str replica; /* this process's name among several; empty: it is alone */
        uint64_t lease_ms;
        uint64_t searches;
    } store;
    struct {
        struct str endpoint, bucket, region, access_key, secret_key; /* all, or none */
        enum bucket_style style;
        uint64_t sweep_ms; /* between two looks for objects that are to be deleted */
    } s3;                  /* files of tools and artifacts */
    struct str ports_file; /* empty = none */
    struct str script;     /* file; empty = the built-in demo */
    uint64_t threads;      /* loops */
    enum store_durability durability;
    bool reflection; /* of every gRPC listener */
    struct {
        bool pod;    /* an orchestrator has started this process for one workspace */
        bool tools;  /* agents may have tools that only a server elsewhere knows */
        bool agents; /* the same of agents */
    } remote;        /* what a contract found in its own settings */
    struct {
        struct str previous; /* a second key that is accepted; or empty */
        bool strict;         /* undated ones are refused */
        uint64_t window_ms;
    } tokens; /* of callers, from the settings of the contract that has them */
    struct {
        struct str name, version, framework; /* as /health reports them */
        struct str url;                      /* where others reach this program; or empty */
        bool a2a;                            /* it speaks A2A: its cards name that */
        enum config_webhooks webhooks;       /* of A2A's callers */
        struct str instructions;             /* for agents without their own */
        double temperature;                  /* the same; below 0: not set */
        uint64_t max_tokens;                 /* the same; 0: not set */
        bool thinking;                       /* the same: whether callers see their reasoning */
    } agent;
    struct {
        bool missing_warns; /* what an agent.yaml names and is not here is left out */
        bool alone;         /* the settings file is one */
        size_t room;        /* of `agents`, which subagents join */
        size_t own_count;   /* tools of the section, before those of agent.yaml files */
    } agent_yaml;
    struct {
        uint64_t keep_ms, keep_bytes; /* of the audit log; 0: no such limit */
    } audit;
    struct str openai_url; /* overrides the environment's; empty = none */
    struct {
        struct str record, play; /* folders; empty = none */
        enum tape_pace pace;
    } tape;
    struct str model; /* for agents without one, "provider/model"; empty = none */
    struct {
        enum session_policy busy;
    } session;
    struct {
        enum log_level level;
        enum config_log_form form;
    } log;
    struct config_limits limits;

    const struct config_agent *agents;
    size_t agent_count;
    const struct config_provider *providers; /* the listed ones, then those only named */
    size_t provider_count;
    struct config_model model_default; /* `model` resolved; its provider NULL = none */
    const struct config_connector *connectors;
    size_t connector_count;
    const struct config_issuer *issuers;
    size_t issuer_count;
    const struct config_mcp *mcp;
    size_t mcp_count;
    struct config_tools tools;
    const struct config_guardrail *guardrails;
    size_t guardrail_count;
    const struct price *prices;
    size_t price_count;
    const struct budget *budgets;
    size_t budget_count;

    bool help;                  /* -h or --help was given; nothing else was read */
    struct str file;            /* the file that was read; empty = none */
    bool file_beside;           /* found in the current folder, not named */
    bool file_blank;            /* nothing but space is in it */
    bool data_in_memory;        /* `data` belongs to this process: remove it at exit */
    const struct str *operands; /* arguments that are not flags */
    size_t operand_count;
    size_t operand_at;          /* where the first one is in the input's arguments */
    const struct str *warnings; /* sentences to log once there is a log */
    size_t warning_count;
    const struct str *problems; /* if collected: every mistake, with its place */
    size_t problem_count;

    const struct setting *settings; /* our own rows, then the input's */
    size_t setting_count;
    struct config_origin *origins;                                     /* one per setting */
    const struct setting_rows *(*more)(size_t index, const void *ctx); /* from the input */
    const void *more_ctx;
    struct arena *arena;
};

struct config_input {
    const char *const *args; /* after the command's name */
    size_t arg_count;
    const char *const *environment; /* "NAME=value"; ends with NULL; may be NULL */
    const char *const *own_flags;   /* the command's, for hints; ends with NULL; may be NULL */
    bool collect;  /* continue after a mistake to find the others; see config.problems */
    bool demo;     /* the bare command: loopback only, even with a key (K17) */
    uint64_t cpus; /* for `threads`; 0 = those this process may use */
    /* Rows of settings in addition to our own, by index; NULL after the last. The rows are
     * constant, `more` may be NULL. Their values are zeroed first; see config_values(). */
    const struct setting_rows *(*more)(size_t index, const void *ctx);
    const void *more_ctx;
};

/* Load the configuration. The caller owns the result; config_free() accepts NULL.
 * errors  ERR_INVALID_ARGUMENT, ERR_MALFORMED, or those of reading a file */
MUST_CHECK bool config_load(const struct config_input *input, struct config **ret,
                            struct err *e);
void config_free(struct config *config);

/* The struct filled by these rows of the input. It lives as long as the config. */
const void *config_values(const struct config *config, const struct setting_rows *rows);

/* Make the bucket of the settings; NULL if none is set. pool: may be NULL if it is only checked.
 * errors  ERR_INVALID_ARGUMENT some settings are missing or wrong */
MUST_CHECK bool config_bucket(const struct config *config, struct http_pool *pool,
                              struct bucket **ret, struct err *e);

/* Report a mistake. If mistakes are collected, note this one and return true: continue. */
MUST_CHECK bool config_goes_on(struct config *config, const struct err *why);

/* Add a problem to a config that collects mistakes. */
void config_problem(struct config *config, const struct err *why);

/* Add the providers that are only known by name to config->providers, with the keys from the
 * variables of `input`.
 * errors  a key that cannot be read */
MUST_CHECK bool config_know_providers(struct config *config, const struct config_input *input,
                                      struct err *e);

/* The guardrail of this name in the settings, or NULL. */
const struct config_guardrail *config_guardrail_find(const struct config *config,
                                                     struct str name);

/* Whether this name stands for the built-in rules for personal data. */
bool config_guardrail_is_personal(struct str name);

/* A small model for trying out a well-known provider, or empty. */
struct str config_usual_model(struct str provider);

/* Set up the log as configured, and log the warnings. */
void config_log(const struct config *config);

/* The settings part of --help. config: the settings to list; NULL: only our own */
void config_help(const struct config *config, struct buf *out);

/* The same table for docs/config.md. */
void config_help_markdown(const struct config *config, struct buf *out);

/* One line per setting: its key, its value and the value's source. A secret shows only whether
 * it is set. */
void config_print(const struct config *config, struct buf *out);

/* The same as one JSON object and a newline. */
void config_print_json(const struct config *config, struct buf *out);

#endif

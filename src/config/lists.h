/* lists: what a settings file describes beside its settings: providers, agents, tools.
 * (Prices and budgets are those of provider/price.h and run/ledger.h.)
 *
 * They are plain values, checked one by one where they stand in the file. What they are called
 * for the engine is made of them by daemon/team.c.
 *
 * Memory   text and lists live in the arena of the config. Keys are forgotten with it.
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONFIG_LISTS_H
#define WEIR_CONFIG_LISTS_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yaml; /* where something stands in the file; NULL: it stands in none */

/* A time or a count that was not said: the default of whoever needs it. */
#define CONFIG_UNSET UINT64_MAX

struct config_header {
    struct str name, value;
};

/* A server that answers for models, listed in the file or known by its name. */
struct config_provider {
    struct str name;
    struct str kind;     /* "scripted", or the dialect it speaks */
    struct str base_url; /* empty: the vendor's own */
    struct str model;    /* of agents that only name the provider; may be empty */
    struct str query;
    struct str key;        /* the secret; empty: none */
    struct str key_source; /* the variable or file it came from; empty: none */
    struct str key_name;   /* the variable that would hold it; empty: it needs none */
    struct str key_header; /* carries the key instead of the dialect's own; empty: that one */
    const struct config_header *headers;
    size_t header_count;
    uint64_t connect_ms, first_byte_ms, stall_ms, total_ms, retries; /* or CONFIG_UNSET */
    bool join_users; /* of "openai": one message of users in a row */
    bool listed;     /* in the file */
    bool used;       /* some agent asks it */
    bool broken;     /* a mistake in it was noted: nothing more is said about it */
    const struct yaml *at;
};

/* A model and who answers for it. */
struct config_model {
    const struct config_provider *provider;
    struct str name; /* as the provider calls it; the scripted one needs none */
};

enum config_policy { CONFIG_TOOL_ALLOW, CONFIG_TOOL_ASK, CONFIG_TOOL_HIDDEN };

struct config_agent_tool {
    struct str name;
    enum config_policy policy;
    bool said;           /* the policy; otherwise that of the section `tools` comes before it */
    bool optional;       /* an agent goes without it where nobody has it */
    uint64_t timeout_ms; /* in the section `tools`: of one call; 0: not said */
    const struct yaml *at;
};

/* An agent as the file lists it. Without any, those of the script serve. */
struct config_agent {
    struct str slug, description;
    struct str system; /* its instructions, or empty */
    struct config_model model;
    const struct config_model *fallback; /* asked in turn when the one before does not answer */
    size_t fallback_count;
    bool thinking;             /* whether callers see its reasoning (K13) */
    double temperature, top_p; /* below 0: not set */
    uint64_t max_tokens;       /* of one reply; 0: not set */
    struct str effort;         /* of its reasoning: low, medium, high; empty: not set */
    uint64_t thinking_tokens;  /* 0: not set */
    uint64_t window;           /* tokens of its model's context; 0: not known */
    struct str output;         /* JSON Schema of what it answers, or empty */
    bool all_tools;
    const struct config_agent_tool *tools;
    size_t tool_count;
    const struct str *delegates;
    size_t delegate_count;
    struct {
        uint64_t model_calls, tool_calls, tokens; /* of one turn; 0: those of all */
        int64_t cost_nano;                        /* billionths of a dollar; 0: no limit */
    } limits;

    /* Where it stands in the file, for what can only be checked later. */
    const struct yaml *at, *model_at, *provider_at, *fallback_at;
};

/* A way to a provider's models, for callers of nimi.runtime.v1. */
struct config_connector {
    struct str id, provider_name;
    const struct config_provider *provider; /* NULL: builtin */
    bool builtin;                           /* what this machine can without a provider */
    struct str owner;                       /* subject that may use it; empty: everybody */
    bool local; /* its models are asked for by name, without naming the connector */
    bool enabled;
    const struct str *models; /* of a local one; none: any name */
    size_t model_count;
    const struct yaml *at;
};

/* How the tools that this program brings are set up. */
struct config_tools {
    struct {
        struct str backend, url, key; /* backend empty: there is no web search */
        const struct yaml *at;
    } web_search;
    struct {
        struct str root; /* folder; empty: there are no file tools */
        const struct yaml *at;
    } files;
    bool web; /* agents that an orchestrator brings have both tools of the web */
    /* For all agents, also those that an orchestrator brings; hidden: none may have it. */
    const struct config_agent_tool *policies;
    size_t policy_count;
};

#endif

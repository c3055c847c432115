/* lists: the lists of a settings file: providers, agents, connectors, tools.
 * (Prices and budgets are those of provider/price.h and budget/ledger.h.)
 *
 * They are plain values, each checked where it stands in the file. daemon/team.c makes the
 * engine's objects from them.
 *
 * Memory   text and lists live in the arena of the config. Keys are wiped with it.
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONFIG_LISTS_H
#define WEIR_CONFIG_LISTS_H

#include "base/str.h"
#include "guardrail/guardrail.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yaml; /* a place in the file; NULL: not from a file */

/* A time or a count that is not set; the module that uses it has a default. */
#define CONFIG_UNSET UINT64_MAX

struct config_header {
    struct str name, value;
};

/* A server of models, listed in the file or known by its name. */
struct config_provider {
    struct str name;
    struct str kind;     /* "scripted", or the dialect it speaks */
    struct str base_url; /* empty: the vendor's own */
    struct str model;    /* for agents that name only the provider; may be empty */
    struct str query;
    struct str key;        /* the secret; empty: none */
    struct str key_source; /* the variable or file of the key; empty: none */
    struct str key_name;   /* the variable for the key; empty: none is needed */
    struct str key_header; /* the header for the key; empty: the dialect's own */
    const struct config_header *headers;
    size_t header_count;
    uint64_t connect_ms, first_byte_ms, stall_ms, total_ms, retries; /* or CONFIG_UNSET */
    bool join_users; /* of "openai": join consecutive user messages into one */
    bool listed;     /* it stands in the file */
    bool used;       /* an agent uses it */
    bool broken;     /* a mistake in it was noted; report no further ones */
    const struct yaml *at;
};

/* A model and its provider. */
struct config_model {
    const struct config_provider *provider;
    struct str name; /* the provider's name for it; the scripted one needs none */
};

enum config_policy { CONFIG_TOOL_ALLOW, CONFIG_TOOL_ASK, CONFIG_TOOL_HIDDEN };

struct config_agent_tool {
    struct str name;
    enum config_policy policy;
    bool said;           /* `policy` is set; if not, the section `tools` decides */
    bool optional;       /* left out if there is no such tool */
    uint64_t timeout_ms; /* in the section `tools`: of one call; 0: not set */
    const struct yaml *at;
};

enum config_guard_direction { CONFIG_GUARD_BOTH, CONFIG_GUARD_INPUT, CONFIG_GUARD_OUTPUT };

/* A rule for the text of agents. */
struct config_guardrail {
    struct guardrail_rule rule;
    struct str replace; /* read into `rule` if it is there */
    enum config_guard_direction direction;
    const struct yaml *at;
};

enum config_agent_kind { CONFIG_AGENT_MODEL, CONFIG_AGENT_PROCESS };

/* An agent as listed in the file. Without any, the script's agents are used. */
struct config_agent {
    struct str slug, description;
    struct str system; /* its instructions, or empty */
    enum config_agent_kind kind;
    const struct str *command, *environment; /* of a process; each text ends in NUL */
    size_t command_count, environment_count;
    uint64_t processes, silence_ms; /* of a process */
    struct config_model model;
    const struct config_model *fallback; /* asked in order when the model before fails */
    size_t fallback_count;
    bool thinking;             /* whether callers see its reasoning (K13) */
    double temperature, top_p; /* below 0: not set */
    uint64_t max_tokens;       /* of one reply; 0: not set */
    struct str effort;         /* of its reasoning: low, medium, high; empty: not set */
    uint64_t thinking_tokens;  /* 0: not set */
    uint64_t window;           /* tokens of its model's context; 0: not known */
    struct str output;         /* JSON Schema of its answers, or empty */
    bool all_tools;
    const struct config_agent_tool *tools;
    size_t tool_count;
    const struct str *delegates;
    size_t delegate_count;
    const struct str *guardrails; /* by name, in their order */
    size_t guardrail_count;
    struct {
        uint64_t model_calls, tool_calls, tokens; /* per turn; 0: the global limits */
        int64_t cost_nano;                        /* billionths of a dollar; 0: no limit */
    } limits;

    /* Its places in the file, for checks that can only be made later. */
    const struct yaml *at, *model_at, *provider_at, *fallback_at, *guardrails_at;
};

/* A connection to a provider's models, for callers of nimi.runtime.v1. */
struct config_connector {
    struct str id, provider_name;
    const struct config_provider *provider; /* NULL: builtin */
    bool builtin;                           /* this machine itself, without a provider */
    struct str owner;                       /* subject that may use it; empty: everyone */
    bool local; /* callers name its models without naming the connector */
    bool enabled;
    const struct str *models; /* of a local one; none: any name */
    size_t model_count;
    const struct yaml *at;
};

/* Limit for MCP servers. */
#define CONFIG_MCP_MAX 64

/* An MCP server whose tools agents may have. */
struct config_mcp {
    struct str name;
    const char *const *command;     /* a program and its arguments; NULL: none */
    const char *const *environment; /* of the program; ends with NULL */
    struct str url;                 /* of a server over HTTP; empty: none */
    struct str key;                 /* goes with each request; empty: none */
    const struct config_header *headers;
    size_t header_count;
    struct str user_header, conversation_header; /* carry the turn's; empty: not sent */
    struct str prefix;                           /* in front of each tool's name */
    const struct str *agents;                    /* who may have its tools; none: all */
    size_t agent_count;
    const struct config_agent_tool *policies; /* by pattern; the first that fits counts */
    size_t policy_count;
    uint64_t timeout_ms; /* of one call; 0: not set */
    const struct yaml *at;
};

/* The settings of the built-in tools. */
struct config_tools {
    struct {
        struct str backend, url, key; /* backend empty: there is no web search */
        const struct yaml *at;
    } web_search;
    struct {
        struct str root; /* folder; empty: there are no file tools */
        const struct yaml *at;
    } files;
    bool web; /* agents from an orchestrator have both web tools */
    /* For all agents, including those from an orchestrator. hidden: no agent may have it. */
    const struct config_agent_tool *policies;
    size_t policy_count;
};

#endif

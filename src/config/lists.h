/* lists: the lists of a settings file: providers, agents, connectors, tools.
 * (Prices and budgets are those of provider/price.h and budget/ledger.h.)
 *
 * They are plain values, each checked at its place in the file. daemon/team.c makes the
 * engine's objects from them.
 *
 * Memory   text and lists live in the arena of the config. Keys are wiped with it.
 * Threads  read-only once loaded.
 */
#ifndef WEIR_CONFIG_LISTS_H
#define WEIR_CONFIG_LISTS_H

#include "base/str.h"
#include "guardrail/guardrail.h"
#include "tool/exec.h"
#include "tool/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yaml; /* a place in the file; NULL: not from a file */
struct config_breeder;

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
    bool http2;             /* where its server has it */
    bool forbid_link_local; /* never ask it at a link-local or private IPv6 address */
    bool join_users;        /* of "openai": join consecutive user messages into one */
    unsigned realtime;      /* enum live_which (provider/live.h) */
    struct str realtime_voice;
    bool listed; /* it stands in the file */
    bool used;   /* an agent uses it */
    bool broken; /* a mistake in it was noted; report no further ones */
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

/* Where a server gets the earlier turns of a session. */
enum config_history {
    CONFIG_HISTORY_SESSION, /* it remembers them */
    CONFIG_HISTORY_METADATA,
    CONFIG_HISTORY_INPUT,
};

extern const char *const config_histories[]; /* their names; ends with NULL */

/* An agent as listed in the file. Without any, the script's agents are used. */
struct config_agent {
    struct str slug, description;
    struct str system; /* its instructions, or empty */
    struct str kind_name;
    const struct agent_kind *kind;           /* NULL: a model */
    const struct str *command, *environment; /* of a process; each text ends in NUL */
    size_t command_count, environment_count;
    uint64_t processes;  /* of a process */
    uint64_t silence_ms; /* of all kinds but a model */
    struct str library;  /* of a plugin: its path */
    struct str url, key; /* of a server; the key may be empty */
    struct str key_env, key_file, key_source;
    const struct config_header *headers;
    size_t header_count;
    struct str address, remote_agent; /* of an AgentRuntime; the second may be empty */
    bool stream_per_turn, tls;        /* likewise */
    bool streams;                     /* a server is asked for a stream first */
    enum config_history history;
    struct str sent_config, sent_metadata; /* JSON objects sent with each turn, or empty */
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

    struct config_breeder *breeder; /* of an agent.yaml: what it names; else NULL */

    /* Its places in the file, for checks that can only be made later. */
    const struct yaml *at, *model_at, *provider_at, *fallback_at, *guardrails_at;
};

/* A connection to a provider's models, for callers of nimi.runtime.v1. */
struct config_connector {
    struct str id, provider_name;
    const struct config_provider *provider; /* NULL: builtin */
    bool builtin;                           /* this machine, without a provider */
    struct str owner;                       /* subject that may use it; empty: everyone */
    bool local; /* callers name its models without naming the connector */
    bool enabled;
    const struct str *models; /* of a local one; none: any name */
    size_t model_count;
    const struct yaml *at;
};

/* Limit for issuers. */
#define CONFIG_ISSUERS_MAX 16

/* Who signs the tokens of nimi.runtime.v1's callers. */
struct config_issuer {
    struct str name;     /* the claim `iss` */
    struct str audience; /* what `aud` must name */
    struct str url;      /* of its key set; empty: `keys` */
    struct str keys;     /* its key set; empty: `url` */
    const struct yaml *at;
};

/* Limit for MCP servers. */
#define CONFIG_MCP_MAX 64

/* What a server's question to the user gets. */
enum config_elicitation { CONFIG_ELICITATION_CANCEL, CONFIG_ELICITATION_DEFAULTS };

/* An MCP server whose tools agents may have. */
struct config_mcp {
    struct str name;
    const char *const *command;     /* a program and its arguments; NULL: none */
    const char *const *environment; /* of the program; ends with NULL */
    struct str url;                 /* of a server over HTTP; empty: none */
    struct str key;                 /* sent with each request; empty: none */
    const struct config_header *headers;
    size_t header_count;
    struct str user_header,
        conversation_header;  /* header names for the turn's ids; empty: not sent */
    struct str prefix;        /* put before each tool's name */
    const struct str *agents; /* who may have its tools; none: all */
    size_t agent_count;
    const struct config_agent_tool *policies; /* by pattern; the first match counts */
    size_t policy_count;
    enum config_elicitation elicitation;
    uint64_t timeout_ms; /* of one call; 0: not set */
    const struct yaml *at;
};

/* Limit for the operator's own tools. */
#define CONFIG_OWN_TOOLS_MAX 256

/* Whether repeating a call does no harm; `auto`: only of a GET or a HEAD. */
enum config_repeat { CONFIG_REPEAT_AUTO, CONFIG_REPEAT_HARMS, CONFIG_REPEAT_HARMLESS };

/* A tool of the operator's own: a program, or a request to a server. */
struct config_own_tool {
    struct str name, description;
    struct str parameters;                   /* JSON Schema */
    const struct str *command, *environment; /* of a program; each text ends in NUL */
    size_t command_count, environment_count;
    struct str method, url; /* of a request; url empty: a program */
    struct str body;        /* JSON with templates, or empty */
    struct str key;         /* sent with each request; empty: none */
    const struct request_field *query, *headers;
    size_t query_count, header_count;
    bool has_query;
    const struct tool_secret *secrets; /* the ones its templates name */
    size_t secret_count;
    bool public_only; /* its server must have a public address */
    enum tool_output_form answer;
    struct str pick;
    uint64_t output_bytes, at_once;
    enum config_repeat idempotent;
    const struct str *agents; /* who may have it; none: all */
    size_t agent_count;
    const struct yaml *at;
};

/* The settings of tools: the built-in ones, the operator's own, and policies by name. */
struct config_tools {
    struct {
        struct str backend, url, key; /* backend empty: no web search */
        const struct yaml *at;
    } web_search;
    struct {
        struct str root; /* folder; empty: no file tools */
        const struct yaml *at;
    } files;
    struct exec_options exec; /* root empty: no exec tool */
    const struct config_own_tool *own;
    size_t own_count;
    bool web; /* agents from an orchestrator have both web tools */
    /* For all agents, including those from an orchestrator. hidden: no agent may have it. */
    const struct config_agent_tool *policies;
    size_t policy_count;
};

#endif

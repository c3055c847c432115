/* kind: agents that are not models; each kind is a row.
 *
 * Such an agent takes the place of a model: its kind makes a provider (provider/provider.h), a
 * turn asks the provider, and the agent's output becomes the events of a reply. When the agent
 * wants a tool of ours, or asks a human, the reply ends. The turn's own machinery makes the
 * call, with its policy, its approval, its record and its budget, and then asks the agent
 * again; the request holds the call with its result. Calls that the agent makes itself,
 * elsewhere, are REPLY_OWN_CALL and REPLY_OWN_RESULT.
 *
 * A failure ends the call once, with one of the reasons below.
 *
 * A new kind is one row of AGENT_KINDS, a file that defines NAME_agent, and its keys in
 * config/agents.c. Kinds whose calls live here share answer.h.
 *
 * Memory   options are copied; the pools must outlive the provider.
 * Threads  as provider.h.
 */
#ifndef WEIR_AGENT_KIND_H
#define WEIR_AGENT_KIND_H

#include "client/http.h"
#include "provider/provider.h"

/* Reasons of failures. */
#define AGENT_FAILED "AGENT_FAILED"           /* the agent reported it */
#define AGENT_START "AGENT_START"             /* its program cannot be run */
#define AGENT_UNREACHABLE "AGENT_UNREACHABLE" /* its server cannot be reached */
#define AGENT_ENDED "AGENT_ENDED"             /* it ended in the middle of a turn */
#define AGENT_PROTOCOL "AGENT_PROTOCOL"       /* it broke its protocol */
#define AGENT_STALLED "AGENT_STALLED"         /* it was silent for too long */

struct process_pool;

/* The settings of one agent. A kind reads the members that apply to it. */
struct agent_options {
    struct str name;     /* for messages */
    struct str model;    /* the name that the agent gets, or empty */
    uint64_t silence_ms; /* the longest silence while a turn is with it */

    /* of a program */
    const char *const *command;     /* the program and its arguments; ends with NULL */
    const char *const *environment; /* ends with NULL */
    size_t processes_max;           /* of each loop */

    /* of a server */
    struct str url; /* without a slash at its end */
    struct str key; /* sent with each request; empty: none */
    const struct http_header *headers;
    size_t header_count;
    bool streams;            /* it is asked for a stream first */
    struct str address;      /* of an AgentRuntime: "host:port" */
    bool tls;                /* the address is asked over TLS */
    struct str remote_agent; /* its name there; empty: the runtime chooses */
    bool stream_per_turn;    /* each turn gets a stream of its own */
    struct str own;          /* sent with each turn, see runtime.h; or empty */

    /* of a shared library */
    struct str library; /* its path */
    struct str config;  /* JSON passed to it, or empty */

    struct process_pool *processes;
    struct http_pool *http;
};

struct agent_kind {
    const char *name;  /* as `kind:` in the settings */
    const char *needs; /* the key that it requires */
    /* The caller ends the result with provider_free(). errors  about the value of `needs` */
    bool (*make)(const struct agent_options *options, struct provider **ret, struct err *e);
};

/* clang-format off */
#define AGENT_KINDS(ROW)                                                                       \
    ROW(process)                                                                               \
    ROW(http)                                                                                  \
    ROW(openai)                                                                                \
    ROW(converse)                                                                              \
    ROW(plugin)

#define AGENT_KIND_DECLARE(name) extern const struct agent_kind name##_agent;
AGENT_KINDS(AGENT_KIND_DECLARE)
/* clang-format on */

/* "model", then each kind; ends with NULL. */
extern const char *const agent_kind_names[];

/* The index of the message that an agent with a memory of its own is sent: the latest one from
 * the user in this turn (which may ask for a better answer), or the turn's first. */
size_t agent_asked_at(const struct provider_request *request);

/* NULL: it is "model", or none. */
const struct agent_kind *agent_kind_find(struct str name);

#endif

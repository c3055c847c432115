/* weir/agent.h: an agent of weir as a shared library.
 *
 * The library has one symbol, weir_agent(), which answers a struct weir_agent. For each turn
 * weir calls its `turn` on a thread of that turn's own; several turns run at once. The agent
 * reports through the functions of struct weir_host. Threads of the agent may call `say`,
 * `think`, `step`, `usage`, `fail` and `cancelled` too, but not after `turn` has returned;
 * `call` and `ask` belong to the turn's own thread, because their order is recorded.
 *
 *     cc -shared -fPIC -o agent.so agent.c
 *     agents: [{slug: guide, kind: plugin, library: agent.so}]
 *
 * A tool call or a question to a person ends the thread's work: the function returns WEIR_OVER,
 * and the turn must return. When the results are there, weir runs the turn again from the
 * beginning: calls made earlier are answered at once from the record, in their order, and text
 * from before the last of them is dropped, because the caller has it. The same happens after a
 * restart. So an effect belongs in a tool, and the same turn must make the same calls.
 *
 * A library is part of the process: one that crashes ends weir. One that does not return keeps
 * its thread; the turn itself ends in time.
 *
 * The ABI is stable. Structs only grow at their ends; `size` says how much of one is there.
 *
 * Texts are UTF-8 and end with NUL. What weir lends is valid until the turn has returned.
 */
#ifndef WEIR_AGENT_H
#define WEIR_AGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_AGENT_ABI 1

enum {
    WEIR_OK = 0,
    WEIR_OVER = 1, /* return now; further calls have no effect */
};

/* The request. */
struct weir_turn {
    size_t size; /* of this struct */
    const char *agent, *workspace, *user, *session;
    const char *input;  /* the user's text */
    const char *config; /* from the settings: one JSON object */
    const char *turn;   /* the whole request, as the line "turn" in docs/process-agents.md */
};

struct weir_call {
    const char *tool, *args; /* args: one JSON object */
};

struct weir_result {
    const char *result; /* JSON */
    int failed;         /* it is an error: the call failed, or was refused */
};

/* What an agent can do in its turn. Each function gets `ctx` first; all but `cancelled` answer
 * WEIR_OK or WEIR_OVER. */
struct weir_host {
    size_t size; /* of this struct */
    void *ctx;
    int (*say)(void *ctx, const char *text);
    int (*think)(void *ctx, const char *text); /* reasoning */
    int (*step)(void *ctx, const char *text);  /* a line about the current work */
    /* Calls made at once, 1 to 64 of them; results[i] answers calls[i]. */
    int (*call)(void *ctx, const struct weir_call *calls, size_t count,
                struct weir_result *results);
    /* A question to a person; the result is {"answer": ...}. */
    int (*ask)(void *ctx, const char *question, struct weir_result *result);
    /* Tokens of a model call that the agent has made itself; below 0: not known. */
    int (*usage)(void *ctx, const char *model, int64_t input, int64_t output);
    /* The turn fails; code: "NOT_FOUND" and the like, or "". Answers WEIR_OVER. */
    int (*fail)(void *ctx, const char *code, const char *message);
    int (*cancelled)(void *ctx); /* not 0: the turn is over, return soon */
};

struct weir_agent {
    size_t size;  /* of this struct, as the library knows it */
    unsigned abi; /* WEIR_AGENT_ABI, as the library knows it */
    /* The return value says nothing: a turn has failed if it called `fail`. */
    void (*turn)(const struct weir_turn *turn, const struct weir_host *host);
};

/* The only symbol that weir looks for. The result stays valid. */
const struct weir_agent *weir_agent(void);

#ifdef __cplusplus
}
#endif

#endif

/* weir/agent.h: an agent of weir as a shared library.
 *
 * The library has one symbol, weir_agent(), which answers a struct weir_agent. For each turn weir
 * calls its `turn` on a thread of that turn's own; several turns run at once. Whatever the
 * agent has to say goes through the functions of struct weir_host. Threads of the agent may call
 * `say`, `think`, `step`, `usage`, `fail` and `cancelled` too, but not after `turn` has returned;
 * `call` and `ask` belong to the turn's own thread, since their order is what is recorded.
 *
 *     cc -shared -fPIC -o agent.so agent.c
 *     agents: [{slug: guide, kind: plugin, library: agent.so}]
 *
 * Calls of tools and questions to people end the thread's work: the function returns WEIR_OVER,
 * and the turn has to return. When the results are there, the turn begins anew: its code runs
 * again from the beginning, the calls that it has made are answered at once from the record, in
 * their order, and what is said before the last of them is dropped, because it was said. The
 * same happens after a restart. So what has an effect belongs into a tool, and the same turn
 * makes the same calls.
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
    WEIR_OVER = 1, /* return now; nothing is heard any more */
};

/* What is asked. */
struct weir_turn {
    size_t size; /* of this struct */
    const char *agent, *workspace, *user, *session;
    const char *input;  /* what the user said */
    const char *config; /* of the settings: one JSON object */
    const char *turn;   /* all of it, as the line "turn" of docs/process-agents.md */
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
    int (*step)(void *ctx, const char *text);  /* what is being done */
    /* Calls made at once, 1 to 64 of them; results[i] is that of calls[i]. */
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

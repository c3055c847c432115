/* programs: an MCP server that is a program, offered over HTTP.
 *
 * Clients POST JSON-RPC messages; the program reads and writes lines. Several clients share one
 * program, so each request gets a number of ours on its way in, and its own id back on its way
 * out. The program is initialized once, and a later `initialize` gets the first one's result. A
 * program that has ended is started and initialized again before it gets the next request, because
 * its clients do not know that it is another one. What the program asks its client is refused, except `ping`, and what it notifies is dropped, because no
 * client keeps a stream open. A client that leaves cancels its request.
 *
 * Memory   owns the program and the requests that wait for it.
 * Threads  one loop's.
 * Source   contracts/agentbreeder.md 4.4 and 4.11; Model Context Protocol 2025-11-25, "stdio".
 */
#ifndef WEIR_SIDECAR_PROGRAMS_H
#define WEIR_SIDECAR_PROGRAMS_H

#include "base/states.h"
#include "loop/loop.h"
#include "server/exchange.h"
#include "sidecar/held.h"

enum program_state {
    PROGRAM_COLD,     /* it does not run, or its clients have not sent `initialize` */
    PROGRAM_GREETING, /* it has `initialize`; requests wait */
    PROGRAM_READY,
    PROGRAM_STATE_COUNT,
};

extern const struct state program_states[PROGRAM_STATE_COUNT];

struct tool_program;

struct tool_program_options {
    struct loop *loop;
    struct str name;
    const char *const *args;        /* the program and its arguments; ends with NULL */
    const char *const *environment; /* "NAME=value"; ends with NULL */
    uint64_t answer_ms;             /* for one request; 0: no limit */
    struct held *held;              /* borrowed */
};

/* The texts of the options are borrowed. */
struct tool_program *program_new(const struct tool_program_options *options);
void program_free(struct tool_program *program); /* accepts NULL; no request is left */

/* Answer a request, now or later. */
void program_ask(struct tool_program *program, struct exchange *exchange);

#endif

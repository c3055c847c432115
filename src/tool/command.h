/* command: a tool that is a program, started for each call.
 *
 * The program reads the arguments as one JSON object from its standard input and writes the
 * result to its standard output. Exit code 0 is success; with any other, the model reads the
 * end of its standard error. It has a process group and a guard (loop/guard.h): nothing that it
 * started outlives the call, however the call or this process ends.
 *
 *     waits for a slot ─▶ runs ─▶ ended
 *
 * Its environment has WEIR_TOOL, WEIR_CALL_ID, WEIR_AGENT, WEIR_WORKSPACE, WEIR_USER and
 * WEIR_SESSION.
 *
 * Memory   options are copied.
 * Threads  read-only once made, except its slots; a call belongs to its loop. */
#ifndef WEIR_TOOL_COMMAND_H
#define WEIR_TOOL_COMMAND_H

#include "tool/tool.h"
#include "tool/tool_output.h"

struct command_options {
    struct str name, description, parameters;
    const char *path;               /* of the program */
    const char *const *args;        /* begins with its name; ends with NULL */
    const char *const *environment; /* "NAME=value"; ends with NULL */
    size_t output_max_bytes;        /* of its standard output; more ends it */
    size_t at_once;                 /* calls, over all loops; others wait */
    uint64_t timeout_ms;
    bool idempotent;
    enum tool_output_form form;
    struct str pick;
};

/* The caller ends it with tool_free().
 * errors  those of schema_read() for the parameters */
MUST_CHECK bool command_tool_new(const struct command_options *options, struct tool **ret,
                                 struct err *e);

#endif

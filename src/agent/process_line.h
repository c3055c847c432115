/* process_line: what a process agent writes: one JSON object per line.
 *
 * docs/process-agents.md has the protocol. Unknown members are ignored; a line without a known
 * type is refused.
 *
 * Memory   a line borrows the text it was read from; texts with escapes are in the arena.
 * Threads  none; values only. */
#ifndef WEIR_AGENT_PROCESS_LINE_H
#define WEIR_AGENT_PROCESS_LINE_H

#include "wire/json.h"
#include "wire/usage.h"

enum process_line_kind {
    PROCESS_TEXT,     /* text */
    PROCESS_THINKING, /* text */
    PROCESS_STEP,     /* text */
    PROCESS_CALL,     /* calls: tool calls to make at once; the reply ends with them */
    PROCESS_ASK,      /* text: a question to a human; the reply ends with it */
    PROCESS_USAGE,    /* usage */
    PROCESS_DONE,
    PROCESS_ERROR, /* text; code, or ERR_INTERNAL */
};

struct process_line {
    enum process_line_kind kind;
    struct str turn, text, model;
    struct json calls; /* a valid array of {tool, args} */
    struct event_usage usage;
    enum err_code code;
};

/* errors  ERR_MALFORMED not JSON, or not an object; ERR_INVALID_ARGUMENT which member is wrong */
MUST_CHECK bool process_line_read(struct str text, struct arena *arena,
                                  struct process_line *ret, struct err *e);

/* One of the calls. */
void process_call_read(struct json call, struct arena *arena, struct str *ret_tool,
                       struct str *ret_args);

#endif

/* converse_event: what an AgentRuntime says in a turn, and what it is asked.
 *
 * Threads  none; values only.
 * Memory   what is read lies in the arena.
 * Source   proto/agentruntime/v1/runtime.proto. A DoneEvent whose model begins with "ERROR:" is
 *          a failure: "ERROR: CODE: text".
 */
#ifndef WEIR_AGENT_CONVERSE_EVENT_H
#define WEIR_AGENT_CONVERSE_EVENT_H

#include "proto/runtime.pb.h"
#include "wire/usage.h"

enum converse_kind {
    CONVERSE_TEXT,     /* text of `agent` */
    CONVERSE_THINKING, /* likewise */
    CONVERSE_CALL,     /* `agent` calls a tool of the runtime: call_id, tool, args */
    CONVERSE_RESULT,   /* call_id, text; error: `why` */
    CONVERSE_USAGE,    /* usage, with its model */
    CONVERSE_DONE,     /* model; turns */
    CONVERSE_ERROR,    /* code, text */
    CONVERSE_OTHER,    /* unknown, from a later version */
};

struct converse_event {
    enum converse_kind kind;
    struct str agent, text, call_id, tool, args, model, why;
    bool error;
    enum err_code code;
    struct event_usage usage;
    const struct crawbl_turn *turns;
    size_t turn_count;
};

/* errors  ERR_MALFORMED not a ConverseEvent; ERR_TOO_LARGE the arena */
MUST_CHECK bool converse_event_read(struct lent message, struct arena *arena,
                                    struct converse_event *ret, struct err *e);

#endif

/* prompt: a conversation as one agent sees it, the same for every dialect.
 *
 * A request's messages are a protocol of who did what. A model wants turns: a user speaks, the
 * agent replies and asks for tools, their results follow at once. What is in between is decided
 * here, once:
 *
 *     USER                               user turn
 *     [OPAQUE] [AGENT] CALL* of this     one agent turn: text, calls, each call with its result
 *     agent, the RESULTs wherever
 *     others' AGENT, CALL, RESULT        one user turn for as many as follow each other:
 *                                        "For context:", "[wally] said: ..." and so on
 *
 * A result whose call is gone is left out, and so is a call without a result (no API takes
 * either), and a turn in which nothing is left. An opaque message counts when it names the
 * dialect that asks and every call of its reply is here with its result; it then stands for
 * text and calls, which are given as well.
 *
 * Memory   turns borrow the request's messages; what is written anew is the prompt's own.
 * Threads  none; values only.
 * Source   contracts/crawbl.md 2.6 "History seen by an agent", 2.7 "orphaned tool results".
 */
#ifndef WEIR_PROVIDER_PROMPT_H
#define WEIR_PROVIDER_PROMPT_H

#include "base/arena.h"
#include "provider/provider.h"

#define PROMPT_MAX_BYTES (64 * MIB) /* of what is written anew */

enum prompt_role {
    PROMPT_USER,  /* text */
    PROMPT_AGENT, /* opaque, or text (may be empty) and calls (may be none) */
};

/* A tool that the agent asked for, and what came of it. Never NULL, either of them. */
struct prompt_call {
    const struct message *call;   /* call_id, tool, text: the arguments */
    const struct message *result; /* text: the result, error */
};

struct prompt_turn {
    enum prompt_role role;
    bool foreign;      /* of PROMPT_USER: no person said it, it tells of other agents */
    struct str text;   /* of PROMPT_USER never empty */
    struct str opaque; /* in place of text and calls, not of their results; or empty */
    const struct prompt_call *calls;
    size_t call_count;
};

struct prompt {
    struct prompt_turn *turns; /* oldest first */
    size_t turn_count;

    struct prompt_call *calls; /* of all turns */
    size_t call_count;
    struct arena *arena;
};

/* The turns of `request` for the dialect of this name; end them with prompt_done().
 * errors  ERR_TOO_LARGE more than PROMPT_MAX_BYTES were to be written */
MUST_CHECK bool prompt_init(struct prompt *prompt, const struct provider_request *request,
                            struct str dialect, struct err *e);
void prompt_done(struct prompt *prompt);

#endif

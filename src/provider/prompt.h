/* prompt: a conversation as one agent sees it, the same for every dialect.
 *
 * A request's messages are a protocol of who did what. A model wants turns: a user speaks, the
 * agent replies and asks for tools, their results follow at once. What is in between is decided
 * here, once:
 *
 *     USER                               user turn, with its pictures
 *     SYSTEM                             system turn
 *     [OPAQUE] [AGENT] CALL* of this     one agent turn: text, calls, each call with its result
 *     agent, the RESULTs wherever
 *     others' AGENT, CALL, RESULT        one user turn for as many as follow each other:
 *                                        "For context:", "[wally] said: ..." and so on
 *
 * A message whose agent is empty is of the agent that is asked. A result whose call is gone is
 * left out, and so is a call without a result (no API takes either), and a turn in which
 * nothing is left; but a user who says nothing has a turn. User turns that follow each other
 * stay apart: what one request held must begin the next one, so that a vendor's cache finds it.
 * An opaque message counts when it names the dialect that asks and every call of its reply is
 * here with its result; it then stands for text and calls, which are given as well.
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
    PROMPT_USER,   /* text (may be empty), or parts */
    PROMPT_AGENT,  /* opaque, or text (may be empty) and calls (may be none) */
    PROMPT_SYSTEM, /* text, never empty: instructions between messages */
};

/* A tool that the agent asked for, and what came of it. Never NULL, either of them. */
struct prompt_call {
    const struct message *call;   /* call_id, tool, text: the arguments */
    const struct message *result; /* text: the result, error */
};

struct prompt_turn {
    enum prompt_role role;
    bool foreign; /* of PROMPT_USER: no person said it, it tells of other agents */
    bool prefill; /* of PROMPT_AGENT: the last turn, with which the reply is to begin */
    size_t index; /* in the request's messages, of the turn's first */
    struct str text;
    struct str parts;  /* of PROMPT_USER, with pictures: provider/parts.h; or empty */
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

/* How many of the first turns are a system's. */
size_t prompt_leading_system(const struct prompt *prompt);

#define NO_PART SIZE_MAX

/* Say that an API cannot carry this turn, or this part of it, with the place as a caller counts
 * it: "messages[2].content[1]: ...". Returns false, with ERR_UNIMPLEMENTED. */
PRINTF_LIKE(5, 6)
bool prompt_refuse(const struct provider_request *request, const struct prompt_turn *turn,
                   size_t part, struct err *e, const char *format, ...);

/* For an API that takes instructions at the front only: whether every other system turn says
 * again what an earlier one said, so that it can be left out. `whose` models these are.
 * errors  ERR_UNIMPLEMENTED with the place */
MUST_CHECK bool prompt_check_system(const struct provider_request *request,
                                    const struct prompt *prompt, const char *whose,
                                    struct err *e);

#endif

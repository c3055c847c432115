/* prompt: a conversation from one agent's point of view, for every dialect.
 *
 * A request's messages record who did what. A model expects turns: the user speaks, the agent
 * replies and calls tools, and their results follow at once. This module converts one into the
 * other:
 *
 *     USER                               user turn, with its pictures
 *     SYSTEM                             system turn
 *     [OPAQUE] [AGENT] CALL* of this     one agent turn: text, calls, each call with its result
 *     agent, the RESULTs wherever
 *     others' AGENT, CALL, RESULT        one user turn for as many as follow each other:
 *                                        "For context:", "[wally] said: ..." and so on
 *
 * A message with an empty agent belongs to the requesting agent. A result without its call is
 * left out, and so is a call without a result, because no API accepts either. Turns that end up
 * empty are left out too, except an empty user message. Consecutive user turns are not merged:
 * each request must start with the previous one, so that a vendor's cache matches. An opaque
 * message is used if it names the requesting dialect and every call of its reply is present
 * with its result. It then replaces text and calls, which are given as well.
 *
 * Memory   turns borrow the request's messages; the prompt owns newly written text.
 * Threads  none; values only.
 * Source   contracts/crawbl.md 2.6 "History seen by an agent", 2.7 "orphaned tool results".
 */
#ifndef WEIR_PROVIDER_PROMPT_H
#define WEIR_PROVIDER_PROMPT_H

#include "base/arena.h"
#include "provider/provider.h"

#define PROMPT_MAX_BYTES (64 * MIB) /* of the text that is rewritten */

enum prompt_role {
    PROMPT_USER,   /* text (may be empty), or parts */
    PROMPT_AGENT,  /* opaque, or text (may be empty) and calls (may be none) */
    PROMPT_SYSTEM, /* text, never empty: instructions between messages */
};

/* A tool call of the agent and its result. Neither is NULL. */
struct prompt_call {
    const struct message *call;   /* call_id, tool, text: the arguments */
    const struct message *result; /* text: the result, error */
    /* The call's id of letters, digits, '_' and '-', with "-2" and so on where another call of the
     * prompt has the same: servers that begin with `call_0` in every reply repeat theirs. Calls in
     * an opaque reply keep theirs. */
    struct str id;
};

struct prompt_turn {
    enum prompt_role role;
    bool foreign; /* PROMPT_USER: not from a person; it reports what other agents did */
    bool prefill; /* PROMPT_AGENT: the last turn; the reply continues it */
    size_t index; /* of the turn's first message in the request */
    struct str text;
    struct str parts;  /* PROMPT_USER with images: provider/parts.h; or empty */
    struct str opaque; /* replaces text and calls, but not their results; or empty */
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

/* The turns of `request` for the dialect with this name; free them with prompt_done().
 * errors  ERR_TOO_LARGE the text would exceed PROMPT_MAX_BYTES */
MUST_CHECK bool prompt_init(struct prompt *prompt, const struct provider_request *request,
                            struct str dialect, struct err *e);
void prompt_done(struct prompt *prompt);

/* Number of system turns at the start. */
size_t prompt_leading_system(const struct prompt *prompt);

/* What to send where an API takes no blank text, no conversation that begins with the agent, and
 * none that ends with it. */
#define PROMPT_BLANK STR("(no text)")
#define PROMPT_OPENING STR("(earlier messages are left out)")
#define PROMPT_GO_ON STR("(go on)")

#define NO_PART SIZE_MAX

/* Refuse a turn, or one part of it, that the API cannot carry. The error names the position as
 * the caller counts it: "messages[2].content[1]: ...". Returns false; the code is
 * ERR_UNIMPLEMENTED. */
PRINTF_LIKE(5, 6)
bool prompt_refuse(const struct provider_request *request, const struct prompt_turn *turn,
                   size_t part, struct err *e, const char *format, ...);

/* For an API that accepts instructions only at the front: check that every later system turn
 * repeats an earlier one and can be left out. `whose` names the models in the error.
 * errors  ERR_UNIMPLEMENTED with the position */
MUST_CHECK bool prompt_check_system(const struct provider_request *request,
                                    const struct prompt *prompt, const char *whose,
                                    struct err *e);

#endif

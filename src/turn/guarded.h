/* guarded: the guardrails of a turn's agents, applied to what they read and what they say.
 *
 *     the caller's words ─▶ input rules of the first agent ─▶ journal, history, prompt
 *     what was said to, or by, another agent ─▶ its own input rules ─▶ its model
 *     text and thinking of a reply ─▶ output rules of its agent ─▶ journal, and so every wire
 *
 * What is redacted is redacted before it is recorded, so no store, stream or later prompt has
 * it. What others heard or said is in the store as they may have it, and is redacted each time a
 * turn of this agent reads it: once a turn, whatever the number of its rounds. A message of a user
 * knows the agent that heard it (struct message), so that rules do not read their own output again.
 * A block fails the turn with the reason GUARDRAIL_BLOCKED. The arguments and the results of tools
 * are not read, also where a history is condensed; what is blocked there is left out.
 *
 * Memory   inside its run, which ends it with guarded_done(); redacted texts are in the run's arena.
 * Threads  the loop of its run.
 * Source   contracts/agentbreeder.md 4.5; docs/internals/turn.md "Guardrails".
 */
#ifndef WEIR_TURN_GUARDED_H
#define WEIR_TURN_GUARDED_H

#include "guardrail/filter.h"

struct agent;
struct run;
struct message;
struct provider_request;

#define GUARDRAIL_BLOCKED "GUARDRAIL_BLOCKED"

/* A message as it was found, and what the rules have made of it. */
struct guarded_message {
    struct str text, parts;
    struct str shown, shown_parts;
};

/* Those of a reply that is coming in. */
struct guarded_reply {
    struct filter text, thinking;
};

struct guarded {
    const struct agent *first;   /* its rules have been applied to the request */
    bool passed;                 /* and none of them blocked it */
    struct guarded_reply *reply; /* owned; NULL: no rules read what the agent says */
    const struct agent *reader;  /* whose rules have read these, in the order of the prompt: */
    struct guarded_message *read;
    size_t read_count, read_room;
    struct message *prompt; /* the messages that the model is shown, where any was read */
};

void guarded_done(struct guarded *guarded);

/* The caller's request, before anything of it is recorded. False: the run has failed. */
MUST_CHECK bool run_guard_request(struct run *run);

/* What a human says while the run waits. `room` may hold the result; the function begins it and
 * the caller ends it. False: a rule blocks it. */
MUST_CHECK bool run_guard_words(struct run *run, struct str words, struct buf *room,
                                struct str *ret);

/* Have the rules of the run's agent read what of its prompt they have not read. `request` then has
 * messages that live until the next prompt. False: the run has failed. */
MUST_CHECK bool run_guard_prompt(struct run *run, struct provider_request *request);

/* The same for the first `count` messages of the conversation, which are about to be condensed: *ret
 * has them until the next prompt. A message that a rule blocks is replaced by a line that says so,
 * or the session could never be condensed. False: the run has failed. */
MUST_CHECK bool run_guard_history(struct run *run, size_t count, const struct message **ret);

/* A reply begins: the rules of its agent. */
void run_guard_reply(struct run *run);

/* A piece of its text or thinking: append to `out` what may be shown. False: the run has failed.
 */
MUST_CHECK bool run_guard_piece(struct run *run, struct filter *filter, struct str text,
                                struct buf *out);

/* The text or the thinking is over. False: the run has failed. */
MUST_CHECK bool run_guard_end(struct run *run, struct filter *filter, struct buf *out);

/* A whole text of the agent, prose or JSON: *ret is what may be shown, kept by the run. False:
 * the run has failed. */
MUST_CHECK bool run_guard_whole(struct run *run, struct str text, struct str *ret);

/* Whether the reply, as the provider sent it, breaks no rule and needs no redaction. */
bool run_guard_allows(const struct run *run, struct str reply);

#endif

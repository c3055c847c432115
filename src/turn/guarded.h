/* guarded: the guardrails of a turn's agents, applied to what they read and what they say.
 *
 *     the caller's words ─▶ input rules of the first agent ─▶ journal, history, prompt
 *     prompt of an agent that took the turn over ─▶ its own input rules ─▶ its model
 *     text and thinking of a reply ─▶ output rules of its agent ─▶ journal, and so every wire
 *
 * What is redacted is redacted before it is recorded, so no store, stream or later prompt has
 * it. A block fails the turn with the reason GUARDRAIL_BLOCKED. The arguments and the results of
 * tools are not read.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   contracts/agentbreeder.md 4.5; docs/internals/turn.md "Guardrails".
 */
#ifndef WEIR_TURN_GUARDED_H
#define WEIR_TURN_GUARDED_H

#include "guardrail/filter.h"

struct agent;
struct run;
struct provider_request;

#define GUARDRAIL_BLOCKED "GUARDRAIL_BLOCKED"

struct guarded {
    const struct agent *first;    /* its rules have been applied to the request */
    struct filter text, thinking; /* of the reply that is coming in */
};

void guarded_done(struct guarded *guarded);

/* The caller's request, before anything of it is recorded. False: the run has failed. */
MUST_CHECK bool run_guard_request(struct run *run);

/* What a human says while the run waits. `room` may hold the result; the function begins it and
 * the caller ends it. False: a rule blocks it. */
MUST_CHECK bool run_guard_words(struct run *run, struct str words, struct buf *room,
                                struct str *ret);

/* The prompt of an agent that has the turn from another one. False: the run has failed. */
MUST_CHECK bool run_guard_prompt(struct run *run, struct provider_request *request);

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

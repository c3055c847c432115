/* outcome: what a run comes to, as this contract tells it: output, session and the tools it
 * used. Private to this contract.
 *
 * It is told every event and writes the response object of the one that ends the answer.
 *
 * Memory   owns what it needs; outcome_done() ends it.
 * Threads  none.
 * Source   contracts/agentbreeder.md 1.7 and 3.2.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_OUTCOME_H
#define WEIR_CONTRACT_AGENTBREEDER_OUTCOME_H

#include "base/text.h"
#include "wire/event.h"
#include "wire/json.h"

struct open_call;

struct outcome {
    uint64_t run; /* set by whoever knows it, before anything is written */
    struct text session;
    bool wants_text;   /* text came in: so must text go out */
    bool names_thread; /* the caller says thread_id: he is answered with it too */
    int64_t started_unix_ms;
    struct buf history; /* the tools of this run, items of a JSON array */
    struct open_call *open_calls;
    size_t open_call_count;
};

void outcome_init(struct outcome *outcome);
void outcome_done(struct outcome *outcome);

/* Whom the answer is for; `session` is copied. Empty: as the run's first event says. */
void outcome_address(struct outcome *outcome, struct str session, bool wants_text,
                     bool names_thread);

/* Note what `event` adds to the history; call it with every event. */
void outcome_note(struct outcome *outcome, const struct event *event);

/* What a human is asked (EVENT_APPROVAL), as an object. */
void outcome_write_approval(const struct outcome *outcome, const struct event *event,
                            struct buf *out);

/* The response object of a run that is done, or waits for a human (EVENT_APPROVAL). */
void outcome_write(const struct outcome *outcome, const struct event *event, struct buf *out);

#endif

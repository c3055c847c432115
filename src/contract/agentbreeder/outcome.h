/* outcome: the result of a run in this contract's form: output, session and the tools it used.
 * Private to this contract.
 *
 * It is given every event and writes the response object for the event that ends the answer.
 *
 * Memory   owns what it needs; outcome_done() ends it.
 * Threads  none.
 * Source   contracts/agentbreeder.md 1.7 and 3.2.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_OUTCOME_H
#define WEIR_CONTRACT_AGENTBREEDER_OUTCOME_H

#include "base/text.h"
#include "contract/agentbreeder/acted.h"
#include "wire/event.h"
#include "wire/json.h"

struct open_call;

struct outcome {
    uint64_t run; /* the caller sets it before anything is written */
    struct text session;
    bool wants_text;   /* the input was text, so the output must be text */
    bool names_thread; /* the request says thread_id; the response repeats it */
    int64_t started_unix_ms;
    struct buf history; /* the tools of this run, items of a JSON array */
    struct open_call *open_calls;
    size_t open_call_count;
    struct acted acted;
    bool tells_usage; /* a sidecar is in front: it counts by what the answer says */
    struct {
        bool known;
        struct text model;                 /* of the last call */
        int64_t prompt, completion, total; /* sums, or TOKENS_UNKNOWN */
    } usage;
};

void outcome_init(struct outcome *outcome);
void outcome_done(struct outcome *outcome);

/* Set the session (copied) and the form of the answer. An empty session: use the one in the
 * run's first event. */
void outcome_address(struct outcome *outcome, struct str session, bool wants_text,
                     bool names_thread);

/* Add `event` to the history, and to the usage. Call it with every event. */
void outcome_note(struct outcome *outcome, const struct event *event);

/* Write the question to a human (EVENT_APPROVAL) as an object. */
void outcome_write_approval(const struct outcome *outcome, const struct event *event,
                            struct buf *out);

/* Write the response object of a run that is done or waits for a human (EVENT_APPROVAL). */
void outcome_write(const struct outcome *outcome, const struct event *event, struct buf *out);

#endif

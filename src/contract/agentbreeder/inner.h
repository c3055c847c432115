/* inner: the state of one /invoke, /stream or /resume, shared by the files of this contract.
 * Private to it.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_INNER_H
#define WEIR_CONTRACT_AGENTBREEDER_INNER_H

#include "contract/agentbreeder/outcome.h"
#include "contract/agentbreeder/request.h"
#include "contract/agentbreeder/runtime.h"
#include "conversation/seam.h"
#include "session/asked.h"
#include "session/idempotency_lookup.h"
#include "session/waiting.h"
#include "stream/follow.h"
#include "turn/dormant_wake.h"

/* An earlier decision, while it is compared with this caller's. */
struct repeat {
    struct buf words;   /* the caller's decision; filled when first needed */
    struct buf call_id; /* of the question being answered */
    uint64_t seq;       /* of the question; 0: no comparison */
    bool differs;       /* the earlier decision was a different one */
    bool over;          /* the run ended without a decision */
};

/* One request, from the passed checks to the last byte of the answer. */
struct turn {
    struct list link; /* in instance->calls */
    struct route_call *call;
    struct runtime_instance *instance;
    struct stream *stream;
    enum close_mode mode;
    const struct stream_wire *wire;
    struct run *run;  /* started by this call; NULL: it reads a run that another call started */
    uint64_t resumed; /* the id of that other run */
    struct leaving leaving;
    bool says_leaving; /* `leaving` comes from the request, not the settings */
    /* Valid until the turn is established. Of the key, the length stays valid. */
    struct str key;
    struct arena *arena; /* of the request */
    struct runtime_request request;
    bool resumes;                 /* a /resume; `request` holds its user and fingerprint */
    struct resume_request resume; /* of a /resume */
    bool names_user;              /* a /resume that names the thread's user */
    uint64_t approval_run, approval_seq; /* the question a /resume names, or 0 */
    /* Pending lookups. */
    struct idempotency_lookup *lookup;
    struct asked *asked;
    struct dormant_wake *wake;
    struct follow *follow; /* reads a run that an earlier request started or answered */
    struct repeat repeat;
    struct seam seam; /* of the text on /stream */
    bool gone;        /* the peer has left; nothing more is sent */
    struct outcome outcome;
};

struct session_table *turn_sessions(const struct turn *turn);

/* Copy lent text to the turn's arena. Lent text ends when a call starts to wait. Absent text
 * stays absent (at == NULL).
 * errors  the arena's limit */
MUST_CHECK bool turn_keep(struct turn *turn, struct lent lent, struct str *ret, struct err *e);

/* Answer with a failure that came before the turn was established, and end the turn. */
void turn_give_up(struct turn *turn, const struct err *why);

/* The same with an error code of this contract. */
void turn_fail(struct turn *turn, int status, struct str code, struct str message,
               struct str details);

/* Answer with `body` and end the turn. */
void turn_reply(struct turn *turn, struct str body);

/* Continue reading the journal (borrowed) of a run whose question was answered. */
MUST_CHECK bool turn_follow(struct turn *turn, struct journal *journal, uint64_t after_seq,
                            struct err *e);

/* The turn is established. Free the request; everything still needed was copied. */
void turn_established(struct turn *turn);

/* Send the answer of a run that an earlier request started or resumed, from the first event
 * after `after_seq`. */
void turn_attach(struct turn *turn, uint64_t run, uint64_t after_seq);

void turn_report_run(struct turn *turn, uint64_t run);

/* Wake the runs that `answer` may be for, then look again from the beginning. */
void turn_wake(struct turn *turn, const struct pending_answer *answer);

/* Look up the run of its idempotency key. */
void turn_look_up(struct turn *turn);

/* Watch for the peer leaving during a lookup. */
void turn_watch(struct turn *turn);

/* The stream ended early; the cause decides what happens to the run. A run that an earlier
 * request started is not changed. */
void turn_leave_run(struct turn *turn, enum close_cause cause);

/* --- turn_answer.c: the events of a run as an answer -------------------------------------- */

extern const struct stream_wire turn_invoke_wire, turn_stream_wire;

/* --- decisions.c: a request that is a human's decision ------------------------------------ */

/* Read the body of a /resume. */
MUST_CHECK bool decide_read(struct turn *turn, struct err *e);

/* How the text of an /invoke or /stream was taken in a session where a run may wait. */
enum settling {
    SETTLES_NOTHING, /* no run waits; the text starts a turn */
    SETTLES,         /* it was a decision; the turn reads on in the run that waited */
    SETTLES_OTHER,   /* it was refused and answered, or is being looked at again; the caller of
                        this function must not touch the turn any more */
    SETTLES_AGAIN,   /* the key was taken meanwhile; look it up again */
    SETTLES_FAILED,  /* `e` says why it cannot be read */
};
enum settling decide_by_turn(struct turn *turn, uint64_t key_mark, struct err *e);

/* Handle a /resume. Its request has been read, and its key, if any, is free. */
void decide_by_resume(struct turn *turn, uint64_t key_mark);

/* Handle a decision that an earlier request with the same key brought to this question. */
void decide_again(struct turn *turn, uint64_t run, uint64_t seq);

/* Look at an event of a run whose decision is compared. True: do not send this event. The
 * answer ends there if the decision differs or never came. */
bool decide_compare(struct turn *turn, const struct event *event);

/* Say why the comparison ended the answer. */
void decide_report_difference(const struct turn *turn, struct str *ret_code,
                              struct str *ret_message, int *ret_status);

#endif

/* inner: one /invoke, /stream or /resume, as the files of this contract share it. Private to
 * it.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_INNER_H
#define WEIR_CONTRACT_AGENTBREEDER_INNER_H

#include "contract/agentbreeder/outcome.h"
#include "contract/agentbreeder/request.h"
#include "contract/agentbreeder/runtime.h"
#include "conversation/seam.h"
#include "run/asked.h"
#include "run/keyed.h"
#include "run/wake.h"
#include "stream/follow.h"

/* What somebody has decided before, while it is compared with what this caller says. */
struct repeat {
    struct buf words;   /* the caller's decision; made once it is needed */
    struct buf call_id; /* of the question's answer */
    uint64_t seq;       /* of the question; 0: nothing is compared */
    bool differs;       /* it was decided otherwise */
    bool over;          /* the run ended without a decision */
};

/* From the checked request to the last byte. */
struct turn {
    struct list link; /* in desk->calls */
    struct route_call *call;
    struct runtime_desk *desk;
    struct stream *stream;
    enum close_mode mode;
    const struct stream_wire *wire;
    struct run *run;  /* that this call started; NULL: it goes on with another one's */
    uint64_t resumed; /* that run's id */
    struct leaving leaving;
    bool says_leaving; /* the request does, not the settings */
    /* Until the turn is established; then of the key only its length. */
    struct str key;
    struct arena *arena; /* of the request */
    struct runtime_request request;
    bool resumes;                 /* it is a /resume; `request` says its user and its print */
    struct resume_request resume; /* then */
    bool names_user;              /* and it says whose thread it is */
    uint64_t approval_run, approval_seq; /* and which question, or 0 */
    /* While something is looked up. */
    struct keyed *keyed;
    struct asked *asked;
    struct wake *wake;
    struct follow *follow; /* of a run that an earlier request started or answered */
    struct repeat repeat;
    struct seam seam; /* of the text on /stream */
    bool gone;        /* the peer left: nothing more is sent */
    struct outcome outcome;
};

struct session_table *turn_sessions(const struct turn *turn);

/* A copy in the turn's arena: a call may wait, and then what was lent is gone. What is absent
 * stays so (at == NULL). */
MUST_CHECK bool turn_keep(struct turn *turn, struct lent lent, struct str *ret, struct err *e);

/* Answer a failure that came before the turn was established, and end it. */
void turn_give_up(struct turn *turn, const struct err *why);

/* The same with a failure of this contract's own. */
void turn_fail(struct turn *turn, int status, struct str code, struct str message,
               struct str details);

/* Its answer stands in `body`. */
void turn_reply(struct turn *turn, struct str body);

/* Read on in the journal (borrowed) of a run that was answered. */
MUST_CHECK bool turn_follow(struct turn *turn, struct journal *journal, uint64_t after_seq,
                            struct err *e);

/* What the request said is not needed any more: what of it is, was copied. */
void turn_established(struct turn *turn);

/* The answer of the run that an earlier request began or resumed, from behind `after_seq`. */
void turn_attach(struct turn *turn, uint64_t run, uint64_t after_seq);

void turn_tell_run(struct turn *turn, uint64_t run);

/* Bring back those whom `answer` may mean, then look again from the beginning. */
void turn_wake(struct turn *turn, const struct parked_answer *answer);

/* Ask what its key stands for. */
void turn_look_up(struct turn *turn);

/* Its peer may go while something is looked up. */
void turn_watch(struct turn *turn);

/* --- deciding.c: a request that is a human's decision ------------------------------------- */

/* Read the body of a /resume. */
MUST_CHECK bool decide_read(struct turn *turn, struct err *e);

/* What became of the words of an /invoke or /stream in a session where a run waits. */
enum settling {
    SETTLES_NOTHING, /* nobody waits: it is a turn */
    SETTLES,         /* the turn reads on in the run that waited */
    SETTLES_OTHER,   /* they cannot be taken, and that has been answered, or is looked at once
                        more: the turn is not the caller's any more */
    SETTLES_AGAIN,   /* the key was taken meanwhile: look again */
    SETTLES_FAILED,  /* `e` says why it cannot be read */
};
enum settling decide_by_turn(struct turn *turn, uint64_t key_mark, struct err *e);

/* /resume, its request read; the key, if there is one, is free. */
void decide_by_resume(struct turn *turn, uint64_t key_mark);

/* A decision that an earlier request brought to this question, with the same key. */
void decide_again(struct turn *turn, uint64_t run, uint64_t seq);

/* An event of a run whose decision is compared. True: it is to be passed over, or ends the
 * answer if the decision differs or never came. */
bool decide_compare(struct turn *turn, const struct event *event);

/* Why the comparison ended the answer. */
void decide_tell_difference(const struct turn *turn, struct str *ret_code,
                            struct str *ret_message, int *ret_status);

#endif

/* inner: the state of one /invoke, /stream or /resume, shared by the files of this contract.
 * Private to it.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_INNER_H
#define WEIR_CONTRACT_AGENTBREEDER_INNER_H

#include "contract/agentbreeder/outcome.h"
#include "contract/agentbreeder/request.h"
#include "contract/agentbreeder/runtime.h"
#include "contract/http_turn.h"
#include "conversation/seam.h"
#include "session/asked.h"
#include "session/elsewhere.h"
#include "session/posted_answer.h"

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
    struct http_turn http;
    struct runtime_instance *instance;
    /* Valid until the turn is established. */
    struct runtime_request request;
    bool resumes;                 /* a /resume; `request` holds its user and fingerprint */
    struct resume_request resume; /* of a /resume */
    bool names_user;              /* a /resume that names the thread's user */
    uint64_t approval_run, approval_seq; /* the question a /resume names, or 0 */
    struct asked *asked;                 /* a pending look-up */
    struct elsewhere *elsewhere;         /* one among replicas */
    struct posted_answer *posted;        /* a /resume's, to another replica */
    uint64_t key_mark;                   /* meanwhile */
    bool looked_elsewhere;
    struct repeat repeat;
    struct seam seam; /* of the text on /stream */
    struct outcome outcome;
};

/* Answer with an error code of this contract, and end the turn. */
void turn_fail(struct turn *turn, int status, struct str code, struct str message,
               struct str details);

/* Answer with `body` and end the turn. */
void turn_reply(struct turn *turn, struct str body);

/* Name the run in the answer's head and body. */
void turn_report_run(struct turn *turn, uint64_t run);

/* --- turn_answer.c: the events of a run as an answer -------------------------------------- */

extern const struct stream_wire turn_invoke_wire, turn_stream_wire;

/* --- decisions.c: a request that is a human's decision ------------------------------------ */

/* Read the body of a /resume. */
MUST_CHECK bool decide_read(struct turn *turn, struct err *e);

/* Whether the text of an /invoke or /stream is for a run that waits in its session. If so, it has
 * been taken or refused: do not touch the turn any more. */
MUST_CHECK bool decide_by_turn(struct turn *turn, uint64_t key_mark);

/* Handle a /resume. Its request has been read, and its key, if any, is free. */
void decide_by_resume(struct turn *turn, uint64_t key_mark);

/* Handle a decision that an earlier request with the same key brought to this question. */
void decide_again(struct turn *turn, uint64_t run, uint64_t seq);

/* Look at an event of a run whose decision is compared. True: do not send this event. The
 * answer ends there if the decision differs or never came. */
bool decide_compare(struct turn *turn, const struct event *event);

/* Why the comparison ended the answer. */
struct route_failure decide_difference(const struct turn *turn);

/* Shared by decisions.c and decisions_elsewhere.c: which words decide; 422, because the answer does
 * not fit what is asked; and read on from the question `seq`, to the decision on it, which must be
 * the same. */
const struct yes_no_words *decide_words_of(const struct turn *turn);
void decide_refuse_misfit(struct turn *turn, struct err *e);
void decide_compare_from(struct turn *turn, uint64_t run, uint64_t seq, struct str session);

/* --- decisions_elsewhere.c: among replicas ------------------------------------------------ */

/* True: whether a run of the session waits at another replica is looked at, and the turn goes on
 * later; it begins again if none does. */
bool decide_elsewhere(struct turn *turn, uint64_t key_mark);

/* True: the run is another replica's, which gets the answer of a /resume. */
bool decide_post(struct turn *turn, uint64_t run, uint64_t seq);

#endif

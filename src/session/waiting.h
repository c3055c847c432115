/* waiting: runs that wait for a human, and the answers that reach them.
 *
 * A run that waits parks: it leaves its journal in the session table, so that the next message
 * of its session, or an answer that names it, finds it on any loop. The answer goes to the run
 * by mail. Dormant runs are found, too: the caller wakes them and asks again.
 *
 * From the moment it is answered the run is at the head of its session's queue. It then calls
 * session_return() or session_forgo().
 *
 * Memory   a parked entry belongs to its run.
 * Threads  any.
 */
#ifndef WEIR_SESSION_WAITING_H
#define WEIR_SESSION_WAITING_H

#include "session/session.h"

/* Leave `parked` (borrowed until it is taken or withdrawn) for the session's next message. The
 * holder of the session releases it afterwards. */
void session_park(struct session_table *table, struct pending_approval *parked);

/* A human's answer. */
struct pending_answer {
    struct session_name name; /* user ANY_USER: every session of that id in its workspace */
    enum pending_approvals_rule rule;
    uint64_t run, seq; /* 0: the one that the rule finds */
    struct str text;
    pending_approvals_check_fn *check; /* NULL: decision_fits() */
    void *check_ctx;
    bool asks_again; /* words that decide nothing are kept for the model */
    /* The caller's idempotency key, or empty, and the rest as struct run_request has it. It
     * belongs to `key_user`. */
    struct str key, key_user, print;
    uint64_t key_mark;
    struct arena *arena; /* for a question that stays open; NULL: do not copy it */
};

/* The result of an answer. */
struct pending_answered {
    struct journal *journal;   /* TAKEN: a reference; journal_run() is the run to cancel */
    uint64_t seq;              /* TAKEN: where to read on */
    struct pending_view stays; /* REFUSED, UNDECIDED: what is still asked, in the arena */
};

/* Send a human's answer to the run that waits for it. PENDING_REFUSED and PENDING_UNDECIDED:
 * `e` says why the answer is not accepted, and the run keeps waiting. PENDING_CLAIMED: look the
 * key up again. */
MUST_CHECK enum pending_found session_settle(struct session_table *table,
                                             const struct pending_answer *answer,
                                             struct pending_answered *ret, struct err *e);

/* The dormant runs that the answer may mean, for dormant_wake_start(). Borrows the answer's
 * texts. */
struct dormant_filter session_sleepers(const struct pending_answer *answer);

/* A shorter session_settle() for the run that has waited longest. Words that decide nothing are
 * REFUSED, and kept for the model. */
MUST_CHECK enum pending_found session_answer_pending(struct session_table *table,
                                                     const struct session_name *name,
                                                     struct str text,
                                                     struct journal **ret_journal,
                                                     uint64_t *ret_seq, struct err *e);

/* Whether a question of this run (0: none is named) is one of this session: the id of another's
 * finds a run as well. */
bool session_may_answer(struct session_table *table, const struct session_name *name,
                        uint64_t run);

/* Whether a run of this session waits for a human. */
bool session_has_pending(struct session_table *table, const struct session_name *name);

/* Withdraw a parked run. False: it was taken, and its answer is on the way. */
bool session_unpark(struct session_table *table, struct pending_approval *parked);

/* The parked run waits no longer, as if it were answered: no answer came in time, or it ends.
 * False: as session_unpark(). */
bool session_expire(struct session_table *table, struct pending_approval *parked);

#endif

/* pending_approvals: the runs that wait for a human's answer.
 *
 * Some wires know who answers (workspace, user, session), others only the session. So a run is
 * filed under its workspace and session, and the user is compared where it is known. Any caller
 * can list the questions, as copies.
 *
 *     waits ─▶ answered ─▶ (left)
 *       └─▶ (removed)
 *
 * Of two answers exactly one wins. An answered run waits no longer, but is known here until it
 * has asked for its session again or is over, so that no new turn of the session overtakes it.
 *
 * Memory   an entry lives inside its run; a view owns its copies.
 * Threads  any; striped locks inside.
 * Source   contracts/agentbreeder.md 3.2.
 */
#ifndef WEIR_SESSION_PENDING_APPROVALS_H
#define WEIR_SESSION_PENDING_APPROVALS_H

#include "base/arena.h"
#include "base/list.h"

struct journal;
struct loop;
struct claim;
struct schema;
struct pending_approvals;
struct yes_no_words;

struct session_name {
    struct str workspace, user, session;
};

/* In place of a name's user, when looking for a parked run: any user. */
#define ANY_USER ((struct str){NULL, 0})

/* What a run asks, and until when. */
struct pending_question {
    struct str agent, question, tool, args; /* args: one JSON object, or empty */
    struct str guards; /* id of the call that waits for the answer; empty: a plain question */
    int64_t asked_unix_ms, deadline_unix_ms; /* deadline 0: none */
    const struct schema *schema;             /* of the tool's arguments, or NULL */
    const struct yes_no_words *words; /* that decide, besides the built-in ones; or NULL */
};

/* How a parked run is found and answered. The run owns it, and sets all but `link`. */
struct pending_approval {
    struct session_name name; /* this and `asked` must outlive the entry */
    uint64_t run;
    struct pending_question asked;
    struct loop *loop;       /* the run's */
    struct journal *journal; /* a later listener reads on here, after `after_seq` */
    uint64_t seq, after_seq; /* of the approval; of the last event when the run was parked */
    /* On the run's loop, once the run was taken: `answer` gets the human's words. If the
     * request has a key, `lookup` gets its claim first (taken by the run). */
    void (*answer)(struct str text, void *ctx);
    void (*lookup)(struct claim *claim, void *ctx);
    void *ctx;
    struct list link; /* several runs may wait: the oldest is answered first */
    bool answered;
};

struct pending_approvals *pending_approvals_new(void);
void pending_approvals_free(
    struct pending_approvals *approvals); /* must be empty; NULL is fine */

void pending_approvals_add(struct pending_approvals *approvals,
                           struct pending_approval *parked);

enum pending_found {
    PENDING_TAKEN,
    PENDING_REFUSED,   /* the answer does not fit what is asked */
    PENDING_UNDECIDED, /* the answer decides nothing */
    PENDING_NONE,      /* no run waits */
    PENDING_ASLEEP,  /* a run that may be meant is not in memory: dormant_wake_start(), then try
                        again */
    PENDING_SEVERAL, /* several may be meant */
    PENDING_CLAIMED, /* the request's key was taken meanwhile: session.h */
};

/* Whether an answer fits the question: TAKEN, REFUSED or UNDECIDED. It runs under a lock, so it
 * must be quick and must not call back. */
typedef enum pending_found pending_approvals_check_fn(const struct pending_question *asked,
                                                      void *ctx);

/* Which of the runs waiting under one name is meant. */
enum pending_approvals_rule {
    PENDING_OLDEST,      /* the one that has waited longest */
    PENDING_OF_ONE_USER, /* the same, unless runs of several users wait */
    PENDING_ONLY_ONE,    /* the one that waits, if there is only one */
};

struct pending_view;

/* Which run to answer. */
struct pending_approvals_wish {
    const struct session_name *name;
    enum pending_approvals_rule rule;
    uint64_t run, seq; /* the run of the name that waits with this approval, whatever the rule;
                          0: any */
    pending_approvals_check_fn *check;
    void *ctx;
    /* A run that was found and not taken is copied here; or both NULL. */
    struct arena *arena;
    struct pending_view *view;
};

/* Take the run that `wish` means, if its check passes: it is answered. */
MUST_CHECK enum pending_found pending_approvals_take(struct pending_approvals *approvals,
                                                     const struct pending_approvals_wish *wish,
                                                     struct pending_approval **ret);

/* The same for this run, whatever it asks; it may also end. False: it does not wait. */
MUST_CHECK bool pending_approvals_expire(struct pending_approvals *approvals,
                                         struct pending_approval *parked);

/* False: it does not wait. */
MUST_CHECK bool pending_approvals_remove(struct pending_approvals *approvals,
                                         struct pending_approval *parked);

/* An answered run has asked for its session again, or never will. */
void pending_approvals_leave(struct pending_approvals *approvals,
                             struct pending_approval *parked);

/* The answered runs of a session that have not left, `max` at most; returns how many. */
size_t pending_approvals_answered(struct pending_approvals *approvals,
                                  const struct session_name *name, uint64_t *ret_runs,
                                  size_t max);

/* Whether a run waits under this name. */
bool pending_approvals_has(struct pending_approvals *approvals,
                           const struct session_name *name);

/* Whether this run waits with this approval. The name is its own. */
bool pending_approvals_asks(struct pending_approvals *approvals,
                            const struct session_name *name, uint64_t run, uint64_t seq);

/* A copy of what one run asks. */
struct pending_view {
    uint64_t run, seq;
    struct session_name name;
    struct pending_question asked; /* without the schema and the words */
};

/* Which runs to list. */
struct pending_approvals_filter {
    struct str workspace, user, session; /* at == NULL: any */
    uint64_t run;                        /* this one alone; 0: all */
};

/* The runs that wait, lowest id first, `count` at most and as many as the arena has room for.
 * *ret_more: there were more. */
size_t pending_approvals_list(struct pending_approvals *approvals,
                              const struct pending_approvals_filter *filter, size_t count,
                              struct arena *arena, struct pending_view *ret, bool *ret_more);

#endif

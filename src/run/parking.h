/* parking: runs that wait for a human, until somebody brings the answer.
 *
 * One wire knows who answers (workspace, user, session), another knows only which session: so
 * a run is filed under its workspace and session, and its user is asked for where he is known.
 * Whoever takes a run has it alone: of two answers exactly one wins. What they are asked can
 * be looked at by anybody, as copies.
 *
 * Memory   an entry lives inside its run; a view owns its copies.
 * Threads  any; striped locks inside.
 * Source   contracts/agentbreeder.md 3.2.
 */
#ifndef WEIR_RUN_PARKING_H
#define WEIR_RUN_PARKING_H

#include "base/arena.h"
#include "base/list.h"

struct journal;
struct loop;
struct schema;
struct parking;
struct session;

struct session_name {
    struct str workspace, user, session;
};

/* In place of a name's user, when looking for a parked run: whoever it is. */
#define ANY_USER ((struct str){NULL, 0})

/* What a run asks, and until when. */
struct parked_question {
    struct str agent, question, tool, args; /* args: one JSON object, or empty */
    struct str guards; /* id of the call that waits for the answer; empty: a plain question */
    int64_t asked_unix_ms, deadline_unix_ms; /* deadline 0: none */
    const struct schema *schema;             /* of the tool's arguments, or NULL */
};

/* How a parked run is found and answered; embedded in the run, which sets all but the last. */
struct parked {
    struct session_name name; /* this and what is asked: valid as long as the entry */
    uint64_t run;
    struct parked_question asked;
    struct loop *loop;       /* the run's */
    struct journal *journal; /* a later listener reads on here, after `seq` */
    uint64_t seq;            /* of the approval */
    void (*answer)(struct str text, void *ctx); /* on the run's loop: the human's words */
    void *ctx;
    struct session *session; /* the session table's */
    struct list link;        /* several runs may wait: the oldest is answered first */
};

struct parking *parking_new(void);
void parking_free(struct parking *parking); /* must be empty; NULL is fine */

void parking_add(struct parking *parking, struct parked *parked);

/* Whether what is asked may be answered so. It runs under a lock: look, and return. */
typedef bool parking_check_fn(const struct parked_question *asked, void *ctx);

enum parking_found { PARKING_TAKEN, PARKING_REFUSED, PARKING_NOBODY };

/* Take out the run that has waited longest under this name, if `check` has nothing against
 * it. */
MUST_CHECK enum parking_found parking_take(struct parking *parking,
                                           const struct session_name *name,
                                           parking_check_fn *check, void *ctx,
                                           struct parked **ret);

/* Take out the run that waits with the approval `seq`, if `check` has nothing against it. */
MUST_CHECK enum parking_found parking_take_run(struct parking *parking,
                                               const struct session_name *name, uint64_t run,
                                               uint64_t seq, parking_check_fn *check, void *ctx,
                                               struct parked **ret);

/* False: it was taken. */
MUST_CHECK bool parking_remove(struct parking *parking, struct parked *parked);

/* Whether a run waits under this name. */
bool parking_has(struct parking *parking, const struct session_name *name);

/* A copy of what one run asks. */
struct parked_view {
    uint64_t run, seq;
    struct session_name name;
    struct parked_question asked; /* without the schema */
};

/* Whose runs are listed. */
struct parking_filter {
    struct str workspace, user, session; /* at == NULL: whichever */
    uint64_t run;                        /* this one alone; 0: all */
};

/* What waits, the lowest run first, at most `count` of it, as far as the arena has room.
 * *ret_more: there was more. */
size_t parking_list(struct parking *parking, const struct parking_filter *filter, size_t count,
                    struct arena *arena, struct parked_view *ret, bool *ret_more);

#endif

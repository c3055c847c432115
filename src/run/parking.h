/* parking: runs that wait for a human, until somebody brings the answer.
 *
 * One wire knows who answers (workspace, user, session), another knows only which session: so
 * a run is filed under its workspace and session, and its user is asked for where he is known.
 * Whoever takes a run has it alone: of two answers exactly one wins.
 *
 * Memory   an entry lives inside its run.
 * Threads  any; striped locks inside.
 * Source   contracts/agentbreeder.md 3.2.
 */
#ifndef WEIR_RUN_PARKING_H
#define WEIR_RUN_PARKING_H

#include "base/list.h"
#include "base/str.h"

struct journal;
struct loop;
struct parking;
struct session;

struct session_name {
    struct str workspace, user, session;
};

/* In place of a name's user, when looking for a parked run: whoever it is. */
#define ANY_USER ((struct str){NULL, 0})

/* How a parked run is found and answered; embedded in the run, which sets all but the last. */
struct parked {
    struct session_name name; /* valid as long as the entry */
    struct loop *loop;        /* the run's */
    struct journal *journal;  /* a later listener reads on here, after `seq` */
    uint64_t seq;             /* of the approval */
    void (*answer)(struct str text, void *ctx); /* on the run's loop: the human's words */
    void *ctx;
    struct session *session; /* the session table's */
    struct list link;        /* several runs may wait: the oldest is answered first */
};

struct parking *parking_new(void);
void parking_free(struct parking *parking); /* must be empty; NULL is fine */

void parking_add(struct parking *parking, struct parked *parked);

/* Take out the run that has waited longest under this name, or NULL. */
struct parked *parking_take(struct parking *parking, const struct session_name *name);

/* False: it was taken. */
MUST_CHECK bool parking_remove(struct parking *parking, struct parked *parked);

/* Whether a run waits under this name. */
bool parking_has(struct parking *parking, const struct session_name *name);

#endif

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
struct claim;
struct schema;
struct parking;
struct yes_no_words;

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
    const struct yes_no_words *words; /* that decide, beside the built-in ones; or NULL */
};

/* How a parked run is found and answered; embedded in the run, which sets all but the last. */
struct parked {
    struct session_name name; /* this and what is asked: valid as long as the entry */
    uint64_t run;
    struct parked_question asked;
    struct loop *loop;       /* the run's */
    struct journal *journal; /* a later listener reads on here, after `after_seq` */
    uint64_t seq, after_seq; /* of the approval; and of the last event when it was parked */
    /* On the run's loop: the human's words, once it was taken; and before them, where his
     * request has a key, the claim of that (the run's from then on). */
    void (*answer)(struct str text, void *ctx);
    void (*keyed)(struct claim *claim, void *ctx);
    void *ctx;
    struct list link; /* several runs may wait: the oldest is answered first */
};

struct parking *parking_new(void);
void parking_free(struct parking *parking); /* must be empty; NULL is fine */

void parking_add(struct parking *parking, struct parked *parked);

enum parking_found {
    PARKING_TAKEN,
    PARKING_REFUSED,   /* the answer does not fit what is asked */
    PARKING_UNDECIDED, /* it decides nothing */
    PARKING_NOBODY,    /* nobody waits */
    PARKING_ASLEEP,    /* who may be meant is not in memory: wake_start() them, then again */
    PARKING_SEVERAL,   /* which one is meant cannot be told */
    PARKING_CLAIMED,   /* session.h: the request's key was taken meanwhile */
};

/* Whether what is asked may be answered so: TAKEN, REFUSED or UNDECIDED. It runs under a lock:
 * look, and return. */
typedef enum parking_found parking_check_fn(const struct parked_question *asked, void *ctx);

/* Which of the runs that wait under one name is meant. */
enum parking_rule {
    PARKING_OLDEST,      /* who has waited longest */
    PARKING_OF_ONE_USER, /* the same, but not if runs of several users wait */
    PARKING_ONLY_ONE,    /* the only one that waits */
};

struct parked_view;

/* Who is to be taken out. */
struct parking_wish {
    const struct session_name *name;
    enum parking_rule rule;
    uint64_t run, seq; /* the run that waits with this approval, whatever the rule and the
                          name's user; 0: any */
    parking_check_fn *check;
    void *ctx;
    /* Who was found and not taken is copied here; both NULL: nobody needs it. */
    struct arena *arena;
    struct parked_view *view;
};

/* Take out the run that `wish` means, if its check has nothing against it. */
MUST_CHECK enum parking_found
parking_take(struct parking *parking, const struct parking_wish *wish, struct parked **ret);

/* False: it was taken. */
MUST_CHECK bool parking_remove(struct parking *parking, struct parked *parked);

/* Whether a run waits under this name. */
bool parking_has(struct parking *parking, const struct session_name *name);

/* A copy of what one run asks. */
struct parked_view {
    uint64_t run, seq;
    struct session_name name;
    struct parked_question asked; /* without the schema and the words */
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

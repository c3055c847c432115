/* parking: the runs that wait for a human's answer.
 *
 * Some wires know who answers (workspace, user, session), others only the session. So a run is
 * filed under its workspace and session, and the user is compared where it is known. Taking a
 * run removes it: of two answers exactly one wins. Any caller can list the questions, as
 * copies.
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

/* In place of a name's user, when looking for a parked run: any user. */
#define ANY_USER ((struct str){NULL, 0})

/* What a run asks, and until when. */
struct parked_question {
    struct str agent, question, tool, args; /* args: one JSON object, or empty */
    struct str guards; /* id of the call that waits for the answer; empty: a plain question */
    int64_t asked_unix_ms, deadline_unix_ms; /* deadline 0: none */
    const struct schema *schema;             /* of the tool's arguments, or NULL */
    const struct yes_no_words *words; /* that decide, besides the built-in ones; or NULL */
};

/* How a parked run is found and answered. Embedded in the run, which sets all but `link`. */
struct parked {
    struct session_name name; /* this and `asked` must outlive the entry */
    uint64_t run;
    struct parked_question asked;
    struct loop *loop;       /* the run's */
    struct journal *journal; /* a later listener reads on here, after `after_seq` */
    uint64_t seq, after_seq; /* of the approval; of the last event when the run was parked */
    /* On the run's loop, once the run was taken: `answer` gets the human's words. If the
     * request has a key, `keyed` gets its claim first (taken by the run). */
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
    PARKING_UNDECIDED, /* the answer decides nothing */
    PARKING_NOBODY,    /* no run waits */
    PARKING_ASLEEP, /* a run that may be meant is not in memory: wake_start(), then try again */
    PARKING_SEVERAL, /* several may be meant */
    PARKING_CLAIMED, /* the request's key was taken meanwhile: session.h */
};

/* Whether an answer fits the question: TAKEN, REFUSED or UNDECIDED. It runs under a lock, so it
 * must be quick and must not call back. */
typedef enum parking_found parking_check_fn(const struct parked_question *asked, void *ctx);

/* Which of the runs waiting under one name is meant. */
enum parking_rule {
    PARKING_OLDEST,      /* the one that has waited longest */
    PARKING_OF_ONE_USER, /* the same, unless runs of several users wait */
    PARKING_ONLY_ONE,    /* the one that waits, if there is only one */
};

struct parked_view;

/* Which run to take out. */
struct parking_wish {
    const struct session_name *name;
    enum parking_rule rule;
    uint64_t run, seq; /* the run that waits with this approval, regardless of the rule and the
                          name's user; 0: any */
    parking_check_fn *check;
    void *ctx;
    /* A run that was found and not taken is copied here; or both NULL. */
    struct arena *arena;
    struct parked_view *view;
};

/* Take out the run that `wish` means, if its check passes. */
MUST_CHECK enum parking_found
parking_take(struct parking *parking, const struct parking_wish *wish, struct parked **ret);

/* False: it was already taken. */
MUST_CHECK bool parking_remove(struct parking *parking, struct parked *parked);

/* Whether a run waits under this name. */
bool parking_has(struct parking *parking, const struct session_name *name);

/* A copy of what one run asks. */
struct parked_view {
    uint64_t run, seq;
    struct session_name name;
    struct parked_question asked; /* without the schema and the words */
};

/* Which runs to list. */
struct parking_filter {
    struct str workspace, user, session; /* at == NULL: any */
    uint64_t run;                        /* this one alone; 0: all */
};

/* The runs that wait, lowest id first, `count` at most and as many as the arena has room for.
 * *ret_more: there were more. */
size_t parking_list(struct parking *parking, const struct parking_filter *filter, size_t count,
                    struct arena *arena, struct parked_view *ret, bool *ret_more);

#endif

/* lease: a run's claim on its session, from the question to the release.
 *
 *     idle ─▶ waiting ─▶ held ⇄ lent ─▶ (released) idle
 *                          ▲      └─ children: held, lent, ... the last one on top
 *
 * session.h grants, lends and releases it. This file moves its state and carries the answers to
 * the loop of its run.
 *
 * Memory   a lease is part of its run.
 * Threads  lease_move() and the three that post need the lock of the lease's stripe; callbacks
 *          come on the lease's own loop.
 */
#ifndef WEIR_SESSION_LEASE_H
#define WEIR_SESSION_LEASE_H

#include "base/err.h"
#include "base/list.h"
#include "base/states.h"
#include "loop/loop.h"

struct history;
struct lease_note;
struct session;
struct session_stripe;
struct turn_record;

enum lease_state { LEASE_IDLE, LEASE_WAITING, LEASE_HELD, LEASE_LENT, LEASE_STATE_COUNT };

extern const struct state lease_states[LEASE_STATE_COUNT];

struct lease_events {
    /* The session is yours: lease->history and ->parent are set. */
    void (*granted)(void *ctx);
    void (*refused)(const struct err *why, void *ctx);
    /* session_reclaim() returned false and the children are now done: call it again. */
    void (*children_done)(void *ctx);
};

struct lease {
    /* Set by the run. */
    struct loop *loop;
    uint64_t run;
    const struct lease_events *events;
    void *ctx;
    /* Valid while held or lent. */
    struct history *history; /* snapshot; owned by the lease until it is released */
    uint64_t parent;         /* the run that lent its session, or 0 */
    /* The table's. */
    enum lease_state state;
    struct session_stripe *stripe; /* set once; lives as long as the table */
    struct session *session;
    struct list link; /* in the session's waiters, or on its stack */
    struct lease *lender;
    unsigned depth;
    bool impatient;          /* it is refused rather than wait for another replica */
    bool returns;            /* its run was answered: it waits ahead of those that do not */
    bool interrupts;         /* older turns make way, also at another replica */
    size_t children;         /* granted and not yet released */
    bool wants_back;         /* session_reclaim() returned false */
    struct lease_note *note; /* children_done, on its way */
    struct turn_record **child_records;
    size_t child_record_count;
    struct mail mail;
    struct err *refusal; /* on its way with the mail */
};

/* The only function that writes lease->state. */
void lease_move(struct lease *lease, enum lease_state next);

/* Call `granted` of a lease that is held now. */
void lease_post_granted(struct lease *lease);

/* Take a waiting lease out of its list, and call `refused` with `why`. */
void lease_refuse(struct lease *lease, const struct err *why);

/* Call `children_done`, unless lease_drop_note() comes first. */
void lease_post_children_done(struct lease *lease);
void lease_drop_note(struct lease *lease);

#endif

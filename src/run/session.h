/* session: one writer at a time for each conversation, and who waits.
 *
 * A run acquires its session before it asks a model and releases it when its turn is durable.
 * A run that waits for a tool lends its session: a turn that arrives meanwhile runs as its
 * child (the tool may be what asks), to SESSION_DEPTH_MAX; the parent takes the session back
 * when its tools and its children are done. So nobody waits for somebody who waits for him.
 *
 *     idle ─▶ waiting ─▶ held ⇄ lent ─▶ (released) idle
 *                          ▲      └─ children: held, lent, ... the last one on top
 *
 * A run that waits for a human parks: it releases the lease and leaves its journal here, so
 * that the session's next message finds it. Later it may be in the store alone (wake.h).
 *
 * What is remembered of a session comes from the store when it is first needed, and is
 * forgotten when nobody has used it for long; the store has it.
 *
 * Memory   a lease belongs to its run; see the calls for how long it must stay.
 * Threads  any loop; striped locks inside. Callbacks come on the lease's own loop.
 * Source   design.md "The run"; checks.md K11, K23.
 */
#ifndef WEIR_RUN_SESSION_H
#define WEIR_RUN_SESSION_H

#include "run/history.h"
#include "run/parking.h"
#include "store/store.h"

struct session_table;
struct session;
struct session_stripe;
struct note;
struct lease;
struct journal;
struct directory;
struct claims;
struct slots;

#define SESSION_DEPTH_MAX 3
#define SESSIONS_RESIDENT_MAX 10240 /* idle ones in memory, all stripes together */

/* A second turn on a session that is held: wait, be refused (ERR_ABORTED), or take its place:
 * wait like the first, while whoever asks has those before it cancelled. */
enum session_policy { SESSION_QUEUE, SESSION_REJECT, SESSION_INTERRUPT };

enum lease_state { LEASE_IDLE, LEASE_WAITING, LEASE_HELD, LEASE_LENT, LEASE_STATE_COUNT };

struct str lease_state_name(enum lease_state state);
bool lease_may_become(enum lease_state state, enum lease_state next);

struct lease_events {
    /* The session is yours: lease->history and ->parent are set. */
    void (*granted)(void *ctx);
    void (*refused)(const struct err *why, void *ctx);
    /* session_reclaim() said false and now the children are done: call it again. */
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
    uint64_t parent;         /* run that lent its session, or 0 */
    /* The table's. */
    enum lease_state state;
    struct session_stripe *stripe; /* set once; it lives as long as the table */
    struct session *session;
    struct list link; /* in the session's waiters, or on its stack */
    struct lease *lender;
    unsigned depth;
    size_t children;   /* granted and not yet released */
    bool wants_back;   /* session_reclaim() said false */
    struct note *note; /* children_done, on its way */
    struct turn_record **child_records;
    size_t child_record_count;
    struct mail mail;
    struct err refusal;
};

/* `store` may be NULL: then a session lives in memory only. Borrowed. */
struct session_table *session_table_new(struct store *store);
void session_table_free(struct session_table *table); /* no lease may be out */

/* Forget idle sessions, those first that were unused longest, until `bytes` of text have gone
 * or there are no more; returns how many have. What the store has is read again by their next
 * turn. Any thread, also while turns run; no lock of the table may be held. */
size_t session_table_shed(struct session_table *table, size_t bytes);

/* Forget those that the store has and nobody has used for so long. Returns the bytes of text.
 */
size_t session_table_tidy(struct session_table *table, uint64_t unused_ms);

/* The runs that are alive: as old as the table. */
struct directory *session_table_directory(struct session_table *table);

/* The keys of those runs, and where everything else is to be found: may be NULL. */
struct claims *session_table_claims(struct session_table *table);
struct store *session_table_store(struct session_table *table);
/* How many turns of each workspace run. */
struct slots *session_table_slots(struct session_table *table);

/* The id given last to a run: what shares a table of sessions shares this, too. */
_Atomic uint64_t *session_table_last_run(struct session_table *table);

enum session_answer { SESSION_GRANTED, SESSION_WAITS, SESSION_REFUSED };

/* Ask for the session. GRANTED at once; REFUSED at once with `e` set (ERR_ABORTED by policy,
 * ERR_RESOURCE_EXHAUSTED too deep); or WAITS, and then either granted or refused comes later,
 * unless session_withdraw() says true. */
MUST_CHECK enum session_answer session_acquire(struct session_table *table,
                                               const struct session_name *name,
                                               enum session_policy policy, struct lease *lease,
                                               struct err *e);

/* The runs that `lease`, which waits, waits for: who holds the session, and who waited before.
 * At most `max` of them; returns how many. */
size_t session_before(struct lease *lease, uint64_t *ret_runs, size_t max);

/* Stop waiting. False: too late, an answer is on its way and must be awaited. */
MUST_CHECK bool session_withdraw(struct lease *lease);

/* The run waits for a tool; `so_far` (taken) is the lease's history and this turn's messages
 * without the open calls: what a child sees. */
void session_lend(struct lease *lease, struct history *so_far);

/* Take it back. False while children run: children_done comes. */
MUST_CHECK bool session_reclaim(struct lease *lease);

/* Done with the session. `record` (taken) is what it should remember of this turn: it goes to
 * the session's history, or to the lender, and what its children said behind it. NULL: nothing
 * of this turn. children_done does not come any more. */
void session_release(struct lease *lease, struct turn_record *record);

/* The same for a run that had let go of its session, since it waited for a human: `record`
 * (taken) is remembered now. */
void session_remember(struct session_table *table, const struct session_name *name,
                      struct turn_record *record);

/* While the session is held: nothing of it is remembered any more. */
void session_forget(struct lease *lease);

/* --- a run that waits for a human --------------------------------------------------------- */

/* Leave `parked` (borrowed until it is taken or withdrawn) for the session's next message. Who
 * holds the session releases it afterwards. */
void session_park(struct session_table *table, struct parked *parked);

/* A human's answer. */
struct parked_answer {
    struct session_name name; /* user ANY_USER: every session of that id in its workspace */
    enum parking_rule rule;
    uint64_t run, seq; /* 0: whichever the rule finds */
    struct str text;
    parking_check_fn *check; /* NULL: decision_fits() */
    void *check_ctx;
    bool asks_again; /* words that decide nothing are kept for the model */
    /* The caller's idempotency key, or empty, and the rest as struct run_request has it. It
     * belongs to `key_user`. */
    struct str key, key_user, print;
    uint64_t key_mark;
    struct arena *arena; /* for the question that stays open; NULL: nobody needs it */
};

/* What came of it. */
struct parked_answered {
    struct journal *journal;  /* TAKEN: a reference for the caller; journal_run() is whom he
                                 would cancel */
    uint64_t seq;             /* TAKEN: where to read on */
    struct parked_view stays; /* REFUSED, UNDECIDED: what is still asked, in the arena */
};

/* Send a run that waits for a human his answer. PARKING_REFUSED and PARKING_UNDECIDED: `e` says
 * why it is not taken, and the run waits on. PARKING_CLAIMED: look the key up again. */
MUST_CHECK enum parking_found session_settle(struct session_table *table,
                                             const struct parked_answer *answer,
                                             struct parked_answered *ret, struct err *e);

/* Whom it may mean, for wake_start(): borrows the answer's texts. */
struct dormant_filter session_sleepers(const struct parked_answer *answer);

/* The same for the longest parked run, where nothing more is to be known: what is no decision
 * is REFUSED, and kept for the model. */
MUST_CHECK enum parking_found session_answer_parked(struct session_table *table,
                                                    const struct session_name *name,
                                                    struct str text,
                                                    struct journal **ret_journal,
                                                    uint64_t *ret_seq, struct err *e);

/* What waits: parking_list(). */
struct parking *session_table_parking(struct session_table *table);

/* Whether a run of this session waits for a human. */
bool session_is_parked(struct session_table *table, const struct session_name *name);

/* The run goes away. False: it was taken, its answer is on the way. */
bool session_unpark(struct session_table *table, struct parked *parked);

#endif

/* http_turn: a turn that an HTTP request starts, or decides, and reads.
 *
 * What such a request has in common in every contract: it may carry an idempotency key, which is
 * looked up first; its text may be the decision that a run of its session waits for; it reads a
 * run with a stream, as one body or as events; and when its peer leaves, the run is cancelled or
 * goes on. The contract decodes the request, projects the events, and says each refusal in its
 * own form.
 *
 *     http_turn_enter ─▶ its key is free ─▶ kind->begin ─▶ http_turn_settle, http_turn_start
 *             │                                                 │
 *             └▶ its key has a run ─▶ kind->join ─▶ http_turn_attach ──▶ established ─▶ wire
 *
 * Where several replicas share a store, the run that waits may be at another one. Before a run is
 * started, or a question is said not to wait, the others are looked at: the answer is posted, and
 * kind->join reads what came of it; or nothing waits there, and kind->begin is called again.
 *
 * Memory   struct http_turn is the first member of the contract's own struct. http_turn_init()
 *          begins it; it ends with one call of kind->free, after the answer is out or its peer
 *          is gone. Texts of the request lie in `arena`, which goes when it is established.
 * Threads  the loop of its call.
 * Source   checks.md K28, K29; conventions.md b10.
 */
#ifndef WEIR_CONTRACT_HTTP_TURN_H
#define WEIR_CONTRACT_HTTP_TURN_H

#include "route/route.h"
#include "session/elsewhere.h"
#include "session/idempotency_lookup.h"
#include "session/waiting.h"
#include "stream/follow.h"
#include "turn/cancel_run.h"
#include "turn/run.h"

struct http_turn;

/* Settings that these turns share; a contract copies them in when it has new ones. */
struct http_turn_rules {
    enum session_policy busy;        /* what to do with a second turn of a session */
    uint64_t stall_ms, heartbeat_ms; /* as struct stream_options has them */
    uint64_t keys_kept_ms;           /* how long an idempotency key leads to its run */
    struct leaving on_disconnect;    /* default for requests that do not set it */
    bool keyed_outlives; /* a request with a key, and a decision, continue without their caller;
                            a failure without side effects frees the key (K28) */
};

/* One loop's share. */
struct http_turn_site {
    struct run_host *host;
    struct http_turn_rules rules;
    struct list turns; /* the established ones that are still open */
};

void http_turn_site_init(struct http_turn_site *site, struct run_host *host);

/* The deadline of the stop has passed: end every open turn as CAUSE_STOPPING. */
void http_turn_site_cut(struct http_turn_site *site);

struct http_turn_kind {
    /* Start the turn, or settle a decision. With a key: `mark` is for run_request and
     * pending_answer. */
    void (*begin)(struct http_turn *turn, uint64_t mark);
    /* It has started this run, of which nothing was read yet. NULL: it need not know. */
    void (*started)(struct http_turn *turn, uint64_t run);
    /* The key has this run. With `seq`, the same key decided the question `seq` of it. */
    void (*join)(struct http_turn *turn, uint64_t run, uint64_t seq);
    /* The key was used for another request. Answer, then http_turn_end(). */
    void (*refuse_key)(struct http_turn *turn);
    /* Answer a failure that came before the turn was established. */
    void (*refuse)(struct http_turn *turn, const struct err *why);
    /* http_turn_done(), and free what is the contract's. */
    void (*free)(struct http_turn *turn);
};

struct http_turn {
    const struct http_turn_kind *kind;
    struct http_turn_site *site;
    struct route_call *call;
    struct stream *stream;
    const struct stream_wire *wire;
    enum close_mode mode;  /* SINGLE: one body; else events */
    bool gone;             /* the peer has left; nothing more is sent */
    bool says_leaving;     /* `leaving` comes from the request, not the settings */
    struct list link;      /* in site->turns */
    struct follow *follow; /* reads a run that an earlier request started or answered */
    struct run *run;       /* started by this call; NULL: it reads a run that another started */
    uint64_t run_id;       /* of the run that it reads, or 0 */
    uint64_t resumed;      /* the id of a run that this call's decision resumed, or 0 */
    struct leaving leaving;
    /* Its words may be what a run of its session waits for at another replica. Set by the contract,
     * for a session that its caller names; a question that is named is looked for in any case. */
    bool words_decide;
    bool looked_elsewhere; /* or need not */
    /* Valid until it is established. Of the key, the length stays valid. */
    struct arena *arena;
    struct str workspace, user;  /* of the key */
    struct trace_context *trace; /* of the request; NULL: it has none */
    struct str key, print;
    /* Pending. */
    struct idempotency_lookup *lookup;
    struct dormant_wake *wake;
    struct elsewhere *elsewhere;
    struct cancel_run *cancel;
    uint64_t mark; /* of its key, meanwhile */
};

/* `mode` and `wire` can be set until a run is read. */
void http_turn_init(struct http_turn *turn, const struct http_turn_kind *kind,
                    struct http_turn_site *site, struct route_call *call, enum close_mode mode,
                    const struct stream_wire *wire);
void http_turn_done(struct http_turn *turn);

struct session_table *http_turn_sessions(const struct http_turn *turn);

/* --- the request -------------------------------------------------------------------------- */

/* Copy lent text to the arena. Lent text ends when a call starts to wait. Absent text stays
 * absent (at == NULL).
 * errors  the arena's limit */
MUST_CHECK bool http_turn_keep(struct http_turn *turn, struct lent lent, struct str *ret,
                               struct err *e);

/* Read what every such request may say in its headers: X-Weir-On-Disconnect, and X-Idempotency-Key
 * or Idempotency-Key.
 * errors  ERR_MALFORMED; the arena's limit */
MUST_CHECK bool http_turn_read_headers(struct http_turn *turn, struct err *e);

/* The request is read: look its key up if it has one, then begin or join. */
void http_turn_enter(struct http_turn *turn);

/* --- beginning ---------------------------------------------------------------------------- */

/* Start a run and read it. `asked` needs no key, print or policy. Another request that took the key
 * meanwhile is joined. A failure is refused. */
void http_turn_start(struct http_turn *turn, struct run_request *asked, uint64_t mark);

/* Give an answer to the run that waits for it; its key, user and print are the turn's. True: the
 * turn goes on by itself, so do not touch it any more. False: *ret_found says why not. NONE: no run
 * waits; REFUSED, UNDECIDED: ret->stays is still asked, and `e` says why; SEVERAL. */
MUST_CHECK bool http_turn_settle(struct http_turn *turn, struct pending_answer *answer,
                                 uint64_t mark, enum pending_found *ret_found,
                                 struct pending_answered *ret, struct err *e);

/* For the `check` of an answer whose words must settle the question; ctx is a struct http_turn_words. */
struct http_turn_words {
    struct str text;
    struct err *e; /* says why they do not */
};
enum pending_found http_turn_check_words(const struct pending_question *asked, void *ctx);

/* Read a run that another request started or resumed, from the first event after `after_seq`. */
void http_turn_attach(struct http_turn *turn, uint64_t run, uint64_t after_seq);

/* Refuse it: the store has the start of the run that it was to read, or a key that leads to it, but
 * no more. `failed` says why the store could not answer, or is NULL. */
void http_turn_miss(struct http_turn *turn, const struct err *failed);

/* Continue reading the journal (a reference, taken) of a run whose question this call answered. */
void http_turn_read_on(struct http_turn *turn, struct journal *journal, uint64_t after_seq);

/* Put the run's id into the head of the answer. */
void http_turn_name_run(struct http_turn *turn, uint64_t run);

/* Watch for the peer leaving while something else is waited for. */
void http_turn_watch(struct http_turn *turn);

/* --- ending ------------------------------------------------------------------------------- */

/* Answered before it was established: drop it. */
void http_turn_end(struct http_turn *turn);

/* Refuse it as kind->refuse does, and drop it. */
void http_turn_give_up(struct http_turn *turn, const struct err *why);

/* The stream ended early; the cause decides what happens to the run. A run that an earlier
 * request started is not changed. */
void http_turn_leave_run(struct http_turn *turn, enum close_cause cause);

/* The same for a wire of events, when it ends in any way. False: its reader is gone, or is cut off now;
 * nothing more can be sent. */
MUST_CHECK bool http_turn_may_end(struct http_turn *turn, struct close_ending ending,
                                  enum close_cause cause);

/* --- for a wire: its ctx is the turn ------------------------------------------------------ */

void http_turn_gather(void *ctx); /* of an event stream, as the next */
void http_turn_leave_now(void *ctx);
size_t http_turn_queued(void *ctx);
void http_turn_wake_at(size_t low, void *ctx);
uint64_t http_turn_stalled_ms(void *ctx);
void http_turn_heartbeat(void *ctx); /* a comment of the event stream */

#endif

/* run: one turn, from the caller's words to the last event.
 *
 *     queued ─▶ asking ⇄ working ─▶ ...            asking: a model answers
 *                  │        └─▶ waiting ─▶ working   working: tools, transfers
 *                  ▼                                 waiting: for a human
 *         done | failed | cancelled
 *
 * A run waits for its session, asks the agent's provider, streams what comes into its
 * journal, runs the tools it is asked for, follows a transfer to another agent, and asks
 * again, until a reply asks for nothing more. A tool call is on disk before it is made and a
 * turn is done when its last event is on disk.
 *
 * Memory   reference-counted on its loop; a run that has not ended holds itself.
 * Threads  belongs to the loop of its host. Its journal may be read from any loop.
 * Source   design.md "The run"; contracts/crawbl.md 2.3, 2.6; checks.md K11, K26.
 */
#ifndef WEIR_RUN_RUN_H
#define WEIR_RUN_RUN_H

#include "conversation/conversation.h"
#include "journal/journal.h"
#include "run/engine.h"
#include "run/leaving.h"

struct run;

enum run_state {
    RUN_QUEUED,
    RUN_ASKING,
    RUN_WORKING,
    RUN_WAITING,
    RUN_DONE,
    RUN_FAILED,
    RUN_CANCELLED,
    RUN_STATE_COUNT,
};

/* What a conversation that the caller brings is to the session. */
enum brought_policy {
    BROUGHT_MERGE,  /* only what is new in it counts; without a common part, all of it */
    BROUGHT_WHOLE,  /* it is the whole conversation: the session's history is not shown */
    BROUGHT_STRICT, /* only what is new in it counts; ERR_ABORTED where it leaves the history */
};

/* Copied; the caller keeps its own. */
struct run_request {
    struct engine *engine; /* a reference is taken; NULL: the host's */
    struct session_name name;
    struct str agent; /* slug, or empty: the Manager */
    struct str text;  /* what the caller says */
    /* Where the caller brings a conversation: all of it, the last one being what `text` says;
     * NULL: only `text`. */
    const struct message *messages;
    size_t message_count;
    enum brought_policy brought;
    struct str schema;   /* JSON Schema that the final answer must follow, in place of the
                            agent's own; or empty */
    struct str system;   /* overrides the agent's instructions for this turn, not stored */
    struct str contract; /* which wire it came in by */
    enum session_policy policy;
    bool sticky;       /* who spoke last in the session takes the turn, if it is still there */
    struct str key;    /* the caller's idempotency key, at most CLAIM_KEY_MAX_BYTES; or empty */
    struct str print;  /* with it: the request's fingerprint, at most CLAIM_PRINT_BYTES */
    uint64_t key_mark; /* with it: from claims_look(), before the store was asked */
};

/* Start a turn. The answer has one reference for the caller; its journal can be read at once,
 * and the first event comes when the session is ours.
 * errors  ERR_ALREADY_EXISTS the key was taken since it was looked at: look again;
 *         ERR_NOT_FOUND no such agent; ERR_INVALID_ARGUMENT, ERR_ABORTED,
 *         ERR_RESOURCE_EXHAUSTED as session_acquire() */
MUST_CHECK bool run_start(struct run_host *host, const struct run_request *request,
                          struct run **ret, struct err *e);

struct run *run_ref(struct run *run);
void run_unref(struct run *run); /* NULL is fine */

uint64_t run_id(const struct run *run);

enum run_state run_state(const struct run *run);
struct journal *run_journal(const struct run *run);

/* Stop it as soon as possible; `why` is a sentence. Harmless once it has begun to end. */
void run_cancel(struct run *run, struct str why);

/* The caller goes away: do with the run as `leaving` says; `why` is for a run that is cancelled
 * by it, which gives its key back. Once it was detached, that it waits for a human or is read
 * by somebody keeps it. */
void run_leave(struct run *run, struct leaving leaving, struct str why);

/* Cancel every run of a host. One that waits for a human and is stored is left as it is: the
 * next process takes it up. */
void run_host_cancel(struct run_host *host, struct str why);

struct str run_state_name(enum run_state state);
bool run_may_become(enum run_state state, enum run_state next);

#endif

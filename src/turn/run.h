/* run: one turn, from the caller's message to the last event.
 *
 *     queued ─▶ asking ⇄ working ─▶ ...            asking: a model answers
 *                  │        └─▶ waiting ─▶ working   working: tools, transfers
 *                  ▼                                 waiting: for a human
 *         done | failed | cancelled
 *
 * A run waits for its session, asks the agent's provider, streams the reply into its journal,
 * makes the tool calls that the reply requests, follows a transfer to another agent, and asks
 * again, until a reply requests nothing more. A tool call is on disk before it is made, and a
 * turn is done when its last event is on disk.
 *
 * Memory   reference-counted on its loop; a run that has not ended holds itself.
 * Threads  belongs to the loop of its host. Its journal may be read from any loop.
 * Source   design.md "The run"; contracts/crawbl.md 2.3, 2.6; checks.md K11, K26.
 */
#ifndef WEIR_TURN_RUN_H
#define WEIR_TURN_RUN_H

#include "conversation/conversation.h"
#include "journal/journal.h"
#include "record/run_state.h"
#include "session/leaving.h"
#include "session/session.h"
#include "turn/host.h"
#include "wire/trace_context.h"

struct run;

/* How a conversation sent by the caller relates to the session's history. */
enum brought_policy {
    BROUGHT_MERGE,  /* use only what is new in it; without a common part, all of it */
    BROUGHT_WHOLE,  /* it is the whole conversation: the session's history is not used */
    BROUGHT_STRICT, /* the same, but ERR_ABORTED where it contradicts the history */
};

/* Copied; the caller keeps its own. */
struct run_request {
    struct engine *engine; /* a reference is taken; NULL: the host's */
    struct session_name name;
    struct str agent; /* slug, or empty: the Manager */
    struct str text;  /* what the caller says */
    /* The whole conversation, where the caller sends one; its last message is `text`. NULL:
     * only `text`. */
    const struct message *messages;
    size_t message_count;
    enum brought_policy brought;
    struct str schema; /* JSON Schema that the final answer must match, instead of the agent's
                            own; or empty */
    bool schema_loose; /* as struct provider_request has it */
    /* Tools of the caller's own (caller_tools.h): a call of one ends the turn, and the caller brings
     * the result with its next one. */
    const struct tool_offer *tools;
    size_t tool_count;
    /* The contract carries arguments as text, also such as are no JSON object. */
    bool args_as_text;
    /* As struct provider_request has it: empty, TOOL_CHOICE_REQUIRED, or the name of one of
     * them. */
    struct str tool_choice;
    /* Of the caller's: they narrow the agent's own in each reply of the turn; NULL: none. */
    const struct model_options *options;
    struct str system;   /* overrides the agent's instructions for this turn, not stored */
    struct str extras;   /* a JSON object for agents that are programs or servers, with the
                            members input (unless it was a text), config and metadata as the
                            caller sent them; or empty */
    struct str contract; /* the contract it came in by */
    const struct trace_context *trace; /* of the caller; NULL: it has none */
    /* The newest run of the session that the caller takes for its past: if another one began since and
     * ends well first, the turn fails as SUPERSEDED. 0: any past will do. */
    uint64_t newest_known;
    enum session_policy policy;
    bool promised;  /* the caller gets its id at once: it is recorded even if it never begins */
    bool sticky;    /* the session's last speaker takes the turn, if it still exists */
    struct str key; /* the caller's idempotency key, at most CLAIM_KEY_MAX_BYTES; or empty */
    struct str print;  /* with it: the request's fingerprint, at most CLAIM_PRINT_BYTES */
    uint64_t key_mark; /* with it: from idempotency_claims_look(), before the store was asked */
};

#define RUN_SUPERSEDED "SUPERSEDED" /* a reason of failure: see newest_known */

/* Start a turn. The result has one reference for the caller. Its journal can be read at once;
 * the first event comes when the run has its session.
 * errors  ERR_ALREADY_EXISTS the key was taken since the look-up: look again; ERR_NOT_FOUND no
 *         such agent; ERR_INVALID_ARGUMENT a schema or a tool of the caller's is wrong;
 *         ERR_INVALID_ARGUMENT, ERR_ABORTED, ERR_RESOURCE_EXHAUSTED as
 *         session_acquire(); ERR_RESOURCE_EXHAUSTED with retry_after_ms: the agent's rate */
MUST_CHECK bool run_start(struct run_host *host, const struct run_request *request,
                          struct run **ret, struct err *e);

struct run *run_ref(struct run *run);
void run_unref(struct run *run); /* NULL is fine */

uint64_t run_id(const struct run *run);

enum run_state run_state(const struct run *run);
struct journal *run_journal(const struct run *run);

/* Stop it as soon as possible; `why` is a sentence. Harmless once it has begun to end. */
void run_cancel(struct run *run, struct str why);

/* The caller goes away: treat the run as `leaving` says. `why` is for a run that this cancels;
 * it gives its key back. A detached run is kept while it waits for a human or has a reader. */
void run_leave(struct run *run, struct leaving leaving, struct str why);

/* Cancel every run of a host. A stored run that waits for a human is left as it is: the next
 * process takes it up. */
void run_host_cancel(struct run_host *host, struct str why);

#endif

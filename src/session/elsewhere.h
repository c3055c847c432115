/* elsewhere: an answer to a session's run that waits for a human at another replica.
 *
 *     a run is named ───────────────┐
 *     whose is the session? ─▶ ours, or no one's: NONE
 *              │ another's
 *              ▼
 *     does its newest run wait? ─▶ no: NONE
 *              │ yes
 *              ▼
 *     the answer is posted ─▶ REFUSED, or the log goes on: DECIDED
 *
 * For callers that name a session: first try session_settle(), which knows the runs that wait
 * here. Where no other replica has the session this costs one short question to the store.
 *
 * Memory   opaque; elsewhere_cancel() at any time before on_end, which ends it as well.
 * Threads  the loop that asks.
 */
#ifndef WEIR_SESSION_ELSEWHERE_H
#define WEIR_SESSION_ELSEWHERE_H

#include "session/session_table.h"
#include "session/waiting.h"

struct elsewhere;

enum elsewhere_found {
    ELSEWHERE_NONE,    /* no run of the session waits at another replica */
    ELSEWHERE_DECIDED, /* `run` goes on after its event `seq`, perhaps by another answer */
    ELSEWHERE_REFUSED, /* the run waits, and `why` says why the answer was not given to it */
    ELSEWHERE_FAILED,  /* the store cannot say: `why` */
};

struct elsewhere_result {
    enum elsewhere_found found;
    uint64_t run, seq;
};

typedef void elsewhere_fn(const struct elsewhere_result *result, const struct err *why,
                          void *ctx);

struct elsewhere_options {
    struct loop *loop;
    struct session_table *sessions;
    struct session_name name; /* copied, as all texts; one user's */
    uint64_t run, seq; /* the question that the answer is for, of this session; 0: its newest */
    struct str text, key, key_user, print;
    /* The text must decide the question, also one that any words would answer; these decide,
     * besides the built-in ones. NULL: it need not. */
    const struct yes_no_words *decides;
    /* Words that decide nothing are kept for the model, as struct pending_answer has it. */
    bool asks_again;
    elsewhere_fn *on_end; /* once, later */
    void *ctx;
};

/* NULL: the store is not shared, or the run that is named is alive here; no answer comes. */
struct elsewhere *elsewhere_start(const struct elsewhere_options *options);
void elsewhere_cancel(struct elsewhere *elsewhere); /* NULL is fine */

#endif

/* keyed: what a request's idempotency key stands for. Private to this contract.
 *
 * A run that is alive tells its key itself, one that is over has it in the store. A run that
 * was cancelled because its caller left has none: he may ask for the same again.
 *
 * Memory   opaque; keyed_cancel() at any time before the answer, which ends it as well.
 * Threads  the loop that looks.
 * Source   contracts/agentbreeder.md 1.2: X-Idempotency-Key, and Idempotency-Key as upstream's
 *          proxy says it.
 */
#ifndef WEIR_CONTRACT_AGENTBREEDER_KEYED_H
#define WEIR_CONTRACT_AGENTBREEDER_KEYED_H

#include "route/route.h"
#include "run/claims.h"
#include "run/session.h"

struct keyed;

/* The key of a request, or empty.
 * errors  ERR_MALFORMED it is too long, empty, not printable, or there are two */
MUST_CHECK bool keyed_take(struct route_call *call, struct str *ret, struct err *e);

enum keyed_answer {
    KEYED_FREE,   /* `mark` is for run_start() */
    KEYED_RUN,    /* the same was asked before: `run` */
    KEYED_OTHER,  /* something else was: `run` */
    KEYED_FAILED, /* the store cannot say */
};

struct keyed_result {
    enum keyed_answer answer;
    uint64_t run, mark;
};

typedef void keyed_fn(const struct keyed_result *result, const struct err *failed, void *ctx);

struct keyed_options {
    struct loop *loop;
    struct session_table *sessions;
    struct claim_name name; /* copied */
    struct str print;       /* copied */
    uint64_t kept_ms;       /* how long a key stands for its run once that is over */
    keyed_fn *on_answer;    /* once, later */
    void *ctx;
};

struct keyed *keyed_look(const struct keyed_options *options);
void keyed_cancel(struct keyed *keyed); /* no answer comes; NULL is fine */

#endif

/* keyed: what a request's idempotency key stands for.
 *
 * A run that is alive tells its key itself, one that is over has it in the store. A run that
 * was cancelled because its caller left has none: he may ask for the same again. So has, where
 * `failures_free` says so, one that failed. Not so where a call that does harm when it is made
 * twice had left: then its end is the answer.
 *
 * Memory   opaque; keyed_cancel() at any time before the answer, which ends it as well.
 * Threads  the loop that looks.
 * Source   contracts/agentbreeder.md 1.2; contracts/nimi.md section 9 number 26; checks.md K28.
 */
#ifndef WEIR_RUN_KEYED_H
#define WEIR_RUN_KEYED_H

#include "run/claims.h"
#include "run/session.h"

struct keyed;

enum keyed_answer {
    KEYED_FREE,   /* `mark` is for run_start(), run_job_start() */
    KEYED_RUN,    /* the same was asked before: `run` */
    KEYED_OTHER,  /* something else was: `run` */
    KEYED_FAILED, /* the store cannot say */
};

struct keyed_result {
    enum keyed_answer answer;
    uint64_t run, mark;
    uint64_t seq; /* the run's answer to a human's decision: read on after it; 0: all of it */
};

typedef void keyed_fn(const struct keyed_result *result, const struct err *failed, void *ctx);

struct keyed_options {
    struct loop *loop;
    struct session_table *sessions;
    struct claim_name name; /* copied */
    struct str print;       /* copied */
    uint64_t kept_ms;       /* how long a key stands for its run once that is over */
    bool failures_free;     /* a run that failed gives its key back, too */
    keyed_fn *on_answer;    /* once, later */
    void *ctx;
};

struct keyed *keyed_look(const struct keyed_options *options);
void keyed_cancel(struct keyed *keyed); /* no answer comes; NULL is fine */

#endif

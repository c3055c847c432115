/* idempotency_lookup: what a request's idempotency key stands for.
 *
 * The key of a live run is in idempotency_claims.h, that of a finished run in the store. A run
 * that was cancelled because its caller left gives its key up, so that the caller may ask
 * again. With `failures_free` so does a run that failed. Neither holds after a call that must
 * not be made twice: then the run's end is the answer.
 *
 * Memory   opaque; idempotency_lookup_cancel() at any time before the answer, which ends it as
 *          well.
 * Threads  the loop that looks.
 * Source   contracts/agentbreeder.md 1.2; contracts/nimi.md section 9 number 26; checks.md K28.
 */
#ifndef WEIR_SESSION_IDEMPOTENCY_LOOKUP_H
#define WEIR_SESSION_IDEMPOTENCY_LOOKUP_H

#include "session/idempotency_claims.h"
#include "session/session.h"

struct idempotency_lookup;

enum idempotency_answer {
    IDEMPOTENCY_FREE,   /* `mark` is for run_start(), run_job_start() */
    IDEMPOTENCY_RUN,    /* the same request was made before: `run` */
    IDEMPOTENCY_OTHER,  /* the key was used for another request: `run` */
    IDEMPOTENCY_FAILED, /* the store cannot say */
};

struct idempotency_lookup_result {
    enum idempotency_answer answer;
    uint64_t run, mark;
    uint64_t seq; /* of the approval that the keyed answer decided: read on after it; 0: read
                     the whole run */
};

typedef void idempotency_lookup_fn(const struct idempotency_lookup_result *result,
                                   const struct err *failed, void *ctx);

struct idempotency_lookup_options {
    struct loop *loop;
    struct session_table *sessions;
    struct claim_name name;           /* copied */
    struct str print;                 /* copied */
    uint64_t kept_ms;                 /* how long a key stands for a finished run */
    bool failures_free;               /* a run that failed gives its key up, too */
    idempotency_lookup_fn *on_answer; /* once, later */
    void *ctx;
};

struct idempotency_lookup *
idempotency_lookup_start(const struct idempotency_lookup_options *options);
void idempotency_lookup_cancel(
    struct idempotency_lookup *lookup); /* no answer comes; NULL is fine */

#endif

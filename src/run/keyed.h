/* keyed: what a request's idempotency key stands for.
 *
 * The key of a live run is in claims.h, that of a finished run in the store. A run that was
 * cancelled because its caller left gives its key up, so that the caller may ask again. With
 * `failures_free` so does a run that failed. Neither holds after a call that must not be made
 * twice: then the run's end is the answer.
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
    KEYED_RUN,    /* the same request was made before: `run` */
    KEYED_OTHER,  /* the key was used for another request: `run` */
    KEYED_FAILED, /* the store cannot say */
};

struct keyed_result {
    enum keyed_answer answer;
    uint64_t run, mark;
    uint64_t seq; /* of the approval that the keyed answer decided: read on after it; 0: read
                     the whole run */
};

typedef void keyed_fn(const struct keyed_result *result, const struct err *failed, void *ctx);

struct keyed_options {
    struct loop *loop;
    struct session_table *sessions;
    struct claim_name name; /* copied */
    struct str print;       /* copied */
    uint64_t kept_ms;       /* how long a key stands for a finished run */
    bool failures_free;     /* a run that failed gives its key up, too */
    keyed_fn *on_answer;    /* once, later */
    void *ctx;
};

struct keyed *keyed_look(const struct keyed_options *options);
void keyed_cancel(struct keyed *keyed); /* no answer comes; NULL is fine */

#endif

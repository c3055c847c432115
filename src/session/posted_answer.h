/* posted_answer: a human's answer to a run that another replica has.
 *
 *     post ─▶ the replica that has the run gives it to the run ─▶ the log goes on: decided
 *        │     └─▶ it does not fit: refused
 *        └─▶ nobody takes it: refused after a while (session_table_wait_ms())
 *
 * The log is the proof, which may be that of another answer: whoever posts one reads the run then.
 * When the replica that has the run dies, the next one gives the answer.
 *
 * Memory   opaque; posted_answer_cancel() at any time before on_end, which ends it as well.
 * Threads  the loop that posts.
 */
#ifndef WEIR_SESSION_POSTED_ANSWER_H
#define WEIR_SESSION_POSTED_ANSWER_H

#include "session/session_table.h"
#include "store/posted.h"

struct posted_answer;

struct posted_answer_options {
    struct loop *loop;
    struct session_table *sessions;
    struct posted_words words; /* copied */
    /* Once, later, and the last of it: something has followed the question (NULL), or why that
     * will not be.
     * errors  ERR_INVALID_ARGUMENT it does not fit the question; ERR_UNAVAILABLE */
    void (*on_end)(const struct err *refused, void *ctx);
    void *ctx;
};

/* Only where the store is shared. */
struct posted_answer *posted_answer_start(const struct posted_answer_options *options);

/* Nobody waits for it any more: no callback follows. NULL is fine. */
void posted_answer_cancel(struct posted_answer *posted);

#endif

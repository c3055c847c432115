/* posted_answer: a human's answer to a run that another replica has.
 *
 *     post ─▶ the replica that has the run gives it to the run ─▶ its decision is in the log
 *        │     └─▶ it does not fit: refused
 *        └─▶ nobody takes it: refused after a while (session_table_wait_ms())
 *
 * The log is the proof: whoever posts an answer reads the run until it sees a decision, which may
 * be another one's. When the replica that has the run dies, the next one gives the answer.
 *
 * Memory   opaque; posted_answer_end() at any time.
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
    /* Once, later, unless it was ended: why no decision will come of it.
     * errors  ERR_INVALID_ARGUMENT it does not fit the question; ERR_UNAVAILABLE */
    void (*on_refused)(const struct err *why, void *ctx);
    void *ctx;
};

/* Only where the store is shared. */
struct posted_answer *posted_answer_start(const struct posted_answer_options *options);

/* Its decision was seen, or nobody waits for it any more. NULL is fine. */
void posted_answer_end(struct posted_answer *posted);

#endif

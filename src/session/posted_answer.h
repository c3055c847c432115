/* posted_answer: a human's answer to a run that another replica has.
 *
 *     post ─▶ the replica that has the run takes it ─▶ and gives it to the run: decided
 *        │                                      └─▶ it does not fit: refused
 *        └─▶ not taken after a while (session_table_wait_ms()): withdrawn, and refused
 *
 * The log is the proof, which may be that of another answer: the poster of one reads the run
 * then. When the replica that has the run dies, the next one takes the answer. One that was
 * withdrawn is never given: taking and withdrawing compete (store/posted.h), and an answer
 * that was taken is waited for. Its idempotency key stays this replica's until the end.
 *
 * Memory   opaque; posted_answer_cancel() at any time before on_end, which ends it as well.
 * Threads  the loop that posts.
 */
#ifndef WEIR_SESSION_POSTED_ANSWER_H
#define WEIR_SESSION_POSTED_ANSWER_H

#include "base/states.h"
#include "session/session_table.h"
#include "store/posted.h"

struct posted_answer;

enum posted_answer_state {
    POSTED_SENDING,
    POSTED_LOOKING,     /* at the row: was it refused? */
    POSTED_READING,     /* the log: has something followed the question? */
    POSTED_WAITING,     /* for a change */
    POSTED_WITHDRAWING, /* it is late */
    POSTED_OVER,
    POSTED_STATE_COUNT
};

extern const struct state posted_answer_states[POSTED_STATE_COUNT];

struct posted_answer_options {
    struct loop *loop;
    struct session_table *sessions;
    struct str workspace;      /* copied; of the key */
    struct posted_words words; /* copied */
    bool asks_again;           /* as struct pending_answer has it; with a key always so */
    /* Once, later, and the last of it: something has followed the question (NULL), or why that
     * will not be.
     * errors  ERR_INVALID_ARGUMENT it does not fit the question; ERR_FAILED_PRECONDITION it
     *         decides nothing; ERR_ALREADY_EXISTS another request has its key: look that up
     *         again; ERR_UNAVAILABLE it was not taken, and will not be */
    void (*on_end)(const struct err *refused, void *ctx);
    void *ctx;
};

/* Only where the store is shared. */
struct posted_answer *posted_answer_start(const struct posted_answer_options *options);

/* The caller does not wait any more: no callback follows. NULL is fine. */
void posted_answer_cancel(struct posted_answer *posted);

#endif

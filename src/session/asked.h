/* asked: find the last question a conversation asked its human, in memory or in the store.
 *
 * A caller that never learned what came of its answer may send it again, naming only the
 * thread. The question meant is the last one of the thread's newest run, which may be alive,
 * over, or of an earlier process. First try session_settle(): this look-up is for threads where
 * no run waits any more.
 *
 * Where the caller names a run, that one alone is read, if it is of the thread.
 *
 *     live runs of the thread ┐
 *     the store's             ┴▶ the newest run ─▶ its events ─▶ the last EVENT_APPROVAL
 *
 * Memory   opaque; asked_cancel() at any time before the answer, which ends it as well.
 * Threads  the loop that looks.
 * Source   checks.md K28.
 */
#ifndef WEIR_SESSION_ASKED_H
#define WEIR_SESSION_ASKED_H

#include "session/session.h"
#include "session/waiting.h"

struct asked;

enum asked_answer {
    ASKED_UNKNOWN,  /* no such thread, or the run that was named is not of it */
    ASKED_NOTHING,  /* the newest run of the thread, or the named one, asked nothing */
    ASKED_QUESTION, /* `run` and `seq`, the approval's */
    ASKED_SEVERAL,  /* several users have a thread of that name */
    ASKED_FAILED,   /* the store cannot say */
};

struct asked_result {
    enum asked_answer answer;
    uint64_t run, seq;
    bool waits;            /* nothing has followed the question */
    enum event_kind ended; /* how the run ended; 0: it has not */
};

typedef void asked_fn(const struct asked_result *result, const struct err *failed, void *ctx);

struct asked_options {
    struct loop *loop;
    struct session_table *sessions;
    struct session_name name; /* copied; user ANY_USER: a thread of any user. The store then
                                 looks only among its newest THREADS_LOOK_MAX */
    uint64_t run;             /* this one, of the thread; 0: its newest */
    asked_fn *on_answer;      /* once, later */
    void *ctx;
};

struct asked *asked_look(const struct asked_options *options);
void asked_cancel(struct asked *asked); /* no answer comes; NULL is fine */

#endif

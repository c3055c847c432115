/* sessions: list the conversations in the store and their runs, and erase one.
 *
 *     list   the newest sessions first, a page at a time
 *     runs   the ids of one session's runs, oldest first
 *     erase  the session, its runs, their events and their artifacts are gone
 *
 * A page looks at SESSIONS_LOOK_MAX sessions at most, whatever the filter. It may hold fewer
 * than were asked for, or none, and still have a next page. So no request keeps the store from
 * its writes for long, and no index has to be written with every turn.
 *
 * Erasing is one transaction. Log rows that hold nothing else are deleted, except the newest
 * row, which is emptied: row ids never go back. Rows that several runs share are rewritten
 * without the session. Its usage stays counted: sums hold no text. Then the files are purged
 * (task.h): SQLite overwrites what it frees, and the write-ahead log is folded in and
 * truncated, also after a crash in between.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 * Source   checks.md I7, T8; SQLite "PRAGMA secure_delete".
 */
#ifndef WEIR_STORE_SESSIONS_H
#define WEIR_STORE_SESSIONS_H

#include "store/store.h"

#define SESSIONS_LIST_MAX 1000
#define SESSIONS_LOOK_MAX 5000

struct stored_session {
    int64_t id; /* newer sessions have higher ids */
    struct str workspace, user, session;
    uint64_t newest_run;
    int64_t state;                /* of newest_run: 0 while it is open, else enum event_kind */
    int64_t started_ms, ended_ms; /* of newest_run, Unix time; 0: unknown, or not yet */
};

struct sessions_filter {
    struct str workspace, user; /* at == NULL: any */
    int64_t before;             /* sessions with a lower id; 0: from the newest on */
    size_t limit;               /* 1 to SESSIONS_LIST_MAX */
};

struct sessions_answer {
    const struct stored_session *sessions; /* of a list */
    size_t count;
    int64_t next;         /* `before` of the next page; 0: there is none */
    const uint64_t *runs; /* of runs */
    size_t run_count;     /* also of an erasure: how many were erased */
};

/* Called once, on `loop`, never before the start function returns. failed is NULL on success:
 * ERR_NOT_FOUND            there is no such session (runs, erase)
 * ERR_FAILED_PRECONDITION  a run of it is not over (erase)
 * ERR_UNAVAILABLE          a full disk; nothing changed */
typedef void sessions_done_fn(const struct sessions_answer *answer, const struct err *failed,
                              void *ctx);

struct sessions_ask; /* a request on its way; freed after `done` was called */

struct sessions_ask *sessions_list_start(struct store *store, struct loop *loop,
                                         const struct sessions_filter *filter,
                                         sessions_done_fn *done, void *ctx);
struct sessions_ask *sessions_runs_start(struct store *store, struct loop *loop,
                                         struct str workspace, struct str user,
                                         struct str session, sessions_done_fn *done, void *ctx);
/* The caller must prevent new turns in the session meanwhile. */
struct sessions_ask *sessions_erase_start(struct store *store, struct loop *loop,
                                          struct str workspace, struct str user,
                                          struct str session, sessions_done_fn *done,
                                          void *ctx);

/* Stop waiting: `done` will not be called. The request is still carried out. NULL is fine. */
void sessions_forget(struct sessions_ask *ask);

#endif

/* sessions: the sessions of the clients of a tool server, and the calls that are open in each.
 *
 * One table for all loops: a client's next request may come on another connection, and so may
 * the wish to cancel one. A session belongs to the caller that opened it. One that was not used
 * for a while is forgotten, the longest unused first when there are too many; its client begins a
 * new one, because each call says all that it needs.
 *
 *     opened ─▶ used ... ─▶ closed by DELETE, or forgotten
 *                 └─ calls: entered ─▶ left            cancelled: a mail to the loop of the call
 *
 * Memory   opaque; an entry of a call lives inside its call.
 * Threads  any; a lock inside. A call enters and leaves on its own loop, and is cancelled there.
 * Source   Model Context Protocol 2025-11-25, "Session Management" and "Cancellation".
 */
#ifndef WEIR_TOOLSERVER_SESSIONS_H
#define WEIR_TOOLSERVER_SESSIONS_H

#include "base/err.h"
#include "base/list.h"
#include "loop/loop.h"

struct toolserver_sessions;

#define TOOLSERVER_SESSION_BYTES 33 /* 32 hexadecimal digits and NUL */

/* Who opened a session. */
struct toolserver_owner {
    struct str workspace, user;
};

/* 32 random hexadecimal digits and NUL.
 * errors  ERR_UNAVAILABLE the kernel gave no random bytes */
MUST_CHECK bool toolserver_random_id(char ret_id[TOOLSERVER_SESSION_BYTES], struct err *e);

/* max      sessions at once
 * idle_ms  how long an unused one is kept */
struct toolserver_sessions *toolserver_sessions_new(size_t max, uint64_t idle_ms);
void toolserver_sessions_free(struct toolserver_sessions *sessions); /* NULL is fine */

/* Open a session for a client that speaks `version`, a constant.
 * errors  ERR_RESOURCE_EXHAUSTED every session has open calls; ERR_UNAVAILABLE the kernel gave no
 *         random bytes */
MUST_CHECK bool toolserver_sessions_open(struct toolserver_sessions *sessions,
                                         const struct toolserver_owner *owner,
                                         const char *version, uint64_t now_ms,
                                         char ret_id[TOOLSERVER_SESSION_BYTES], struct err *e);

/* Use it. False: there is no such session of this owner. *ret_version is the constant. */
MUST_CHECK bool toolserver_sessions_use(struct toolserver_sessions *sessions, struct str id,
                                        const struct toolserver_owner *owner, uint64_t now_ms,
                                        const char **ret_version);

/* Close it and cancel its calls. False: as above. */
MUST_CHECK bool toolserver_sessions_close(struct toolserver_sessions *sessions, struct str id,
                                          const struct toolserver_owner *owner);

size_t toolserver_sessions_count(struct toolserver_sessions *sessions);

/* --- calls -------------------------------------------------------------------------------- */

struct toolserver_wish;

/* An open call in a session. All zero: in none. */
struct toolserver_entry {
    struct list link;
    bool entered;
    struct toolserver_wish *wish; /* to cancel it, on its way; or NULL */
    struct str request;
    struct loop *loop;
    task_fn *cancel; /* on `loop`, at most once */
    void *ctx;
};

/* The call of the request with this id (JSON, borrowed until it leaves) is open. The caller has
 * set loop, cancel and ctx. Harmless when the session is gone. */
void toolserver_sessions_enter(struct toolserver_sessions *sessions, struct str id,
                               struct str request, struct toolserver_entry *entry);
void toolserver_sessions_leave(
    struct toolserver_sessions *sessions,
    struct toolserver_entry *entry); /* harmless when it is in none */

/* Cancel the call of this request, if it is open: cancel(ctx) runs later, unless the call has
 * left by then. */
void toolserver_sessions_cancel(struct toolserver_sessions *sessions, struct str id,
                                struct str request);

#endif

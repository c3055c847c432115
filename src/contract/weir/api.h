/* api: our own routes, under /weir/v1/: the runs of this daemon, whatever wire they came by,
 * what waits for a human, what its model calls came to, and what its agents remember.
 *
 *     GET /weir/v1/runs?session_id=S         the runs of a session, newest last;
 *                                            of those that are over what fits 4 MiB
 *     GET /weir/v1/runs/{id}                 one run
 *     GET /weir/v1/runs/{id}/events          its events, as server-sent events
 *     POST /weir/v1/runs/{id}/cancel         end it: 202 and the run, 409 when it has ended
 *
 *     GET  /weir/v1/approvals?workspace=&user=&session_id=&limit=   what waits for a human
 *     GET  /weir/v1/approvals/{id}           one, also when it has been answered
 *     POST /weir/v1/approvals/{id}           {"decision":"approve|refuse|edit","args","reason"}
 *                                            or {"answer":"..."}: the first one counts, and
 *                                            the same again is answered the same
 *
 *     GET  /weir/v1/usage?workspace=&agent=&model=&from=YYYY-MM-DD&to=YYYY-MM-DD
 *                        &by=day|agent|model|workspace     sums; this month, by day
 *
 *     GET    /weir/v1/sessions?workspace=&user=&limit=&after=   which there are, newest first
 *     GET    /weir/v1/sessions/{id}/export?workspace=&user=     its events, one JSON a line
 *     DELETE /weir/v1/sessions/{id}?workspace=&user=            gone, also from the files
 *
 *     GET    /weir/v1/memories?category=&q=&limit=&offset=&workspace=
 *     POST   /weir/v1/memories               {"key","content","category"}
 *     DELETE /weir/v1/memories/{key}         in every category
 *
 * Memories belong to a workspace; whoever may see it may change them. With q= the entries that
 * say all its words come, best first, else all, newest change first.
 *
 * Usage is a workspace's, too: of every user of it. What a call did not say is in no sum;
 * beside the sums stands how many calls left it open.
 *
 * A listener here never paces a run and, leaving, never cancels one. Event ids read
 * <epoch>-<seq>; a client that comes back says Last-Event-ID (or ?after=) and goes on behind
 * it. If that event was lost with a crash, it is told `event: reset` with where it goes on
 * from.
 *
 * Memory   settings are borrowed for the life of the table.
 * Threads  a desk and its calls belong to one loop.
 * Source   design.md "The journal"; checks.md K23.
 */
#ifndef WEIR_CONTRACT_WEIR_API_H
#define WEIR_CONTRACT_WEIR_API_H

#include "contract/contract.h"
#include "run/directory.h"
#include "run/session.h"
#include "run/wake.h"
#include "store/store.h"

#define API_NAMES_BYTES 1024

/* Whose runs a caller may see. A plain value: what it names lies inside. */
struct api_caller {
    bool proved; /* by a token */
    bool all_workspaces, all_users;
    size_t workspace_len, user_len; /* where not all */
    char names[API_NAMES_BYTES];    /* the workspace, then the user */
};

/* Restrict `caller` to one workspace, and to one user of it unless `user` is empty. False when
 * the names are too long. */
bool api_caller_set(struct api_caller *caller, struct str workspace, struct str user);

struct api_settings {
    uint64_t stall_ms, heartbeat_ms; /* of a run's events */
    uint64_t body_stretch_ms;        /* as in struct route_table */
    size_t body_stretch_bytes;
    struct yes_no_words decision_words; /* beside the built-in ones */
};

struct api_desk {
    const struct api_settings *settings;
    struct loop *loop;
    struct session_table *sessions;
    struct directory *directory; /* theirs */
    struct store *store;
    struct contract_callers callers;
    bool loaded;   /* false: 503 */
    bool stopping; /* true: 503, but for what only reads */
};

/* The table of these routes; it borrows `desk`. Again when the desk has other settings. */
void api_table(struct api_desk *desk, struct route_table *ret);

#endif

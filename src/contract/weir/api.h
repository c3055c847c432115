/* api: our own routes, under /weir/v1/: the runs of this daemon, whatever wire they came by.
 *
 *     GET /weir/v1/runs?session_id=S         the runs of a session, newest last;
 *                                            of those that are over what fits 4 MiB
 *     GET /weir/v1/runs/{id}                 one run
 *     GET /weir/v1/runs/{id}/events          its events, as server-sent events
 *
 * A listener here never paces a run and never cancels one. Event ids read <epoch>-<seq>; a
 * client that comes back says Last-Event-ID (or ?after=) and goes on behind it. If that event
 * was lost with a crash, it is told `event: reset` with where it goes on from.
 *
 * Memory   settings are borrowed for the life of the table.
 * Threads  a desk and its calls belong to one loop.
 * Source   design.md "The journal"; checks.md K23.
 */
#ifndef WEIR_CONTRACT_WEIR_API_H
#define WEIR_CONTRACT_WEIR_API_H

#include "route/route.h"
#include "run/directory.h"
#include "store/store.h"

#define API_NAMES_BYTES 1024

/* Whose runs a caller may see. A plain value: what it names lies inside. */
struct api_caller {
    bool all_workspaces, all_users;
    size_t workspace_len, user_len; /* where not all */
    char names[API_NAMES_BYTES];    /* the workspace, then the user */
};

/* Restrict `caller` to one workspace, and to one user of it unless `user` is empty. False when
 * the names are too long. */
bool api_caller_set(struct api_caller *caller, struct str workspace, struct str user);

/* Who calls; false: fill *ret with the refusal. */
typedef bool api_identify_fn(struct route_call *call, void *ctx, struct api_caller *ret,
                             struct route_failure *ret_failure);

struct api_desk {
    struct loop *loop;
    struct directory *directory;
    struct store *store;
    uint64_t stall_ms, heartbeat_ms;
    api_identify_fn *identify;
    void *identify_ctx;
    bool loaded; /* false: 503 */
};

/* The table of these routes; it borrows `desk`. */
void api_table(struct api_desk *desk, struct route_table *ret);

#endif

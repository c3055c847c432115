/* api: our own routes under /weir/v1/. They show the runs of this daemon from every protocol,
 * the questions that wait for a human, the usage of its models and the memories of its agents.
 *
 *     GET /weir/v1/runs?workspace=&user=&session=&agent=&contract=&state=&limit=&before=
 *                                            runs of every session, newest first; `next` of a
 *                                            page is `before` of the one after it
 *     GET /weir/v1/runs?session_id=S         the runs of a session, newest last;
 *                                            finished runs as far as they fit in 4 MiB
 *     POST /weir/v1/runs                     {"input" or "messages","session_id","agent",
 *                                            "workspace","user"}: begin a turn; 202 and its id.
 *                                            It goes on whether or not its events are read
 *     GET /weir/v1/runs/{id}                 one run
 *     GET /weir/v1/runs/{id}/events          its events, as server-sent events
 *     POST /weir/v1/runs/{id}/cancel         end it: 202 and the run, 409 when it has ended
 *     POST /weir/v1/runs/{id}/replay?pace=once|real    begin a run that the recordings of this one
 *                                            answer, in a session of its own: 202 and its id. 409
 *                                            where there are none; for operators
 *
 *     GET  /weir/v1/approvals?workspace=&user=&session_id=&limit=   open questions
 *     GET  /weir/v1/approvals/{id}           one question, answered or not
 *     POST /weir/v1/approvals/{id}           {"decision":"approve|refuse|edit","args","reason"}
 *                                            or {"answer":"..."}: the first answer counts;
 *                                            repeating it gets the same response
 *
 *     GET  /weir/v1/usage?workspace=&agent=&model=&from=YYYY-MM-DD&to=YYYY-MM-DD
 *                        &by=day|agent|model|workspace     sums; this month, by day
 *
 *     GET    /weir/v1/audit?workspace=&user=&domain=&operation=&limit=&before=
 *                                            what was done, newest first; `next` of a page is
 *                                            `before` of the one after it
 *
 *     GET    /weir/v1/sessions?workspace=&user=&limit=&after=   the sessions, newest first
 *     GET    /weir/v1/sessions/{id}/export?workspace=&user=     its events as JSON lines
 *     POST   /weir/v1/sessions/{id}/fork?workspace=&user=       {"run","session_id"}: a new session
 *                                            that begins with this one's conversation, up to and
 *                                            with that run. 201; 404 no such run in it, 409 the run
 *                                            goes on, or there is a session of the new name,
 *                                            413 too much was said after it
 *     DELETE /weir/v1/sessions/{id}?workspace=&user=            erase it, also from the files
 *
 *     GET    /weir/v1/audit/chain            whether that log is whole; for operators
 *
 *     GET    /weir/v1/agents                  each agent: its model, its tools and where they come
 *                                            from, its delegates; the first is the default
 *
 *     GET    /weir/v1/budgets                 each budget that the caller may see; what is used of
 *                                            it is in the usage of its period
 *     GET    /weir/v1/health                  version, listeners, memory, store, providers
 *     GET    /weir/v1/settings                as `weir config print --json`; both of these only
 *                                            for callers who may see every user
 *     GET    /weir/v1/status                 which weir this is, serving or stopping, and how many
 *                                            live runs the caller may see, by state
 *
 *     GET    /weir/v1/memories?category=&q=&limit=&offset=&workspace=
 *     POST   /weir/v1/memories               {"key","content","category"}
 *     DELETE /weir/v1/memories/{key}         remove it from every category
 *
 * Memories belong to a workspace, and every caller who may see the workspace may change them.
 * With q= the result holds the entries that contain all its words, best match first. Without
 * it, all entries, most recently changed first.
 *
 * Usage also belongs to a workspace and covers all its users. A count that a provider did not
 * report is in no sum; the number of such calls is given beside the sums.
 *
 * A reader of events never slows a run down, and a reader that leaves never cancels one. Event
 * ids have the form <epoch>-<seq>. A client that comes back sends Last-Event-ID (or ?after=)
 * and continues after that event. If the event was lost in a crash, the client gets `event:
 * reset` with the position from which the events continue.
 *
 * Memory   settings are borrowed for the life of the table.
 * Threads  an instance and its calls belong to one loop.
 * Source   design.md "The journal"; checks.md K23.
 */
#ifndef WEIR_CONTRACT_WEIR_API_H
#define WEIR_CONTRACT_WEIR_API_H

#include "contract/contract.h"
#include "session/directory.h"
#include "session/session.h"
#include "store/store.h"
#include "stream/share.h"
#include "turn/cancel_run.h"
#include "turn/dormant_wake.h"

struct config;
struct team;

#define API_NAMES_BYTES 1024

/* Whose runs a caller may see. A plain value that holds its own text. */
struct api_caller {
    bool proved; /* identified by a token */
    bool all_workspaces, all_users;
    size_t workspace_len, user_len; /* unused where all may be seen */
    char names[API_NAMES_BYTES];    /* the workspace, then the user */
};

/* Restrict `caller` to one workspace, and to one user of it unless `user` is empty. False when
 * the names are too long. */
bool api_caller_set(struct api_caller *caller, struct str workspace, struct str user);

/* How many bytes of `caller` are in use, from its begin: what to copy to keep it for long. */
size_t api_caller_bytes(const struct api_caller *caller);

/* What one process of the daemon has; every loop reads it. */
#define API_LISTENERS_MAX 16
struct api_process {
    struct pages *pages; /* the events of runs as they are sent */
    const struct server *server;
    struct server_counts (*counts)(const struct server *server);
    struct server_listener listeners[API_LISTENERS_MAX];
    size_t listener_count;
    int64_t started_unix_ms;
};

struct api_settings {
    const struct config *config; /* these two live as long as the settings */
    const struct team *team;
    uint64_t stall_ms, heartbeat_ms; /* of event streams */
    uint64_t body_stretch_ms;        /* as in struct route_table */
    size_t body_stretch_bytes;
    enum session_policy busy;           /* a second turn of a session */
    struct yes_no_words decision_words; /* in addition to the built-in ones */
};

struct api_instance {
    const struct api_settings *settings;
    const struct api_process *process;
    struct loop *loop;
    struct run_host *host; /* begins runs */
    struct session_table *sessions;
    struct directory *directory; /* of those sessions */
    struct store *store;
    struct contract_callers callers;
    struct pages *pages; /* the events of runs as they are sent, of all loops */
    struct share *share; /* this loop's readers of them */
    struct list ends;    /* struct run_end: stored runs whose end is known, or looked for */
    struct list
        forks; /* struct fork: they wait until another one has been made; the first is next */
    bool forking;  /* one is being made */
    bool loaded;   /* false: answer 503 */
    bool stopping; /* true: answer 503 to requests that do more than read */
};

/* The encoder of `share`: server-sent events, with ids. `ctx` is the store. */
void api_encode_event(const struct event *event, struct buf *out, const void *ctx);

/* Forget the ends of stored runs: the instance goes away. */
void api_forget_ends(struct api_instance *instance);

/* Fill the table of these routes; it borrows `instance`, a struct api_instance. Call this again when the
 * instance has new settings. */
void api_table(void *instance, struct route_table *ret);

#endif

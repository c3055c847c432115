/* run_summary: what is known of a run from its events, live or stored.
 *
 * Memory   a summary owns its names. The caller owns it throughout, also while it is filled.
 * Threads  one loop's.
 */
#ifndef WEIR_CONTRACT_RUN_SUMMARY_H
#define WEIR_CONTRACT_RUN_SUMMARY_H

#include "session/directory.h"
#include "store/store.h"

/* A summary of one run, built from its events. */
struct run_summary {
    void (*each)(const struct event *event, uint64_t seq,
                 void *ctx); /* gets each event; or NULL */
    void *each_ctx;
    bool known;   /* false: nothing is known of the run */
    bool started; /* false: the run waits for its session */
    uint64_t run, last_seq, parent;
    int64_t started_ms, ended_ms; /* Unix time; ended_ms 0: not ended */
    enum event_kind last_kind;
    bool interrupted; /* ended because its process died */
    struct buf names; /* owns the text below */
    struct str workspace, user, session, agent, text, contract;
    struct event_usage usage; /* sums; an unknown count stays unknown */
};

void run_summary_init(struct run_summary *summary, uint64_t run);
void run_summary_done(struct run_summary *summary);

/* "running", "waiting", "done" ... */
struct str run_summary_state(const struct run_summary *summary);

/* Add the events in the journal of its run. False: the run is not alive, or its first events have left
 * the window. */
MUST_CHECK bool run_summary_read_live(struct run_summary *summary, struct directory *directory,
                                      struct loop *loop);

bool run_is_live(struct directory *directory, uint64_t run);

/* Read a whole run from the store, piece by piece. `done` is called once, never before this
 * returns; after run_scan_cancel() it is not called. */
struct run_scan;
typedef void run_scanned_fn(const struct err *failed, void *ctx);
struct run_scan *run_scan_start(struct loop *loop, struct store *store,
                                struct run_summary *summary, run_scanned_fn *done, void *ctx);
/* Read the beginning of a run alone: who asked which agent for what. */
struct run_scan *run_head_start(struct loop *loop, struct store *store,
                                struct run_summary *summary, run_scanned_fn *done, void *ctx);
void run_scan_cancel(struct run_scan *scan); /* NULL is fine */

#endif

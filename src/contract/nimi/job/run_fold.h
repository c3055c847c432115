/* run_fold: what jobs and workflows have in common when their state is rebuilt from the journal.
 *
 * Both are a run_job.h whose journal holds items of its own (job_fold.h, workflow_fold.h). Folding
 * is a pure function of the events, in order. A call that asks folds all events, a subscriber gets
 * the fold after each event that counts as one, and after a restart the run continues from its
 * fold. So the three cannot disagree.
 *
 * Memory   the first member of a job's or workflow's fold, which owns copies of everything it
 *          shows, until run_fold_done().
 * Threads  none; values only.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_RUN_FOLD_H
#define WEIR_CONTRACT_NIMI_JOB_RUN_FOLD_H

#include "base/arena.h"
#include "job/run_job.h"

struct run_fold;

enum run_fold_depth {
    RUN_FOLD_SHOWN, /* only what a caller is shown */
    RUN_FOLD_WHOLE, /* also the request, and what was made */
};

struct run_kind {
    const char *noun; /* in sentences: "job" */
    void (*init)(struct run_fold *fold, enum run_fold_depth depth);
    void (*take)(struct run_fold *fold, const struct event *event);
};

struct run_fold {
    const struct run_kind *kind;
    enum run_fold_depth depth;
    struct arena *arena;         /* NULL: it is done */
    uint64_t seq;                /* of the last event that was folded */
    uint64_t sequence;           /* of the last event that subscribers get of it */
    bool foreign;                /* the run is none of this kind, or is damaged */
    bool shown;                  /* enough was folded to show it */
    int64_t started_ms;          /* Unix time */
    int64_t last_at_ms;          /* of the last event, after that */
    struct run_job_note note;    /* its state, with the newest attempt */
    struct str id, app, subject; /* as its callers know it, and whose it is */
    struct str caller;           /* the trace of its submitter's tracing */
    struct str request;          /* RUN_FOLD_WHOLE: encoded */
};

/* A new fold, to be made part of one of its kind. */
struct run_fold run_fold_new(const struct run_kind *kind, enum run_fold_depth depth);
void run_fold_done(struct run_fold *fold);

/* Fold all events of these sections that come next. False: a section is incomplete. */
MUST_CHECK bool run_fold_sections(struct run_fold *fold, const struct store_section *sections,
                                  size_t count);

bool run_fold_is_shown(const struct run_fold *fold);
bool run_fold_is_over(const struct run_fold *fold);

/* --- for its kind ------------------------------------------------------------------------- */

/* Each event begins with this. False: there is nothing more to do with it. */
bool run_fold_begin(struct run_fold *fold, const struct event *event, struct str contract);

/* And ends with that. good: it was as it must be; counts: subscribers get an event. Returns
 * whether they do. */
bool run_fold_end(struct run_fold *fold, bool good, bool counts);

/* Take a new state, before what the kind makes of it. */
void run_fold_note(struct run_fold *fold, const struct run_job_note *note);

#endif

/* compaction: replace a history that is too long for the model by a summary.
 *
 * The agent's own model writes the summary, in a call that is not streamed to any reader. Then
 * the turn goes on with the summary in place of all earlier turns. The summary is an item of
 * the journal, and later turns of the session begin with it. A turn that runs inside another
 * one shortens only its own view.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "A history that is too long". */
#ifndef WEIR_TURN_COMPACTION_H
#define WEIR_TURN_COMPACTION_H

#include "base/buf.h"

struct run;

#define SUMMARY_MAX_BYTES (64 * KIB)

struct compaction {
    struct buf summary; /* while it is being written */
    bool done;          /* the summary has replaced the history */
};

void compaction_init(struct compaction *compaction);
void compaction_done(struct compaction *compaction);

/* Whether the conversation must be shortened before the model is asked. */
bool run_needs_compacting(const struct run *run);

/* Whether the history can be replaced by a summary. */
bool run_may_compact(const struct run *run);

/* Have the model write a summary in place of the history, then ask again. */
void run_compact(struct run *run);

#endif

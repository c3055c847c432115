/* compaction: a history that is too long for the model becomes a summary.
 *
 * The agent's own model writes it, in a call that nobody reads along; then the turn goes on
 * with the summary in place of all earlier turns. The session remembers it so: the summary
 * stands in the journal as an item, and later turns begin with it. A turn that runs inside
 * another one's only shortens its own view.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "A history that is too long".
 */
#ifndef WEIR_TURN_COMPACTION_H
#define WEIR_TURN_COMPACTION_H

#include "base/buf.h"

struct run;

#define SUMMARY_MAX_BYTES (64 * KIB)

struct compaction {
    struct buf summary; /* while it is being written */
    bool done;          /* the summary stands for the history */
};

void compaction_init(struct compaction *compaction);
void compaction_done(struct compaction *compaction);

/* Whether the conversation must be made shorter before it is asked with. */
bool run_needs_compacting(const struct run *run);

/* Whether it could be. */
bool run_may_compact(const struct run *run);

/* Have the model write a summary in place of the history, then ask again. */
void run_compact(struct run *run);

#endif

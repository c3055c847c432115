/* compaction: replace a history that is too long for the model by a summary.
 *
 * The agent's own model writes the summary, in a call that is not streamed to any reader. Then
 * the turn goes on with the summary in place of all earlier turns. The summary is an item of
 * the journal, and later turns of the session begin with it. A turn that runs inside another
 * one shortens only its own view.
 *
 * It happens for one of three reasons:
 *
 *     too long    the conversation is estimated above the agent's `window`
 *     refused     the model answered that it is too long
 *     keeping     the session would soon drop its oldest turns (session/history.h). Only if the
 *                 agent has a `window`, or the history begins with a summary, which would be lost
 *
 * The question is no longer than the window, and after a refusal than half of what was refused; the
 * oldest messages are left out of it first, but never an earlier summary. If it is refused too, it
 * is asked again at half the length; one for keeping only while the agent's limits have room for the
 * turn besides.
 *
 * Memory   a plain value inside its run.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "A history that is too long". */
#ifndef WEIR_TURN_COMPACTION_H
#define WEIR_TURN_COMPACTION_H

#include "base/buf.h"
#include "base/states.h"

struct run;

#define SUMMARY_MAX_BYTES (64 * KIB)

enum compaction_why { COMPACTION_TOO_LONG, COMPACTION_REFUSED, COMPACTION_KEEPING };

/* A turn condenses its history once at most:
 *
 *     none ─▶ asking ─▶ replaced     the summary stands in place of the history
 *              ▲ └────▶ given up     the turn goes on with the history as it is; only if the summary
 *              └───────────┘         was for keeping. One that the turn then needs is asked for */
enum compaction_state {
    COMPACTION_NONE,
    COMPACTION_ASKING,
    COMPACTION_REPLACED,
    COMPACTION_GIVEN_UP,
    COMPACTION_STATE_COUNT,
};

extern const struct state compaction_states[COMPACTION_STATE_COUNT];

struct compaction {
    struct buf summary; /* while it is being written */
    enum compaction_state state;
    enum compaction_why why; /* of the one that is under way */
    size_t question_max;     /* bytes of the transcript in the question */
};

void compaction_init(struct compaction *compaction);
void compaction_done(struct compaction *compaction);

/* Whether a history that is not shown yet begins with a summary, which must not be lost. */
bool run_keeps_summary(const struct run *run);

/* Whether the conversation must be shortened before the model is asked, and why. */
bool run_needs_compacting(const struct run *run, enum compaction_why *ret);

/* Whether the history can be replaced by a summary. */
bool run_may_compact(const struct run *run);

/* Have the model write a summary in place of the history, then ask again. */
void run_compact(struct run *run, enum compaction_why why);

/* The call for a summary cannot be made, or failed. True: the turn can do without it, and asks its
 * model now. */
bool run_give_up_compaction(struct run *run);

#endif

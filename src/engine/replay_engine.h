/* replay_engine: the agents and tools of an engine, with recordings in place of every model and tool.
 *
 * Prompts, offers, policies and limits are those of the engine it is made from; that is what a replay
 * shows. No model is asked, no tool is called, and nothing is counted against a budget.
 *
 * Memory   reference-counted like every engine; holds references to `base` and to the tape.
 * Threads  as engine.h.
 * Source   docs/internals/tape.md.
 */
#ifndef WEIR_ENGINE_REPLAY_ENGINE_H
#define WEIR_ENGINE_REPLAY_ENGINE_H

#include "engine/engine.h"

struct tape;

/* The caller owns one reference to the result. `tape` plays. */
struct engine *replay_engine_new(struct engine *base, struct tape *tape);

#endif

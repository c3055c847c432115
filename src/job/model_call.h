/* model_call: one question to a model, with a journal of its own.
 *
 * A turn (run.h) belongs to a session and an agent. A caller that asks a model itself has
 * neither: it brings the whole conversation and takes one reply. What it shares with a turn is
 * all that listeners see: started, thinking, text, usage, then done, failed or cancelled, in a
 * journal that is stored, found in the directory, and counted by budgets.
 *
 *     asking ─▶ ending ─▶ over        ending: the last event is on its way to the disk
 *
 * Its clocks (clocks.h) run from the moment its caller asked. Each ends it as failed,
 * DEADLINE_EXCEEDED with the reason CLOCKS_REASON.
 *
 * Memory   reference-counted on its loop; one that is not over holds itself. The request is
 *          copied; the engine keeps the provider.
 * Threads  belongs to the loop of its host.
 * Source   design.md "Words"; contracts/nimi.md 3.1 rule 007, 3.2 K-DAEMON-008.
 */
#ifndef WEIR_JOB_MODEL_CALL_H
#define WEIR_JOB_MODEL_CALL_H

#include "engine/engine.h"
#include "job/clocks.h"
#include "journal/journal.h"

struct model_call;

/* An EVENT_ITEM right before `done`: why the reply ended, where it was not by itself. Its bytes
 * are "tool_call", "length" (of tokens) or "content_filter" (whose first words were let pass; a
 * reply without any has failed). */
#define MODEL_CALL_FINISH "application/vnd.weir.finish"

struct model_call_options {
    struct run_host *host;
    struct engine *engine; /* whose provider it is: limits, prices, budgets */
    struct provider *provider;
    const struct provider_request *request;
    struct str workspace, user; /* who asks, for the store and budgets */
    struct str text;            /* what it asks, for later readers of the record */
    struct str contract;        /* which wire it came in by */
    uint64_t asked_ms;          /* when, by the host's loop */
    struct model_call_clocks clocks;
    /* What a model answers in sound, piece by piece. It is not in the journal. NULL: dropped */
    void (*on_sound)(const struct media_artifact *sound, void *ctx);
    void *ctx;
};

/* Ask. One reference is the caller's.
 * errors  ERR_RESOURCE_EXHAUSTED a budget is used up, or the request is larger than a run may
 *         hold */
MUST_CHECK bool model_call_start(const struct model_call_options *options,
                                 struct model_call **ret, struct err *e);
void model_call_unref(struct model_call *call); /* NULL is fine */

struct journal *model_call_journal(const struct model_call *call);

/* The caller can take no more sound: the model is not read, and its silence is no one's fault.
 * Harmless once the reply is over. */
void model_call_hold(struct model_call *call, bool hold);

/* Stop it; `why` is a sentence. Harmless once it is ending. */
void model_call_cancel(struct model_call *call, struct str why);

#endif

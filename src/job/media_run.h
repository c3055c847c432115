/* media_run: one request to a media provider, with its clocks, budget and record.
 *
 * A media provider (media.h) makes speech, pictures, transcripts and vectors. This module adds
 * clocks that start with the caller's request, a budget that is reserved before and settled
 * after, and a record: a run in the store that says who asked what, what was used and how it
 * ended. The output does not go into the record. The caller gets it whole, as the provider
 * gives it.
 *
 *     asking ─▶ ending ─▶ over       ending: the record's last event is on its way to the disk
 *       └─ artifacts, text, vectors                 usage, then done | failed ──────┘
 *
 * A provider that finishes without making what was asked for has failed. The ending is reported
 * once the record is on disk, as for a turn.
 *
 * Memory   it frees itself after its ending, or in media_run_cancel(). The request stays the
 *          caller's and must live until then.
 * Threads  the loop of its host.
 * Source   design.md "The journal"; contracts/nimi.md 3.1 rule 007, 3.2.
 */
#ifndef WEIR_JOB_MEDIA_RUN_H
#define WEIR_JOB_MEDIA_RUN_H

#include "engine/engine.h"
#include "job/clocks.h"
#include "provider/media.h"

struct media_run;

/* The reason of a failure when the output is not what was asked for. */
#define MEDIA_RUN_UNUSABLE "OUTPUT_INVALID"

enum media_run_record {
    MEDIA_RUN_RECORDED,
    MEDIA_RUN_UNRECORDED, /* the caller keeps its own journal, which has the usage */
};

struct media_run_options {
    struct run_host *host;
    struct engine *engine; /* whose prices and budgets count; a reference is kept */
    struct media *media;
    const struct media_request *request;
    enum media_run_record record;
    struct str workspace, user;        /* who asks; copied */
    struct str text;                   /* what it asks, for the record */
    struct str contract;               /* which wire it came in by, for the record */
    const struct trace_context *trace; /* of the caller; NULL: none. Must live as the request */
    uint64_t asked_ms;                 /* when, by the host's loop */
    struct model_call_clocks clocks;
    /* As media.h has it. REPLY_USAGE comes exactly once before REPLY_DONE (unknown counts are
     * TOKENS_UNKNOWN), and never before REPLY_FAILED. */
    reply_event_fn *on_reply;
    void *ctx;
};

/* Ask. No callback before it returns.
 * errors  ERR_RESOURCE_EXHAUSTED a budget is used up */
MUST_CHECK bool media_run_start(const struct media_run_options *options, struct media_run **ret,
                                struct err *e);

/* Stop it; `why` is a sentence for the record. No callback comes any more, and it is gone. */
void media_run_cancel(struct media_run *media_run, struct str why);

#endif

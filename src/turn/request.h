/* request: what the caller asked of a turn, kept as long as the turn.
 *
 * Memory   a plain value inside its run; the texts are in the run's arena.
 * Threads  the loop of its run.
 */
#ifndef WEIR_TURN_REQUEST_H
#define WEIR_TURN_REQUEST_H

#include "provider/model_options.h"
#include "session/session.h"
#include "turn/bringing.h"

struct schema;

struct turn_request {
    struct session_name name;
    struct str text, system, contract, extras;
    struct model_options *options; /* of the caller; NULL: none are set */
    struct str options_text;       /* the same as JSON, or empty */
    struct trace_context *trace;   /* of the caller; NULL: it has none */
    struct brought brought;
    struct schema *schema;  /* that the answer must match; NULL: the agent's */
    struct str schema_text; /* the same as text */
    bool schema_loose;      /* as struct provider_request has it */
    uint64_t newest_known;  /* as struct run_request has it */
    bool on_record;         /* what request_item.h keeps is in the run's events */
    bool promised;  /* its caller knows the id: it is recorded even if it never begins */
    bool sticky;    /* the agent that spoke last takes the turn, if it still exists */
    bool addressed; /* the caller named an agent other than the Manager: it keeps the turn */
};

/* Copy `from`, and its key into the record's claim.
 * errors  ERR_RESOURCE_EXHAUSTED it is larger than a run may hold; ERR_INVALID_ARGUMENT its
 *         schema is not supported, or as run_keep_caller_tools() */
MUST_CHECK bool run_keep_request(struct run *run, const struct run_request *from,
                                 struct err *e);
void request_done(struct run *run);

/* The options of the caller from EVENT_STARTED. False: the run's memory is full, or the text was not
 * written by us. */
MUST_CHECK bool run_restore_options(struct run *run, struct str text);

/* Restore the trace of the caller from EVENT_STARTED, and make its text for that event. */
MUST_CHECK bool run_restore_trace(struct run *run, struct str text);
MUST_CHECK bool run_trace_text(struct run *run, struct str *ret);

#endif

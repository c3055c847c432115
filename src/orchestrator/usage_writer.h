/* usage_writer: published usage becomes rows that answer who used what.
 *
 *     stream ─▶ a batch ─▶ llm_usage (each event once) ─▶ llm_usage_daily ─▶ acknowledged
 *
 * A batch is acknowledged after its transaction, and an event that is known counts nothing. So a
 * process that dies anywhere loses and doubles nothing. Rows of events stay 13 months, sums of
 * days 25.
 *
 * Memory   none after it returns.
 * Threads  any; everything blocks.
 * Source   contracts of the orchestrator, "NATS and analytics".
 */
#ifndef WEIR_ORCHESTRATOR_USAGE_WRITER_H
#define WEIR_ORCHESTRATOR_USAGE_WRITER_H

#include "base/buf.h"
#include "orchestrator/options.h"

struct usage_writer_result {
    uint64_t taken;   /* messages */
    uint64_t counted; /* events that were new */
    uint64_t skipped; /* messages that are no usage */
};

/* Take what is in the stream now, or, with `follow`, for ever: then it returns only on an error.
 * errors  ERR_UNAVAILABLE NATS or the database; ERR_FAILED_PRECONDITION no tables */
MUST_CHECK bool usage_writer_run(const struct orchestrator_options *options, bool follow,
                                 struct usage_writer_result *ret, struct err *e);

/* By what it is summed. */
enum {
    USAGE_BY_DAY = 1,
    USAGE_BY_USER = 2,
    USAGE_BY_WORKSPACE = 4,
    USAGE_BY_AGENT = 8,
    USAGE_BY_MODEL = 16,
};

struct usage_writer_question {
    unsigned by;
    struct str user, workspace, agent, model; /* only these; empty: all */
    struct str since, until; /* days, both included; empty: this month, today */
};

#define USAGE_LINES_MAX 10000

/* Append {"usage":[{...}],"total":{...}}.
 * errors  ERR_RESOURCE_EXHAUSTED more than USAGE_LINES_MAX lines; those of usage_writer_run() */
MUST_CHECK bool usage_writer_ask(const struct orchestrator_options *options,
                                 const struct usage_writer_question *question, struct buf *out,
                                 struct err *e);

#endif

/* metrics: what this process counts and times, for a Prometheus server to read.
 *
 * There is one registry in a process, as there is one log. Until metrics_start() nothing is
 * counted, and reporting costs one load of a flag. A report names a row of enum metric and a
 * value for each of its labels; a series is made when it is first reported.
 *
 *     metrics_report(METRIC_TOKENS, tokens,
 *                    (struct str[]){STR("chat"), provider, model, answered_by, STR("input")});
 *
 * Names follow the OpenTelemetry conventions for generative AI, in the form that Prometheus
 * gives them, as of the release METRICS_CONVENTIONS; those of our own begin with weir_. Users,
 * sessions and workspaces are never labels. Models may name themselves, so the number of series
 * has a limit: beyond METRICS_SERIES_MAX every label of a new series becomes "other".
 *
 * Memory   owns the series: at most METRICS_SERIES_MAX, some 600 bytes each; a table of 128 pointers
 *          in each thread that reports, so that usual reports take no lock.
 * Threads  metrics_start() and metrics_stop(): before and after all other threads. Others: any.
 * Source   open-telemetry/semantic-conventions-genai, docs/gen-ai;
 *          prometheus.io/docs/instrumenting/exposition_formats (text format 0.0.4).
 */
#ifndef WEIR_METRICS_METRICS_H
#define WEIR_METRICS_METRICS_H

#include "base/buf.h"

#include <stdatomic.h>

#define METRICS_CONVENTIONS "0.1.0" /* of semantic-conventions-genai */
#define METRICS_SERIES_MAX 2048
#define METRICS_LABEL_BYTES 64 /* longer values are cut */

/* The longest text of them: all series are histograms with the longest labels. */
#define METRICS_TEXT_MAX_BYTES (32 * MIB)

enum metric {
    METRIC_MODEL_DURATION,    /* microseconds; operation, provider, model, answered by, error */
    METRIC_MODEL_FIRST_CHUNK, /* microseconds; operation, provider, model */
    METRIC_TOKENS,            /* tokens; operation, provider, model, answered by, type */
    METRIC_COST,              /* billionths of a dollar; provider, answered by */
    METRIC_AGENT_DURATION,    /* microseconds; agent, error */
    METRIC_AGENT_MODEL_CALLS, /* calls of a turn; agent */
    METRIC_AGENT_TOOL_CALLS,  /* calls of a turn; agent */
    METRIC_TOOL_DURATION,     /* microseconds; tool, error */
    METRIC_TURNS_STARTED,     /* turns; agent */
    METRIC_TURNS_ENDED,       /* turns; agent, state */
    METRIC_RATE_LIMITED,      /* requests; which limit */
    METRIC_STORE_REFUSED,     /* rows; table, whose share was full */
    METRIC_STORE_EVICTED,     /* rows; table, whose share was full */
    METRIC_COUNT,
};

void metrics_start(void);
void metrics_stop(void);

extern atomic_bool metrics_are_on;
#define metrics_wanted() (atomic_load_explicit(&metrics_are_on, memory_order_relaxed))

/* Add `value` to a counter, or one observation to a histogram. `labels` are as many as the
 * metric has, in its order; an empty one is left out of the text. */
void metrics_report(enum metric metric, uint64_t value, const struct str *labels);

/* Append all series, with HELP and TYPE. False: `out` is full. */
MUST_CHECK bool metrics_append(struct buf *out);

/* Append one value that is not kept here, with its HELP and TYPE. `labels` stand as written,
 * in braces, or are empty. */
enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
void metrics_append_value(struct buf *out, const char *name, enum metric_type type,
                          const char *help, const char *labels, double value);

#endif

/* batch: the body of a request that sends spans: what they are of, in front of their bytes.
 *
 *     ExportTraceServiceRequest
 *       └─ resource_spans ┬ resource      service.name, service.version: made once
 *                         └─ scope_spans ┬ scope    weir and its version
 *                                        └ spans    as spans/ has written them
 *
 * Memory   the caller's.
 * Threads  none.
 * Source   opentelemetry-proto collector/trace/v1, trace/v1, resource/v1.
 */
#ifndef WEIR_EXPORTER_BATCH_H
#define WEIR_EXPORTER_BATCH_H

#include "base/buf.h"
#include "spans/spans.h"

#define BATCH_TEXT_BYTES 256 /* longer texts of a resource are cut */
#define BATCH_RESOURCE_BYTES 640

/* The field `resource` of ResourceSpans. */
struct batch_resource {
    char bytes[BATCH_RESOURCE_BYTES];
    size_t len;
};

/* An empty text is left out. */
void batch_resource_init(struct batch_resource *resource, struct str service,
                         struct str version);

/* Write what comes before the part's spans to the bytes in front of them, and return both: a body.
 * It may be done again. */
struct str batch_body(const struct spans_part *part, const struct batch_resource *resource);

#endif

/* headers: the headers for a collector, as OTEL_EXPORTER_OTLP_HEADERS has them.
 *
 *     api-key=k1,x-scope=team%20a     names and values; %XX is one byte of a value
 *
 * A mistake is an error, never a header that is silently missing: a collector without its key
 * refuses everything.
 *
 * Memory   owns the texts.
 * Threads  none.
 * Source   OpenTelemetry, "Protocol Exporter", "Specifying headers via environment variables";
 *          W3C Baggage, without properties.
 */
#ifndef WEIR_EXPORTER_HEADERS_H
#define WEIR_EXPORTER_HEADERS_H

#include "base/err.h"
#include "base/text.h"

#define EXPORTER_HEADERS_MAX 16
#define EXPORTER_HEADERS_BYTES (16 * KIB) /* of the text */

struct exporter_headers {
    struct text names[EXPORTER_HEADERS_MAX], values[EXPORTER_HEADERS_MAX];
    size_t count;
};

/* Append what `text` says. Blanks around names and values do not count, nor do empty entries.
 * errors  ERR_INVALID_ARGUMENT which entry is wrong, and how to write it; ERR_TOO_LARGE there are
 *         more. What was read before stays */
MUST_CHECK bool exporter_headers_read(struct exporter_headers *headers, struct str text,
                                      struct err *e);

/* Append one that needs no decoding. The same errors. */
MUST_CHECK bool exporter_headers_add(struct exporter_headers *headers, struct str name,
                                     struct str value, struct err *e);
void exporter_headers_done(struct exporter_headers *headers);

#endif

/* pattern: paths with holes, and what a query says.
 *
 *     pattern  /weir/v1/runs/{id}/events
 *     path     /weir/v1/runs/1882487438944763904/events      id = 1882487438944763904
 *
 * A hole takes exactly one segment that is not empty; everything else is compared byte for
 * byte, as sent: a percent-encoded slash is no separator.
 *
 * Memory   results are views of the path, or appended to the caller's buffer.
 * Threads  none.
 * Source   RFC 3986 3.3 and 3.4; WHATWG URL, application/x-www-form-urlencoded parsing.
 */
#ifndef WEIR_ROUTE_PATTERN_H
#define WEIR_ROUTE_PATTERN_H

#include "base/buf.h"

bool pattern_matches(struct str pattern, struct str path);

/* What fills the hole `{name}` of a pattern that matches; empty when there is no such hole. */
struct str pattern_parameter(struct str pattern, struct str path, struct str name);

/* Append the decoded segment; a plus stays one. False, and nothing appended, when a percent
 * sign is not followed by two hex digits, the text is not UTF-8, or it does not fit. */
MUST_CHECK bool segment_decode(struct str segment, struct buf *out);

/* Append the decoded value of the first parameter `name`. False, and nothing appended, when it
 * is not there, a percent sign is not followed by two hex digits, or the value is not UTF-8. */
MUST_CHECK bool query_find(struct str query, struct str name, struct buf *out);

#endif

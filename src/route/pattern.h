/* pattern: match paths with parameters, and read query strings.
 *
 *     pattern  /weir/v1/runs/{id}/events
 *     path     /weir/v1/runs/1882487438944763904/events      id = 1882487438944763904
 *
 * A parameter takes exactly one segment that is not empty. Everything else is compared byte for
 * byte, as sent, so a percent-encoded slash is not a separator.
 *
 * Memory   results are views of the path, or appended to the caller's buffer.
 * Threads  none.
 * Source   RFC 3986 3.3 and 3.4; WHATWG URL, application/x-www-form-urlencoded parsing.
 */
#ifndef WEIR_ROUTE_PATTERN_H
#define WEIR_ROUTE_PATTERN_H

#include "base/buf.h"

bool pattern_matches_rest(struct str pattern, struct str path);

/* Whether `path` is one of the pattern's. Most are not, and differ in the byte after the slash. */
static inline bool pattern_matches(struct str pattern, struct str path) {
    bool other = pattern.len > 1 && path.len > 1 && pattern.at[1] != path.at[1] &&
                 pattern.at[0] != '{' && pattern.at[1] != '{';
    return !other && pattern_matches_rest(pattern, path);
}

/* The value of parameter `{name}` in a path that matches; empty if the pattern has none of that
 * name. */
struct str pattern_parameter(struct str pattern, struct str path, struct str name);

/* Append the decoded segment; a plus stays a plus. False, and nothing appended, when a percent
 * sign is not followed by two hex digits, the text is not UTF-8, or it does not fit. */
MUST_CHECK bool segment_decode(struct str segment, struct buf *out);

enum query_value {
    QUERY_ABSENT, /* no such parameter */
    QUERY_READ,
    QUERY_BAD, /* it is there: a percent sign is not followed by two hex digits, the value is not
                  UTF-8, or it does not fit */
};

/* Append the decoded value of the first parameter `name`, if it is QUERY_READ. A caller refuses a
 * QUERY_BAD one as it refuses any other wrong value. */
MUST_CHECK enum query_value query_find(struct str query, struct str name, struct buf *out);

#endif

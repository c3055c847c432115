/* tzrule: when clocks are changed, as one line of text.
 *
 *     CET-1CEST,M3.5.0,M10.5.0/3
 *     │  │ │    │      └ until the last Sunday of October, 3:00
 *     │  │ │    └ from the last Sunday of March, 2:00
 *     │  │ └ summer time, one hour more
 *     └ name and offset, counted westwards
 *
 * The end of a time zone file holds one for all that comes after its last entry.
 *
 * Threads  any; values only.
 * Source   POSIX.1 "TZ"; RFC 9636 3.3.1 for hours below 0 and above 24.
 */
#ifndef WEIR_TOOL_TZRULE_H
#define WEIR_TOOL_TZRULE_H

#include "base/err.h"

struct tzrule_day {
    char kind;      /* 'M' week of a month, 'J' day of the year without February 29, 'n' with */
    unsigned month; /* M: 1 to 12 */
    unsigned week;  /* M: 1 to 5, which is the last */
    unsigned day;   /* M: 0 (Sunday) to 6; J: 1 to 365; n: 0 to 365 */
    int32_t time_s; /* on that day, by the clock that is changed */
};

struct tzrule {
    int32_t offset_s; /* ahead of UTC */
    bool summer;      /* whether clocks are changed at all */
    int32_t summer_offset_s;
    struct tzrule_day from, until;
};

/* errors  ERR_MALFORMED */
MUST_CHECK bool tzrule_read(struct str text, struct tzrule *ret, struct err *e);

/* How far clocks are ahead of UTC at a moment. */
int32_t tzrule_offset(const struct tzrule *rule, int64_t unix_s);

#endif

/* moment: points in time, as numbers and in RFC 3339 form.
 *
 * A moment is a number of seconds since 1970 in UTC, without leap seconds. Years have four
 * digits, 0000 to 9999, and follow the Gregorian calendar at all times.
 *
 * Threads  any; values only.
 * Source   RFC 3339 5.6.
 */
#ifndef WEIR_WIRE_MOMENT_H
#define WEIR_WIRE_MOMENT_H

#include "base/buf.h"
#include "base/err.h"

#define MOMENT_DAY_S 86400

/* "2026-03-01T12:00:00Z", "2026-03-01 12:00:00.25+01:00". The fraction is dropped, and a leap
 * second is the second after it.
 * errors  ERR_INVALID_ARGUMENT what is wrong with it */
MUST_CHECK bool moment_read(struct str text, int64_t *ret_unix_s, struct err *e);

/* Append the local time at `offset_s` ahead of UTC: "2026-03-01T13:00:00+01:00". The format
 * needs whole minutes, so the offset is rounded down. False when the year does not have four
 * digits. */
bool moment_put(struct buf *out, int64_t unix_s, int32_t offset_s);

/* "Monday" where the clock is `offset_s` ahead of UTC. */
struct str moment_weekday(int64_t unix_s, int32_t offset_s);

/* Days from 1970-01-01 to a date; month 1 to 12, day 1 to 31. */
int64_t moment_days(int64_t year, unsigned month, unsigned day);

/* The year in which `days` after 1970-01-01 lies. */
int64_t moment_year(int64_t days);

unsigned moment_month_days(int64_t year, unsigned month);
bool moment_leap_year(int64_t year);

#endif

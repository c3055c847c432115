#include "wire/moment.h"

#include <assert.h>

struct date {
    int64_t year;
    unsigned month, day;
};

/* ---- The calendar. Years begin in March here, so that a leap day is the last day of its year.
 * Every 400 years have the same number of days. ---- */

#define ERA_YEARS 400
#define ERA_DAYS 146097
#define MARCH_0000_TO_1970 719468

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

int64_t moment_days(int64_t year, unsigned month, unsigned day) {
    int64_t shifted = month <= 2 ? year - 1 : year;
    int64_t era = floor_divide(shifted, ERA_YEARS);
    int64_t in_era = shifted - era * ERA_YEARS;
    int64_t from_march = (month + 9) % 12; /* March is 0 */
    int64_t in_year = (153 * from_march + 2) / 5 + day - 1;
    return era * ERA_DAYS + in_era * 365 + in_era / 4 - in_era / 100 + in_year -
           MARCH_0000_TO_1970;
}

static struct date date_of(int64_t days) {
    int64_t shifted = days + MARCH_0000_TO_1970;
    int64_t era = floor_divide(shifted, ERA_DAYS);
    int64_t in_era = shifted - era * ERA_DAYS;
    int64_t leap_days = in_era / 1460 - in_era / 36524 + in_era / (ERA_DAYS - 1);
    int64_t year = (in_era - leap_days) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t from_march = (5 * in_year + 2) / 153;
    unsigned month = (unsigned)(from_march < 10 ? from_march + 3 : from_march - 9);
    return (struct date){.year = era * ERA_YEARS + year + (month <= 2 ? 1 : 0),
                         .month = month,
                         .day = (unsigned)(in_year - (153 * from_march + 2) / 5 + 1)};
}

int64_t moment_year(int64_t days) {
    return date_of(days).year;
}

bool moment_leap_year(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

unsigned moment_month_days(int64_t year, unsigned month) {
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    assert(month >= 1 && month <= 12);
    return days[month - 1] + (month == 2 && moment_leap_year(year) ? 1u : 0u);
}

/* ---- Writing ---- */

static int64_t local_seconds(int64_t unix_s, int32_t offset_s) {
    return unix_s + floor_divide(offset_s, 60) * 60;
}

bool moment_put(struct buf *out, int64_t unix_s, int32_t offset_s) {
    int64_t local = local_seconds(unix_s, offset_s);
    int64_t days = floor_divide(local, MOMENT_DAY_S);
    int in_day = (int)(local - days * MOMENT_DAY_S);
    struct date date = date_of(days);
    if (date.year < 0 || date.year > 9999) return false;

    buf_printf(out, "%04d-%02u-%02uT%02d:%02d:%02d", (int)date.year, date.month, date.day,
               in_day / 3600, in_day / 60 % 60, in_day % 60);
    int minutes = (int)floor_divide(offset_s, 60);
    if (minutes == 0) return buf_append(out, STR("Z"));
    int ahead = minutes < 0 ? -minutes : minutes;
    return buf_printf(out, "%c%02d:%02d", minutes < 0 ? '-' : '+', ahead / 60, ahead % 60);
}

struct str moment_weekday(int64_t unix_s, int32_t offset_s) {
    static const struct str names[] = {
        STR_INIT("Thursday"), /* 1970-01-01 */
        STR_INIT("Friday"),   STR_INIT("Saturday"), STR_INIT("Sunday"),
        STR_INIT("Monday"),   STR_INIT("Tuesday"),  STR_INIT("Wednesday"),
    };
    int64_t days = floor_divide(local_seconds(unix_s, offset_s), MOMENT_DAY_S);
    return names[days - floor_divide(days, 7) * 7];
}

/* ---- Reading ---- */

struct reader {
    struct str rest;
    bool fine;
};

/* Read exactly `count` digits that form a number in low..high. */
static unsigned moment_take_number(struct reader *reader, size_t count, unsigned low,
                                   unsigned high) {
    unsigned number = 0;
    if (reader->rest.len < count) reader->fine = false;
    for (size_t i = 0; reader->fine && i < count; i++) {
        char c = reader->rest.at[i];
        if (c < '0' || c > '9') reader->fine = false;
        number = number * 10 + (unsigned)(c - '0');
    }
    if (number < low || number > high) reader->fine = false;
    reader->rest = str_skip(reader->rest, count);
    return number;
}

/* Read one of the bytes in `choice`. */
static char take_byte(struct reader *reader, const char *choice) {
    char byte = reader->rest.len ? reader->rest.at[0] : '\0';
    if (byte == '\0' || !strchr(choice, byte)) reader->fine = false;
    reader->rest = str_skip(reader->rest, 1);
    return byte;
}

static void skip_fraction(struct reader *reader) {
    if (!str_starts(reader->rest, STR("."))) return;
    size_t len = 1;
    while (len < reader->rest.len && reader->rest.at[len] >= '0' && reader->rest.at[len] <= '9')
        len++;
    if (len == 1) reader->fine = false;
    reader->rest = str_skip(reader->rest, len);
}

static int64_t take_date(struct reader *reader) {
    unsigned year = moment_take_number(reader, 4, 0, 9999);
    take_byte(reader, "-");
    unsigned month = moment_take_number(reader, 2, 1, 12);
    take_byte(reader, "-");
    unsigned day = moment_take_number(reader, 2, 1, 31);
    if (!reader->fine) return 0;
    if (day > moment_month_days(year, month)) reader->fine = false;
    return moment_days(year, month, day);
}

static int64_t take_time(struct reader *reader) {
    int64_t hour = moment_take_number(reader, 2, 0, 23);
    take_byte(reader, ":");
    int64_t minute = moment_take_number(reader, 2, 0, 59);
    take_byte(reader, ":");
    int64_t second = moment_take_number(reader, 2, 0, 60);
    skip_fraction(reader);
    return hour * 3600 + minute * 60 + second;
}

static int64_t take_offset(struct reader *reader) {
    char sign = take_byte(reader, "Zz+-");
    if (sign == 'Z' || sign == 'z') return 0;
    int64_t hours = moment_take_number(reader, 2, 0, 23);
    take_byte(reader, ":");
    int64_t minutes = moment_take_number(reader, 2, 0, 59);
    int64_t offset = hours * 3600 + minutes * 60;
    return sign == '-' ? -offset : offset;
}

bool moment_read(struct str text, int64_t *ret_unix_s, struct err *e) {
    struct reader reader = {.rest = text, .fine = true};
    int64_t days = take_date(&reader);
    take_byte(&reader, "Tt ");
    int64_t in_day = take_time(&reader);
    int64_t offset = take_offset(&reader);
    if (!reader.fine || reader.rest.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT
                       "' is not a time like 2026-03-01T12:00:00+01:00 (with Z or an "
                       "offset at its end)",
                       STR_ARG(str_head(text, 40)));
    *ret_unix_s = days * MOMENT_DAY_S + in_day - offset;
    return true;
}

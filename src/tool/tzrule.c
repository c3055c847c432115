#include "tool/tzrule.h"

#include "wire/moment.h"

#define HOUR_S 3600
#define OFFSET_HOURS_MAX 24
#define RULE_HOURS_MAX 167
#define RULE_TIME_S (2 * HOUR_S) /* the default */
#define LAST_WEEK 5

/* ---- Reading ---- */

static bool tzrule_is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool tzrule_take(struct str *rest, char byte) {
    if (!rest->len || rest->at[0] != byte) return false;
    *rest = str_skip(*rest, 1);
    return true;
}

static bool tzrule_take_number(struct str *rest, unsigned low, unsigned high, unsigned *ret) {
    size_t len = 0;
    uint64_t number;
    while (len < rest->len && len < 4 && tzrule_is_digit(rest->at[len])) len++;
    if (!str_to_u64(str_head(*rest, len), &number) || number < low || number > high)
        return false;
    *rest = str_skip(*rest, len);
    *ret = (unsigned)number;
    return true;
}

/* Three letters or more, or any text in angle brackets. */
static bool skip_name(struct str *rest) {
    if (tzrule_take(rest, '<')) {
        size_t end = str_find_byte(*rest, '>');
        if (end == 0 || end == rest->len) return false;
        *rest = str_skip(*rest, end + 1);
        return true;
    }
    size_t len = 0;
    while (len < rest->len && ((rest->at[len] >= 'A' && rest->at[len] <= 'Z') ||
                               (rest->at[len] >= 'a' && rest->at[len] <= 'z')))
        len++;
    *rest = str_skip(*rest, len);
    return len >= 3;
}

/* Read "-1", "5:30" or "10:00:00" as seconds. */
static bool take_time(struct str *rest, unsigned hours_max, int32_t *ret) {
    unsigned hours, minutes = 0, seconds = 0;
    bool negative = tzrule_take(rest, '-');
    if (!negative) (void)tzrule_take(rest, '+');
    if (!tzrule_take_number(rest, 0, hours_max, &hours)) return false;
    if (tzrule_take(rest, ':')) {
        if (!tzrule_take_number(rest, 0, 59, &minutes)) return false;
        if (tzrule_take(rest, ':') && !tzrule_take_number(rest, 0, 59, &seconds)) return false;
    }
    int32_t time_s = (int32_t)(hours * HOUR_S + minutes * 60 + seconds);
    *ret = negative ? -time_s : time_s;
    return true;
}

static bool take_offset(struct str *rest, int32_t *ret) {
    int32_t west_s;
    if (!take_time(rest, OFFSET_HOURS_MAX, &west_s)) return false;
    *ret = -west_s;
    return true;
}

static bool take_date(struct str *rest, struct tzrule_day *ret) {
    if (tzrule_take(rest, 'M')) {
        ret->kind = 'M';
        return tzrule_take_number(rest, 1, 12, &ret->month) && tzrule_take(rest, '.') &&
               tzrule_take_number(rest, 1, LAST_WEEK, &ret->week) && tzrule_take(rest, '.') &&
               tzrule_take_number(rest, 0, 6, &ret->day);
    }
    if (tzrule_take(rest, 'J')) {
        ret->kind = 'J';
        return tzrule_take_number(rest, 1, 365, &ret->day);
    }
    ret->kind = 'n';
    return tzrule_take_number(rest, 0, 365, &ret->day);
}

static bool take_day(struct str *rest, struct tzrule_day *ret) {
    *ret = (struct tzrule_day){.time_s = RULE_TIME_S};
    if (!tzrule_take(rest, ',') || !take_date(rest, ret)) return false;
    return !tzrule_take(rest, '/') || take_time(rest, RULE_HOURS_MAX, &ret->time_s);
}

static bool take_rule(struct str *rest, struct tzrule *rule) {
    if (!skip_name(rest) || !take_offset(rest, &rule->offset_s)) return false;
    if (rest->len == 0) return true;
    rule->summer = true;
    rule->summer_offset_s = rule->offset_s + HOUR_S;
    if (!skip_name(rest)) return false;
    if (rest->len && rest->at[0] != ',' && !take_offset(rest, &rule->summer_offset_s))
        return false;
    return take_day(rest, &rule->from) && take_day(rest, &rule->until) && rest->len == 0;
}

bool tzrule_read(struct str text, struct tzrule *ret, struct err *e) {
    struct str rest = text;
    struct tzrule rule = {0};
    if (!take_rule(&rest, &rule))
        return err_set(e, ERR_MALFORMED, "no rule for changing clocks: '" STR_FMT "'",
                       STR_ARG(str_head(text, 64)));
    *ret = rule;
    return true;
}

/* ---- Asking ---- */

static int64_t weekday_in_month(int64_t year, const struct tzrule_day *day) {
    int64_t first = moment_days(year, day->month, 1);
    int64_t weekday = ((first + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday; 0 is Sunday */
    int64_t in_month = ((int64_t)day->day - weekday + 7) % 7 + 7 * ((int64_t)day->week - 1);
    while (in_month >= (int64_t)moment_month_days(year, day->month)) in_month -= 7;
    return first + in_month;
}

/* The time of a change in `year`, when clocks were `offset_s` ahead before it. */
static int64_t change(int64_t year, const struct tzrule_day *day, int32_t offset_s) {
    int64_t days = moment_days(year, 1, 1) + day->day;
    if (day->kind == 'M') days = weekday_in_month(year, day);
    /* Day 60 is always March 1, even in a leap year. */
    if (day->kind == 'J') days -= moment_leap_year(year) && day->day >= 60 ? 0 : 1;
    return days * MOMENT_DAY_S + day->time_s - offset_s;
}

int32_t tzrule_offset(const struct tzrule *rule, int64_t unix_s) {
    if (!rule->summer) return rule->offset_s;
    int64_t local = unix_s + rule->offset_s;
    int64_t days = local / MOMENT_DAY_S - (local % MOMENT_DAY_S < 0 ? 1 : 0);
    int64_t year = moment_year(days);
    int64_t from = change(year, &rule->from, rule->offset_s);
    int64_t until = change(year, &rule->until, rule->summer_offset_s);

    bool summer = from < until ? unix_s >= from && unix_s < until  /* northern hemisphere */
                               : unix_s >= from || unix_s < until; /* southern hemisphere */
    return summer ? rule->summer_offset_s : rule->offset_s;
}

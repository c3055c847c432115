#include "base/units.h"

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: a value is written in the first unit that divides it. */
static const struct unit durations[] = {
    {"h", UINT64_C(3600000000)}, {"m", 60000000}, {"s", 1000000}, {"ms", 1000}, {"us", 1},
};
static const struct unit sizes[] = {
    {"GiB", 1024 * MIB},
    {"MiB", MIB},
    {"KiB", KIB},
    {"B", 1},
};

/* With more decimals no unit gives a whole number. */
#define FRACTION_DIGITS_MAX 9

/* Scale the decimals: "5" with factor 1000 is 500. False when the result is not whole. */
static bool scale_fraction(struct str digits, uint64_t factor, uint64_t *ret) {
    uint64_t part, ten = 1;
    if (digits.len > FRACTION_DIGITS_MAX || !str_to_u64(digits, &part)) return false;
    for (size_t i = 0; i < digits.len; i++) ten *= 10;
    part *= factor; /* cannot overflow: below 10^9 times 3.6 * 10^9 */
    if (part % ten != 0) return false;
    *ret = part / ten;
    return true;
}

static bool scale(struct str number, uint64_t factor, uint64_t *ret) {
    struct str fraction;
    struct str whole = str_split(number, '.', &fraction);
    uint64_t total, part = 0;
    if (!str_to_u64(whole, &total)) return false;
    if (fraction.at && !scale_fraction(fraction, factor, &part)) return false;
    if (__builtin_mul_overflow(total, factor, &total)) return false;
    return !__builtin_add_overflow(total, part, ret);
}

/* Length of the number, which is where the unit begins. */
static size_t number_len(struct str text) {
    size_t len = 0;
    while (len < text.len &&
           (text.at[len] == '.' || (text.at[len] >= '0' && text.at[len] <= '9')))
        len++;
    return len;
}

static bool measure(struct str text, const struct unit *units, size_t unit_count,
                    const char *what, const char *like, uint64_t *ret, struct err *e) {
    size_t split = number_len(text);
    struct str number = str_head(text, split), unit = str_trim(str_skip(text, split));

    if (str_equal(text, STR("0"))) {
        *ret = 0;
        return true;
    }
    if (number.len && unit.len == 0)
        return err_set(e, ERR_MALFORMED, "'" STR_FMT "' has no unit; write it like %s",
                       STR_ARG(text), like);
    for (size_t i = 0; i < unit_count; i++) {
        if (!str_equal(unit, str_from(units[i].name))) continue;
        if (scale(number, units[i].factor, ret)) return true;
        break;
    }
    return err_set(e, ERR_MALFORMED, "'" STR_FMT "' is not a %s; write it like %s",
                   STR_ARG(str_head(text, 40)), what, like);
}

bool units_duration(struct str text, uint64_t *ret_us, struct err *e) {
    return measure(text, durations, ARRAY_LEN(durations), "duration", "20ms, 1.5s or 5m",
                   ret_us, e);
}

bool units_size(struct str text, uint64_t *ret_bytes, struct err *e) {
    return measure(text, sizes, ARRAY_LEN(sizes), "size", "30000B, 256KiB or 4MiB", ret_bytes,
                   e);
}

static bool units_append(struct buf *out, uint64_t number, const struct unit *units) {
    if (number == 0) return buf_append_byte(out, '0');
    while (number % units->factor != 0) units++; /* the last factor is 1 */
    buf_append_u64(out, number / units->factor);
    return buf_append(out, str_from(units->name));
}

bool units_append_duration(struct buf *out, uint64_t us) {
    return units_append(out, us, durations);
}

bool units_append_size(struct buf *out, uint64_t bytes) {
    return units_append(out, bytes, sizes);
}

#include "record/turn_line.h"

#include "base/buf.h"
#include "base/log.h"
#include "provider/price.h"

#include <inttypes.h>

#define LINE_MAX_BYTES (4 * KIB)

/* Names chosen by a caller are cut to this length in the line. */
#define NAME_SHOWN_BYTES 128

static void sum_add(struct turn_sum *sum, int64_t counted) {
    sum->calls++;
    if (counted < 0) {
        sum->open++;
    } else if (__builtin_add_overflow(sum->known, counted, &sum->known)) {
        sum->known = INT64_MAX;
    }
}

void turn_sums_add(struct turn_sums *sums, const struct event_usage *usage) {
    sum_add(&sums->prompt, usage->prompt);
    sum_add(&sums->completion, usage->completion);
    sum_add(&sums->cost_nano, usage->cost_nano);
}

static bool is_unknown(const struct turn_sum *sum) {
    return sum->calls > 0 && sum->open == sum->calls;
}

static void append_count(struct buf *line, const struct turn_sum *sum, const char *what) {
    if (is_unknown(sum)) {
        buf_printf(line, ", %s unknown", what);
    } else {
        buf_printf(line, ", %" PRId64 "%s %s", sum->known, sum->open ? "+" : "", what);
    }
}

static void append_cost(struct buf *line, const struct turn_sum *sum) {
    if (is_unknown(sum)) {
        buf_append(line, STR(", cost unknown"));
        return;
    }
    buf_append(line, STR(", $"));
    price_append_dollars(line, sum->known);
    if (sum->open) buf_append_byte(line, '+');
}

static void turn_line_append_name(struct buf *line, const char *what, struct str name) {
    if (!name.len) return;
    buf_printf(line, "%s " STR_FMT, what, STR_ARG(str_head(name, NAME_SHOWN_BYTES)));
}

void turn_line_log(const struct turn_end *end, const struct turn_sums *sums) {
    struct buf line;
    if (!log_wants(LOG_INFO)) return;
    buf_init(&line, LINE_MAX_BYTES);
    buf_printf(&line, "turn %" PRIu64 " ended:", end->run);
    turn_line_append_name(&line, " workspace", end->workspace);
    turn_line_append_name(&line, ", user", end->user);
    turn_line_append_name(&line, ", session", end->session);
    turn_line_append_name(&line, ", agent", end->agent);
    turn_line_append_name(&line, ", model", end->model);
    append_count(&line, &sums->prompt, "tokens in");
    append_count(&line, &sums->completion, "tokens out");
    append_cost(&line, &sums->cost_nano);
    buf_printf(&line, ", %" PRIu64 ".%03u s", end->took_ms / 1000,
               (unsigned)(end->took_ms % 1000));
    turn_line_append_name(&line, ",", end->state);
    turn_line_append_name(&line, ":", end->reason);
    log_info(STR_FMT, STR_ARG(buf_str(&line)));
    buf_done(&line);
}

#include "run/leaving.h"

#include "base/units.h"
#include "run/inner.h"

#define LOOK_AGAIN_MS 1000 /* at least, while somebody reads or a human is asked */
#define FOR "detach-for="

/* --- as text ------------------------------------------------------------------------------ */

static bool refuse(struct str text, const char *why, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'" STR_FMT "' %s; say cancel, detach, or " FOR "30s with any time",
                   STR_ARG(str_head(text, 40)), why);
}

bool leaving_parse(struct str text, struct leaving *ret, struct err *e) {
    struct leaving leaving = {.how = LEAVING_DETACHES};
    uint64_t us;
    if (str_equal(text, STR("cancel"))) {
        leaving.how = LEAVING_CANCELS;
    } else if (str_starts(text, STR(FOR))) {
        struct err why;
        struct str time = str_skip(text, STR(FOR).len);
        if (!units_duration(time, &us, &why)) return refuse(text, "has no time such as 30s", e);
        if (us == 0 || us % 1000) {
            return refuse(text, "is not a whole number of milliseconds above 0", e);
        }
        leaving.for_ms = us / 1000;
    } else if (!str_equal(text, STR("detach"))) {
        return refuse(text, "is no way to leave a run", e);
    }
    *ret = leaving;
    return true;
}

void leaving_append(struct leaving leaving, struct buf *out) {
    if (leaving.how == LEAVING_CANCELS) {
        buf_append(out, STR("cancel"));
    } else if (leaving.for_ms == 0) {
        buf_append(out, STR("detach"));
    } else {
        buf_append(out, STR(FOR));
        units_append_duration(out, leaving.for_ms * 1000);
    }
}

/* --- the run ------------------------------------------------------------------------------ */

void run_leave(struct run *run, struct leaving leaving, struct str why) {
    if (run->ending_begun) return;
    if (leaving.how == LEAVING_NOBODY) {
        run_cancel(run, why);
        return;
    }
    if (leaving.how == LEAVING_CANCELS) {
        run_cancel_left(run, why);
        return;
    }
    run->alone_ms = leaving.for_ms;
    if (leaving.for_ms) {
        timer_start(&run->alone, leaving.for_ms);
    } else {
        timer_stop(&run->alone);
    }
}

/* Nobody tells the run that a reader came or went. It need not know: whoever left since the
 * timer was set is asked for again when his time is over. */
void run_alone(void *ctx) {
    struct run *run = ctx;
    uint64_t now_ms = loop_now_ms(run->record.host->loop), left_ms;
    size_t readers = journal_readers(run->record.journal, &left_ms);
    uint64_t until_ms = left_ms + run->alone_ms;
    if (readers || run->state == RUN_WAITING) {
        timer_start(&run->alone, run->alone_ms > LOOK_AGAIN_MS ? run->alone_ms : LOOK_AGAIN_MS);
    } else if (until_ms > now_ms) {
        timer_start(&run->alone, until_ms - now_ms);
    } else {
        run_cancel_left(run, STR("the caller left, and nobody came back in time"));
    }
}

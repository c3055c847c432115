#include "session/leaving.h"

#include "base/units.h"

#define FOR "detach-for="

static bool leaving_refuse(struct str text, const char *why, struct err *e) {
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
        if (!units_duration(time, &us, &why))
            return leaving_refuse(text, "has no time such as 30s", e);
        if (us == 0 || us % 1000) {
            return leaving_refuse(text, "is not a whole number of milliseconds above 0", e);
        }
        leaving.for_ms = us / 1000;
    } else if (!str_equal(text, STR("detach"))) {
        return leaving_refuse(text, "is not a way to leave a run", e);
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

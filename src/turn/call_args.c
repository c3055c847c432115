#include "turn/call_args.h"

#include "base/utf8.h"
#include "turn/turn.h"
#include "wire/json.h"

#define NAME_SHOWN_BYTES 80
#define ARGS_SHOWN_BYTES 120

/* --- keeping ------------------------------------------------------------------------------ */

/* False: it is not the surrogates that make it unreadable, or the run has failed. */
static bool keep_mended(struct turn_call *call, struct str text) {
    struct buf mended;
    buf_init(&mended, text.len + 1);
    json_mend_surrogates(text, &mended);
    bool kept = json_reads_as_object(buf_str(&mended)) &&
                run_keep(call->run, buf_str(&mended), &call->args);
    buf_done(&mended);
    return kept;
}

bool call_args_keep(struct turn_call *call, struct str text) {
    call->args = STR("{}");
    if (str_trim(text).len == 0) return true;
    if (json_reads_as_object(text)) return run_keep(call->run, text, &call->args);
    if (keep_mended(call, text)) return true;
    return !call->run->ending_begun && run_keep(call->run, text, &call->unread_args);
}

/* --- telling the model -------------------------------------------------------------------- */

bool call_args_check(const struct turn_call *call, struct err *e) {
    struct str text = call->unread_args;
    struct str tool = str_head(call->tool, utf8_cut(call->tool, NAME_SHOWN_BYTES));
    struct str shown = str_head(text, utf8_cut(text, ARGS_SHOWN_BYTES));
    const char *more = shown.len < text.len ? "..." : "";
    struct json value;
    struct err why;
    if (!text.len) return true;
    if (json_read(text, &value, &why))
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "tool '" STR_FMT
            "' was not called: its arguments must be one JSON object, not %s: " STR_FMT "%s",
            STR_ARG(tool), json_kind_name(value.kind), STR_ARG(shown), more);
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "tool '" STR_FMT "' was not called: its arguments are not one JSON object: "
                   "%s; they were: " STR_FMT "%s",
                   STR_ARG(tool), why.text, STR_ARG(shown), more);
}

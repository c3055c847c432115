/* arguments: what a client passes to an agent. */
#include "base/id.h"
#include "contract/event_id.h"
#include "contract/mcp/agent_call.h"

static bool arguments_read_text(struct json arguments, const char *key, struct arena *arena,
                                struct str *ret, struct err *e) {
    struct json value = json_find(arguments, str_from(key));
    *ret = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", key,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s is longer than a call may hold", key);
}

static bool read_approval(struct str text, struct agent_call *ret, struct err *e) {
    return text.len == 0 || event_id_read(text, &ret->approval_run, &ret->approval_seq) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "approval is not the id of a question; pass the one that the waiting answer "
                   "had");
}

static bool check_keys(struct json arguments, struct err *e) {
    static const char *const keys[] = {"message", "session", "approval", NULL};
    struct json_reader reader = json_enter(arguments);
    struct json key, value;
    while (json_next_member(&reader, &key, &value)) {
        size_t i = 0;
        while (keys[i] && !json_is(key, str_from(keys[i]))) i++;
        if (!keys[i])
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "there is no argument " STR_FMT
                           "; an agent takes message, session and approval",
                           STR_ARG(str_head(key.raw, 100)));
    }
    return json_check_once(arguments, keys, e);
}

bool agent_call_read(struct json arguments, struct arena *arena, struct agent_call *ret,
                     struct err *e) {
    struct str approval = STR_EMPTY;
    if (!check_keys(arguments, e) ||
        !arguments_read_text(arguments, "message", arena, &ret->message, e) ||
        !arguments_read_text(arguments, "session", arena, &ret->name.session, e) ||
        !arguments_read_text(arguments, "approval", arena, &approval, e))
        return false;
    if (ret->message.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "message is missing: say what the agent is to do");
    if (approval.len && !ret->name.session.len)
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "an approval needs its session; pass the one that the waiting answer had");
    return (!ret->name.session.len || id_check("session", ret->name.session, e)) &&
           read_approval(approval, ret, e);
}

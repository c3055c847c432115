/* state_write: the tool that changes the state of the application which a user works with.
 *
 * Each member of `state` replaces the member of that name; the others stay. The tool itself keeps
 * nothing: a contract whose callers have a state (contract/agui) shows each call that succeeded as a
 * change of it. For all others a call has no effect.
 */
#include "tool/computed.h"
#include "tool/local.h"

/* The model sees which members it has changed; their values are in its call. */
static bool write_state(struct json args, struct arena *arena, struct buf *out, struct err *e) {
    struct json state = json_find(args, STR("state")), key, value;
    struct json_reader reader = json_enter(state);
    (void)arena;
    if (state.kind != JSON_OBJECT || json_count(state) == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'state' must be an object with the members that change");
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_array(&w, "written");
    while (json_next_member(&reader, &key, &value)) json_write_raw(&w, key.raw);
    json_close(&w);
    json_close(&w);
    return true;
}

const struct computed state_write_tool = {
    .name = STR_INIT(STATE_WRITE_TOOL),
    .description = STR_INIT("Change the state of the application that the user sees."),
    .parameters = STR_INIT(
        "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"state\"],"
        "\"properties\":{"
        "\"state\":{\"type\":\"object\",\"minProperties\":1,"
        "\"description\":\"Each member replaces the member of that name in the state; the "
        "others stay as they are.\"}," LOCAL_DESCRIPTION "}}"),
    .idempotent = true,
    .compute = write_state,
};

#include "contract/agui/request.h"

#include "base/id.h"
#include "contract/event_id.h"
#include "contract/request_reading.h"

#define BACKGROUND_MAX_BYTES (16 * MIB)
#define RUN_NAME_MAX_BYTES 256

enum key { THREAD, RUN, MESSAGES, TOOLS, STATE, CONTEXT, FORWARDED, RESUME, KEYS };

static const struct str keys[KEYS] = {
    STR_INIT("threadId"), STR_INIT("runId"),   STR_INIT("messages"),       STR_INIT("tools"),
    STR_INIT("state"),    STR_INIT("context"), STR_INIT("forwardedProps"), STR_INIT("resume")};

/* Read twice by two readers they would mean two things. */
static const char *const once[] = {"threadId", "runId",  "messages", "tools",
                                   "state",    "resume", NULL};

static bool agui_request_take_text(struct request_reading *reading, struct json value,
                                   const char *name, struct str *ret) {
    if (value.kind != JSON_STRING)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", name,
                       json_kind_name(value.kind));
    return json_str(value, reading->arena, ret) || request_too_large(reading);
}

static bool take_names(struct request_reading *reading, const struct json *found,
                       struct run_input *ret) {
    if (!agui_request_take_text(reading, found[THREAD], "threadId", &ret->thread) ||
        !id_check("threadId", ret->thread, reading->e) ||
        !agui_request_take_text(reading, found[RUN], "runId", &ret->run))
        return false;
    return ret->run.len <= RUN_NAME_MAX_BYTES ||
           err_set(reading->e, ERR_INVALID_ARGUMENT, "runId has more than %d bytes",
                   RUN_NAME_MAX_BYTES);
}

/* --- the answer to an interrupt ----------------------------------------------------------- */

/* Any text that is no event's id names a question that does not exist. */
static void take_question(struct str id, struct guest_request *ret) {
    if (!event_id_read(id, &ret->approval_run, &ret->approval_seq))
        ret->approval_run = ret->approval_seq = UINT64_MAX;
}

/* The payload is the decision: words, or JSON in a form of session/decision.h. */
static bool take_payload(struct request_reading *reading, struct json entry, struct str *ret) {
    struct json payload = json_find(entry, STR("payload"));
    if (json_is(json_find(entry, STR("status")), STR("cancelled"))) {
        *ret = STR("{\"decision\":\"refuse\"}");
        return true;
    }
    if (json_is_absent(payload))
        return err_set(reading->e, ERR_INVALID_ARGUMENT,
                       "resume[0].payload is missing; send {\"approved\":true}, "
                       "{\"approved\":false} or {\"decision\":\"edit\",\"args\":{...}}");
    return (payload.kind == JSON_STRING ? json_str(payload, reading->arena, ret)
                                        : json_compact_copy(payload, reading->arena, ret)) ||
           request_too_large(reading);
}

static bool take_resume(struct request_reading *reading, struct json list,
                        struct guest_request *ret) {
    struct json entry = json_at(list, 0);
    struct str id;
    if (json_is_absent(list) || (list.kind == JSON_ARRAY && json_count(list) == 0)) return true;
    if (list.kind != JSON_ARRAY || json_count(list) != 1)
        return err_set(reading->e, ERR_INVALID_ARGUMENT,
                       "resume must be an array of one answer: a run asks one question at a "
                       "time");
    if (!agui_request_take_text(reading, json_find(entry, STR("interruptId")),
                                "resume[0].interruptId", &id) ||
        !take_payload(reading, entry, &ret->text))
        return false;
    take_question(id, ret);
    ret->decides = true;
    return true;
}

/* --- tools -------------------------------------------------------------------------------- */

static bool take_tool(struct request_reading *reading, struct json from, size_t index,
                      struct tool_offer *ret) {
    struct json description = json_find(from, STR("description"));
    struct json parameters = json_find(from, STR("parameters"));
    struct err why;
    struct request_reading inner = {.arena = reading->arena, .e = &why};
    *ret = (struct tool_offer){.description = STR_EMPTY, .parameters = STR_EMPTY};
    if (!agui_request_take_text(&inner, json_find(from, STR("name")), "name", &ret->name) ||
        (!json_is_absent(description) &&
         !agui_request_take_text(&inner, description, "description", &ret->description)))
        return err_set(reading->e, why.code, "tools[%zu].%s", index, why.text);
    return json_is_absent(parameters) ||
           json_compact_copy(parameters, reading->arena, &ret->parameters) ||
           request_too_large(reading);
}

static bool take_tools(struct request_reading *reading, struct json list,
                       struct guest_request *ret) {
    if (!json_is_absent(list) && list.kind != JSON_ARRAY)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "tools must be an array, not %s",
                       json_kind_name(list.kind));
    return request_take_tool_list(reading, list, take_tool, ret);
}

/* --- what the application says ------------------------------------------------------------ */

static bool is_empty(struct json value) {
    bool container = value.kind == JSON_OBJECT || value.kind == JSON_ARRAY;
    return json_is_absent(value) || (container && json_count(value) == 0);
}

static void write_background(const struct json *found, struct buf *out) {
    struct json_reader reader = json_enter(found[CONTEXT]);
    struct json item;
    while (json_next_item(&reader, &item)) {
        if (out->len) buf_append(out, STR("\n"));
        json_text(json_find(item, STR("description")), out);
        buf_append(out, STR(": "));
        json_text(json_find(item, STR("value")), out);
    }
    if (is_empty(found[STATE])) return;
    if (out->len) buf_append(out, STR("\n"));
    buf_append(out, STR("The state of the application, as JSON: "));
    json_compact(found[STATE].raw, out);
}

/* {"metadata":{"state":...,"context":...,"forwardedProps":...}} */
static bool take_extras(struct request_reading *reading, const struct json *found,
                        struct str *ret) {
    static const enum key parts[] = {STATE, CONTEXT, FORWARDED};
    struct buf out;
    buf_init(&out, BACKGROUND_MAX_BYTES);
    struct json_writer json = json_writer(&out);
    size_t count = 0;
    json_open_object(&json);
    json_member_object(&json, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (is_empty(found[parts[i]])) continue;
        json_key(&json, keys[parts[i]]);
        json_write_raw(&json, found[parts[i]].raw);
        count++;
    }
    json_close(&json);
    json_close(&json);
    bool fits = count == 0 || (buf_ok(&out) && arena_str(reading->arena, buf_str(&out), ret));
    buf_done(&out);
    return fits || request_too_large(reading);
}

/* --- messages ----------------------------------------------------------------------------- */

static bool take_messages(struct request_reading *reading, const struct json *found,
                          struct guest_request *ret) {
    struct import import;
    struct buf background;
    struct str first = STR_EMPTY;
    bool reads = import_read_agui(found[MESSAGES], reading->arena, &import, reading->e);
    buf_init(&background, BACKGROUND_MAX_BYTES);
    write_background(found, &background);
    bool fits = buf_ok(&background) && arena_str(reading->arena, buf_str(&background), &first);
    buf_done(&background);
    if (reads && !fits) return request_too_large(reading);
    return request_take_conversation(reading, reads, &import, first, ret);
}

bool run_input_parse(struct str body, struct arena *arena, struct run_input *ret,
                     struct guest_request *ret_request, struct err *e) {
    struct request_reading reading = {.arena = arena, .e = e};
    struct json whole, found[KEYS];
    *ret_request = (struct guest_request){.brought = BROUGHT_WHOLE, .streams = true};
    if (!json_read(body, &whole, e)) return false;
    if (whole.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "the body must be a RunAgentInput, not %s",
                       json_kind_name(whole.kind));
    if (!json_check_once(whole, once, e)) return false;
    json_find_each(whole, keys, KEYS, found);
    if (!take_names(&reading, found, ret) ||
        !take_resume(&reading, found[RESUME], ret_request) ||
        !take_tools(&reading, found[TOOLS], ret_request) ||
        !take_extras(&reading, found, &ret_request->extras))
        return false;
    ret_request->session = ret->thread;
    ret->has_state = found[STATE].kind == JSON_OBJECT;
    return ret_request->decides || take_messages(&reading, found, ret_request);
}

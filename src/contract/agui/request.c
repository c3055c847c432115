#include "contract/agui/request.h"

#include "base/id.h"
#include "conversation/import.h"

#include <string.h>

#define BACKGROUND_MAX_BYTES (16 * MIB)
#define RUN_NAME_MAX_BYTES 256

enum key { THREAD, RUN, MESSAGES, TOOLS, STATE, CONTEXT, FORWARDED, RESUME, KEYS };

static const struct str keys[KEYS] = {
    STR_INIT("threadId"), STR_INIT("runId"),   STR_INIT("messages"),       STR_INIT("tools"),
    STR_INIT("state"),    STR_INIT("context"), STR_INIT("forwardedProps"), STR_INIT("resume")};

/* Read twice by two readers they would mean two things. */
static const char *const once[] = {"threadId", "runId",  "messages", "tools",
                                   "state",    "resume", NULL};

static bool too_large(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool take_text(struct json value, const char *name, struct arena *arena, struct str *ret,
                      struct err *e) {
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", name,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) || too_large(e);
}

static bool take_names(const struct json *found, struct arena *arena, struct run_input *ret,
                       struct err *e) {
    if (!take_text(found[THREAD], "threadId", arena, &ret->thread, e) ||
        !id_check("threadId", ret->thread, e) ||
        !take_text(found[RUN], "runId", arena, &ret->run, e))
        return false;
    return ret->run.len <= RUN_NAME_MAX_BYTES ||
           err_set(e, ERR_INVALID_ARGUMENT, "runId has more than %d bytes", RUN_NAME_MAX_BYTES);
}

/* --- the answer to an interrupt ----------------------------------------------------------- */

/* "<run>-<seq>"; any other text names a question that does not exist. */
static void take_question(struct str id, struct guest_request *ret) {
    struct str seq, run = str_split(id, '-', &seq);
    bool reads = seq.at && str_to_u64(run, &ret->approval_run) &&
                 str_to_u64(seq, &ret->approval_seq) && ret->approval_run && ret->approval_seq;
    if (!reads) ret->approval_run = ret->approval_seq = UINT64_MAX;
}

/* The payload is the decision: words, or JSON in a form of session/decision.h. */
static bool take_payload(struct json entry, struct arena *arena, struct str *ret,
                         struct err *e) {
    struct json payload = json_find(entry, STR("payload"));
    if (json_is(json_find(entry, STR("status")), STR("cancelled"))) {
        *ret = STR("{\"decision\":\"refuse\"}");
        return true;
    }
    if (json_is_absent(payload))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "resume[0].payload is missing; send {\"approved\":true}, "
                       "{\"approved\":false} or {\"decision\":\"edit\",\"args\":{...}}");
    return (payload.kind == JSON_STRING ? json_str(payload, arena, ret)
                                        : json_compact_copy(payload, arena, ret)) ||
           too_large(e);
}

static bool take_resume(struct json list, struct arena *arena, struct guest_request *ret,
                        struct err *e) {
    struct json entry = json_at(list, 0);
    struct str id;
    if (json_is_absent(list) || (list.kind == JSON_ARRAY && json_count(list) == 0)) return true;
    if (list.kind != JSON_ARRAY || json_count(list) != 1)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "resume must be an array of one answer: a run asks one question at a "
                       "time");
    if (!take_text(json_find(entry, STR("interruptId")), "resume[0].interruptId", arena, &id,
                   e) ||
        !take_payload(entry, arena, &ret->text, e))
        return false;
    take_question(id, ret);
    ret->decides = true;
    return true;
}

/* --- tools -------------------------------------------------------------------------------- */

static bool read_tool(struct json from, size_t index, struct arena *arena,
                      struct tool_offer *ret, struct err *e) {
    struct json description = json_find(from, STR("description"));
    struct json parameters = json_find(from, STR("parameters"));
    struct err why;
    *ret = (struct tool_offer){.description = STR_EMPTY, .parameters = STR_EMPTY};
    if (!take_text(json_find(from, STR("name")), "name", arena, &ret->name, &why) ||
        (!json_is_absent(description) &&
         !take_text(description, "description", arena, &ret->description, &why)))
        return err_set(e, why.code, "tools[%zu].%s", index, why.text);
    return json_is_absent(parameters) ||
           json_compact_copy(parameters, arena, &ret->parameters) || too_large(e);
}

static bool take_tools(struct json list, struct arena *arena, struct guest_request *ret,
                       struct err *e) {
    struct json_reader reader = json_enter(list);
    struct json item;
    if (json_is_absent(list)) return true;
    if (list.kind != JSON_ARRAY)
        return err_set(e, ERR_INVALID_ARGUMENT, "tools must be an array, not %s",
                       json_kind_name(list.kind));
    struct tool_offer *tools = arena_alloc(arena, (json_count(list) + 1) * sizeof(*tools));
    if (!tools) return too_large(e);
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!read_tool(item, i, arena, &tools[i], e)) return false;
        ret->tool_count = i + 1;
    }
    ret->tools = tools;
    return true;
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
static bool take_extras(const struct json *found, struct arena *arena, struct str *ret,
                        struct err *e) {
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
    bool fits = count == 0 || (buf_ok(&out) && arena_str(arena, buf_str(&out), ret));
    buf_done(&out);
    return fits || too_large(e);
}

/* --- messages ----------------------------------------------------------------------------- */

static bool precede(struct str background, struct import *import, struct arena *arena) {
    struct str text;
    if (!background.len) return true;
    struct message *messages = arena_alloc(arena, (import->count + 1) * sizeof(struct message));
    if (!messages || !arena_str(arena, background, &text)) return false;
    messages[0] = (struct message){.role = MESSAGE_SYSTEM, .text = text};
    memcpy(messages + 1, import->messages, import->count * sizeof(struct message));
    *import = (struct import){messages, import->count + 1};
    return true;
}

static bool take_messages(const struct json *found, struct arena *arena,
                          struct guest_request *ret, struct err *e) {
    struct import import;
    struct buf background;
    if (!import_read_agui(found[MESSAGES], arena, &import, e)) {
        if (e->code == ERR_RESOURCE_EXHAUSTED) e->code = ERR_TOO_LARGE;
        return false;
    }
    buf_init(&background, BACKGROUND_MAX_BYTES);
    write_background(found, &background);
    bool fits = buf_ok(&background) && precede(buf_str(&background), &import, arena);
    buf_done(&background);
    if (!fits) return too_large(e);
    const struct message *last = &import.messages[import.count - 1];
    if (last->role == MESSAGE_USER) ret->text = last->text;
    ret->messages = import.messages;
    ret->message_count = import.count;
    return true;
}

bool run_input_parse(struct str body, struct arena *arena, struct run_input *ret,
                     struct guest_request *ret_request, struct err *e) {
    struct json whole, found[KEYS];
    *ret_request = (struct guest_request){.brought = BROUGHT_WHOLE, .streams = true};
    if (!json_read(body, &whole, e)) return false;
    if (whole.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "the body must be a RunAgentInput, not %s",
                       json_kind_name(whole.kind));
    if (!json_check_once(whole, once, e)) return false;
    json_find_each(whole, keys, KEYS, found);
    if (!take_names(found, arena, ret, e) ||
        !take_resume(found[RESUME], arena, ret_request, e) ||
        !take_tools(found[TOOLS], arena, ret_request, e) ||
        !take_extras(found, arena, &ret_request->extras, e))
        return false;
    ret_request->session = ret->thread;
    ret->has_state = found[STATE].kind == JSON_OBJECT;
    return ret_request->decides || take_messages(found, arena, ret_request, e);
}

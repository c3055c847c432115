#include "turn/request_item.h"

#include "schema/schema.h"
#include "turn/turn.h"
#include "wire/json.h"

#define ITEM_MAX_BYTES (16 * MIB)

/* --- writing ------------------------------------------------------------------------------ */

static void write_tools(const struct caller_tools *tools, struct json_writer *json) {
    json_member_bool(json, "args_as_text", tools->args_as_text);
    json_member_array(json, "tools");
    for (size_t i = 0; i < tools->count; i++) {
        json_open_object(json);
        json_member_str(json, "name", tools->list[i].name);
        json_member_str(json, "description", tools->list[i].description);
        json_member_raw(json, "parameters", tools->list[i].parameters);
        json_close(json);
    }
    json_close(json);
}

static bool write_request(const struct run *run, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (run->request.schema) {
        json_member_raw(&json, "schema", run->request.schema_text);
        json_member_bool(&json, "schema_loose", run->request.schema_loose);
    }
    if (run->caller_tools.count) write_tools(&run->caller_tools, &json);
    json_close(&json);
    return buf_ok(out);
}

void run_append_request(struct run *run) {
    struct event event = {.kind = EVENT_ITEM, .item = {.type = STR(REQUEST_ITEM)}};
    struct buf bytes;
    if (run->request.on_record || !(run->request.schema || run->caller_tools.count)) return;
    run->request.on_record = true;
    buf_init(&bytes, ITEM_MAX_BYTES);
    if (write_request(run, &bytes)) {
        event.item.bytes = buf_str(&bytes);
        run_append(run, &event);
    } else {
        run_fail_memory(run);
    }
    buf_done(&bytes);
}

/* --- reading ------------------------------------------------------------------------------ */

/* What is raw stays where it is, in the arena: it may be half of what the run's memory holds. */
static bool restore_schema(struct run *run, struct json schema, struct json loose) {
    struct turn_request *request = &run->request;
    struct err e;
    if (json_is_absent(schema)) return true;
    request->schema_text = schema.raw;
    return json_bool(loose, &request->schema_loose) &&
           schema_read(request->schema_text, &request->schema, &e);
}

static bool read_tool(struct run *run, struct json from, struct tool_offer *ret) {
    struct json parameters = json_find(from, STR("parameters"));
    ret->parameters = parameters.raw;
    return json_str(json_find(from, STR("name")), run->arena, &ret->name) &&
           json_str(json_find(from, STR("description")), run->arena, &ret->description) &&
           parameters.kind == JSON_OBJECT;
}

/* What the model had to choose, it chose with the reply before the question. */
static bool restore_tools(struct run *run, struct json list, struct json as_text) {
    struct caller_tools *tools = &run->caller_tools;
    struct json_reader reader = json_enter(list);
    struct json item;
    if (json_is_absent(list)) return true;
    struct tool_offer *offers =
        arena_alloc(run->arena, (json_count(list) + 1) * sizeof(*offers));
    if (!offers || !json_bool(as_text, &tools->args_as_text)) return false;
    tools->list = offers;
    tools->choice_told = true;
    for (; json_next_item(&reader, &item); tools->count++) {
        if (!read_tool(run, item, &offers[tools->count])) return false;
    }
    return true;
}

bool run_restore_request(struct run *run, struct str bytes) {
    enum { SCHEMA, LOOSE, TOOLS, AS_TEXT, KEYS };
    static const struct str keys[KEYS] = {
        [SCHEMA] = STR_INIT("schema"),
        [LOOSE] = STR_INIT("schema_loose"),
        [TOOLS] = STR_INIT("tools"),
        [AS_TEXT] = STR_INIT("args_as_text"),
    };
    struct json whole, found[KEYS];
    struct str kept;
    struct err e;
    run->request.on_record = true;
    if (!run_keep(run, bytes, &kept) || !json_read(kept, &whole, &e)) return false;
    json_find_each(whole, keys, KEYS, found);
    return restore_schema(run, found[SCHEMA], found[LOOSE]) &&
           restore_tools(run, found[TOOLS], found[AS_TEXT]);
}

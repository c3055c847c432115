#include "agent/process_line.h"

#define CALLS_MAX 64
#define COUNT_MAX INT64_C(1000000000000)

static const struct {
    const char *name;
    enum process_line_kind kind;
} types[] = {
    {"text", PROCESS_TEXT}, {"thinking", PROCESS_THINKING}, {"step", PROCESS_STEP},
    {"call", PROCESS_CALL}, {"ask", PROCESS_ASK},           {"usage", PROCESS_USAGE},
    {"done", PROCESS_DONE}, {"error", PROCESS_ERROR},
};

static bool process_line_read_kind(struct json type, enum process_line_kind *ret,
                                   struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!json_is(type, str_from(types[i].name))) continue;
        *ret = types[i].kind;
        return true;
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "'type' is not one of text, thinking, step, call, ask, usage, done, error");
}

/* Read a member that is a string or absent. */
static bool process_line_read_text(struct json line, const char *key, struct arena *arena,
                                   struct str *ret, struct err *e) {
    struct json value = json_find(line, str_from(key));
    *ret = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "'%s' is %s and not a string", key,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "'%s' is too long", key);
}

/* --- calls -------------------------------------------------------------------------------- */

static bool check_call(struct json call, struct err *e) {
    struct json tool = json_find(call, STR("tool"));
    struct json args = json_find(call, STR("args"));
    if (tool.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "a call needs 'tool', the name of one");
    return args.kind == JSON_NONE || args.kind == JSON_OBJECT ||
           err_set(e, ERR_INVALID_ARGUMENT, "the 'args' of a call are %s and not an object",
                   json_kind_name(args.kind));
}

static bool read_calls(struct json line, struct json *ret, struct err *e) {
    struct json item;
    *ret = json_find(line, STR("calls"));
    size_t count = json_count(*ret);
    if (ret->kind != JSON_ARRAY || count == 0 || count > CALLS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "'calls' is a list of 1 to %d calls",
                       CALLS_MAX);
    struct json_reader reader = json_enter(*ret);
    while (json_next_item(&reader, &item)) {
        if (!check_call(item, e)) return false;
    }
    return true;
}

void process_call_read(struct json call, struct arena *arena, struct str *ret_tool,
                       struct str *ret_args) {
    struct json args = json_find(call, STR("args"));
    if (!json_str(json_find(call, STR("tool")), arena, ret_tool)) *ret_tool = STR_EMPTY;
    *ret_args = args.kind == JSON_OBJECT ? args.raw : STR("{}");
}

/* --- usage -------------------------------------------------------------------------------- */

static bool read_count(struct json line, const char *key, int64_t *ret, struct err *e) {
    struct json value = json_find(line, str_from(key));
    if (json_is_absent(value)) return true;
    return (json_i64(value, ret) && *ret >= 0 && *ret <= COUNT_MAX) ||
           err_set(e, ERR_INVALID_ARGUMENT, "'%s' is not a count of tokens", key);
}

static bool process_line_read_usage(struct json line, struct event_usage *ret, struct err *e) {
    *ret = USAGE_UNKNOWN;
    if (!read_count(line, "input", &ret->prompt, e) ||
        !read_count(line, "output", &ret->completion, e))
        return false;
    if (ret->prompt >= 0 && ret->completion >= 0) ret->total = ret->prompt + ret->completion;
    return true;
}

/* --- the line ----------------------------------------------------------------------------- */

static bool read_members(struct json line, struct arena *arena, struct process_line *ret,
                         struct err *e) {
    struct str code;
    if (!process_line_read_text(line, "turn", arena, &ret->turn, e)) return false;
    switch (ret->kind) {
    case PROCESS_TEXT:
    case PROCESS_THINKING:
    case PROCESS_STEP: return process_line_read_text(line, "text", arena, &ret->text, e);
    case PROCESS_ASK: return process_line_read_text(line, "question", arena, &ret->text, e);
    case PROCESS_CALL: return read_calls(line, &ret->calls, e);
    case PROCESS_USAGE:
        return process_line_read_usage(line, &ret->usage, e) &&
               process_line_read_text(line, "model", arena, &ret->model, e);
    case PROCESS_ERROR:
        if (!process_line_read_text(line, "message", arena, &ret->text, e) ||
            !process_line_read_text(line, "code", arena, &code, e))
            return false;
        ret->code = code.len ? err_code_named(code) : ERR_INTERNAL;
        return true;
    case PROCESS_DONE: return true;
    }
    return true;
}

bool process_line_read(struct str text, struct arena *arena, struct process_line *ret,
                       struct err *e) {
    struct json line;
    *ret = (struct process_line){.code = ERR_NONE};
    if (!json_read(text, &line, e)) return false;
    if (line.kind != JSON_OBJECT)
        return err_set(e, ERR_MALFORMED, "the line is %s and not an object",
                       json_kind_name(line.kind));
    return process_line_read_kind(json_find(line, STR("type")), &ret->kind, e) &&
           read_members(line, arena, ret, e);
}

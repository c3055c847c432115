#include "contract/agentbreeder/schema.h"

#include "base/id.h"

#include <string.h>

/* The notation of a field's `type`:
 *
 *     string|null          any of these JSON types; string+ must not be empty. Without null it is
 *                          written as oneOf, which makers of clients understand
 *     =healthy|loading     one of these strings
 *     Entry                an object of that schema
 *     [string], [Entry]    an array of them
 *     {string}             an object whose members all have that type
 *     id, id|null          a string that is valid for base/id.h
 *     any                  any JSON */
struct field_schema {
    const char *schema, *name;
    enum { OPTIONAL, REQUIRED } presence;
    const char *type, *description;
};

/* The rows of a schema are adjacent. */
static const struct field_schema fields[] = {
    /* clang-format off */
    {"HealthResponse", "status",     REQUIRED, "=healthy|loading", "loading: turns are answered 503"},
    {"HealthResponse", "agent_name", REQUIRED, "string", NULL},
    {"HealthResponse", "version",    REQUIRED, "string", "the agent's own"},
    {"HealthResponse", "framework",  OPTIONAL, "string", NULL},

    {"InvokeRequest", "input",      REQUIRED, "string|object|array", "what the turn is about: a text, {\"messages\":[...]} or the list alone in OpenAI's or LangChain's form, or any other JSON"},
    {"InvokeRequest", "session_id", OPTIONAL, "id|null", "the conversation; a new one when it is missing"},
    {"InvokeRequest", "agent",      OPTIONAL, "string|null", "who takes the turn, by name; the first agent when it is missing"},
    {"InvokeRequest", "config",     OPTIONAL, "object|null", "config.configurable.user_id names the user; config.output_schema is a JSON Schema that the answer follows"},
    {"InvokeRequest", "metadata",   OPTIONAL, "object|null", "the caller's own"},

    {"ResumeRequest", "thread_id",   REQUIRED, "string", "the session of the turn that waits"},
    {"ResumeRequest", "human_input", REQUIRED, "any", "a string is taken as it is, all else as JSON"},
    {"ResumeRequest", "config",      OPTIONAL, "object|null", "config.configurable.user_id says whose thread it is"},
    {"ResumeRequest", "approval_id", OPTIONAL, "string|null", "which question is answered, as metadata.approval says it"},

    {"InvokeResponse", "output",     REQUIRED, "string|object|array", "text when the input was text"},
    {"InvokeResponse", "session_id", REQUIRED, "string", NULL},
    {"InvokeResponse", "thread_id",  OPTIONAL, "string", "the same, for callers that say thread_id, and of a turn that waits"},
    {"InvokeResponse", "metadata",   REQUIRED, "Metadata", NULL},
    {"InvokeResponse", "history",    REQUIRED, "[HistoryEntry]", "the tools that were used"},

    {"InvokeResponse", "trace_id",   OPTIONAL, "string", "reserved: a sidecar may add it"},
    {"InvokeResponse", "tokens",     OPTIONAL, "object", "reserved, likewise"},
    {"InvokeResponse", "cost_usd",   OPTIONAL, "number", "reserved, likewise"},
    {"InvokeResponse", "model",      OPTIONAL, "string", "reserved, likewise"},
    {"InvokeResponse", "latency_ms", OPTIONAL, "integer", "reserved, likewise"},

    {"SseTextDelta", "delta", OPTIONAL, "string", "unnamed: a piece of the answer"},
    {"SseTextDelta", "text",  OPTIONAL, "string", "the same, of other agents; readers take both"},

    {"SseStepEvent", "description", REQUIRED, "string", "event: step"},
    {"SseStepEvent", "result",      OPTIONAL, "any", NULL},
    {"SseStepEvent", "agent",       OPTIONAL, "string", "whose step it is"},

    {"SseToolCallEvent", "name", REQUIRED, "string", "event: tool_call"},
    {"SseToolCallEvent", "args", OPTIONAL, "object", NULL},

    {"SseErrorEvent", "error", REQUIRED, "string", "event: error, before the end of a stream that failed"},

    {"SseResultEvent", "output",     REQUIRED, "any", "event: result, as /invoke would answer"},
    {"SseResultEvent", "session_id", OPTIONAL, "string", NULL},
    {"SseResultEvent", "metadata",   OPTIONAL, "Metadata", NULL},
    {"SseResultEvent", "history",    OPTIONAL, "[HistoryEntry]", NULL},

    {"Metadata", "interrupted", REQUIRED, "boolean", "the turn waits for a human"},
    {"Metadata", "awaiting",    OPTIONAL, "[string]", "for whose sake"},
    {"Metadata", "approval",    OPTIONAL, "Approval", "what it is asked"},
    {"Metadata", "usage",       OPTIONAL, "Usage", "for a sidecar in front, which counts"},

    {"Usage", "input_tokens",  OPTIONAL, "integer", NULL},
    {"Usage", "output_tokens", OPTIONAL, "integer", NULL},
    {"Usage", "total_tokens",  OPTIONAL, "integer", NULL},
    {"Usage", "model",         OPTIONAL, "string", "of the last call"},

    {"Approval", "approval_id", REQUIRED, "string", "answers it at /weir/v1/approvals/{id}, too"},
    {"Approval", "question",    REQUIRED, "string", NULL},
    {"Approval", "tool",        OPTIONAL, "string", NULL},
    {"Approval", "args",        OPTIONAL, "object", "what the tool would be called with"},

    {"HistoryEntry", "name",        REQUIRED, "string", "the tool"},
    {"HistoryEntry", "args",        REQUIRED, "object", NULL},
    {"HistoryEntry", "result",      REQUIRED, "string", "JSON as text"},
    {"HistoryEntry", "duration_ms", REQUIRED, "integer", NULL},
    {"HistoryEntry", "started_at",  REQUIRED, "string", "RFC 3339, UTC"},

    {"AgentCard", "name",      REQUIRED, "string", NULL},
    {"AgentCard", "version",   REQUIRED, "string", NULL},
    {"AgentCard", "framework", OPTIONAL, "string", NULL},
    {"AgentCard", "protocol",  OPTIONAL, "string", NULL},
    {"AgentCard", "endpoints", REQUIRED, "{string}", "paths by name"},

    {"Document", "openapi",    REQUIRED, "string", NULL},
    {"Document", "info",       REQUIRED, "object", NULL},
    {"Document", "paths",      REQUIRED, "object", NULL},
    {"Document", "components", OPTIONAL, "object", NULL},

    {"ErrorEnvelope", "error",  REQUIRED, "ErrorBody", NULL},
    {"ErrorEnvelope", "detail", OPTIONAL, "string", "the message once more, with 401 and 403"},

    {"ErrorEnvelope", "trace_id", OPTIONAL, "string", "reserved: a sidecar may add it"},

    {"ErrorBody", "code",    REQUIRED, "string", "stable, in capitals"},
    {"ErrorBody", "message", REQUIRED, "string", "for people"},
    {"ErrorBody", "details", OPTIONAL, "any", NULL},
    /* clang-format on */
};

static void write_ref(struct json_writer *json, struct str schema) {
    char room[96];
    struct buf ref = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_printf(&ref, "#/components/schemas/" STR_FMT, STR_ARG(schema));
    json_member_str(json, "$ref", buf_str(&ref));
}

static void write_enum(struct json_writer *json, struct str names) {
    json_member_str(json, "type", STR("string"));
    json_member_array(json, "enum");
    while (names.len) json_write_str(json, str_split(names, '|', &names));
    json_close(json);
}

/* The limit for ids is in bytes; a schema can only count characters. */
static void write_id_bounds(struct json_writer *json) {
    json_member_i64(json, "maxLength", ID_MAX_BYTES);
    json_member_str(json, "pattern", STR("^[^\\u0000-\\u001f\\u007f-\\u009f]*$"));
}

/* Each type as a schema of its own. */
static void write_one_of(struct json_writer *json, struct str types) {
    json_member_array(json, "oneOf");
    while (types.len) {
        struct str type = str_split(types, '|', &types);
        json_open_object(json);
        json_member_str(json, "type", type);
        if (str_equal(type, STR("array"))) {
            json_member_object(json, "items");
            json_close(json);
        }
        json_close(json);
    }
    json_close(json);
}

static void write_types(struct json_writer *json, struct str types) {
    bool is_id = str_starts(types, STR("id")) && (types.len == 2 || types.at[2] == '|');
    bool several = str_find_byte(types, '|') < types.len, filled = false;
    json_key(json, STR("type"));
    if (several) json_open_array(json);
    while (types.len) {
        struct str type = str_split(types, '|', &types);
        bool plus = type.at[type.len - 1] == '+';
        filled = filled || plus;
        json_write_str(json, str_equal(type, STR("id")) ? STR("string")
                                                        : str_head(type, type.len - plus));
    }
    if (several) json_close(json);
    if (is_id) write_id_bounds(json);
    if (filled) json_member_i64(json, "minLength", 1);
}

static void write_type(struct json_writer *json, struct str type);

static void write_inner(struct json_writer *json, const char *key, struct str type) {
    json_member_object(json, key);
    write_type(json, str_head(str_skip(type, 1), type.len - 2));
    json_close(json);
}

static void write_type(struct json_writer *json, struct str type) {
    if (str_equal(type, STR("any"))) return;
    switch (type.at[0]) {
    case '=': write_enum(json, str_skip(type, 1)); return;
    case '[':
        json_member_str(json, "type", STR("array"));
        write_inner(json, "items", type);
        return;
    case '{':
        json_member_str(json, "type", STR("object"));
        write_inner(json, "additionalProperties", type);
        return;
    default: break;
    }
    if (type.at[0] >= 'A' && type.at[0] <= 'Z') {
        write_ref(json, type);
    } else if (str_find_byte(type, '|') < type.len && !str_ends(type, STR("|null"))) {
        write_one_of(json, type);
    } else {
        write_types(json, type);
    }
}

static bool same_schema(const struct field_schema *a, const struct field_schema *b) {
    return strcmp(a->schema, b->schema) == 0;
}

static void write_schema(struct json_writer *json, const struct field_schema *rows,
                         size_t count) {
    json_member_object(json, rows[0].schema);
    json_member_str(json, "type", STR("object"));
    json_member_array(json, "required");
    for (size_t i = 0; i < count; i++) {
        if (rows[i].presence == REQUIRED) json_write_str(json, str_from(rows[i].name));
    }
    json_close(json);
    json_member_object(json, "properties");
    for (size_t i = 0; i < count; i++) {
        json_member_object(json, rows[i].name);
        write_type(json, str_from(rows[i].type));
        if (rows[i].description) {
            json_member_str(json, "description", str_from(rows[i].description));
        }
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

void schema_write(struct json_writer *json) {
    json_member_object(json, "schemas");
    for (size_t at = 0, count; at < ARRAY_LEN(fields); at += count) {
        for (count = 1; at + count < ARRAY_LEN(fields); count++) {
            if (!same_schema(&fields[at], &fields[at + count])) break;
        }
        write_schema(json, &fields[at], count);
    }
    json_close(json);
}

#include "contract/agentbreeder/describe.h"

#include "contract/agentbreeder/schema.h"
#include "wire/json.h"

#include <assert.h>
#include <stdlib.h>

/* --- descriptions of the routes ----------------------------------------------------------- */

struct about {
    const char *path;
    const char *id;       /* operationId */
    const char *card;     /* name on the agent card; NULL: not on the card */
    const char *request;  /* schema of the body, or NULL */
    const char *response; /* schema of the 200, or NULL: an event stream */
    int refuses[4];       /* statuses besides those of the checks; ends with 0 */
    const char *summary, *description;
    bool runs, takes_session, any_version;
};

/* clang-format off */
static const struct about abouts[] = {
    {.path = "/health", .id = "getHealth", .card = "health", .response = "HealthResponse", .any_version = true,
     .summary = "Whether the agent can work",
     .description = "Answers 200 as long as the process lives; `status` says whether turns are "
                    "taken. Asks for no token and looks at no version."},
    {.path = "/invoke", .id = "invokeAgent", .card = "invoke", .request = "InvokeRequest",
     .response = "InvokeResponse", .refuses = {404, 409, 422, 500}, .runs = true,
     .takes_session = true,
     .summary = "One turn, answered when it is done",
     .description = "Closing the connection cancels the turn, unless it has an idempotency key, or "
                    "`x-weir-on-disconnect` or the server's settings say otherwise. A turn that "
                    "waits for a human is answered with `metadata.interrupted` true and goes on "
                    "with /resume, or with an input that is plainly a yes or a no; any other "
                    "input of its session is answered 409 until then. Callers "
                    "may also say `input_message` or `messages` for `input`, and `thread_id` for "
                    "`session_id`."},
    {.path = "/stream", .id = "streamAgent", .card = "stream", .request = "InvokeRequest",
     .refuses = {404, 409, 422, 500}, .runs = true, .takes_session = true,
     .summary = "One turn, told while it happens",
     .description = "Server-sent events: unnamed ones carry `delta`, a piece of the answer; "
                    "`tool_call`, `step`, `result` and `error` are named. The last event is "
                    "`data: [DONE]`, after success and after failure. Lines that begin with a "
                    "colon only keep the connection alive."},
    {.path = "/resume", .id = "resumeAgent", .card = "resume", .request = "ResumeRequest",
     .response = "InvokeResponse", .refuses = {404, 409, 422, 500}, .runs = true,
     .summary = "A human's answer to a turn that waits for it",
     .description = "A call is decided by a plain yes or no, or by JSON that says so; other words "
                    "are answered with the same question again. Of two decisions the first wins: "
                    "the same again is answered as it was, another one 409. A thread that is "
                    "unknown or asked nothing is answered 404. The turn may wait again."},
    {.path = "/openapi.json", .id = "getOpenAPI", .response = "Document",
     .summary = "This document"},
    {.path = "/.well-known/agent.json", .id = "getAgentCard", .response = "AgentCard",
     .summary = "The agent's card, for other agents"},
};

/* The meaning of each status, and the fields that come with it. */
static const struct {
    int status;
    const char *why, *header;
} refusals[] = {
    {400, "No JSON, no input, a content type that is not JSON, or another contract version", NULL},
    {401, "A token is needed and none was given", "www-authenticate"},
    {403, "The token is not the agent's", NULL},
    {404, "No agent has this name, or no run of this thread waits for a human", NULL},
    {408, "The body came too slowly", NULL},
    {409, "The session is busy, waits for a human's answer, was answered otherwise, or is several "
          "users'; or the key was for another request", NULL},
    {413, "The body is too large", NULL},
    {422, "A field of the wrong type, or out of its range", NULL},
    {500, "The turn failed", NULL},
    {503, "The agent is loading or stopping, or what it needs is away: try again", "retry-after"},
};
/* clang-format on */

static const struct about *about_of(const struct route *row) {
    for (size_t i = 0; i < ARRAY_LEN(abouts); i++) {
        if (str_equal(row->path, str_from(abouts[i].path))) return &abouts[i];
    }
    abort(); /* a row of the route table has no description */
}

/* --- responses ---------------------------------------------------------------------------- */

static void describe_write_text(struct json_writer *json, const char *key, const char *text) {
    json_member_str(json, key, str_from(text));
}

static void write_ref(struct json_writer *json, const char *key, const char *folder,
                      const char *name) {
    char room[96];
    struct buf ref = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_printf(&ref, "#/components/%s/%s", folder, name);
    json_member_object(json, key);
    json_member_str(json, "$ref", buf_str(&ref));
    json_close(json);
}

/* Describe a header of a response; `value`, if given, is its only value. */
static void write_header(struct json_writer *json, const char *name, const char *value) {
    json_member_object(json, name);
    json_member_object(json, "schema");
    describe_write_text(json, "type", "string");
    if (value) describe_write_text(json, "const", value);
    json_close(json);
    if (value) json_member_bool(json, "required", true);
    json_close(json);
}

static void open_response(struct json_writer *json, int status, const char *why) {
    char digits[16];
    struct buf key = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&key, (uint64_t)status);
    json_key(json, buf_str(&key));
    json_open_object(json);
    describe_write_text(json, "description", why);
    json_member_object(json, "headers");
    write_header(json, "x-runtime-contract-version", "1");
}

static void write_json_content(struct json_writer *json, const char *schema) {
    json_member_object(json, "content");
    json_member_object(json, "application/json");
    write_ref(json, "schema", "schemas", schema);
    json_close(json);
    json_close(json);
}

/* No schema: some readers would apply it to the whole text, others to each event. */
static void write_stream_content(struct json_writer *json) {
    json_member_raw(json, "content", STR("{\"text/event-stream\":{}}"));
}

static void write_success(struct json_writer *json, const struct about *about, bool has_body) {
    open_response(json, 200, about->summary);
    if (about->runs) write_header(json, "x-weir-run-id", NULL);
    if (!about->response) {
        write_header(json, "cache-control", "no-cache");
        write_header(json, "x-accel-buffering", "no");
    }
    json_close(json);
    if (has_body && about->response) write_json_content(json, about->response);
    if (has_body && !about->response) write_stream_content(json);
    json_close(json);
}

/* Whether the checks before the handler, or the handler itself, may answer with this status. */
static bool may_refuse(const struct route *row, const struct about *about, int status) {
    bool guarded = row->door == ROUTE_GUARDED, has_body = (row->needs & ROUTE_JSON) != 0;
    if (status == 400) return !about->any_version;
    if (status == 401 || status == 403 || status == 503) return guarded;
    if ((status == 408 || status == 413) && has_body) return true;
    for (size_t i = 0; i < ARRAY_LEN(about->refuses); i++) {
        if (about->refuses[i] == status) return true;
    }
    return false;
}

static void write_responses(struct json_writer *json, const struct route *row,
                            const struct about *about, bool has_body) {
    json_member_object(json, "responses");
    write_success(json, about, has_body);
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (!may_refuse(row, about, refusals[i].status)) continue;
        open_response(json, refusals[i].status, refusals[i].why);
        if (refusals[i].header) write_header(json, refusals[i].header, NULL);
        json_close(json);
        if (has_body) write_json_content(json, "ErrorEnvelope");
        json_close(json);
    }
    json_close(json);
}

/* --- operations --------------------------------------------------------------------------- */

/* only, pattern: restrict the value; NULL: any value. */
static void write_parameter(struct json_writer *json, const char *name, const char *only,
                            const char *pattern, const char *description) {
    json_open_object(json);
    describe_write_text(json, "name", name);
    describe_write_text(json, "in", "header");
    describe_write_text(json, "description", description);
    json_member_object(json, "schema");
    describe_write_text(json, "type", "string");
    if (only) {
        json_member_array(json, "enum");
        json_write_str(json, str_from(only));
        json_close(json);
    }
    if (pattern) describe_write_text(json, "pattern", pattern);
    json_close(json);
    json_close(json);
}

static void write_parameters(struct json_writer *json, const struct about *about) {
    json_member_array(json, "parameters");
    if (!about->any_version) {
        write_parameter(json, "x-runtime-contract-version", "1", NULL,
                        "The version that the caller speaks");
    }
    if (about->runs) {
        write_parameter(json, "x-weir-on-disconnect", NULL,
                        "^(cancel|detach|detach-for=[1-9][0-9]{0,3}(ms|s|m|h))$",
                        "What becomes of the turn when the caller leaves: cancel, detach, or "
                        "detach-for=30s");
    }
    if (about->runs) {
        write_parameter(
            json, "x-idempotency-key", NULL, "^[!-~]([ -~]{0,253}[!-~])?$",
            "Of the caller's choice: the same request with the same key is one "
            "turn, and is answered as the first was. Idempotency-Key says the same");
    }
    if (about->takes_session) {
        write_parameter(json, "x-session-id", NULL, "^[ -~]{0,256}$",
                        "The session, for bodies that name none");
    }
    json_close(json);
}

static void write_operation(struct json_writer *json, const struct route *row, bool as_head) {
    const struct about *about = about_of(row);
    char room[48];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    for (size_t i = 0; i < row->method.len; i++) {
        buf_append_byte(&text, (char)(row->method.at[i] | 0x20)); /* to lower case */
    }
    json_key(json, as_head ? STR("head") : buf_str(&text));
    json_open_object(json);
    buf_clear(&text);
    buf_printf(&text, "%s%s", about->id, as_head ? "Head" : "");
    json_member_str(json, "operationId", buf_str(&text));
    describe_write_text(json, "summary", about->summary);
    if (about->description) describe_write_text(json, "description", about->description);
    write_parameters(json, about);
    if (about->request) {
        json_member_object(json, "requestBody");
        json_member_bool(json, "required", true);
        write_json_content(json, about->request);
        json_close(json);
    }
    write_responses(json, row, about, !as_head);
    if (row->door == ROUTE_OPEN) /* an empty list: no token needed */
        json_member_raw(json, "security", STR("[]"));
    json_close(json);
}

static bool is_first_of_path(const struct route_table *table, size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (str_equal(table->rows[i].path, table->rows[at].path)) return false;
    }
    return true;
}

static void write_paths(struct json_writer *json, const struct route_table *table) {
    json_member_object(json, "paths");
    for (size_t i = 0; i < table->row_count; i++) {
        if (!is_first_of_path(table, i)) continue;
        json_key(json, table->rows[i].path);
        json_open_object(json);
        for (size_t k = i; k < table->row_count; k++) {
            const struct route *row = &table->rows[k];
            if (!str_equal(row->path, table->rows[i].path)) continue;
            write_operation(json, row, false);
            if (row->needs & ROUTE_HEAD) write_operation(json, row, true);
        }
        json_close(json);
    }
    json_close(json);
}

/* --- the document ------------------------------------------------------------------------- */

#define INFO                                                                                   \
    "{\"title\":\"Agent runtime, contract version 1\",\"version\":\"1\",\"description\":"      \
    "\"What an agent answers to its platform. The contract in words stands in "                \
    "engine/schema/runtime-contract-v1.md.\",\"x-agentbreeder-runtime-contract\":\"1\"}"

void describe_openapi(const struct route_table *table, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    describe_write_text(&json, "openapi", "3.1.0");
    json_member_raw(&json, "info", STR(INFO));
    /* Required if the agent has a token; without one every caller is admitted. */
    json_member_raw(&json, "security", STR("[{\"bearerAuth\":[]}]"));
    write_paths(&json, table);
    json_member_object(&json, "components");
    json_member_raw(&json, "securitySchemes",
                    STR("{\"bearerAuth\":{\"type\":\"http\",\"scheme\":\"bearer\","
                        "\"bearerFormat\":\"opaque\"}}"));
    schema_write(&json);
    json_close(&json);
    json_close(&json);
    assert(buf_ok(out));
}

/* --- the card ----------------------------------------------------------------------------- */

void describe_card(const struct route_table *table, const struct runtime_settings *settings,
                   struct json_writer *w) {
    json_member_str(w, "name", settings->agent_name);
    json_member_str(w, "version", settings->agent_version);
    if (settings->framework.len) json_member_str(w, "framework", settings->framework);
    describe_write_text(w, "protocol", "a2a-v1");
    json_member_object(w, "endpoints");
    for (size_t i = 0; i < table->row_count; i++) {
        const struct about *about = about_of(&table->rows[i]);
        if (about->card) json_member_str(w, about->card, table->rows[i].path);
    }
    json_close(w);
}

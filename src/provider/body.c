#include "provider/body.h"

#include "wire/digest.h"

#define HASHED_ID_DIGITS 37 /* after "tc_", 40 in all */

bool body_read_schema(struct str schema, struct str what, struct json *ret, struct err *e) {
    struct json value = {.kind = JSON_NONE};
    if (!json_read(schema, &value, e)) {
        e->code = ERR_INVALID_ARGUMENT;
        return err_add(e, "the schema of '" STR_FMT "'", STR_ARG(what));
    }
    if (value.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the schema of '" STR_FMT "' is %s; write an object", STR_ARG(what),
                       json_kind_name(value.kind));
    *ret = value;
    return true;
}

bool body_schema(struct json_writer *writer, const char *key, struct str schema,
                 struct str what, struct err *e) {
    struct json value = {.kind = JSON_NONE};
    struct str text = schema.len ? schema : STR("{\"type\":\"object\",\"properties\":{}}");
    if (!body_read_schema(text, what, &value, e)) return false;
    json_member_raw(writer, key, value.raw);
    return true;
}

bool body_tool(struct json_writer *w, const struct tool_offer *tool, const char *schema_key,
               struct err *e) {
    json_member_str(w, "name", tool->name);
    if (tool->description.len) json_member_str(w, "description", tool->description);
    return body_schema(w, schema_key, tool->parameters, tool->name, e);
}

void body_reply_schema(struct json_writer *w, struct str schema, bool strict) {
    json_member_str(w, "name", STR("reply"));
    json_member_bool(w, "strict", strict);
    json_member_raw(w, "schema", str_trim(schema));
}

void body_double(struct json_writer *writer, const char *key, double number) {
    if (number < 0) return;
    json_key(writer, str_from(key));
    json_write_double(writer, number);
}

void body_stops(struct json_writer *writer, const char *key,
                const struct model_options *options, size_t max) {
    size_t count = options->stop_count < max ? options->stop_count : max;
    if (!count) return;
    json_member_array(writer, key);
    for (size_t i = 0; i < count; i++) json_write_str(writer, options->stops[i]);
    json_close(writer);
}

bool body_reasons(struct str model) {
    static const struct str families[] = {STR_INIT("o1"), STR_INIT("o3"), STR_INIT("o4"),
                                          STR_INIT("gpt-5")};
    struct str name = model;
    for (size_t at; (at = str_find_byte(name, '/')) < name.len;) name = str_skip(name, at + 1);
    if (str_starts(name, STR("gpt-5-chat"))) return false;
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        if (str_starts(name, families[i])) return true;
    }
    return false;
}

bool body_read_opaque(struct str opaque, struct json *ret) {
    struct err ignored;
    if (opaque.len && json_read(opaque, ret, &ignored) && ret->kind == JSON_ARRAY &&
        json_count(*ret))
        return true;
    *ret = (struct json){.kind = JSON_NONE};
    return false;
}

void body_write_items(struct json_writer *writer, struct json items) {
    struct json_reader reader = json_enter(items);
    struct json item;
    while (json_next_item(&reader, &item)) json_write_raw(writer, item.raw);
}

void body_call_id(struct json_writer *writer, const char *key, struct str call_id,
                  size_t max_bytes) {
    if (call_id.len <= max_bytes) {
        json_member_str(writer, key, call_id);
        return;
    }
    uint8_t digest[DIGEST_BYTES];
    char id[3 + HASHED_ID_DIGITS] = "tc_";
    digest_text(call_id, digest);
    digest_digits(digest, HASHED_ID_DIGITS, id + 3);
    json_member_str(writer, key, str_of(id, sizeof id));
}

void body_url(const struct dialect_settings *settings, const char *path, struct buf *out) {
    buf_append(out, settings->base_url);
    buf_append(out, str_from(path));
    if (settings->query.len == 0) return;
    buf_append_byte(out, '?');
    buf_append(out, settings->query);
}

struct str body_model(const struct dialect_settings *settings,
                      const struct provider_request *request) {
    return request->model.len ? request->model : settings->model;
}

static struct str host_of(struct str url) {
    size_t scheme = str_find(url, STR("://"));
    struct str rest = str_skip(url, scheme < url.len ? scheme + 3 : 0);
    size_t end = 0;
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != ':') end++;
    return str_head(rest, end);
}

bool body_host_is(const struct dialect_settings *settings, const char *host) {
    struct str name = host_of(settings->base_url), wanted = str_from(host);
    if (host[0] != '.') return str_equal_nocase(name, wanted);
    return name.len > wanted.len &&
           str_equal_nocase(str_skip(name, name.len - wanted.len), wanted);
}

bool body_complete(const struct buf *out, struct err *e) {
    if (buf_ok(out)) return true;
    return err_set(e, ERR_TOO_LARGE,
                   "the conversation does not fit into a request of %zu bytes; begin a new "
                   "session",
                   out->max_bytes);
}

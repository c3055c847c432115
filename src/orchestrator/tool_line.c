#include "orchestrator/tool_line.h"

#define ESCAPED 6 /* bytes of JSON for one of a text, at most: \u001f */

static const struct {
    struct str tool, first,
        second; /* the argument that is the query, or the one in its place */
} queries[] = {
    {STR_INIT("web_search_tool"), STR_INIT("query"), STR_INIT("")},
    {STR_INIT("web_search"), STR_INIT("query"), STR_INIT("")},
    {STR_INIT("web_fetch"), STR_INIT("url"), STR_INIT("")},
    {STR_INIT("http_request"), STR_INIT("url"), STR_INIT("")},
    {STR_INIT("glob_search"), STR_INIT("pattern"), STR_INIT("")},
    {STR_INIT("content_search"), STR_INIT("query"), STR_INIT("pattern")},
    {STR_INIT("calculator"), STR_INIT("expression"), STR_INIT("")},
    {STR_INIT("weather"), STR_INIT("location"), STR_INIT("")},
    {STR_INIT("shell"), STR_INIT("command"), STR_INIT("")},
    {STR_INIT("search_past_messages"), STR_INIT("query"), STR_INIT("")},
};

static struct json arguments(struct str args_json) {
    struct json args;
    struct err none;
    return json_read(args_json, &args, &none) ? args : (struct json){.kind = JSON_NONE};
}

void tool_line_query(struct str tool, struct str args_json, struct buf *out) {
    struct json args = arguments(args_json);
    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        if (!str_equal(tool, queries[i].tool)) continue;
        size_t before = out->len;
        (void)json_text(json_find(args, queries[i].first), out);
        if (out->len == before && queries[i].second.len)
            (void)json_text(json_find(args, queries[i].second), out);
        return;
    }
}

/* A text is no longer than its JSON. */
static void put_trimmed(struct json_writer *writer, const char *key, struct json value) {
    struct buf text;
    buf_init(&text, value.raw.len + 1);
    (void)json_text(value, &text);
    struct str trimmed = str_trim(buf_str(&text));
    if (trimmed.len) json_member_str(writer, key, trimmed);
    buf_done(&text);
}

void tool_line_args(struct str tool, struct str args_json, struct buf *out) {
    struct json args = arguments(args_json);
    struct json description = json_find(args, STR("description"));
    bool fetches = str_equal(tool, STR("web_fetch")) || str_equal(tool, STR("http_request"));
    struct json url = fetches ? json_find(args, STR("url")) : (struct json){.kind = JSON_NONE};
    struct buf shown;
    buf_init(&shown, ESCAPED * args_json.len + KIB);
    struct json_writer writer = json_writer(&shown);
    json_open_object(&writer);
    put_trimmed(&writer, "description", description);
    put_trimmed(&writer, "url", url);
    json_close(&writer);
    if (shown.len > 2) buf_append(out, buf_str(&shown));
    buf_done(&shown);
}

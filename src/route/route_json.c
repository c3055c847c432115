#include "route/route_json.h"

struct json_writer *route_json_begin(struct route_json *json, size_t max_bytes) {
    buf_init(&json->text, max_bytes);
    json->w = json_writer(&json->text);
    return &json->w;
}

struct json_writer *route_json_object(struct route_json *json, size_t max_bytes) {
    json_open_object(route_json_begin(json, max_bytes));
    return &json->w;
}

static void close_all(struct route_json *json) {
    while (json->w.depth) json_close(&json->w);
}

void route_json_reply(struct route_json *json, struct route_call *call, int status) {
    close_all(json);
    route_reply(call, status, STR("application/json"), buf_str(&json->text));
    buf_done(&json->text);
}

void route_json_event(struct route_json *json, struct route_call *call, struct str name) {
    close_all(json);
    if (buf_ok(&json->text)) route_sse_event(call, name, STR_EMPTY, buf_str(&json->text));
    buf_done(&json->text);
}

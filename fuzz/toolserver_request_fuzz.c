/* A message is refused with an id that is JSON, or what was read of it lies within it. */
#include "toolserver/request.h"

#include <assert.h>

static void inside(struct json part, struct str text) {
    if (part.kind == JSON_NONE) return;
    assert(part.raw.at >= text.at && part.raw.at + part.raw.len <= text.at + text.len);
    (void)text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of(data, size);
    struct toolserver_request request;
    struct json value, id;
    struct err e;
    if (!json_read(text, &value, &e)) return 0;
    bool known = json_read(toolserver_request_id(value), &id, &e);
    assert(known);
    (void)known;
    if (!toolserver_request_read(value, &request, &e)) return 0;
    inside(request.id, text);
    inside(request.name, text);
    inside(request.params, text);
    inside(request.token, text);
    inside(request.cancels, text);
    assert(request.method == TOOLSERVER_NOTE || request.method == TOOLSERVER_CANCELLED ||
           request.id.kind == JSON_STRING || request.id.kind == JSON_NUMBER);
    if (toolserver_request_check_meta(&request, &e)) inside(request.version, text);
    return 0;
}

#include "sidecar/reserved.h"

#include "provider/price.h"
#include "wire/usage.h"

static const struct str names[] = {
    STR_INIT("trace_id"), STR_INIT("tokens"),     STR_INIT("cost_usd"),
    STR_INIT("model"),    STR_INIT("latency_ms"),
};

#define TRACE_ONLY 1

static bool is_reserved(struct json key, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (json_is(key, names[i])) return true;
    }
    return false;
}

/* Open an object and copy the members of the given one that are not reserved. */
static struct json_writer reserved_begin(struct json object, size_t reserved, struct buf *out) {
    struct json key, value;
    struct json_writer json = json_writer(out);
    struct json_reader members = json_enter(object);
    json_open_object(&json);
    while (object.kind == JSON_OBJECT && json_next_member(&members, &key, &value)) {
        if (is_reserved(key, reserved)) continue;
        if (json.comma) buf_append_byte(out, ',');
        buf_append(out, key.raw); /* as it was spelled */
        buf_append_byte(out, ':');
        buf_append(out, value.raw);
        json.comma = true;
    }
    return json;
}

static void reserved_write_count(struct json_writer *json, const char *name, int64_t count) {
    if (count != TOKENS_UNKNOWN) json_member_i64(json, name, count);
}

static void reserved_write_tokens(struct json_writer *json, const struct reserved *fields) {
    bool known = fields->input != TOKENS_UNKNOWN || fields->output != TOKENS_UNKNOWN ||
                 fields->total != TOKENS_UNKNOWN;
    if (!known || fields->tokens == RESERVED_TOKENS_OFF) return;
    if (fields->tokens == RESERVED_TOKENS_TOTAL) {
        reserved_write_count(json, "tokens", fields->total);
        return;
    }
    json_member_object(json, "tokens");
    reserved_write_count(json, "input", fields->input);
    reserved_write_count(json, "output", fields->output);
    reserved_write_count(json, "total", fields->total);
    json_close(json);
}

static void write_cost(struct json_writer *json, int64_t cost_nano) {
    struct buf dollars;
    if (cost_nano == TOKENS_UNKNOWN) return;
    buf_init(&dollars, 64);
    price_append_dollars(&dollars, cost_nano);
    json_member_raw(json, "cost_usd", buf_str(&dollars));
    buf_done(&dollars);
}

void reserved_write(struct json object, const struct reserved *fields, struct buf *out) {
    struct json_writer json = reserved_begin(object, ARRAY_LEN(names), out);
    json_member_str(&json, "trace_id", fields->trace_id);
    reserved_write_tokens(&json, fields);
    write_cost(&json, fields->cost_nano);
    if (fields->model.len) json_member_str(&json, "model", fields->model);
    json_member_u64(&json, "latency_ms", fields->latency_ms);
    json_close(&json);
}

void reserved_write_trace(struct json object, struct str trace_id, struct buf *out) {
    struct json_writer json = reserved_begin(object, TRACE_ONLY, out);
    json_member_str(&json, "trace_id", trace_id);
    json_close(&json);
}

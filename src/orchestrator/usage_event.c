#include "orchestrator/usage_event.h"

#include "base/arena.h"
#include "wire/json.h"
#include "wire/moment.h"

#include <string.h>

#define TEXT_MAX_BYTES 1024
#define COST_MAX_BYTES 64
#define COST_EXPONENT_MAX 100

static const char *const texts[] = {"event_id",   "user_id",  "workspace_id", "conversation_id",
                                    "message_id", "agent_id", "agent_db_id",  "model",
                                    "provider",   "turn_id",  "session_id"};
static const char *const numbers[] = {
    "prompt_tokens",   "completion_tokens", "total_tokens", "tool_use_prompt_tokens",
    "thoughts_tokens", "cached_tokens",     "call_sequence"};

/* Absent and null are empty. PostgreSQL's text holds no NUL. */
static bool usage_event_put_text(struct json_writer *writer, const char *key, struct json value,
                                 struct arena *arena, struct err *e) {
    struct str text = STR_EMPTY;
    bool empty = json_is_absent(value);
    if (!empty && !json_str(value, arena, &text))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s is not a text", key);
    if (text.len > TEXT_MAX_BYTES || (text.len && memchr(text.at, 0, text.len)))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s is too long, or has a NUL", key);
    json_member_str(writer, key, text);
    return true;
}

static bool usage_event_put_number(struct json_writer *writer, const char *key,
                                   struct json value, struct err *e) {
    int64_t number = 0;
    bool empty = json_is_absent(value);
    /* Sums of them have to fit as well. */
    if (!empty && (!json_i64(value, &number) || number < 0 || number > INT32_MAX))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s is not a number of tokens", key);
    json_member_i64(writer, key, number);
    return true;
}

/* Written as a double may be: a numeric of PostgreSQL's has room for it. */
static bool usage_event_is_plain(struct str number) {
    size_t e = str_find_byte(number, 'e'), big = str_find_byte(number, 'E');
    int64_t exponent = 0;
    if (big < e) e = big;
    if (e < number.len) exponent = json_exponent(str_skip(number, e + 1));
    return number.len <= COST_MAX_BYTES && exponent > -COST_EXPONENT_MAX &&
           exponent < COST_EXPONENT_MAX;
}

static bool put_cost(struct json_writer *writer, struct json value, struct err *e) {
    double cost = 0;
    bool empty = json_is_absent(value);
    if (!empty && (!json_double(value, &cost) || !(cost >= 0 && cost < 1e9) ||
                   !usage_event_is_plain(value.raw)))
        return err_set(e, ERR_INVALID_ARGUMENT, "cost_usd is not a cost");
    json_member_raw(writer, "cost_usd", empty ? STR("0") : value.raw);
    return true;
}

static bool put_time(struct json_writer *writer, struct json value, struct arena *arena,
                     struct err *e) {
    struct str text;
    int64_t unix_s;
    if (!json_str(value, arena, &text))
        return err_set(e, ERR_INVALID_ARGUMENT, "event_time is missing");
    if (!moment_read(text, &unix_s, e)) return err_add(e, "event_time");
    /* The years that both PostgreSQL and RFC 3339 have. */
    if (unix_s < 0) return err_set(e, ERR_INVALID_ARGUMENT, "event_time is before 1970");
    struct buf time;
    buf_init(&time, 64);
    (void)moment_put(&time, unix_s, 0);
    json_member_str(writer, "event_time", buf_str(&time));
    buf_done(&time);
    return true;
}

static bool usage_event_put_event(struct json event, struct json_writer *writer,
                                  struct arena *arena, struct err *e) {
    json_open_object(writer);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (!usage_event_put_text(writer, texts[i], json_find(event, str_from(texts[i])), arena,
                                  e))
            return false;
    }
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (!usage_event_put_number(writer, numbers[i], json_find(event, str_from(numbers[i])),
                                    e))
            return false;
    }
    if (!put_cost(writer, json_find(event, STR("cost_usd")), e) ||
        !put_time(writer, json_find(event, STR("event_time")), arena, e))
        return false;
    json_close(writer);
    return true;
}

bool usage_event_copy(struct str payload, struct buf *out, struct err *e) {
    struct json event;
    size_t before = out->len;
    if (payload.len > USAGE_EVENT_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "it is longer than a usage event");
    if (!json_read(payload, &event, e)) return false;
    struct json id = json_find(event, STR("event_id"));
    if (id.kind != JSON_STRING || id.raw.len <= 2 ||
        json_find(event, STR("prompt_tokens")).kind != JSON_NUMBER)
        return err_set(e, ERR_INVALID_ARGUMENT, "it has no event_id or no prompt_tokens");
    struct arena *arena = arena_new(2 * USAGE_EVENT_MAX_BYTES);
    struct json_writer writer = json_writer(out);
    bool good = usage_event_put_event(event, &writer, arena, e) &&
                (buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the batch is too large"));
    arena_free(arena);
    if (!good) out->len = before;
    return good;
}

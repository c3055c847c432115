#include "contract/openai/response.h"

#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "contract/openai/response_item.h"
#include "provider/dialect.h"
#include "record/record.h"

#include <stdlib.h>

void response_init(struct response *response, struct completion *completion) {
    *response = (struct response){.completion = completion};
}

void response_done(struct response *response) {
    for (size_t i = 0; i < response->item_count; i++) response_item_done(&response->items[i]);
    free(response->items);
    text_done(&response->previous);
    text_done(&response->metadata);
    text_done(&response->options);
}

/* --- ids ---------------------------------------------------------------------------------- */

void response_append_id(const struct response *response, struct buf *out) {
    buf_append(out, STR("resp_"));
    buf_append_u64(out, response->completion->run);
    if (!response->after_seq) return;
    buf_append_byte(out, '_');
    buf_append_u64(out, response->after_seq);
}

bool response_read_id(struct str id, uint64_t *ret_run, uint64_t *ret_after_seq) {
    struct str seq;
    if (!str_starts(id, STR("resp_"))) return false;
    struct str run = str_split(str_skip(id, STR("resp_").len), '_', &seq);
    *ret_after_seq = 0;
    return str_to_u64(run, ret_run) && *ret_run &&
           (!seq.at || seq.len == 0 || str_to_u64(seq, ret_after_seq));
}

/* --- the object --------------------------------------------------------------------------- */

static void write_response_id(const struct response *response, struct json_writer *json) {
    char room[80];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    response_append_id(response, &id);
    json_member_str(json, "id", buf_str(&id));
}

static struct str status_of(const struct response *response, const struct event *last) {
    if (!last) return STR("in_progress");
    if (completion_is_filtered(last)) return STR("incomplete");
    if (last->kind == EVENT_FAILED) return STR("failed");
    if (last->kind == EVENT_CANCELLED) return STR("cancelled");
    bool cut = last->kind == EVENT_DONE && response->completion->cut;
    return cut && !response->completion->call_count ? STR("incomplete") : STR("completed");
}

static struct str error_code_of(const struct event *failed) {
    bool too_long = str_equal(failed->failed.reason, STR(MODEL_CONTEXT));
    return too_long ? STR(CONTEXT_LENGTH_EXCEEDED) : STR("server_error");
}

static void write_error(const struct event *last, struct json_writer *json) {
    bool failed = last && last->kind == EVENT_FAILED && !completion_is_filtered(last);
    bool cancelled = last && last->kind == EVENT_CANCELLED;
    if (!failed && !cancelled) {
        json_member_null(json, "error");
        return;
    }
    json_member_object(json, "error");
    json_member_str(json, "code", failed ? error_code_of(last) : STR("cancelled"));
    json_member_str(json, "message", failed ? last->failed.message : last->cancelled.message);
    json_close(json);
}

static void write_incomplete(const struct response *response, const struct event *last,
                             struct json_writer *json) {
    if (!str_equal(status_of(response, last), STR("incomplete"))) {
        json_member_null(json, "incomplete_details");
        return;
    }
    json_member_object(json, "incomplete_details");
    json_member_str(json, "reason",
                    completion_is_filtered(last) ? STR("content_filter")
                                                 : STR("max_output_tokens"));
    json_close(json);
}

static void write_usage(const struct response *response, struct json_writer *json) {
    const struct completion *completion = response->completion;
    const struct event_usage *usage = &completion->usage;
    if (!completion_knows_usage(completion)) {
        json_member_null(json, "usage");
        return;
    }
    json_member_object(json, "usage");
    json_member_i64(json, "input_tokens", usage->prompt);
    json_member_object(json, "input_tokens_details");
    json_member_i64(json, "cached_tokens", usage->cached);
    json_close(json);
    json_member_i64(json, "output_tokens", usage->completion);
    json_member_object(json, "output_tokens_details");
    json_member_i64(json, "reasoning_tokens", usage->thoughts);
    json_close(json);
    json_member_i64(json, "total_tokens", usage_sum(usage->prompt, usage->completion));
    json_close(json);
}

static void write_items(const struct response *response, struct json_writer *json) {
    json_member_array(json, "output");
    for (size_t i = 0; i < response->item_count; i++)
        response_item_write(response, i, false, json);
    json_close(json);
}

static void write_option(const struct response *response, const char *key, struct str option,
                         struct json_writer *json) {
    struct json value = {.kind = JSON_NONE};
    if (response->options.len) value = json_find(json_of(text_str(response->options)), option);
    if (value.kind == JSON_NUMBER) {
        json_member_raw(json, key, value.raw);
    } else {
        json_member_null(json, key);
    }
}

/* What a request may set. */
static void write_settings(const struct response *response, struct json_writer *json) {
    json_member_null(json, "instructions");
    write_option(response, "max_output_tokens", STR("output_tokens_max"), json);
    json_member_bool(json, "parallel_tool_calls", true);
    write_option(response, "temperature", STR("temperature"), json);
    write_option(response, "top_p", STR("top_p"), json);
    json_member_str(json, "tool_choice", STR("auto"));
    json_member_array(json, "tools");
    json_close(json);
    json_member_str(json, "truncation", STR("disabled"));
}

void response_write(const struct response *response, const struct event *last,
                    struct json_writer *json) {
    const struct completion *completion = response->completion;
    json_open_object(json);
    write_response_id(response, json);
    json_member_str(json, "object", STR("response"));
    json_member_i64(json, "created_at", record_numbered_ms(completion->run) / 1000);
    json_member_str(json, "status", status_of(response, last));
    json_member_bool(json, "background", response->background);
    write_error(last, json);
    write_incomplete(response, last, json);
    json_member_str(json, "model", text_str(completion->model));
    write_items(response, json);
    openai_member(json, "previous_response_id", response->previous.len > 0,
                  text_str(response->previous));
    json_member_raw(json, "metadata",
                    response->metadata.len ? text_str(response->metadata) : STR("{}"));
    write_settings(response, json);
    write_usage(response, json);
    completion_write_weir(completion, last, json);
    json_close(json);
}

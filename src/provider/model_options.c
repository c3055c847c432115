#include "provider/model_options.h"

#define THINKING_TOKENS_MIN 1024 /* fewer are of no use, and refused by Anthropic's models */

/* --- a caller's and the agent's ------------------------------------------------------------ */

/* Reasoning counts as output: it gets half of what is left. */
static int64_t fit_thinking(int64_t thinking, int64_t output) {
    if (!output || thinking < output) return thinking;
    return output / 2 < THINKING_TOKENS_MIN ? 0 : output / 2;
}

struct model_options model_options_narrow(const struct model_options *own,
                                          const struct model_options *callers) {
    struct model_options both = *own;
    int64_t longest = callers->output_tokens_max;
    both.bends = true;
    if (longest && (!own->output_tokens_max || longest < own->output_tokens_max)) {
        both.output_tokens_max = longest;
        both.thinking_tokens = fit_thinking(own->thinking_tokens, longest);
    }
    if (callers->temperature >= 0 || callers->top_p >= 0) {
        both.temperature = callers->temperature;
        both.top_p = callers->top_p;
    }
    if (callers->top_k) both.top_k = callers->top_k;
    if (callers->presence_penalty != 0) both.presence_penalty = callers->presence_penalty;
    if (callers->frequency_penalty != 0) both.frequency_penalty = callers->frequency_penalty;
    if (callers->seeded) {
        both.seeded = true;
        both.seed = callers->seed;
    }
    if (callers->stop_count) {
        both.stops = callers->stops;
        both.stop_count = callers->stop_count;
    }
    return both;
}

/* --- as JSON ------------------------------------------------------------------------------- */

static void write_double(struct json_writer *json, const char *key, double number, bool set) {
    if (!set) return;
    json_key(json, str_from(key));
    json_write_double(json, number);
}

static void write_whole(struct json_writer *json, const char *key, int64_t number, bool set) {
    if (set) json_member_i64(json, key, number);
}

void model_options_write(const struct model_options *options, struct json_writer *json) {
    write_whole(json, "output_tokens_max", options->output_tokens_max,
                options->output_tokens_max != 0);
    write_double(json, "temperature", options->temperature, options->temperature >= 0);
    write_double(json, "top_p", options->top_p, options->top_p >= 0);
    if (options->effort.len) json_member_str(json, "effort", options->effort);
    write_whole(json, "thinking_tokens", options->thinking_tokens,
                options->thinking_tokens != 0);
    write_whole(json, "top_k", options->top_k, options->top_k != 0);
    write_double(json, "presence_penalty", options->presence_penalty,
                 options->presence_penalty != 0);
    write_double(json, "frequency_penalty", options->frequency_penalty,
                 options->frequency_penalty != 0);
    write_whole(json, "seed", options->seed, options->seeded);
    if (!options->stop_count) return;
    json_member_array(json, "stop");
    for (size_t i = 0; i < options->stop_count; i++) json_write_str(json, options->stops[i]);
    json_close(json);
}

static bool read_whole(struct json object, const char *key, int64_t *ret) {
    struct json value = json_find(object, str_from(key));
    return value.kind == JSON_NONE || json_i64(value, ret);
}

static bool model_options_read_double(struct json object, const char *key, double *ret) {
    struct json value = json_find(object, str_from(key));
    return value.kind == JSON_NONE || json_double(value, ret);
}

static bool read_stops(struct json list, struct arena *arena, struct model_options *ret) {
    struct json_reader reader = json_enter(list);
    struct json item = {.kind = JSON_NONE};
    size_t count = list.kind == JSON_ARRAY ? json_count(list) : 0;
    if (list.kind == JSON_NONE) return true;
    if (!count || count > MODEL_STOPS_MAX) return false;
    struct str *stops = arena_alloc(arena, count * sizeof(*stops));
    if (!stops) return false;
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!json_str(item, arena, &stops[i]) || !stops[i].len ||
            stops[i].len > MODEL_STOP_MAX_BYTES)
            return false;
    }
    ret->stops = stops;
    ret->stop_count = count;
    return true;
}

static bool read_effort(struct json object, struct arena *arena, struct str *ret) {
    struct json value = json_find(object, STR("effort"));
    return value.kind == JSON_NONE || json_str(value, arena, ret);
}

bool model_options_read(struct json object, struct arena *arena, struct model_options *ret,
                        struct err *e) {
    struct json stops = json_find(object, STR("stop"));
    *ret = MODEL_OPTIONS_NONE;
    ret->seeded = json_find(object, STR("seed")).kind != JSON_NONE;
    bool reads =
        object.kind == JSON_OBJECT &&
        read_whole(object, "output_tokens_max", &ret->output_tokens_max) &&
        model_options_read_double(object, "temperature", &ret->temperature) &&
        model_options_read_double(object, "top_p", &ret->top_p) &&
        read_effort(object, arena, &ret->effort) &&
        read_whole(object, "thinking_tokens", &ret->thinking_tokens) &&
        read_whole(object, "top_k", &ret->top_k) &&
        model_options_read_double(object, "presence_penalty", &ret->presence_penalty) &&
        model_options_read_double(object, "frequency_penalty", &ret->frequency_penalty) &&
        read_whole(object, "seed", &ret->seed) && read_stops(stops, arena, ret);
    return reads || err_set(e, ERR_DATA_LOSS, "these options of a turn were not written here");
}

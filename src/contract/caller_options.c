#include "contract/caller_options.h"

struct taking {
    const struct caller_option *option;
    struct arena *arena;
    struct model_options *options;
    struct err *e;
};

static bool refuse(const struct taking *taking, const char *must) {
    return err_set(taking->e, ERR_INVALID_ARGUMENT, "%s: must be %s", taking->option->name,
                   must);
}

static bool caller_options_too_large(const struct taking *taking) {
    return err_set(taking->e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static void *member_of(const struct taking *taking) {
    return (char *)taking->options + taking->option->at;
}

/* --- one kind each ------------------------------------------------------------------------- */

static bool take_longest(const struct taking *taking, struct json value) {
    int64_t tokens, *longest = &taking->options->output_tokens_max;
    if (!json_i64(value, &tokens) || tokens < 1)
        return refuse(taking, "a whole number above 0");
    if (!*longest || tokens < *longest) *longest = tokens;
    return true;
}

static bool take_count(const struct taking *taking, struct json value) {
    int64_t number, *member = member_of(taking);
    if (!json_i64(value, &number) || number < 0)
        return refuse(taking, "a whole number, 0 or above");
    *member = number;
    return true;
}

static bool take_number(const struct taking *taking, struct json value) {
    const struct caller_option *option = taking->option;
    double number, *member = member_of(taking);
    if (value.kind != JSON_NUMBER || !json_double(value, &number) || number < option->least ||
        number > option->most)
        return err_set(taking->e, ERR_INVALID_ARGUMENT, "%s: must be a number from %g to %g",
                       option->name, option->least, option->most);
    *member = number;
    return true;
}

static bool take_seed(const struct taking *taking, struct json value) {
    if (!json_i64(value, &taking->options->seed)) return refuse(taking, "a whole number");
    taking->options->seeded = true;
    return true;
}

static bool take_stop(const struct taking *taking, struct json value, struct str *ret) {
    if (value.kind != JSON_STRING) return refuse(taking, "a text, or a list of texts");
    if (!json_str(value, taking->arena, ret)) return caller_options_too_large(taking);
    if (ret->len && ret->len <= MODEL_STOP_MAX_BYTES) return true;
    return err_set(taking->e, ERR_INVALID_ARGUMENT, "%s: each must have 1 to %d bytes",
                   taking->option->name, MODEL_STOP_MAX_BYTES);
}

static bool take_stops(const struct taking *taking, struct json value) {
    struct json_reader reader = json_enter(value);
    struct json item = {.kind = JSON_NONE};
    size_t count = value.kind == JSON_ARRAY ? json_count(value) : 1;
    if (count > MODEL_STOPS_MAX)
        return err_set(taking->e, ERR_INVALID_ARGUMENT,
                       "%s: %zu are more than the %d of a request", taking->option->name, count,
                       MODEL_STOPS_MAX);
    struct str *stops = arena_alloc(taking->arena, (count + 1) * sizeof(*stops));
    if (!stops) return caller_options_too_large(taking);
    if (value.kind != JSON_ARRAY && !take_stop(taking, value, &stops[0])) return false;
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!take_stop(taking, item, &stops[i])) return false;
    }
    taking->options->stops = stops;
    taking->options->stop_count = count;
    return true;
}

static bool (*const takers[])(const struct taking *taking, struct json value) = {
    [CALLER_LONGEST] = take_longest, [CALLER_COUNT] = take_count, [CALLER_NUMBER] = take_number,
    [CALLER_SEED] = take_seed,       [CALLER_STOPS] = take_stops,
};

/* --- the table ----------------------------------------------------------------------------- */

bool caller_options_take(const struct caller_option *table, size_t count, struct json body,
                         struct arena *arena, const struct model_options **ret,
                         const char **ret_name, struct err *e) {
    struct model_options *options = ARENA_NEW(arena, struct model_options);
    struct taking taking = {.arena = arena, .options = options, .e = e};
    bool any = false;
    if (!options) return caller_options_too_large(&taking);
    *options = MODEL_OPTIONS_NONE;
    for (size_t i = 0; i < count; i++) {
        struct json value = json_find(body, str_from(table[i].name));
        if (json_is_absent(value)) continue;
        taking.option = &table[i];
        any = true;
        if (takers[table[i].kind](&taking, value)) continue;
        *ret_name = table[i].name;
        return false;
    }
    *ret = any ? options : NULL;
    return true;
}

#include "contract/openai/media_request.h"

#include "config/config.h"
#include "config/lists.h"
#include "daemon/team.h"

/* --- embeddings --------------------------------------------------------------------------- */

enum embedding_key { MODEL, INPUT, ENCODING_FORMAT, DIMENSIONS, USER, EMBEDDING_KEYS };
static const struct str embedding_keys[EMBEDDING_KEYS] = {
    STR_INIT("model"), STR_INIT("input"), STR_INIT("encoding_format"), STR_INIT("dimensions"),
    STR_INIT("user")};

static const char *const once[] = {"model", "input", NULL};

static bool take_inputs(struct request_reading *reading, struct json input,
                        struct media_request *ret) {
    struct json_reader reader = json_enter(input);
    struct json item;
    bool one = input.kind == JSON_STRING;
    size_t count = one ? 1 : json_count(input);
    if (!one && input.kind != JSON_ARRAY)
        return request_refuse(reading, "input", "must be a string or a list of strings");
    if (count == 0 || count > EMBEDDING_INPUTS_MAX)
        return request_refuse(reading, "input", "must hold 1 to %d texts, not %zu",
                              EMBEDDING_INPUTS_MAX, count);
    struct str *texts = arena_alloc(reading->arena, count * sizeof(*texts));
    if (!texts) return request_too_large(reading);
    for (size_t i = 0; i < count; i++) {
        if (one) item = input;
        if (!one && !json_next_item(&reader, &item)) return request_too_large(reading);
        if (item.kind != JSON_STRING)
            return request_refuse(reading, "input", "text %zu is %s; send texts, not tokens", i,
                                  json_kind_name(item.kind));
        if (!json_str(item, reading->arena, &texts[i])) return request_too_large(reading);
    }
    ret->inputs = texts;
    ret->input_count = count;
    return true;
}

static bool take_encoding(struct request_reading *reading, struct json value, bool *ret) {
    if (json_is_absent(value) || json_is(value, STR("float"))) return true;
    *ret = json_is(value, STR("base64"));
    return *ret ||
           request_refuse(reading, "encoding_format", "must be \"float\" or \"base64\"");
}

static bool take_dimensions(struct request_reading *reading, struct json value, int64_t *ret) {
    if (json_is_absent(value) || (json_i64(value, ret) && *ret > 0)) return true;
    return request_refuse(reading, "dimensions", "must be a number above 0");
}

bool embedding_request_parse(struct request_reading *reading, struct str body,
                             struct media_ask *ret) {
    struct json whole, found[EMBEDDING_KEYS];
    *ret = (struct media_ask){.request = {.task = MEDIA_EMBEDDING, .model = STR_EMPTY},
                              .user = STR_EMPTY};
    if (!request_read_body(reading, body, once, &whole)) return false;
    json_find_each(whole, embedding_keys, EMBEDDING_KEYS, found);
    return request_take_text(reading, found[MODEL], "model", &ret->request.model) &&
           request_take_text(reading, found[USER], "user", &ret->user) &&
           take_encoding(reading, found[ENCODING_FORMAT], &ret->base64) &&
           take_dimensions(reading, found[DIMENSIONS], &ret->request.dimensions) &&
           take_inputs(reading, found[INPUT], &ret->request);
}

/* --- speech ------------------------------------------------------------------------------- */

enum speech_key { S_MODEL, S_INPUT, VOICE, RESPONSE_FORMAT, SPEED, STREAM_FORMAT, SPEECH_KEYS };
static const struct str speech_keys[SPEECH_KEYS] = {
    STR_INIT("model"),           STR_INIT("input"), STR_INIT("voice"),
    STR_INIT("response_format"), STR_INIT("speed"), STR_INIT("stream_format")};

static bool take_speed(struct request_reading *reading, struct json value, double *ret) {
    if (json_is_absent(value)) return true;
    if (json_double(value, ret) && *ret >= 0.25 && *ret <= 4) return true;
    return request_refuse(reading, "speed", "must be a number from 0.25 to 4");
}

bool speech_request_parse(struct request_reading *reading, struct str body,
                          struct media_ask *ret) {
    struct json whole, found[SPEECH_KEYS];
    *ret = (struct media_ask){.request = {.task = MEDIA_SPEECH,
                                          .model = STR_EMPTY,
                                          .text = STR_EMPTY,
                                          .language = STR_EMPTY,
                                          .voice = STR_EMPTY,
                                          .format = STR_EMPTY},
                              .user = STR_EMPTY};
    struct media_request *request = &ret->request;
    if (!request_read_body(reading, body, once, &whole)) return false;
    json_find_each(whole, speech_keys, SPEECH_KEYS, found);
    if (!json_is_absent(found[STREAM_FORMAT]) && !json_is(found[STREAM_FORMAT], STR("audio")))
        return request_refuse(reading, "stream_format", "only \"audio\" can be had");
    if (!request_take_text(reading, found[S_MODEL], "model", &request->model) ||
        !request_take_text(reading, found[S_INPUT], "input", &request->text) ||
        !request_take_text(reading, found[VOICE], "voice", &request->voice) ||
        !request_take_text(reading, found[RESPONSE_FORMAT], "response_format",
                           &request->format) ||
        !take_speed(reading, found[SPEED], &request->speed))
        return false;
    ret->names_format = request->format.len > 0;
    return request->text.len || request_refuse(reading, "input", "is empty; nothing to say");
}

/* --- whose model -------------------------------------------------------------------------- */

static bool lists(const struct config_connector *connector, struct str model) {
    for (size_t i = 0; i < connector->model_count; i++) {
        if (str_equal(connector->models[i], model)) return true;
    }
    return false;
}

/* A connector of one owner alone is not for the callers here. */
static bool is_usable(const struct config *config, const struct team *team, size_t index,
                      enum media_task task) {
    bool owned = index < config->connector_count && config->connectors[index].owner.len;
    return !owned && media_can(team->media[index], task);
}

struct media *media_request_choose(const struct config *config, const struct team *team,
                                   struct media_request *request) {
    struct str rest, id = str_split(request->model, '/', &rest);
    for (size_t i = 0; i < config->connector_count && i < team->media_count; i++) {
        const struct config_connector *connector = &config->connectors[i];
        if (!is_usable(config, team, i, request->task)) continue;
        bool named = rest.at && rest.len && str_equal(connector->id, id);
        if (named) request->model = rest;
        if (named || lists(connector, request->model)) return team->media[i];
    }
    for (size_t i = 0; i < team->media_count; i++) {
        if (is_usable(config, team, i, request->task)) return team->media[i];
    }
    return NULL;
}

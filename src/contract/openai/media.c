/* media: /v1/embeddings and /v1/audio/speech, asked of the providers that the settings have.
 *
 * Each is one run of its own (job/media_run.h), with its usage and its budget. */
#include "base/id.h"
#include "base/mem.h"
#include "contract/openai/api_error.h"
#include "contract/openai/media_request.h"
#include "contract/openai/openai.h"
#include "job/media_run.h"
#include "route/route_json.h"
#include "server/exchange_trace.h"
#include "wire/base64.h"

#include <stdlib.h>

#define MEDIA_ARENA_MAX_BYTES (32 * MIB)
#define VECTORS_MAX_BYTES (64 * MIB)
#define MEDIA_TOTAL_MS 120000

/* One call, from its request to its answer. */
struct media_answer {
    struct route_call *call;
    struct media_run *run; /* NULL once it is over */
    struct arena *arena;
    struct trace_context *trace; /* of the request; NULL: it has none */
    struct media_ask ask;
    struct buf made; /* vectors, items of a JSON array; or sound */
    struct text content_type;
    size_t vector_count;
    int64_t prompt_tokens;
};

static void media_answer_free(struct media_answer *answer) {
    route_watch(answer->call, NULL, NULL);
    arena_free(answer->arena);
    buf_done(&answer->made);
    text_done(&answer->content_type);
    free(answer->trace);
    free(answer);
}

static void media_left(void *ctx) {
    struct media_answer *answer = ctx;
    if (answer->run) media_run_cancel(answer->run, STR("the caller left"));
    media_answer_free(answer);
}

/* --- what is made ------------------------------------------------------------------------- */

static void put_floats(const struct reply_vector *vector, struct buf *out) {
    struct buf bytes;
    buf_init(&bytes, vector->count * sizeof(float) + 1);
    for (size_t i = 0; i < vector->count; i++) {
        float number = (float)vector->values[i];
        uint32_t bits;
        memcpy(&bits, &number, sizeof(bits));
        for (int shift = 0; shift < 32; shift += 8)
            buf_append_byte(&bytes, (char)(bits >> shift & 0xFF));
    }
    buf_append_byte(out, '"');
    base64_encode(out, buf_str(&bytes), BASE64_STANDARD, BASE64_PADDED);
    buf_append_byte(out, '"');
    buf_done(&bytes);
}

static void put_vector(struct media_answer *answer, const struct reply_vector *vector) {
    struct buf *out = &answer->made;
    if (answer->vector_count++) buf_append_byte(out, ',');
    buf_printf(out, "{\"object\":\"embedding\",\"index\":%zu,\"embedding\":", vector->input);
    if (answer->ask.base64) {
        put_floats(vector, out);
    } else {
        for (size_t i = 0; i < vector->count; i++) {
            buf_append_byte(out, i ? ',' : '[');
            json_put_double(out, vector->values[i]);
        }
        buf_append_byte(out, ']');
    }
    buf_append_byte(out, '}');
}

static void take_sound(struct media_answer *answer, const struct media_artifact *artifact) {
    buf_append(&answer->made, artifact->bytes);
    text_done(&answer->content_type);
    answer->content_type = text_copy(artifact->content_type);
}

/* --- answers ------------------------------------------------------------------------------ */

static void reply_vectors(struct media_answer *answer, struct str model) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, VECTORS_MAX_BYTES + KIB);
    json_member_str(json, "object", STR("list"));
    json_member_array(json, "data");
    json_write_raw(json, buf_str(&answer->made));
    json_close(json);
    json_member_str(json, "model", model.len ? model : answer->ask.request.model);
    json_member_object(json, "usage");
    json_member_i64(json, "prompt_tokens", answer->prompt_tokens);
    json_member_i64(json, "total_tokens", answer->prompt_tokens);
    json_close(json);
    route_json_reply(&reply, answer->call, 200);
}

static void media_reply(struct media_answer *answer, struct str model) {
    struct err e;
    if (!buf_ok(&answer->made)) {
        err_set(&e, ERR_TOO_LARGE,
                "the answer is larger than one may be; ask for less at once");
        api_error_of_request(answer->call, &e, STR("input"));
    } else if (answer->ask.request.task == MEDIA_EMBEDDING) {
        reply_vectors(answer, model);
    } else {
        route_reply(answer->call, 200, text_str(answer->content_type), buf_str(&answer->made));
    }
}

static void media_fail(struct media_answer *answer, const struct reply_event *event) {
    struct api_failure error = event->code == ERR_NOT_FOUND
                                   ? api_failure_of_code(ERR_NOT_FOUND)
                                   : api_failure_of_run(event->code, event->reason, false);
    api_error_answer(answer->call, &error, event->text, STR_EMPTY);
}

static void on_media_reply(const struct reply_event *event, void *ctx) {
    struct media_answer *answer = ctx;
    if (event->kind == REPLY_VECTOR) put_vector(answer, event->vector);
    if (event->kind == REPLY_ARTIFACT) take_sound(answer, event->artifact);
    if (event->kind == REPLY_USAGE && event->usage->prompt != TOKENS_UNKNOWN)
        answer->prompt_tokens = event->usage->prompt;
    if (!reply_event_ends(event)) return;
    answer->run = NULL;
    if (event->kind == REPLY_DONE) {
        media_reply(answer, event->model);
    } else {
        media_fail(answer, event);
    }
    media_answer_free(answer);
}

/* --- asking ------------------------------------------------------------------------------- */

/* OpenAI's own default is mp3, which not every provider makes. */
static void choose_format(struct media_answer *answer, struct media *media) {
    struct media_request *request = &answer->ask.request;
    struct err e;
    if (request->task != MEDIA_SPEECH || answer->ask.names_format) return;
    request->format = STR("mp3");
    if (!media_check(media, request, &e)) request->format = STR_EMPTY;
}

static bool media_begin(struct media_answer *answer, struct openai_instance *instance,
                        const struct contract_caller *caller, struct err *e) {
    const struct openai_settings *settings = openai_settings(instance);
    struct run_host *host = instance->guest.site.host;
    struct str user = answer->ask.user;
    if (caller->proved && caller->identity.user.len) user = caller->identity.user;
    if (!settings->team)
        return err_set(e, ERR_UNIMPLEMENTED,
                       "embeddings and speech are not served here; set openai_api.media");
    struct media *media =
        media_request_choose(settings->config, settings->team, &answer->ask.request);
    if (!media)
        return err_set(e, ERR_NOT_FOUND,
                       "no connector of the settings makes this; add one to `connectors`");
    if (user.len && !id_check("user", user, e)) return false;
    choose_format(answer, media);
    const struct media_run_options options = {
        .host = host,
        .engine = host->engine,
        .media = media,
        .request = &answer->ask.request,
        .record = MEDIA_RUN_RECORDED,
        .workspace = guest_workspace(&instance->guest, caller),
        .user = user.len ? user : STR("anonymous"),
        .text = answer->ask.request.task == MEDIA_SPEECH ? answer->ask.request.text
                                                         : answer->ask.request.inputs[0],
        .contract = STR(OPENAI_CONTRACT),
        .trace = answer->trace,
        .asked_ms = loop_now_ms(host->loop),
        .clocks = {.total_ms = MEDIA_TOTAL_MS},
        .on_reply = on_media_reply,
        .ctx = answer};
    return media_check(media, &answer->ask.request, e) &&
           media_run_start(&options, &answer->run, e);
}

typedef bool media_parse_fn(struct request_reading *reading, struct str body,
                            struct media_ask *ret);

static void media_serve(struct route_call *call, struct openai_instance *instance,
                        media_parse_fn *parse) {
    static const struct route_watch watch = {.left = media_left};
    struct contract_caller caller;
    struct err e;
    struct str body;
    if (!guest_enter(call, &instance->guest, &caller)) return;
    struct media_answer *answer = MEM_NEW(struct media_answer);
    answer->call = call;
    answer->arena = arena_new(MEDIA_ARENA_MAX_BYTES);
    answer->trace = exchange_trace(route_exchange(call));
    buf_init(&answer->made, VECTORS_MAX_BYTES);
    struct request_reading reading = {.arena = answer->arena, .e = &e, .param = STR_EMPTY};
    bool begun =
        (lent_keep(route_body(call), answer->arena, &body) || request_too_large(&reading)) &&
        parse(&reading, body, &answer->ask) && media_begin(answer, instance, &caller, &e);
    if (begun) {
        route_watch(call, &watch, answer);
    } else {
        api_error_of_request(call, &e, reading.param);
        media_answer_free(answer);
    }
}

void openai_embed(struct route_call *call, void *ctx) {
    media_serve(call, ctx, embedding_request_parse);
}

void openai_speak(struct route_call *call, void *ctx) {
    media_serve(call, ctx, speech_request_parse);
}

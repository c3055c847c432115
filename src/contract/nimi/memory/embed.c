#include "contract/nimi/memory/embed.h"

#include "base/mem.h"
#include "contract/nimi/admit.h"
#include "contract/nimi/media_spec.h"
#include "job/media_run.h"
#include "proto/nimi.pb.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define PROFILE_TEXT_MAX_BYTES 256

struct embed {
    struct arena *arena; /* the texts, and the vectors */
    struct engine *engine;
    struct media_run *run;
    struct media_request request;
    size_t dimension;
    float *values;
    enum embed_end unfit; /* EMBED_UNFIT: a vector had another length, or was none */
    struct err why;
    embed_done_fn *done;
    void *ctx;
};

/* --- profiles ----------------------------------------------------------------------------- */

static bool profile_is_complete(const struct nimi_memory_embedding_profile *profile) {
    return str_trim(profile->provider).len && str_trim(profile->model_id).len &&
           profile->dimension > 0;
}

static bool is_too_long(struct str text) {
    return text.len > PROFILE_TEXT_MAX_BYTES;
}

bool embed_profile_is_ok(const struct nimi_memory_embedding_profile *profile,
                         struct fault *fault) {
    if (!profile_is_complete(profile))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "embedding_profile needs provider, model_id and dimension");
    if (is_too_long(profile->provider) || is_too_long(profile->model_id) ||
        is_too_long(profile->version))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a text of embedding_profile has more than %d bytes",
                         PROFILE_TEXT_MAX_BYTES);
    if (profile->dimension > BANK_DIMENSION_MAX)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "embedding_profile.dimension is %d, at most %d are allowed",
                         profile->dimension, BANK_DIMENSION_MAX);
    if (profile->distance_metric < 0 ||
        profile->distance_metric > NIMI_MEMORY_DISTANCE_METRIC_EUCLIDEAN)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "embedding_profile.distance_metric: there is no %d",
                         profile->distance_metric);
    return (profile->migration_policy >= 0 &&
            profile->migration_policy <= NIMI_MEMORY_MIGRATION_POLICY_FREEZE) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "embedding_profile.migration_policy: there is no %d",
                     profile->migration_policy);
}

bool embed_profile_same(const struct nimi_memory_embedding_profile *one,
                        const struct nimi_memory_embedding_profile *other) {
    if (!one || !other) return one == other;
    return str_equal(one->provider, other->provider) &&
           str_equal(one->model_id, other->model_id) && one->dimension == other->dimension &&
           one->distance_metric == other->distance_metric &&
           str_equal(one->version, other->version);
}

/* --- the model ---------------------------------------------------------------------------- */

static bool is_named(const struct nimi_connector *connector, struct str name) {
    return str_equal(connector->id, name) || str_equal(connector->vendor, name);
}

/* *ret_local: it is a local connector, or any of them. */
static bool find_route(const struct nimi_settings *settings, struct str name, bool *ret_local) {
    bool found = str_equal(name, STR("local"));
    *ret_local = found;
    for (size_t i = 0; !found && i < settings->connector_count; i++) {
        found = is_named(&settings->connectors[i], name);
        *ret_local = settings->connectors[i].local;
    }
    return found;
}

static bool embed_admit(const struct embed_options *options, struct arena *arena,
                        struct admission *ret, struct fault *fault) {
    const struct nimi_memory_embedding_profile *profile = options->profile;
    struct str provider = str_trim(profile->provider), model = str_trim(profile->model_id);
    const struct nimi_text_embed_scenario_spec texts = {options->texts, options->count};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_EMBED,
                                            .text_embed = &texts};
    const struct envelope envelope = {.protocol_version = STR_EMPTY};
    bool local = false;
    if (!find_route(options->instance->settings, provider, &local))
        return fault_set(fault, NIMI_AI_CONNECTOR_NOT_FOUND,
                         "no connector has the id or the vendor '" STR_FMT "'",
                         STR_ARG(str_head(provider, 80)));
    struct buf name;
    buf_init(&name, 2 * PROFILE_TEXT_MAX_BYTES + 2);
    if (!local) buf_printf(&name, STR_FMT "/", STR_ARG(provider));
    buf_append(&name, model);
    bool kept = arena_str(arena, buf_str(&name), &model);
    buf_done(&name);
    const struct nimi_scenario_request_head head = {
        .app_id = options->owner.app,
        .subject_user_id = options->owner.subject,
        .model_id = model,
        .route_policy = local ? NIMI_ROUTE_POLICY_LOCAL : NIMI_ROUTE_POLICY_CLOUD};
    const struct scenario asked = {
        .head = &head, .scenario_type = NIMI_SCENARIO_TYPE_TEXT_EMBED, .spec = &spec};
    return kept && admit_scenario(options->instance->settings, &envelope, &asked, ADMIT_EXECUTE,
                                  ret, fault);
}

/* --- the answer --------------------------------------------------------------------------- */

static void embed_free(struct embed *embed) {
    engine_unref(embed->engine);
    arena_free(embed->arena);
    free(embed);
}

static void end(struct embed *embed, enum embed_end how, const struct err *failed) {
    embed->run = NULL;
    embed->done(how, embed->values, failed, embed->ctx);
    embed_free(embed);
}

static void embed_on_vector(const struct reply_event *event, void *ctx) {
    struct embed *embed = ctx;
    const struct reply_vector *vector = event->vector;
    float *values = embed->values + vector->input * embed->dimension;
    if (vector->count != embed->dimension) {
        embed->unfit = EMBED_UNFIT;
        err_set(&embed->why, ERR_FAILED_PRECONDITION,
                "embedding_profile.dimension is %zu; the model makes vectors of %zu numbers",
                embed->dimension, vector->count);
        return;
    }
    for (size_t i = 0; i < vector->count; i++) {
        values[i] = (float)vector->values[i];
        if (isfinite(values[i])) continue;
        embed->unfit = EMBED_UNFIT;
        err_set(&embed->why, ERR_FAILED_PRECONDITION,
                "the model makes vectors with numbers beyond those of 32 bits");
        return;
    }
}

static void embed_on_done(const struct reply_event *event, void *ctx) {
    struct embed *embed = ctx;
    (void)event;
    end(embed, embed->unfit, embed->unfit ? &embed->why : NULL);
}

static void embed_on_failed(const struct reply_event *event, void *ctx) {
    struct embed *embed = ctx;
    bool refused = event->code == ERR_INVALID_ARGUMENT || event->code == ERR_TOO_LARGE;
    err_set(&embed->why, event->code, STR_FMT, STR_ARG(event->text));
    end(embed, refused ? EMBED_REFUSED : EMBED_DOWN, &embed->why);
}

static void embed_on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {[REPLY_VECTOR] = embed_on_vector,
                                                               [REPLY_DONE] = embed_on_done,
                                                               [REPLY_FAILED] =
                                                                   embed_on_failed};
    reply_event_handle(handlers, event, ctx);
}

/* --- the request -------------------------------------------------------------------------- */

static size_t embed_bytes_of(const struct embed_options *options) {
    size_t dimension = (size_t)options->profile->dimension;
    size_t bytes = 64 * KIB + options->count * (dimension * sizeof(float) + 64);
    for (size_t i = 0; i < options->count; i++) bytes += options->texts[i].len;
    return bytes;
}

static void embed_keep_request(struct embed *embed, const struct embed_options *options,
                               struct str model) {
    struct str *texts = arena_alloc(embed->arena, options->count * sizeof(*texts));
    bool kept = texts && arena_str(embed->arena, model, &embed->request.model);
    for (size_t i = 0; kept && i < options->count; i++)
        kept = arena_str(embed->arena, options->texts[i], &texts[i]);
    embed->dimension = (size_t)options->profile->dimension;
    embed->values =
        arena_alloc(embed->arena, options->count * embed->dimension * sizeof(float));
    assert(kept && embed->values); /* as embed_bytes_of() has it */
    embed->request.task = MEDIA_EMBEDDING;
    embed->request.inputs = texts;
    embed->request.input_count = options->count;
    embed->request.dimensions = options->profile->dimension;
}

static bool embed_ask(struct embed *embed, const struct embed_options *options,
                      struct media *media, struct fault *fault) {
    struct run_host *host = options->instance->host;
    const struct store_owner *owner = &options->owner;
    const struct media_run_options run = {.host = host,
                                          .engine = embed->engine,
                                          .media = media,
                                          .request = &embed->request,
                                          .record = MEDIA_RUN_RECORDED,
                                          .workspace = owner->app,
                                          .user = owner->subject.len ? owner->subject
                                                                     : STR("anonymous"),
                                          .text = STR("vectors for a memory bank"),
                                          .contract = STR("nimi"),
                                          .asked_ms = loop_now_ms(host->loop),
                                          .clocks = {.total_ms = options->total_ms},
                                          .on_reply = embed_on_reply,
                                          .ctx = embed};
    struct err e;
    if (!media_check(media, &embed->request, &e) || !media_run_start(&run, &embed->run, &e))
        return fault_set(fault, NIMI_KNOWLEDGE_EMBEDDING_PROFILE_UNAVAILABLE, "%s", e.text);
    return true;
}

struct embed *embed_start(const struct embed_options *options, struct fault *fault) {
    struct admission found = {0};
    struct fault why;
    assert(options->count > 0 && options->count <= BANK_BEHIND_MAX);
    struct embed *embed = MEM_NEW(struct embed);
    *embed = (struct embed){.arena = arena_new(embed_bytes_of(options)),
                            .done = options->done,
                            .ctx = options->ctx};
    if (!embed_admit(options, embed->arena, &found, &why)) {
        fault_set(fault, NIMI_KNOWLEDGE_EMBEDDING_PROFILE_UNAVAILABLE, "%s", why.why.text);
        embed_free(embed);
        return NULL;
    }
    assert(found.connector);
    embed->engine = engine_ref(options->instance->host->engine);
    embed_keep_request(embed, options, found.model);
    if (embed_ask(embed, options, found.connector->media, fault)) return embed;
    embed_free(embed);
    return NULL;
}

void embed_cancel(struct embed *embed) {
    if (!embed) return;
    if (embed->run) media_run_cancel(embed->run, STR("nobody waits for the vectors"));
    embed_free(embed);
}

#include "contract/nimi/admit.h"

#include "contract/nimi/endpoint.h"
#include "contract/nimi/offered.h"
#include "contract/nimi/owner.h"

#define MODE(name) (1u << NIMI_EXECUTION_MODE_##name)

/* What a type needs from a connector: text generation, or a media interface with one of its
 * tasks. */
enum need { NEED_WORDS = MEDIA_TASKS, NEED_UNSUPPORTED };

#define EXTENSION(name) "nimi.scenario." name ".request"

/* For each type: its execution modes, its arm of the spec, the need of a connector, and the
 * namespace of its extension (NULL: it has none). The protocol has no jobs for the first two
 * types; we add them. */
static const struct {
    unsigned modes;
    int spec;
    int need; /* enum media_task or enum need */
    const char *extension;
} types[] = {
    /* clang-format off */
    [NIMI_SCENARIO_TYPE_TEXT_GENERATE]     = {MODE(SYNC) | MODE(STREAM) | MODE(ASYNC_JOB), 1, NEED_WORDS,       NULL},
    [NIMI_SCENARIO_TYPE_TEXT_EMBED]        = {MODE(SYNC) | MODE(ASYNC_JOB),                2, MEDIA_EMBEDDING,  NULL},
    [NIMI_SCENARIO_TYPE_IMAGE_GENERATE]    = {MODE(ASYNC_JOB),                             3, MEDIA_IMAGE,      EXTENSION("image")},
    [NIMI_SCENARIO_TYPE_VIDEO_GENERATE]    = {MODE(ASYNC_JOB),                             4, NEED_UNSUPPORTED, EXTENSION("video")},
    [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = {MODE(STREAM) | MODE(ASYNC_JOB),              5, MEDIA_SPEECH,     EXTENSION("speech_synthesize")},
    [NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE] = {MODE(ASYNC_JOB),                             6, MEDIA_TRANSCRIPT, EXTENSION("speech_transcribe")},
    [NIMI_SCENARIO_TYPE_VOICE_CLONE]       = {MODE(ASYNC_JOB),                             7, NEED_UNSUPPORTED, NULL},
    [NIMI_SCENARIO_TYPE_VOICE_DESIGN]      = {MODE(ASYNC_JOB),                             8, NEED_UNSUPPORTED, NULL},
    [NIMI_SCENARIO_TYPE_MUSIC_GENERATE]    = {MODE(ASYNC_JOB),                             9, NEED_UNSUPPORTED, EXTENSION("music_generate")},
    [NIMI_SCENARIO_TYPE_WORLD_GENERATE]    = {MODE(ASYNC_JOB),                            10, NEED_UNSUPPORTED, EXTENSION("world_generate")},
    /* clang-format on */
};

static const int mode_of[] = {
    [ADMIT_STREAM] = NIMI_EXECUTION_MODE_STREAM,
    [ADMIT_EXECUTE] = NIMI_EXECUTION_MODE_SYNC,
    [ADMIT_SUBMIT] = NIMI_EXECUTION_MODE_ASYNC_JOB,
};

unsigned admit_modes(int scenario_type) {
    bool known = scenario_type > 0 && (size_t)scenario_type < ARRAY_LEN(types);
    return known ? types[scenario_type].modes : 0;
}

/* Whether this connector can serve the type, regardless of its models. */
static bool serves(const struct nimi_connector *connector, int scenario_type) {
    int need = types[scenario_type].need;
    if (need == NEED_WORDS) return connector->provider != NULL;
    return need < MEDIA_TASKS && media_can(connector->media, (enum media_task)need);
}

/* Input and results of the steps. */
struct steps {
    const struct nimi_settings *settings;
    const struct envelope *envelope;
    const struct scenario *asked;
    enum admit_by by;
    struct str connector_id; /* trimmed; empty: none */
    size_t prefix_len;       /* of the model's name: what named the connector */
    bool local;
    struct admission found;
};

typedef bool step_fn(struct steps *at, struct fault *fault);

/* --- step 1: the request itself ----------------------------------------------------------- */

static bool has_parts(struct steps *at, struct fault *fault) {
    const struct scenario *asked = at->asked;
    if (asked->head && asked->spec && asked->spec->which_spec) return true;
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the request needs a head, and a spec of its scenario type");
}

static bool has_head(struct steps *at, struct fault *fault) {
    return at->asked->head || fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                                        "the request needs a head, which names app and model");
}

static bool model_is_short(struct steps *at, struct fault *fault) {
    return at->asked->head->model_id.len <= ADMIT_MODEL_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "model_id has %zu bytes, at most %d are allowed",
                     at->asked->head->model_id.len, ADMIT_MODEL_MAX_BYTES);
}

static bool mode_is_admitted(struct steps *at, struct fault *fault) {
    const struct scenario *asked = at->asked;
    int mode = mode_of[at->by];
    bool admitted = (asked->mode == 0 || asked->mode == mode) &&
                    (admit_modes(asked->scenario_type) & 1u << mode);
    if (!admitted)
        return fault_set_code(fault, NIMI_AI_ROUTE_UNSUPPORTED, ERR_INVALID_ARGUMENT,
                              "this scenario type cannot be asked for in this execution mode "
                              "by this method; ListScenarioProfiles says which can");
    return asked->spec->which_spec == types[asked->scenario_type].spec ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the spec is of another scenario type than the request");
}

static bool says_something(const struct nimi_chat_message *message) {
    return message->content.len || message->parts_count;
}

static bool has_words(const struct nimi_text_generate_scenario_spec *spec) {
    for (size_t i = 0; i < spec->input_count; i++) {
        if (says_something(&spec->input[i])) return true;
    }
    return false;
}

/* Every input gets a vector, and an empty text has none. */
static bool has_inputs(const struct nimi_text_embed_scenario_spec *spec) {
    for (size_t i = 0; i < spec->inputs_count; i++) {
        if (str_trim(spec->inputs[i]).len == 0) return false;
    }
    return spec->inputs_count > 0;
}

static bool has_input(struct steps *at, struct fault *fault) {
    const struct nimi_scenario_spec *spec = at->asked->spec;
    switch (spec->which_spec) {
    case NIMI_SCENARIO_SPEC_TEXT_GENERATE:
        return has_words(spec->text_generate) ||
               fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "there is nothing to answer: input needs a message with content or "
                         "parts; a system prompt alone is not enough");
    case NIMI_SCENARIO_SPEC_TEXT_EMBED:
        return has_inputs(spec->text_embed) ||
               fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "inputs needs one text or more, and none may be empty");
    case NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE:
        return str_trim(spec->speech_synthesize->text).len ||
               fault_set(fault, NIMI_AI_INPUT_INVALID, "there is no text to speak");
    default: return true; /* checked when the request is built */
    }
}

static bool admit_is_known(int scenario_type, struct str extension) {
    const char *known = types[scenario_type].extension;
    return known && str_equal(str_trim(extension), str_from(known));
}

/* An extension holds what one vendor has beyond the spec. No provider here reads any, so a job
 * begins and shows that it was ignored. The events of a stream have no place to show that. */
static bool extensions_are_known(struct steps *at, struct fault *fault) {
    const struct scenario *asked = at->asked;
    for (size_t i = 0; i < asked->extension_count; i++) {
        struct str name = asked->extensions[i].namespace_;
        if (!admit_is_known(asked->scenario_type, name))
            return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                             "the extension '" STR_FMT "' is not known for this scenario type",
                             STR_ARG(str_head(name, 80)));
    }
    if (asked->extension_count > 1)
        return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                         "the extension is given %zu times; give it once",
                         asked->extension_count);
    return asked->extension_count == 0 || at->by == ADMIT_SUBMIT ||
           fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                     "no provider here reads extensions, and a stream cannot say that one was "
                     "ignored; leave it out, or submit a job");
}

/* --- step 3: the app (step 2, the bearer, was checked before the request was read) -------- */

bool admit_app(const struct envelope *envelope, struct str app_id, struct fault *fault) {
    if (str_trim(app_id).len == 0)
        return fault_set(fault, NIMI_AI_APP_ID_REQUIRED, "the request needs an app_id");
    if (!owner_id("app_id", app_id, fault)) return false;
    return envelope->app_id.len == 0 || str_equal(envelope->app_id, app_id) ||
           fault_set(fault, NIMI_AI_APP_ID_CONFLICT,
                     "app_id of the request and x-nimi-app-id are not the same");
}

static bool app_is_clear(struct steps *at, struct fault *fault) {
    struct str subject = at->asked->head->subject_user_id;
    return admit_app(at->envelope, at->asked->head->app_id, fault) &&
           (subject.len == 0 || owner_id("subject_user_id", subject, fault));
}

/* --- step 4: where the key comes from ----------------------------------------------------- */

static bool key_source_is_clear(struct steps *at, struct fault *fault) {
    const struct envelope *envelope = at->envelope;
    const struct nimi_scenario_request_head *head = at->asked->head;
    bool says_inline = str_equal(envelope->key_source, STR("inline"));
    bool is_inline = says_inline || envelope_has_inline(envelope);
    at->connector_id = str_trim(head->connector_id);
    at->local = head->route_policy == NIMI_ROUTE_POLICY_LOCAL;
    if (at->connector_id.len && is_inline)
        return fault_set(fault, NIMI_AI_REQUEST_CREDENTIAL_CONFLICT,
                         "a connector and a credential of the request exclude each other");
    if (!at->connector_id.len && str_equal(envelope->key_source, STR("managed")))
        return fault_set(fault, NIMI_AI_CONNECTOR_ID_REQUIRED,
                         "x-nimi-key-source: managed needs a connector_id");
    if (!is_inline) return true;
    if (!envelope->provider_type.len || !envelope->provider_api_key.len)
        return fault_set(fault, NIMI_AI_REQUEST_CREDENTIAL_MISSING,
                         "x-nimi-key-source: inline needs x-nimi-provider-type and "
                         "x-nimi-provider-api-key");
    return fault_set(fault, NIMI_AI_REQUEST_CREDENTIAL_INVALID,
                     "this runtime takes no credentials with a request; use a connector");
}

static bool subject_is_there(struct steps *at, struct fault *fault) {
    bool anonymous = at->local && !at->connector_id.len;
    if (anonymous || str_trim(at->asked->head->subject_user_id).len) return true;
    if (at->settings->issuers)
        return fault_set(fault, NIMI_AUTH_TOKEN_INVALID,
                         "the cloud route and connectors need a token; send authorization: "
                         "Bearer ...");
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the cloud route and connectors need a subject_user_id");
}

/* --- steps 5 and 6: the connector --------------------------------------------------------- */

static bool no_connector(struct steps *at, struct fault *fault) {
    return fault_set(fault, NIMI_AI_CONNECTOR_NOT_FOUND, "there is no connector '" STR_FMT "'",
                     STR_ARG(str_head(at->connector_id, 80)));
}

static bool may_use(const struct steps *at, const struct nimi_connector *connector) {
    return offered_to(connector, at->asked->head->subject_user_id);
}

/* The best remote connector of that name: one that can be used before one that cannot, then the
 * one with this id before one of this vendor. */
static const struct nimi_connector *find_named(const struct steps *at, struct str name) {
    const struct nimi_connector *best = NULL;
    unsigned best_rank = 0;
    for (size_t i = 0; i < at->settings->connector_count; i++) {
        const struct nimi_connector *connector = &at->settings->connectors[i];
        bool has_id = str_equal(connector->id, name);
        if (connector->local || !may_use(at, connector) ||
            (!has_id && !str_equal(connector->vendor, name)))
            continue;
        unsigned rank = connector->enabled && connector->has_credential ? 3 : 1;
        if (has_id) rank++;
        if (rank <= best_rank) continue;
        best = connector;
        best_rank = rank;
    }
    return best;
}

/* The real SDK's generate({provider, model}) asks the cloud route for PROVIDER/MODEL, without a
 * connector_id. */
static bool model_names_connector(struct steps *at, struct fault *fault) {
    struct str model = str_trim(at->asked->head->model_id);
    size_t len = str_find_byte(model, '/');
    if (len > 0 && len < model.len) at->found.connector = find_named(at, str_head(model, len));
    at->prefix_len = len + 1;
    return at->found.connector ||
           fault_set(fault, NIMI_AI_CONNECTOR_ID_REQUIRED,
                     "the cloud route needs a connector_id, or a connector or vendor in front "
                     "of the model's name: openai/...");
}

static bool connector_exists(struct steps *at, struct fault *fault) {
    if (!at->connector_id.len) return at->local || model_names_connector(at, fault);
    at->found.connector = offered_find(at->settings, at->connector_id);
    if (!at->found.connector) return no_connector(at, fault);
    return !at->found.connector->local ||
           fault_set(fault, NIMI_AI_CONNECTOR_INVALID,
                     "this connector serves local models: ask for one by its name, without "
                     "connector_id");
}

/* Checked in this order: owner, enabled, credential. Another owner's connector looks absent. */
static bool connector_may_be_used(struct steps *at, struct fault *fault) {
    const struct nimi_connector *connector = at->found.connector;
    if (!connector) return true;
    if (!may_use(at, connector)) return no_connector(at, fault);
    if (!connector->enabled)
        return fault_set(fault, NIMI_AI_CONNECTOR_DISABLED, "this connector is switched off");
    return connector->has_credential ||
           fault_set(fault, NIMI_AI_CONNECTOR_CREDENTIAL_MISSING,
                     "this connector has no key; its operator must set one");
}

/* --- step 7: where it goes (step 8 is for inline endpoints) ------------------------------- */

static bool connector_endpoint_is_safe(struct steps *at, struct fault *fault) {
    const struct nimi_connector *connector = at->found.connector;
    if (!connector || connector->endpoint.len == 0) return true; /* the vendor's own endpoint */
    return endpoint_is_safe(connector->endpoint, at->settings->allow_loopback
                                                     ? ENDPOINT_LOOPBACK_TOO
                                                     : ENDPOINT_FAR_ONLY) ||
           fault_set(fault, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN,
                     "the connector's endpoint must be https, and no link-local or private "
                     "IPv6 address");
}

/* --- step 9: the model -------------------------------------------------------------------- */

static bool model_is_one(struct steps *at, struct fault *fault) {
    struct str model = str_skip(str_trim(at->asked->head->model_id), at->prefix_len);
    if (model.len == 0)
        return fault_set(fault, NIMI_AI_MODEL_ID_REQUIRED, "the request needs a model_id");
    bool list = str_find_byte(model, ',') < model.len ||
                str_find_byte(model, '|') < model.len || str_find(model, STR("->")) < model.len;
    at->found.model = model;
    return !list || fault_set(fault, NIMI_AI_ROUTE_UNSUPPORTED,
                              "a request names one model; lists of models are not routed");
}

#define TYPE(name) (1u << NIMI_SCENARIO_TYPE_##name)
#define ALL_TYPES (~0u)

/* Prefixes of local model names. Each names an engine and the types it serves. */
static const struct engine_prefix {
    struct str prefix;
    unsigned types;
} engines[] = {
    {STR_INIT("local/"), ALL_TYPES}, /* any engine */
    {STR_INIT("llama/"), TYPE(TEXT_GENERATE) | TYPE(TEXT_EMBED)},
    {STR_INIT("media/"), TYPE(IMAGE_GENERATE) | TYPE(VIDEO_GENERATE)},
    {STR_INIT("speech/"), TYPE(SPEECH_SYNTHESIZE) | TYPE(SPEECH_TRANSCRIBE) |
                              TYPE(VOICE_CLONE) | TYPE(VOICE_DESIGN)},
    {STR_INIT("sidecar/"), TYPE(MUSIC_GENERATE) | TYPE(WORLD_GENERATE)},
};

/* Move *model past its prefix. NULL: there is none, and the name is exact. */
static const struct engine_prefix *take_prefix(struct str *model) {
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (!str_starts(*model, engines[i].prefix)) continue;
        *model = str_skip(*model, engines[i].prefix.len);
        return &engines[i];
    }
    return NULL;
}

static bool is_installed(const struct nimi_connector *connector, struct str model) {
    return connector->model_count == 0 || offered_lists(connector, model);
}

/* The best local connector for the model: one that can serve the type before one that cannot,
 * then one that lists the model before one that accepts any name. */
static const struct nimi_connector *find_local(const struct steps *at, struct str model) {
    const struct nimi_connector *best = NULL;
    unsigned best_rank = 0;
    for (size_t i = 0; i < at->settings->connector_count; i++) {
        const struct nimi_connector *connector = &at->settings->connectors[i];
        if (!connector->local || !connector->enabled || !is_installed(connector, model) ||
            !may_use(at, connector))
            continue;
        unsigned rank = serves(connector, at->asked->scenario_type) ? 3 : 1;
        if (connector->model_count) rank++;
        if (rank <= best_rank) continue;
        best = connector;
        best_rank = rank;
    }
    return best;
}

static bool local_model_is_there(struct steps *at, struct fault *fault) {
    if (at->found.connector) return true; /* a remote connector was found */
    struct str model = at->found.model;
    const struct engine_prefix *engine = take_prefix(&model);
    if (engine && !(engine->types & 1u << at->asked->scenario_type))
        return fault_set(fault, NIMI_AI_MODEL_PROVIDER_MISMATCH,
                         "the engine '" STR_FMT "' is not there for this scenario type; ask "
                         "for the model by its name alone",
                         STR_ARG(engine->prefix));
    at->found.connector = find_local(at, model);
    at->found.model = model;
    return at->found.connector || fault_set(fault, NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
                                            "no local model '" STR_FMT "' is active here",
                                            STR_ARG(str_head(model, 80)));
}

static bool model_can_do_it(struct steps *at, struct fault *fault) {
    int type = at->asked->scenario_type;
    if (serves(at->found.connector, type)) return true;
    if (type == NIMI_SCENARIO_TYPE_VOICE_CLONE || type == NIMI_SCENARIO_TYPE_VOICE_DESIGN)
        return fault_set(
            fault, NIMI_AI_VOICE_WORKFLOW_UNSUPPORTED,
            "no provider here makes voices; ListPresetVoices lists the ones there are");
    return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                     "the model '" STR_FMT "' cannot do this here; ListScenarioProfiles says "
                     "what can be done",
                     STR_ARG(str_head(at->found.model, 80)));
}

bool admit_serves(const struct nimi_settings *settings, int scenario_type, struct str model) {
    const struct engine_prefix *engine = take_prefix(&model);
    if (!admit_modes(scenario_type) || (engine && !(engine->types & 1u << scenario_type)))
        return false;
    for (size_t i = 0; i < settings->connector_count; i++) {
        const struct nimi_connector *connector = &settings->connectors[i];
        bool has_it = model.len == 0 ||
                      (connector->local ? is_installed(connector, model) : engine == NULL);
        if (connector->enabled && has_it && serves(connector, scenario_type)) return true;
    }
    return false;
}

static uint64_t at_most(uint64_t limit_ms, uint64_t total_ms) {
    return limit_ms < total_ms ? limit_ms : total_ms;
}

void admit_clocks(const struct nimi_scenario_request_head *head,
                  struct model_call_clocks *clocks) {
    if (head->timeout_ms > 0)
        clocks->total_ms = at_most((uint64_t)head->timeout_ms, ADMIT_TIMEOUT_MAX_MS);
    clocks->first_ms = at_most(clocks->first_ms, clocks->total_ms);
    clocks->idle_ms = at_most(clocks->idle_ms, clocks->total_ms);
}

/* --- the chain ---------------------------------------------------------------------------- */

static step_fn *const chain[] = {
    has_parts,
    model_is_short,
    mode_is_admitted,
    has_input,
    extensions_are_known,
    app_is_clear,
    key_source_is_clear,
    subject_is_there,
    connector_exists,
    connector_may_be_used,
    connector_endpoint_is_safe,
    model_is_one,
    local_model_is_there,
    model_can_do_it,
};

/* The steps of a conversation: its messages come later. */
static step_fn *const session_chain[] = {
    has_head,         model_is_short,        extensions_are_known,
    app_is_clear,     key_source_is_clear,   subject_is_there,
    connector_exists, connector_may_be_used, connector_endpoint_is_safe,
    model_is_one,     local_model_is_there,  model_can_do_it,
};

/* The steps that only look for the model. */
static step_fn *const model_chain[] = {
    model_is_short,   app_is_clear,          key_source_is_clear, subject_is_there,
    connector_exists, connector_may_be_used, model_is_one,        local_model_is_there};

static bool take_steps(struct steps *at, step_fn *const *steps, size_t count,
                       struct admission *ret, struct fault *fault) {
    for (size_t i = 0; i < count; i++) {
        if (!steps[i](at, fault)) return false;
    }
    at->found.route = at->local ? NIMI_ROUTE_POLICY_LOCAL : NIMI_ROUTE_POLICY_CLOUD;
    *ret = at->found;
    return true;
}

bool admit_scenario(const struct nimi_settings *settings, const struct envelope *envelope,
                    const struct scenario *asked, enum admit_by by, struct admission *ret,
                    struct fault *fault) {
    struct steps at = {.settings = settings, .envelope = envelope, .asked = asked, .by = by};
    return take_steps(&at, chain, ARRAY_LEN(chain), ret, fault);
}

bool admit_model(const struct nimi_settings *settings, const struct envelope *envelope,
                 const struct nimi_scenario_request_head *head, int scenario_type,
                 struct admission *ret, struct fault *fault) {
    const struct scenario asked = {.head = head, .scenario_type = scenario_type};
    struct steps at = {.settings = settings, .envelope = envelope, .asked = &asked};
    return take_steps(&at, model_chain, ARRAY_LEN(model_chain), ret, fault);
}

bool admit_session(const struct nimi_settings *settings, const struct envelope *envelope,
                   const struct nimi_scenario_request_head *head,
                   const struct nimi_scenario_extension *extensions, size_t extension_count,
                   struct admission *ret, struct fault *fault) {
    const struct scenario asked = {.head = head,
                                   .scenario_type = NIMI_SCENARIO_TYPE_TEXT_GENERATE,
                                   .extensions = extensions,
                                   .extension_count = extension_count};
    struct steps at = {.settings = settings, .envelope = envelope, .asked = &asked};
    return take_steps(&at, session_chain, ARRAY_LEN(session_chain), ret, fault);
}

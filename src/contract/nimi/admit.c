#include "contract/nimi/admit.h"

#define MODE(name) (1u << NIMI_EXECUTION_MODE_##name)

/* Which modes a type admits, and which arm of the spec it needs. */
static const struct {
    unsigned modes;
    int spec;
} types[] = {
    /* clang-format off */
    [NIMI_SCENARIO_TYPE_TEXT_GENERATE]     = {MODE(SYNC) | MODE(STREAM),      1},
    [NIMI_SCENARIO_TYPE_TEXT_EMBED]        = {MODE(SYNC),                     2},
    [NIMI_SCENARIO_TYPE_IMAGE_GENERATE]    = {MODE(ASYNC_JOB),                3},
    [NIMI_SCENARIO_TYPE_VIDEO_GENERATE]    = {MODE(ASYNC_JOB),                4},
    [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = {MODE(STREAM) | MODE(ASYNC_JOB), 5},
    [NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE] = {MODE(ASYNC_JOB),                6},
    [NIMI_SCENARIO_TYPE_VOICE_CLONE]       = {MODE(ASYNC_JOB),                7},
    [NIMI_SCENARIO_TYPE_VOICE_DESIGN]      = {MODE(ASYNC_JOB),                8},
    [NIMI_SCENARIO_TYPE_MUSIC_GENERATE]    = {MODE(ASYNC_JOB),                9},
    [NIMI_SCENARIO_TYPE_WORLD_GENERATE]    = {MODE(ASYNC_JOB),               10},
    /* clang-format on */
};

unsigned admit_modes(int scenario_type) {
    bool known = scenario_type > 0 && (size_t)scenario_type < ARRAY_LEN(types);
    return known ? types[scenario_type].modes : 0;
}

/* What every step looks at, and what the steps find. */
struct steps {
    const struct nimi_settings *settings;
    const struct envelope *envelope;
    const struct scenario *asked;
    int mode, default_mode;
    struct str connector_id; /* without white space; empty: none */
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

static bool mode_is_admitted(struct steps *at, struct fault *fault) {
    const struct scenario *asked = at->asked;
    at->mode = asked->mode ? asked->mode : at->default_mode;
    unsigned modes = admit_modes(asked->scenario_type);
    bool admitted = at->mode > 0 && at->mode < 31 && (modes & 1u << at->mode) &&
                    at->mode == at->default_mode;
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

static bool has_input(struct steps *at, struct fault *fault) {
    const struct nimi_scenario_spec *spec = at->asked->spec;
    if (spec->which_spec == NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE) {
        return spec->speech_synthesize->text.len ||
               fault_set(fault, NIMI_AI_INPUT_INVALID, "there is no text to say");
    }
    if (spec->which_spec != NIMI_SCENARIO_SPEC_TEXT_GENERATE) return true;
    const struct nimi_text_generate_scenario_spec *text = spec->text_generate;
    for (size_t i = 0; i < text->input_count; i++) {
        if (says_something(&text->input[i])) return true;
    }
    return fault_set(fault, NIMI_AI_INPUT_INVALID,
                     "there is nothing to answer: input needs a message with content or parts; "
                     "a system prompt alone is not enough");
}

/* No extension is known, for any type. */
static bool extensions_are_known(struct steps *at, struct fault *fault) {
    if (at->asked->extension_count == 0) return true;
    return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                     "the extension '" STR_FMT "' is not known for this scenario type",
                     STR_ARG(str_head(at->asked->extensions[0].namespace_, 80)));
}

/* --- step 3: the app (step 2, the bearer, was checked before the request was read) -------- */

bool admit_app(const struct envelope *envelope, struct str app_id, struct fault *fault) {
    if (str_trim(app_id).len == 0)
        return fault_set(fault, NIMI_AI_APP_ID_REQUIRED, "the request needs an app_id");
    return envelope->app_id.len == 0 || str_equal(envelope->app_id, app_id) ||
           fault_set(fault, NIMI_AI_APP_ID_CONFLICT,
                     "app_id of the request and x-nimi-app-id are not the same");
}

static bool app_is_clear(struct steps *at, struct fault *fault) {
    return admit_app(at->envelope, at->asked->head->app_id, fault);
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
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "the cloud route and connectors need a subject_user_id");
}

/* --- steps 5 and 6: the connector --------------------------------------------------------- */

static const struct nimi_connector *find_connector(const struct steps *at) {
    for (size_t i = 0; i < at->settings->connector_count; i++) {
        const struct nimi_connector *connector = &at->settings->connectors[i];
        if (str_equal(connector->id, at->connector_id)) return connector;
    }
    return NULL;
}

static bool no_connector(struct steps *at, struct fault *fault) {
    return fault_set(fault, NIMI_AI_CONNECTOR_NOT_FOUND, "there is no connector '" STR_FMT "'",
                     STR_ARG(str_head(at->connector_id, 80)));
}

static bool connector_exists(struct steps *at, struct fault *fault) {
    if (!at->connector_id.len) {
        return at->local || fault_set(fault, NIMI_AI_CONNECTOR_ID_REQUIRED,
                                      "the cloud route needs a connector_id");
    }
    at->found.connector = find_connector(at);
    if (!at->found.connector) return no_connector(at, fault);
    return !at->found.connector->local ||
           fault_set(fault, NIMI_AI_CONNECTOR_INVALID,
                     "this connector serves local models: ask for one by its name, without "
                     "connector_id");
}

/* In this order: whose, on, with a key. Somebody else's is hidden as absent. */
static bool connector_may_be_used(struct steps *at, struct fault *fault) {
    const struct nimi_connector *connector = at->found.connector;
    if (!connector) return true;
    if (connector->owner.len && !str_equal(connector->owner, at->asked->head->subject_user_id))
        return no_connector(at, fault);
    if (!connector->enabled)
        return fault_set(fault, NIMI_AI_CONNECTOR_DISABLED, "this connector is switched off");
    return connector->has_credential ||
           fault_set(fault, NIMI_AI_CONNECTOR_CREDENTIAL_MISSING,
                     "this connector has no key; its operator must set one");
}

/* --- step 7: where it goes (step 8 is for inline endpoints) ------------------------------- */

static struct str host_of(struct str url) {
    struct str rest = str_skip(url, str_find(url, STR("://")) + 3);
    size_t end = 0;
    if (str_starts(rest, STR("["))) return str_head(rest, str_find_byte(rest, ']') + 1);
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != ':' &&
           rest.at[end] != '?' && rest.at[end] != '#')
        end++;
    return str_head(rest, end);
}

static bool is_loopback(struct str host) {
    return str_equal_nocase(host, STR("localhost")) || str_starts(host, STR("127.")) ||
           str_equal(host, STR("[::1]"));
}

static bool is_never_allowed(struct str host) {
    static const struct str heads[] = {STR_INIT("169.254."), STR_INIT("[fc"),  STR_INIT("[FC"),
                                       STR_INIT("[fd"),      STR_INIT("[FD"),  STR_INIT("[fe8"),
                                       STR_INIT("[fe9"),     STR_INIT("[fea"), STR_INIT("[feb"),
                                       STR_INIT("[FE")};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        if (str_starts(host, heads[i])) return true;
    }
    return false;
}

static bool endpoint_is_safe(struct steps *at, struct fault *fault) {
    const struct nimi_connector *connector = at->found.connector;
    if (!connector || connector->endpoint.len == 0) return true; /* the vendor's own */
    struct str host = host_of(connector->endpoint);
    bool https = str_starts(connector->endpoint, STR("https://"));
    bool near = is_loopback(host) && at->settings->allow_loopback;
    if (host.len && !is_never_allowed(host) && (https || near)) return true;
    return fault_set(fault, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN,
                     "the connector's endpoint must be https, and no link-local or private "
                     "IPv6 address");
}

/* --- step 9: the model -------------------------------------------------------------------- */

static bool model_is_one(struct steps *at, struct fault *fault) {
    struct str model = str_trim(at->asked->head->model_id);
    if (model.len == 0)
        return fault_set(fault, NIMI_AI_MODEL_ID_REQUIRED, "the request needs a model_id");
    bool list = str_find_byte(model, ',') < model.len ||
                str_find_byte(model, '|') < model.len || str_find(model, STR("->")) < model.len;
    at->found.model = model;
    return !list || fault_set(fault, NIMI_AI_ROUTE_UNSUPPORTED,
                              "a request names one model; lists of models are not routed");
}

static bool is_installed(const struct nimi_connector *connector, struct str model) {
    for (size_t i = 0; i < connector->model_count; i++) {
        if (str_equal(connector->models[i], model)) return true;
    }
    return connector->model_count == 0;
}

/* The connector that has the model; one that knows its models comes before one that takes any
 * name. */
static const struct nimi_connector *find_local(const struct steps *at, struct str model) {
    const struct nimi_connector *any = NULL;
    for (size_t i = 0; i < at->settings->connector_count; i++) {
        const struct nimi_connector *connector = &at->settings->connectors[i];
        if (!connector->local || !connector->enabled || !is_installed(connector, model))
            continue;
        if (connector->model_count) return connector;
        if (!any) any = connector;
    }
    return any;
}

static bool local_model_is_there(struct steps *at, struct fault *fault) {
    static const struct {
        struct str prefix;
        bool text; /* an engine for text */
    } engines[] = {{STR_INIT("local/"), true},
                   {STR_INIT("llama/"), true},
                   {STR_INIT("media/"), false},
                   {STR_INIT("speech/"), false},
                   {STR_INIT("sidecar/"), false}};
    if (at->found.connector) return true; /* remote names pass */
    struct str model = at->found.model;
    for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
        if (!str_starts(model, engines[i].prefix)) continue;
        if (!engines[i].text)
            return fault_set(
                fault, NIMI_AI_MODEL_PROVIDER_MISMATCH,
                "the engine that this model's name begins with does not write text");
        model = str_skip(model, engines[i].prefix.len);
        break;
    }
    at->found.connector = find_local(at, model);
    at->found.model = model;
    return at->found.connector || fault_set(fault, NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
                                            "no local model '" STR_FMT "' is active here",
                                            STR_ARG(str_head(model, 80)));
}

static bool model_writes_text(struct steps *at, struct fault *fault) {
    if (at->asked->scenario_type == NIMI_SCENARIO_TYPE_TEXT_GENERATE) return true;
    if (at->asked->scenario_type == NIMI_SCENARIO_TYPE_TEXT_EMBED)
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED,
                         "no model here makes embeddings");
    return fault_set_code(fault, NIMI_AI_ROUTE_UNSUPPORTED, ERR_UNIMPLEMENTED,
                          "this version does not synthesize speech yet");
}

/* --- the chain ---------------------------------------------------------------------------- */

static step_fn *const chain[] = {
    has_parts,
    mode_is_admitted,
    has_input,
    extensions_are_known,
    app_is_clear,
    key_source_is_clear,
    subject_is_there,
    connector_exists,
    connector_may_be_used,
    endpoint_is_safe,
    model_is_one,
    local_model_is_there,
    model_writes_text,
};

bool admit_scenario(const struct nimi_settings *settings, const struct envelope *envelope,
                    const struct scenario *asked, int default_mode, struct admission *ret,
                    struct fault *fault) {
    struct steps at = {.settings = settings,
                       .envelope = envelope,
                       .asked = asked,
                       .default_mode = default_mode};
    for (size_t i = 0; i < ARRAY_LEN(chain); i++) {
        if (!chain[i](&at, fault)) return false;
    }
    at.found.route = at.local ? NIMI_ROUTE_POLICY_LOCAL : NIMI_ROUTE_POLICY_CLOUD;
    *ret = at.found;
    return true;
}

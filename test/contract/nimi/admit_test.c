/* The ten-step chain: the fault of each row, the order of the rows, and who serves what. */
#include "contract/nimi/admit.h"

#include "base/mem.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "helper/assert_str.h"

/* --- a runtime with every kind of connector ----------------------------------------------- */

enum { TEAM, ANNAS, OFF, KEYLESS, PLAIN, FORBIDDEN, ANY, WORDS, VOICES, SLEEPING, CONNECTORS };

static struct provider *model;
static struct media *media;
static struct nimi_connector connectors[CONNECTORS];
static struct nimi_settings settings;

static const struct str tiny[] = {STR_INIT("tiny")}, voices[] = {STR_INIT("anna-voice")},
                        sleeping[] = {STR_INIT("asleep")};

static struct nimi_connector remote(const char *id) {
    return (struct nimi_connector){.id = str_from(id),
                                   .provider = model,
                                   .owner = STR_EMPTY,
                                   .endpoint = STR_EMPTY,
                                   .enabled = true,
                                   .has_credential = true};
}

static struct nimi_connector here(const char *id, const struct str *models, size_t count) {
    struct nimi_connector connector = remote(id);
    connector.local = true;
    connector.models = models;
    connector.model_count = count;
    return connector;
}

static int setup(void **state) {
    (void)state;
    model = fake_provider_new();
    media = fake_media_new(1u << MEDIA_SPEECH);
    connectors[TEAM] = remote("team");
    connectors[ANNAS] = remote("annas");
    connectors[ANNAS].owner = STR("anna");
    connectors[OFF] = remote("off");
    connectors[OFF].enabled = connectors[OFF].has_credential = false;
    connectors[KEYLESS] = remote("keyless");
    connectors[KEYLESS].has_credential = false;
    connectors[KEYLESS].endpoint = STR("http://vendor.example");
    connectors[PLAIN] = remote("plain");
    connectors[PLAIN].endpoint = STR("http://vendor.example");
    connectors[FORBIDDEN] = remote("forbidden");
    connectors[FORBIDDEN].endpoint = STR("https://169.254.169.254");
    connectors[ANY] = here("any", NULL, 0);
    connectors[WORDS] = here("words", tiny, 1);
    connectors[VOICES] = here("voices", voices, 1);
    connectors[VOICES].provider = NULL;
    connectors[VOICES].media = media;
    connectors[SLEEPING] = here("sleeping", sleeping, 1);
    connectors[SLEEPING].enabled = false;
    settings = (struct nimi_settings){.connectors = connectors, .connector_count = CONNECTORS};
    return 0;
}

static int teardown(void **state) {
    (void)state;
    provider_free(model);
    media_free(media);
    return 0;
}

/* --- a request ---------------------------------------------------------------------------- */

struct ask {
    int type, mode;
    enum admit_by by;
    const char *app, *subject, *model, *connector; /* NULL: a good one, or none */
    int route;                                     /* 0: LOCAL */
    bool no_head, no_spec, wrong_spec, no_input, system_only, extended, extended_twice;
    const char *extension; /* NULL: one that does not exist */
    struct envelope envelope;
};

static struct str or_else(const char *said, const char *other) {
    return str_from(said ? said : other);
}

static const struct nimi_chat_message words = {.role = STR_INIT("user"),
                                               .content = STR_INIT("hi")};
static const struct str inputs[] = {STR_INIT("hi")};

/* A spec of its type that says enough, or what the row says. */
static struct nimi_scenario_spec spec_of(const struct ask *ask) {
    static const struct nimi_text_generate_scenario_spec text = {.input = &words,
                                                                 .input_count = 1},
                                                         empty = {0},
                                                         system = {.system_prompt =
                                                                       STR_INIT("be kind")};
    static const struct nimi_text_embed_scenario_spec vectors = {inputs, 1}, none = {0};
    static const struct nimi_speech_synthesize_scenario_spec speech = {.text = STR_INIT("hi")},
                                                             mute = {.text = STR_INIT(" ")};
    static const struct nimi_image_generate_scenario_spec image = {.prompt = STR_INIT("cat")};
    struct nimi_scenario_spec spec = {.which_spec = ask->type};
    if (ask->wrong_spec) spec.which_spec = NIMI_SCENARIO_SPEC_IMAGE_GENERATE;
    switch (spec.which_spec) {
    case NIMI_SCENARIO_SPEC_TEXT_GENERATE:
        spec.text_generate = ask->system_only ? &system : ask->no_input ? &empty : &text;
        break;
    case NIMI_SCENARIO_SPEC_TEXT_EMBED:
        spec.text_embed = ask->no_input ? &none : &vectors;
        break;
    case NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE:
        spec.speech_synthesize = ask->no_input ? &mute : &speech;
        break;
    default: spec.image_generate = &image; break; /* the others are not looked into */
    }
    return spec;
}

static bool admit(const struct ask *ask, struct admission *ret, struct fault *fault) {
    const struct nimi_scenario_extension extension = {.namespace_ =
                                                          or_else(ask->extension, "x.y")};
    const struct nimi_scenario_extension extensions[] = {extension, extension};
    const struct nimi_scenario_request_head head = {
        .app_id = or_else(ask->app, "demo.app"),
        .subject_user_id = or_else(ask->subject, ""),
        .model_id = or_else(ask->model, "tiny"),
        .connector_id = or_else(ask->connector, ""),
        .route_policy = ask->route ? ask->route : NIMI_ROUTE_POLICY_LOCAL};
    const struct nimi_scenario_spec spec = spec_of(ask);
    return admit_scenario(
        &settings, &ask->envelope,
        &(struct scenario){.head = ask->no_head ? NULL : &head,
                           .scenario_type = ask->type,
                           .mode = ask->mode,
                           .spec = ask->no_spec ? NULL : &spec,
                           .extensions = extensions,
                           .extension_count = (size_t)ask->extended + ask->extended_twice},
        ask->by, ret, fault);
}

#define TEXT NIMI_SCENARIO_TYPE_TEXT_GENERATE
#define EMBED NIMI_SCENARIO_TYPE_TEXT_EMBED
#define SPEECH NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE
#define CLOUD NIMI_ROUTE_POLICY_CLOUD
#define SPEECH_EXTENSION "nimi.scenario.speech_synthesize.request"
#define IMAGE_EXTENSION "nimi.scenario.image.request"

struct row {
    struct ask ask;
    int reason;
    enum err_code code;
};

static void assert_refused(const struct row *row, size_t i) {
    struct admission found;
    struct fault fault;
    if (admit(&row->ask, &found, &fault)) fail_msg("row %zu was admitted", i);
    if (fault.reason != row->reason || fault.why.code != row->code)
        fail_msg("row %zu: %s %s (%s), expected %s %s", i, reason_get(fault.reason)->name,
                 err_kinds[fault.why.code].name, fault.why.text, reason_get(row->reason)->name,
                 err_kinds[row->code].name);
}

/* --- each row of the chain (3.3) ---------------------------------------------------------- */

static void each_step_that_says_no_has_its_reason_and_status(void **state) {
    (void)state;
    const struct envelope inline_key = {.key_source = STR("inline"),
                                        .provider_type = STR("openai"),
                                        .provider_api_key = STR("***")},
                          half_a_key = {.provider_type = STR("openai")},
                          inline_alone = {.key_source = STR("inline")},
                          managed = {.key_source = STR("managed")},
                          other_app = {.app_id = STR("other.app")};
    char long_model[ADMIT_MODEL_MAX_BYTES + 2];
    memset(long_model, 'm', sizeof(long_model) - 1);
    long_model[sizeof(long_model) - 1] = '\0';
    const struct row rows[] = {
        /* clang-format off */
        /* 1: the request */
        {{.type = TEXT, .model = long_model},                        NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .no_head = true},                            NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .no_spec = true},                            NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .wrong_spec = true},                         NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = 0, .wrong_spec = true},                            NIMI_AI_ROUTE_UNSUPPORTED,           ERR_INVALID_ARGUMENT},
        {{.type = 11, .wrong_spec = true},                           NIMI_AI_ROUTE_UNSUPPORTED,           ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .mode = 77},                                 NIMI_AI_ROUTE_UNSUPPORTED,           ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .mode = -1},                                 NIMI_AI_ROUTE_UNSUPPORTED,           ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .no_input = true},                           NIMI_AI_INPUT_INVALID,               ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .system_only = true},                        NIMI_AI_INPUT_INVALID,               ERR_INVALID_ARGUMENT},
        {{.type = EMBED, .by = ADMIT_EXECUTE, .no_input = true},     NIMI_AI_INPUT_INVALID,               ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .no_input = true},                         NIMI_AI_INPUT_INVALID,               ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .extended = true},                           NIMI_AI_MEDIA_OPTION_UNSUPPORTED,    ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .extended = true, .extension = SPEECH_EXTENSION}, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .by = ADMIT_SUBMIT, .extended = true, .extension = IMAGE_EXTENSION}, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .by = ADMIT_SUBMIT, .extended = true, .extended_twice = true, .extension = SPEECH_EXTENSION}, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .extended = true, .extension = SPEECH_EXTENSION}, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, ERR_INVALID_ARGUMENT},
        /* 3: the app (2, the bearer, stands before it) */
        {{.type = TEXT, .app = " "},                                 NIMI_AI_APP_ID_REQUIRED,             ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .app = "a\nb"},                              NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .subject = "a\xC2\x85"},                     NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .envelope = other_app},                      NIMI_AI_APP_ID_CONFLICT,             ERR_INVALID_ARGUMENT},
        /* 4: where the key comes from */
        {{.type = TEXT, .connector = "team", .envelope = inline_key}, NIMI_AI_REQUEST_CREDENTIAL_CONFLICT, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .connector = "team", .envelope = half_a_key}, NIMI_AI_REQUEST_CREDENTIAL_CONFLICT, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .envelope = managed},                        NIMI_AI_CONNECTOR_ID_REQUIRED,       ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .envelope = inline_alone},                   NIMI_AI_REQUEST_CREDENTIAL_MISSING,  ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .envelope = half_a_key},                     NIMI_AI_REQUEST_CREDENTIAL_MISSING,  ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .envelope = inline_key},                     NIMI_AI_REQUEST_CREDENTIAL_INVALID,  ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD},                             NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .connector = "team"},                        NIMI_PROTOCOL_ENVELOPE_INVALID,      ERR_INVALID_ARGUMENT},
        /* 5: the connector */
        {{.type = TEXT, .route = CLOUD, .subject = "anna"},          NIMI_AI_CONNECTOR_ID_REQUIRED,       ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD, .subject = "anna", .model = "none/tiny"},   NIMI_AI_CONNECTOR_ID_REQUIRED, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD, .subject = "anna", .model = "/tiny"},       NIMI_AI_CONNECTOR_ID_REQUIRED, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD, .subject = "anna", .model = "words/tiny"},  NIMI_AI_CONNECTOR_ID_REQUIRED, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD, .subject = "bob", .model = "annas/tiny"},   NIMI_AI_CONNECTOR_ID_REQUIRED, ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .connector = "none", .subject = "anna"},     NIMI_AI_CONNECTOR_NOT_FOUND,         ERR_NOT_FOUND},
        {{.type = TEXT, .connector = "words", .subject = "anna"},    NIMI_AI_CONNECTOR_INVALID,           ERR_INVALID_ARGUMENT},
        /* 6: whose, on, with a key, in this order */
        {{.type = TEXT, .connector = "annas", .subject = "bob"},     NIMI_AI_CONNECTOR_NOT_FOUND,         ERR_NOT_FOUND},
        {{.type = TEXT, .connector = "off", .subject = "bob"},       NIMI_AI_CONNECTOR_DISABLED,          ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .connector = "keyless", .subject = "bob"},   NIMI_AI_CONNECTOR_CREDENTIAL_MISSING, ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .route = CLOUD, .subject = "bob", .model = "off/tiny"},     NIMI_AI_CONNECTOR_DISABLED,           ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .route = CLOUD, .subject = "bob", .model = "keyless/tiny"}, NIMI_AI_CONNECTOR_CREDENTIAL_MISSING, ERR_FAILED_PRECONDITION},
        /* 7: where it goes */
        {{.type = TEXT, .connector = "plain", .subject = "bob"},     NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN, ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .connector = "forbidden", .subject = "bob"}, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN, ERR_FAILED_PRECONDITION},
        /* 9: the model */
        {{.type = TEXT, .model = " "},                               NIMI_AI_MODEL_ID_REQUIRED,           ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .route = CLOUD, .subject = "bob", .model = "team/"}, NIMI_AI_MODEL_ID_REQUIRED,   ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .model = "a,b"},                             NIMI_AI_ROUTE_UNSUPPORTED,           ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .model = "a|b"},                             NIMI_AI_ROUTE_UNSUPPORTED,           ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .model = "a->b"},                            NIMI_AI_ROUTE_UNSUPPORTED,           ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .model = "speech/tiny"},                     NIMI_AI_MODEL_PROVIDER_MISMATCH,     ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .model = "media/tiny"},                      NIMI_AI_MODEL_PROVIDER_MISMATCH,     ERR_INVALID_ARGUMENT},
        {{.type = TEXT, .model = "sidecar/tiny"},                    NIMI_AI_MODEL_PROVIDER_MISMATCH,     ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .model = "llama/anna-voice"},              NIMI_AI_MODEL_PROVIDER_MISMATCH,     ERR_INVALID_ARGUMENT},
        {{.type = SPEECH, .model = "local/tiny"},                    NIMI_AI_MODALITY_NOT_SUPPORTED,      ERR_FAILED_PRECONDITION},
        {{.type = EMBED, .by = ADMIT_EXECUTE},                       NIMI_AI_MODALITY_NOT_SUPPORTED,      ERR_FAILED_PRECONDITION},
        {{.type = SPEECH, .connector = "team", .subject = "anna"},   NIMI_AI_MODALITY_NOT_SUPPORTED,      ERR_FAILED_PRECONDITION},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_refused(&rows[i], i);
}

/* The real SDK writes what an app calls `extensions` under its type's namespace. */
static void a_job_may_bring_the_extension_of_its_type(void **state) {
    (void)state;
    const struct ask ask = {.type = SPEECH,
                            .by = ADMIT_SUBMIT,
                            .model = "anna-voice",
                            .extended = true,
                            .extension = SPEECH_EXTENSION};
    struct admission found;
    struct fault fault;
    if (!admit(&ask, &found, &fault)) fail_msg("%s", fault.why.text);
}

/* As the real SDK's generate({provider, model}) asks. */
static void the_cloud_route_finds_a_connector_by_the_models_name(void **state) {
    (void)state;
    static const struct {
        const char *model;
        int connector;
        const char *asked;
    } rows[] = {
        {"team/gpt-x", TEAM, "gpt-x"},
        {" team/maker/gpt-x", TEAM, "maker/gpt-x"},
        {"annas/gpt-x", ANNAS, "gpt-x"},
        {"openai/gpt-x", ANNAS, "gpt-x"}, /* of its two connectors OFF cannot be used */
    };
    connectors[OFF].vendor = connectors[ANNAS].vendor = STR("openai");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct ask ask = {
            .type = TEXT, .route = CLOUD, .subject = "anna", .model = rows[i].model};
        struct admission found;
        struct fault fault;
        if (!admit(&ask, &found, &fault)) fail_msg("row %zu: %s", i, fault.why.text);
        assert_ptr_equal(found.connector, &connectors[rows[i].connector]);
        assert_true(str_equal(found.model, str_from(rows[i].asked)));
        assert_int_equal(found.route, CLOUD);
    }
}

/* With each fault of the list a good request gets one more; the first of them answers. */
static void of_several_faults_the_earliest_step_answers(void **state) {
    (void)state;
    struct ask ask = {.type = TEXT,
                      .model = "",
                      .connector = "none",
                      .app = "",
                      .extended = true,
                      .no_input = true,
                      .mode = 9,
                      .envelope = {.key_source = STR("inline")}};
    const int reasons[] = {NIMI_AI_ROUTE_UNSUPPORTED,           NIMI_AI_INPUT_INVALID,
                           NIMI_AI_MEDIA_OPTION_UNSUPPORTED,    NIMI_AI_APP_ID_REQUIRED,
                           NIMI_AI_REQUEST_CREDENTIAL_CONFLICT, NIMI_PROTOCOL_ENVELOPE_INVALID,
                           NIMI_AI_CONNECTOR_NOT_FOUND,         NIMI_AI_MODEL_ID_REQUIRED};
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        struct admission found;
        struct fault fault;
        assert_false(admit(&ask, &found, &fault));
        if (fault.reason != reasons[i])
            fail_msg("fault %zu: %s", i, reason_get(fault.reason)->name);
        switch (i) { /* mend it */
        case 0: ask.mode = 0; break;
        case 1: ask.no_input = false; break;
        case 2: ask.extended = false; break;
        case 3: ask.app = "demo.app"; break;
        case 4: ask.envelope = (struct envelope){0}; break;
        case 5: ask.subject = "anna"; break;
        case 6: ask.connector = "team"; break;
        default: break;
        }
    }
}

/* --- who is found ------------------------------------------------------------------------- */

static void assert_found(const struct ask *ask, int connector, const char *name, int route) {
    struct admission found;
    struct fault fault;
    if (!admit(ask, &found, &fault)) fail_msg("%s", fault.why.text);
    assert_ptr_equal(found.connector, &connectors[connector]);
    assert_str(found.model, name);
    assert_int_equal(found.route, route);
}

static void the_connector_of_a_model_is_found(void **state) {
    (void)state;
    const int local = NIMI_ROUTE_POLICY_LOCAL;
    assert_found(&(struct ask){.type = TEXT}, WORDS, "tiny", local);
    assert_found(&(struct ask){.type = TEXT, .model = " tiny "}, WORDS, "tiny", local);
    assert_found(&(struct ask){.type = TEXT, .model = "local/tiny"}, WORDS, "tiny", local);
    assert_found(&(struct ask){.type = TEXT, .model = "llama/tiny"}, WORDS, "tiny", local);
    assert_found(&(struct ask){.type = TEXT, .model = "other"}, ANY, "other", local);
    assert_found(&(struct ask){.type = TEXT, .model = "asleep"}, ANY, "asleep", local);
    /* One that has the name but no words gives way to one that has words. */
    assert_found(&(struct ask){.type = TEXT, .model = "anna-voice"}, ANY, "anna-voice", local);
    assert_found(&(struct ask){.type = SPEECH, .model = "anna-voice"}, VOICES, "anna-voice",
                 local);
    assert_found(&(struct ask){.type = SPEECH, .model = "speech/anna-voice"}, VOICES,
                 "anna-voice", local);
    /* Remote names pass as they are, prefixes too. */
    assert_found(&(struct ask){.type = TEXT,
                               .model = "llama/big",
                               .connector = " team ",
                               .subject = "bob",
                               .route = CLOUD},
                 TEAM, "llama/big", CLOUD);
    assert_found(&(struct ask){.type = TEXT, .connector = "annas", .subject = "anna"}, ANNAS,
                 "tiny", local);
}

static void a_local_model_that_is_not_installed_is_unavailable(void **state) {
    (void)state;
    settings.connector_count = CONNECTORS;
    connectors[ANY].enabled = false;
    const struct row rows[] = {
        {{.type = TEXT, .model = "other"},
         NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
         ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .model = "local/asleep"},
         NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
         ERR_FAILED_PRECONDITION},
        {{.type = TEXT, .model = "anna-voice"},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = SPEECH, .model = "tiny"},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_refused(&rows[i], i);
}

/* Hidden as absent, as they are when asked for by their id. */
static void a_local_connector_of_another_owner_has_no_models(void **state) {
    (void)state;
    connectors[ANY].enabled = false;
    connectors[WORDS].owner = STR("anna");
    const struct row nobody = {{.type = TEXT, .model = "local/tiny"},
                               NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
                               ERR_FAILED_PRECONDITION};
    const struct row bob = {{.type = TEXT, .model = "local/tiny", .subject = "bob"},
                            NIMI_AI_LOCAL_MODEL_UNAVAILABLE,
                            ERR_FAILED_PRECONDITION};
    assert_refused(&nobody, 0);
    assert_refused(&bob, 1);
    assert_found(&(struct ask){.type = TEXT, .model = "local/tiny", .subject = "anna"}, WORDS,
                 "tiny", NIMI_ROUTE_POLICY_LOCAL);
}

static void http_to_this_machine_needs_the_operators_word(void **state) {
    (void)state;
    const struct ask ask = {.type = TEXT, .connector = "plain", .subject = "bob"};
    connectors[PLAIN].endpoint = STR("http://127.0.0.1:11434/v1");
    const struct row row = {ask, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN, ERR_FAILED_PRECONDITION};
    assert_refused(&row, 0);
    settings.allow_loopback = true;
    assert_found(&ask, PLAIN, "tiny", NIMI_ROUTE_POLICY_LOCAL);
}

/* --- modes -------------------------------------------------------------------------------- */

/* Every type by every method in every mode, against the protocol's own sentence (1.3) and the
 * two jobs that are ours. */
static void each_type_has_its_modes_and_each_method_its_own(void **state) {
    (void)state;
    static const char *const modes[] = {
        [NIMI_SCENARIO_TYPE_TEXT_GENERATE] = "stream execute submit",
        [NIMI_SCENARIO_TYPE_TEXT_EMBED] = "execute submit",
        [NIMI_SCENARIO_TYPE_IMAGE_GENERATE] = "submit",
        [NIMI_SCENARIO_TYPE_VIDEO_GENERATE] = "submit",
        [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = "stream submit",
        [NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE] = "submit",
        [NIMI_SCENARIO_TYPE_VOICE_CLONE] = "submit",
        [NIMI_SCENARIO_TYPE_VOICE_DESIGN] = "submit",
        [NIMI_SCENARIO_TYPE_MUSIC_GENERATE] = "submit",
        [NIMI_SCENARIO_TYPE_WORLD_GENERATE] = "submit",
    };
    static const struct {
        const char *name;
        int mode;
    } methods[] = {
        [ADMIT_STREAM] = {"stream", NIMI_EXECUTION_MODE_STREAM},
        [ADMIT_EXECUTE] = {"execute", NIMI_EXECUTION_MODE_SYNC},
        [ADMIT_SUBMIT] = {"submit", NIMI_EXECUTION_MODE_ASYNC_JOB},
    };
    for (int type = 1; type < (int)ARRAY_LEN(modes); type++) {
        for (size_t by = 0; by < ARRAY_LEN(methods); by++) {
            for (int mode = 0; mode <= 3; mode++) {
                const struct ask ask = {.type = type, .mode = mode, .by = (enum admit_by)by};
                struct str list = str_from(modes[type]);
                bool has = str_find(list, str_from(methods[by].name)) < list.len;
                bool wanted = has && (mode == 0 || mode == methods[by].mode);
                struct admission found;
                struct fault fault = {.reason = 0};
                bool passed =
                    admit(&ask, &found, &fault) || fault.reason != NIMI_AI_ROUTE_UNSUPPORTED;
                if (passed != wanted)
                    fail_msg("type %d by %s in mode %d", type, methods[by].name, mode);
            }
        }
    }
    assert_int_equal(admit_modes(0), 0);
    assert_int_equal(admit_modes(-1), 0);
    assert_int_equal(admit_modes(11), 0);
}

/* Types that are not served, also as a job: one reason for voices, another for the rest. */
static void types_that_are_not_served_are_refused_at_their_step(void **state) {
    (void)state;
    const struct row rows[] = {
        {{.type = 3, .by = ADMIT_SUBMIT},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 4, .by = ADMIT_SUBMIT},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 6, .by = ADMIT_SUBMIT},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 7, .by = ADMIT_SUBMIT},
         NIMI_AI_VOICE_WORKFLOW_UNSUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 8, .by = ADMIT_SUBMIT},
         NIMI_AI_VOICE_WORKFLOW_UNSUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 9, .by = ADMIT_SUBMIT},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
        {{.type = 10, .by = ADMIT_SUBMIT},
         NIMI_AI_MODALITY_NOT_SUPPORTED,
         ERR_FAILED_PRECONDITION},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) assert_refused(&rows[i], i);
}

static void what_is_served_depends_on_who_is_on(void **state) {
    (void)state;
    static const struct {
        int type;
        const char *model;
        bool served;
    } rows[] = {
        {TEXT, "", true},
        {SPEECH, "", true},
        {EMBED, "", false},
        {NIMI_SCENARIO_TYPE_VIDEO_GENERATE, "", false},
        {0, "", false},
        {11, "", false},
        {SPEECH, "anna-voice", true},
        {SPEECH, "speech/anna-voice", true},
        {SPEECH, "tiny", false},
        {TEXT, "llama/tiny", true},
        {TEXT, "speech/tiny", false},
        {TEXT, "what-a-vendor-calls-it", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (admit_serves(&settings, rows[i].type, str_from(rows[i].model)) != rows[i].served)
            fail_msg("type %d of '%s'", rows[i].type, rows[i].model);
    }
    connectors[VOICES].enabled = false;
    assert_false(admit_serves(&settings, SPEECH, STR("")));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(each_step_that_says_no_has_its_reason_and_status),
        T(a_job_may_bring_the_extension_of_its_type),
        T(the_cloud_route_finds_a_connector_by_the_models_name),
        T(of_several_faults_the_earliest_step_answers),
        T(the_connector_of_a_model_is_found),
        T(a_local_model_that_is_not_installed_is_unavailable),
        T(a_local_connector_of_another_owner_has_no_models),
        T(http_to_this_machine_needs_the_operators_word),
        T(each_type_has_its_modes_and_each_method_its_own),
        T(types_that_are_not_served_are_refused_at_their_step),
        T(what_is_served_depends_on_who_is_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The section `connectors`: the providers that callers of nimi.runtime.v1 may use. */
#include "config/rows.h"

#include "base/nearest.h"
#include "provider/media_local.h"

/* Not a provider but the media interface of provider/media_local.h. A provider with this name
 * in the file takes precedence. */
#define BUILTIN "builtin"

static bool read_models(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config_connector *ret = reading->entry;
    if (!config_want(node, YAML_LIST, "a list of models", e)) return false;
    struct str *models =
        arena_alloc(reading->config->arena, (node->count + 1) * sizeof(struct str));
    if (!models) return config_too_large(node, e);
    ret->models = models; /* before any is counted */
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->text.len == 0)
            return yaml_err(e, item, "a model is a name");
        models[ret->model_count++] = item->text;
    }
    return true;
}

static bool check_id(const struct reading *reading, const struct yaml *node, struct err *e) {
    const struct config *config = reading->config;
    const struct config_connector *connector = reading->entry;
    struct str id = connector->id;
    (void)node;
    for (size_t i = 0; i < config->connector_count; i++) {
        if (str_equal(config->connectors[i].id, id))
            return yaml_err(e, reading->map,
                            "there is a connector '" STR_FMT "' already; ids are unique",
                            STR_ARG(str_head(id, 40)));
    }
    return true;
}

static const char *const switches[] = {"false", "true", NULL};

#define ROW_OF struct config_connector

static const struct setting rows[] = {
    {.key = "id", NAME(id), .required = true, .read = check_id, .help = "its name"},
    {.key = "provider",
     NAME(provider_name),
     .required = true,
     .help = "one of `providers`, one known by name, or `builtin`: speech and vectors of this "
             "machine"},
    {.key = "owner", NAME(owner), .help = "the only subject that may use it"},
    {.key = "local",
     CHOICE(local),
     .choices = switches,
     .help = "its models are asked for by name, without the connector"},
    {.key = "enabled", CHOICE(enabled), .choices = switches, .help = "whether it is there"},
    {.key = "models", .read = read_models, .help = "a list of names; left out: any name"},
};

static const struct config_connector blank = {.enabled = true};

const struct config_list config_connector_list = {
    .key = "connectors",
    .what = "a list of connectors",
    .schema = {.what = "a connector", ROWS(rows), .blank = &blank},
    KEPT_IN(connectors, connector_count),
    .at = offsetof(struct config_connector, at)};

/* --- resolving ---------------------------------------------------------------------------- */

static bool find_provider(struct config *config, const struct config_input *input,
                          struct config_connector *connector, struct err *e) {
    struct config_provider *provider;
    struct err why;
    const struct yaml *at = yaml_find(connector->at, STR("provider"));
    if (!config_provider_get(config, input, connector->provider_name, &provider, &why))
        return yaml_err(e, at, "%s", why.text);
    if (!provider) {
        struct nearest nearest;
        nearest_init(&nearest, connector->provider_name);
        config_offer_providers(config, &nearest);
        nearest_offer(&nearest, STR(BUILTIN));
        return yaml_err(e, at, "no provider is called '" STR_FMT "'%s",
                        STR_ARG(str_head(connector->provider_name, 40)),
                        nearest_hint(&nearest));
    }
    provider->used = true;
    provider->forbid_link_local = true; /* the contract's endpoint rule (K-SEC) */
    connector->provider = provider;
    return true;
}

/* Unless the file says otherwise it is local: callers name only its models. */
static bool be_builtin(struct config_connector *connector, struct err *e) {
    static const struct str models[] = {STR_INIT(LOCAL_SPEECH_MODEL),
                                        STR_INIT(LOCAL_EMBEDDING_MODEL)};
    const struct yaml *said = yaml_find(connector->at, STR("models"));
    if (said)
        return yaml_err(e, said,
                        "the models of '" BUILTIN "' are known: " LOCAL_SPEECH_MODEL
                        " and " LOCAL_EMBEDDING_MODEL "; leave 'models' out");
    connector->builtin = true;
    if (!yaml_find(connector->at, STR("local"))) connector->local = true;
    connector->models = models;
    connector->model_count = ARRAY_LEN(models);
    return true;
}

static bool is_listed(const struct config *config, struct str name) {
    for (size_t i = 0; i < config->provider_count; i++) {
        if (str_equal(config->providers[i].name, name)) return true;
    }
    return false;
}

static bool find_answerer(struct config *config, const struct config_input *input,
                          struct config_connector *connector, struct err *e) {
    bool builtin = str_equal(connector->provider_name, STR(BUILTIN)) &&
                   !is_listed(config, connector->provider_name);
    return builtin ? be_builtin(connector, e) : find_provider(config, input, connector, e);
}

bool config_resolve_connectors(struct config *config, const struct config_input *input,
                               struct err *e) {
    for (size_t i = 0; i < config->connector_count; i++) {
        struct config_connector *connector =
            (struct config_connector *)(uintptr_t)&config->connectors[i];
        if (!find_answerer(config, input, connector, e) && !config_goes_on(config, e))
            return false;
    }
    return true;
}

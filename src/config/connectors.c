/* The section `connectors`: which providers the callers of nimi.runtime.v1 may ask. */
#include "config/build.h"

#include "base/nearest.h"
#include "provider/media_local.h"

/* No provider, but what provider/media_local.h does. A provider of that name in the file beats
 * it. */
#define BUILTIN "builtin"

struct connector_nodes {
    struct str id, provider, owner;
    const struct yaml *local, *enabled, *models;
};

static const struct yaml_field fields[] = {
    {"id", YAML_NAME, offsetof(struct connector_nodes, id), true},
    {"provider", YAML_NAME, offsetof(struct connector_nodes, provider), true},
    {"owner", YAML_NAME, offsetof(struct connector_nodes, owner), false},
    {"local", YAML_NODE, offsetof(struct connector_nodes, local), false},
    {"enabled", YAML_NODE, offsetof(struct connector_nodes, enabled), false},
    {"models", YAML_NODE, offsetof(struct connector_nodes, models), false},
};

static bool too_large(const struct yaml *node, struct err *e) {
    return yaml_err(e, node, "the settings are too large");
}

/* `ret` stays as it is without a node. */
static bool read_switch(const struct yaml *node, bool *ret, struct err *e) {
    static const char *const choices[] = {"false", "true", NULL};
    unsigned choice;
    if (!node) return true;
    if (!config_choice(node, choices, &choice, e)) return false;
    *ret = choice == 1;
    return true;
}

static bool read_models(struct config *config, const struct yaml *node,
                        struct config_connector *ret, struct err *e) {
    if (!node) return true;
    if (!config_want(node, YAML_LIST, "a list of models", e)) return false;
    struct str *models = arena_alloc(config->arena, (node->count + 1) * sizeof(struct str));
    if (!models) return too_large(node, e);
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (item->kind != YAML_SCALAR || item->text.len == 0)
            return yaml_err(e, item, "a model is a name");
        models[ret->model_count++] = item->text;
    }
    ret->models = models;
    return true;
}

static bool is_taken(const struct config *config, struct str id) {
    for (size_t i = 0; i < config->connector_count; i++) {
        if (str_equal(config->connectors[i].id, id)) return true;
    }
    return false;
}

static bool read_connector(struct config *config, const struct yaml *node,
                           struct config_connector *connectors, struct err *e) {
    struct connector_nodes nodes = {.id = STR_EMPTY, .provider = STR_EMPTY, .owner = STR_EMPTY};
    if (!yaml_fields(node, "a connector", fields, ARRAY_LEN(fields), &nodes, e)) return false;
    struct config_connector connector = {.id = nodes.id,
                                         .provider_name = nodes.provider,
                                         .owner = nodes.owner,
                                         .enabled = true,
                                         .at = node};
    if (is_taken(config, nodes.id))
        return yaml_err(e, node, "there is a connector '" STR_FMT "' already; ids are unique",
                        STR_ARG(str_head(nodes.id, 40)));
    if (!read_switch(nodes.local, &connector.local, e) ||
        !read_switch(nodes.enabled, &connector.enabled, e) ||
        !read_models(config, nodes.models, &connector, e))
        return false;
    connectors[config->connector_count++] = connector;
    return true;
}

bool config_read_connectors(struct config *config, const struct config_input *input,
                            const struct yaml *node, struct err *e) {
    (void)input;
    if (!config_want(node, YAML_LIST, "a list of connectors", e)) return false;
    struct config_connector *connectors =
        arena_alloc(config->arena, (node->count + 1) * sizeof(*connectors));
    if (!connectors) return too_large(node, e);
    config->connectors = connectors;
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_connector(config, item, connectors, e) && !config_goes_on(config, e))
            return false;
    }
    return true;
}

/* --- when everything has been read -------------------------------------------------------- */

static bool find_provider(struct config *config, const struct config_input *input,
                          struct config_connector *connector, struct err *e) {
    struct config_provider *provider;
    struct err why;
    const struct yaml *at = yaml_find(connector->at, STR("provider"));
    if (!config_provider_get(config, input, connector->provider_name, &provider, &why))
        return yaml_err(e, at, "%s", why.text);
    if (!provider) {
        struct nearest nearest;
        char hint[NEAREST_HINT_BYTES];
        nearest_init(&nearest, connector->provider_name);
        config_offer_providers(config, &nearest);
        nearest_offer(&nearest, STR(BUILTIN));
        return yaml_err(e, at, "no provider is called '" STR_FMT "'%s",
                        STR_ARG(str_head(connector->provider_name, 40)),
                        nearest_hint(&nearest, hint));
    }
    provider->used = true;
    connector->provider = provider;
    return true;
}

/* It is asked by the names of its models, unless the file says otherwise. */
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

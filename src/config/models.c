/* Resolves the model of each agent: names such as "openai/gpt-4o" become a provider and a
 * model.
 *
 * This runs after file, environment and flags have been read, because the default model and the
 * keys can come from any of them. */
#include "config/build.h"

#include "base/nearest.h"
#include "provider/dialect.h"

#define SCRIPTED STR("scripted")

/* A position in the file, or else the name of what gave the value. */
struct place {
    const struct yaml *at;
    const char *what; /* "--model" */
};

static bool models_refuse(const struct place *place, const char *why, struct err *e) {
    return place->at ? yaml_err(e, place->at, "%s", why)
                     : err_set(e, ERR_INVALID_ARGUMENT, "%s: %s", place->what, why);
}

/* --- one name ----------------------------------------------------------------------------- */

static bool refuse_provider(const struct config *config, const struct place *place,
                            struct str name, struct err *e) {
    struct err why;
    struct nearest nearest;
    nearest_init(&nearest, name);
    config_offer_providers(config, &nearest);
    err_set(&why, ERR_INVALID_ARGUMENT, "no provider is called '" STR_FMT "'%s",
            STR_ARG(str_head(name, 40)),
            nearest.found.len ? nearest_hint(&nearest) : "; list it under 'providers'");
    return models_refuse(place, why.text, e);
}

static bool get_provider(struct config *config, const struct config_input *input,
                         struct str name, const struct place *place,
                         struct config_provider **ret, struct err *e) {
    struct err why;
    if (!config_provider_get(config, input, name, ret, &why))
        return models_refuse(place, why.text, e);
    return *ret || refuse_provider(config, place, name, e);
}

static struct config_provider *first_listed(const struct config *config) {
    for (size_t i = 0; i < config->provider_count; i++) {
        if (config->providers[i].listed) return (struct config_provider *)&config->providers[i];
    }
    return NULL;
}

/* The provider of a model named without "provider/". If the file lists providers, it is the
 * default model's if listed, else the first one. Otherwise it is the vendor whose models are
 * named like this, then the default model's provider. NULL: unknown. */
static bool guess_provider(struct config *config, const struct config_input *input,
                           struct str model, const struct place *place,
                           struct config_provider **ret, struct err *e) {
    struct config_provider *usual = (struct config_provider *)config->model_default.provider;
    struct str vendor = config_vendor_of(model);
    *ret = usual && usual->listed ? usual : first_listed(config);
    if (*ret) return true;
    if (vendor.len) return get_provider(config, input, vendor, place, ret, e);
    *ret = usual;
    return true;
}

static bool models_has_control(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte <= ' ' || byte == 0x7F) return true;
    }
    return false;
}

/* `own`: the provider that the agent names. The model is then that provider's name for it,
 * including any slashes. *ret's provider stays NULL when it is unknown. */
static bool resolve(struct config *config, const struct config_input *input, struct str text,
                    struct config_provider *own, const struct place *place,
                    struct config_model *ret, struct err *e) {
    struct str rest;
    struct str head = str_split(text, '/', &rest);
    struct config_provider *provider = own;
    if (!text.len || models_has_control(text) || (rest.at && !rest.len))
        return models_refuse(
            place, "this is not a model; write provider/model, such as openai/gpt-4o", e);
    ret->name = text;
    if (own) {
        if (rest.at && str_equal(head, own->name)) ret->name = rest;
    } else if (rest.at) {
        if (!get_provider(config, input, head, place, &provider, e)) return false;
        ret->name = rest;
    } else if (!guess_provider(config, input, text, place, &provider, e)) {
        return false;
    }
    if (provider) provider->used = true;
    ret->provider = provider;
    return true;
}

/* --- an agent ----------------------------------------------------------------------------- */

/* The model of a provider named without one: its own, else the default model if that is from
 * this provider. */
static bool model_of(const struct config *config, const struct config_provider *provider,
                     const struct place *place, struct config_model *ret, struct err *e) {
    ret->provider = provider;
    ret->name = provider->model;
    if (provider->broken) return true;
    if (!ret->name.len && config->model_default.provider == provider)
        ret->name = config->model_default.name;
    if (ret->name.len || str_equal(provider->kind, SCRIPTED)) return true;
    struct err why;
    err_set(&why, ERR_INVALID_ARGUMENT,
            "which model of '" STR_FMT "'? Give the agent or the provider a model",
            STR_ARG(provider->name));
    return models_refuse(place, why.text, e);
}

/* No model or provider is given. Use the default model, else the first listed provider, else
 * the script. */
static bool default_of(struct config *config, const struct config_input *input,
                       const struct place *place, struct config_model *ret, struct err *e) {
    struct config_provider *provider = NULL;
    if (config->model_default.provider) {
        *ret = config->model_default;
        return true;
    }
    if (!guess_provider(config, input, STR_EMPTY, place, &provider, e)) return false;
    if (!provider && !get_provider(config, input, SCRIPTED, place, &provider, e)) return false;
    provider->used = true;
    return model_of(config, provider, place, ret, e);
}

static bool resolve_model(struct config *config, const struct config_input *input,
                          struct config_agent *agent, struct config_provider *own,
                          struct err *e) {
    struct place place = {agent->model_at ? agent->model_at : agent->at, "model"};
    struct str text;
    if (!agent->model_at) {
        if (own) own->used = true;
        return own ? model_of(config, own, &place, &agent->model, e)
                   : default_of(config, input, &place, &agent->model, e);
    }
    if (!yaml_value(agent->model_at, YAML_TEXT, &text, e) ||
        !resolve(config, input, text, own, &place, &agent->model, e))
        return false;
    if (agent->model.provider) return true;
    struct config_provider *script; /* a script accepts any model name */
    if (!get_provider(config, input, SCRIPTED, &place, &script, e)) return false;
    script->used = true;
    agent->model.provider = script;
    return true;
}

/* The provider of a fallback: named in "provider/model", else the agent's own, unless the name
 * is in the style of a known vendor. */
static bool fallback_provider(struct config *config, const struct config_input *input,
                              struct str text, const struct config_agent *agent,
                              const struct place *place, struct config_provider **ret,
                              struct err *e) {
    struct config_provider *own = (struct config_provider *)agent->model.provider;
    bool bare = str_find_byte(text, '/') == text.len;
    struct str vendor = config_vendor_of(text);
    *ret = bare ? own : NULL;
    if (!bare || agent->provider_at || !own || own->listed || !vendor.len) return true;
    return get_provider(config, input, vendor, place, ret, e);
}

static bool resolve_one(struct config *config, const struct config_input *input,
                        const struct yaml *node, const struct config_agent *agent,
                        struct config_model *ret, struct err *e) {
    const struct place place = {node, "fallback"};
    struct config_provider *provider;
    struct str text;
    return yaml_value(node, YAML_TEXT, &text, e) &&
           fallback_provider(config, input, text, agent, &place, &provider, e) &&
           resolve(config, input, text, provider, &place, ret, e);
}

static bool resolve_fallback(struct config *config, const struct config_input *input,
                             struct config_agent *agent, struct err *e) {
    const struct yaml *list = agent->fallback_at;
    bool alone = list->kind == YAML_SCALAR && !yaml_is_null(list);
    size_t count = alone ? 1 : list->count;
    if (!alone && !config_want(list, YAML_LIST, "a list of models", e)) return false;
    struct config_model *models = arena_alloc(config->arena, count * sizeof(*models));
    if (!models) return yaml_err(e, list, "this list is too large");
    const struct yaml *item = alone ? list : list->first;
    for (size_t i = 0; i < count; i++, item = item->next) {
        if (!resolve_one(config, input, item, agent, &models[i], e)) return false;
    }
    agent->fallback = models;
    agent->fallback_count = count;
    return true;
}

static bool resolve_agent(struct config *config, const struct config_input *input,
                          struct config_agent *agent, struct err *e) {
    struct config_provider *own = NULL;
    struct str name;
    if (agent->kind) /* only the agent itself uses the name */
        return !agent->model_at ||
               yaml_value(agent->model_at, YAML_TEXT, &agent->model.name, e);
    if (agent->provider_at) {
        const struct place place = {agent->provider_at, "provider"};
        if (!yaml_value(agent->provider_at, YAML_NAME, &name, e) ||
            !get_provider(config, input, name, &place, &own, e))
            return false;
    }
    return resolve_model(config, input, agent, own, e) &&
           (!agent->fallback_at || resolve_fallback(config, input, agent, e));
}

/* --- settings that a vendor would refuse in every turn ------------------------------------ */

static const struct yaml *place_of_options(const struct config_agent *agent) {
    static const char *const keys[] = {"thinking_tokens", "max_tokens", "effort"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const struct yaml *node = yaml_find(agent->at, str_from(keys[i]));
        if (node) return node;
    }
    return agent->at;
}

/* Let the dialect check the options by writing a small request with them. */
static bool check_options(const struct config_agent *agent, const struct config_model *model,
                          struct err *e) {
    bool known = model->provider && !model->provider->broken;
    const struct dialect *dialect = known ? dialect_find(model->provider->kind) : NULL;
    const struct message hello = {.role = MESSAGE_USER, .text = STR("hello")};
    const struct model_options options = {.output_tokens_max = (int64_t)agent->max_tokens,
                                          .temperature = agent->temperature,
                                          .top_p = agent->top_p,
                                          .effort = agent->effort,
                                          .thinking_tokens = (int64_t)agent->thinking_tokens};
    const struct provider_request request = {.agent = agent->slug,
                                             .model = model->name,
                                             .messages = &hello,
                                             .message_count = 1,
                                             .options = &options};
    if (!dialect || !agent->at || !model->name.len) return true;
    const struct dialect_settings asked = {.base_url = model->provider->base_url};
    struct buf body;
    struct err why;
    buf_init(&body, 64 * KIB);
    bool fine = dialect->body(&asked, &request, &body, &why);
    buf_done(&body);
    return fine || yaml_err(e, place_of_options(agent), "%s", why.text);
}

static bool check_agent(const struct config_agent *agent, struct err *e) {
    if (!check_options(agent, &agent->model, e)) return false;
    for (size_t i = 0; i < agent->fallback_count; i++) {
        if (!check_options(agent, &agent->fallback[i], e)) return false;
    }
    return true;
}

/* --- all agents --------------------------------------------------------------------------- */

static bool resolve_default(struct config *config, const struct config_input *input,
                            struct err *e) {
    const struct setting *setting = setting_by_key(config, STR("model"));
    const struct config_origin *origin = &config->origins[setting - config->settings];
    struct buf what;
    buf_init(&what, KIB);
    if (origin->source == FROM_FILE) {
        buf_printf(&what, STR_FMT ": model", STR_ARG(str_head(config->file, 256)));
    } else if (origin->source == FROM_FLAG) {
        buf_printf(&what, "--%s", origin->name);
    } else if (origin->name) {
        buf_append(&what, str_from(origin->name));
    }
    buf_append_byte(&what, '\0');
    const struct place place = {NULL, what.at};
    bool done = resolve(config, input, config->model, NULL, &place, &config->model_default, e);
    if (done && !config->model_default.provider)
        done = models_refuse(&place,
                             "whose model is this? Write provider/model, such as openai/gpt-4o "
                             "or ollama/gemma3",
                             e);
    buf_done(&what);
    return done;
}

/* A model is set but no agent: add one that just answers. */
static bool make_agent(struct config *config, struct err *e) {
    struct config_agent *agent = ARENA_NEW(config->arena, struct config_agent);
    if (!agent) return err_set(e, ERR_TOO_LARGE, "the settings are too large");
    *agent = (struct config_agent){
        .slug = STR("manager"),
        .description = STR("Answers questions and does what it is asked."),
        .system =
            STR("You are a helpful assistant. Answer briefly and to the point, and say so "
                "when you do not know something."),
        .model = config->model_default,
        .effort = STR_EMPTY,
        .output = STR_EMPTY,
        .temperature = config->agent.temperature,
        .max_tokens = config->agent.max_tokens,
        .thinking = config->agent.thinking,
        .top_p = -1,
        .all_tools = true};
    if (config->agent.instructions.len) agent->system = config->agent.instructions;
    config->agents = agent;
    config->agent_count = 1;
    return true;
}

static void warn_of_missing_keys(struct config *config) {
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *provider = &config->providers[i];
        if (!provider->used || provider->broken) continue;
        if (provider->key.len || !provider->key_name.len) continue;
        config_warn(config,
                    "provider '" STR_FMT "' has no key: set " STR_FMT ", or " STR_FMT
                    "_FILE to the file that holds it",
                    STR_ARG(provider->name), STR_ARG(provider->key_name),
                    STR_ARG(provider->key_name));
    }
}

bool config_resolve_models(struct config *config, const struct config_input *input,
                           struct err *e) {
    struct config_agent *agents = (struct config_agent *)config->agents; /* not shared yet */
    if (config->model.len && !resolve_default(config, input, e) && !config_goes_on(config, e))
        return false;
    for (size_t i = 0; i < config->agent_count; i++) {
        if (!agents[i].system.len) agents[i].system = config->agent.instructions;
        if (agents[i].temperature < 0) agents[i].temperature = config->agent.temperature;
        if (!agents[i].max_tokens) agents[i].max_tokens = config->agent.max_tokens;
        if (!yaml_find(agents[i].at, STR("thinking")))
            agents[i].thinking = config->agent.thinking;
        bool fine = resolve_agent(config, input, &agents[i], e) && check_agent(&agents[i], e);
        if (!fine && !config_goes_on(config, e)) return false;
    }
    bool lonely = config->model_default.provider && !config->agent_count && !config->script.len;
    if (lonely && !make_agent(config, e)) return false;
    warn_of_missing_keys(config);
    return true;
}

#include "daemon/team.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/team_agent.h"
#include "daemon/team_tape.h"
#include "daemon/team_tools.h"
#include "provider/chain.h"
#include "provider/live.h"
#include "provider/media_local.h"
#include "provider/media_openai.h"
#include "provider/remote.h"
#include "provider/scripted.h"
#include "wire/websocket.h"
#include "wire/yaml.h"

#include <stdlib.h>

#define SCRIPT_MAX_BYTES (16 * MIB)

static bool is_scripted(const struct config_provider *provider) {
    return str_equal(provider->kind, STR("scripted"));
}

/* --- the script --------------------------------------------------------------------------- */

static bool plays_script(const struct config *config) {
    if (config->agent_count == 0 || config->script.len) return true;
    for (size_t i = 0; i < config->provider_count; i++) {
        if (config->providers[i].used && is_scripted(&config->providers[i])) return true;
    }
    return false;
}

bool team_is_demo(const struct config *config) {
    return plays_script(config) && config->script.len == 0;
}

static bool load_script(const struct config *config, struct script **ret, struct err *e) {
    if (!plays_script(config)) return true;
    if (!config->script.len) return script_parse(STR("demo.yaml"), demo_script, ret, e);
    struct buf text;
    buf_init(&text, SCRIPT_MAX_BYTES);
    bool parsed = file_read(config->script, &text, e) &&
                  script_parse(config->script, buf_str(&text), ret, e);
    buf_done(&text);
    return parsed;
}

/* --- providers ---------------------------------------------------------------------------- */

static uint64_t or_usual(uint64_t said, uint64_t usual) {
    return said == CONFIG_UNSET ? usual : said;
}

static struct remote_options remote_options_of(const struct config_provider *from,
                                               const struct dialect *dialect) {
    struct remote_options options = remote_defaults;
    struct str usual_url = dialect->base_url ? str_from(dialect->base_url) : STR_EMPTY;
    options.name = from->name;
    options.dialect = dialect;
    options.settings = (struct dialect_settings){
        .base_url = from->base_url.len ? from->base_url : usual_url,
        .model = from->model,
        .query = from->query,
        .key = from->key,
        .key_header = from->key_header,
        .joins_users = from->join_users,
    };
    options.http2 = from->http2;
    options.reach = from->forbid_link_local ? HTTP_NOT_LINK_LOCAL : HTTP_ANYWHERE;
    options.connect_ms = or_usual(from->connect_ms, options.connect_ms);
    options.first_byte_ms = or_usual(from->first_byte_ms, options.first_byte_ms);
    options.stall_ms = or_usual(from->stall_ms, options.stall_ms);
    options.total_ms = or_usual(from->total_ms, options.total_ms);
    options.retries_max = (unsigned)or_usual(from->retries, options.retries_max);
    return options;
}

/* What a provider that makes requests is asked with. End it with free(headers). */
struct remote {
    struct remote_options options;
    struct http_header *headers;
};

static struct remote remote_of(const struct config_provider *from,
                               const struct dialect *dialect, struct http_pool *pool) {
    struct remote remote = {remote_options_of(from, dialect),
                            mem_zero(from->header_count, sizeof(struct http_header))};
    for (size_t i = 0; i < from->header_count; i++)
        remote.headers[i] = (struct http_header){from->headers[i].name, from->headers[i].value};
    remote.options.headers = remote.headers;
    remote.options.header_count = from->header_count;
    remote.options.pool = pool;
    return remote;
}

bool team_provider_new(const struct config_provider *from, struct http_pool *pool,
                       struct provider **ret, struct err *e) {
    const struct dialect *dialect = dialect_find(from->kind);
    if (!dialect)
        return err_set(e, ERR_FAILED_PRECONDITION, "provider '" STR_FMT "' makes no requests",
                       STR_ARG(from->name));
    struct remote remote = remote_of(from, dialect, pool);
    *ret = remote_provider_new(&remote.options);
    free(remote.headers);
    return true;
}

/* A pool of the team's own never sends a request, so the library is not needed. */
static bool need_library(const struct team *team, struct http_pool *pool, struct err *e) {
    return team->own_pool || http_pool_need(pool, e);
}

/* Fill `providers`: one for each configured provider, in order, NULL where it is not used, and
 * after them room for a chain per agent. */
static bool make_providers(struct team *team, const struct config *config,
                           struct http_pool *pool, struct err *e) {
    team->providers =
        mem_zero(config->provider_count + config->agent_count + 1, sizeof(struct provider *));
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *from = &config->providers[i];
        struct provider **provider = &team->providers[team->provider_count++];
        if (!from->used || from->broken) continue;
        if (is_scripted(from)) {
            *provider = scripted_provider_new(from->name, team->script);
        } else if (!need_library(team, pool, e) ||
                   !team_provider_new(from, pool, provider, e)) {
            return false;
        }
    }
    return true;
}

static struct provider *provider_of(const struct team *team, const struct config *config,
                                    const struct config_model *model) {
    return team->providers[model->provider - config->providers];
}

/* The agent's own provider, or a chain that begins with it if the agent has fallbacks. */
static struct provider *answerer_of(struct team *team, const struct config *config,
                                    const struct config_agent *from) {
    struct provider *own = provider_of(team, config, &from->model);
    if (!from->fallback_count) return own;
    struct chain_link *links = mem_zero(from->fallback_count + 1, sizeof(*links));
    links[0] = (struct chain_link){own, from->model.name};
    for (size_t i = 0; i < from->fallback_count; i++)
        links[i + 1] = (struct chain_link){provider_of(team, config, &from->fallback[i]),
                                           from->fallback[i].name};
    struct provider *chain =
        chain_provider_new(from->model.provider->name, links, from->fallback_count + 1);
    team->providers[team->provider_count++] = chain;
    free(links);
    return chain;
}

/* --- media of connectors ------------------------------------------------------------------ */

/* A connector whose provider speaks OpenAI's protocol uses the media endpoints at the same address
 * with the same key, and likewise its Realtime API (provider/live.h). 'builtin' is this machine
 * itself. */
static struct media *media_beside(const struct config_provider *from, struct http_pool *pool) {
    const struct dialect *dialect = dialect_find(from->kind);
    if (!dialect || !dialect->media_beside) return NULL;
    struct remote remote = remote_of(from, dialect, pool);
    struct media *media = media_openai_new(&remote.options);
    free(remote.headers);
    return media;
}

static struct live_model *live_beside(const struct config_provider *from,
                                      struct http_pool *pool) {
    const struct dialect *dialect = dialect_find(from->kind);
    if (!dialect || !dialect->live_beside || from->realtime == LIVE_NEVER) return NULL;
    struct remote remote = remote_of(from, dialect, pool);
    struct live_model *live = live_model_new(&(struct live_model_options){
        .remote = &remote.options,
        .which = (enum live_which)from->realtime,
        .voice = from->realtime_voice,
    });
    free(remote.headers);
    return live;
}

static struct media *this_machine(struct str name) {
    return media_local_new(&(struct media_local_options){.name = name});
}

static struct media *media_of(const struct config_connector *connector,
                              struct http_pool *pool) {
    if (!connector->enabled) return NULL;
    return connector->builtin ? this_machine(connector->id)
                              : media_beside(connector->provider, pool);
}

static struct live_model *live_of(const struct config_connector *connector,
                                  struct http_pool *pool) {
    bool there = connector->enabled && !connector->builtin;
    return there ? live_beside(connector->provider, pool) : NULL;
}

/* The library is small, and loaded here because that is off the loops. */
static void load_websocket(const struct team *team) {
    struct err e;
    for (size_t i = 0; i < team->media_count; i++) {
        if (!team->live[i]) continue;
        if (!websocket_load(&e)) log_warning("realtime models cannot be asked: %s", e.text);
        return;
    }
}

/* One of each for each connector. Without connectors there is one, this machine's own. */
static void make_media(struct team *team, const struct config *config, struct http_pool *pool) {
    team->media = mem_zero(config->connector_count + 1, sizeof(struct media *));
    if (!config->connector_count) team->media[team->media_count++] = this_machine(STR("local"));
    for (size_t i = 0; i < config->connector_count; i++)
        team->media[team->media_count++] = media_of(&config->connectors[i], pool);
    team->live = mem_zero(team->media_count + 1, sizeof(struct live_model *));
    for (size_t i = 0; i < config->connector_count; i++)
        team->live[i] = live_of(&config->connectors[i], pool);
    load_websocket(team);
}

/* --- guardrails --------------------------------------------------------------------------- */

/* The configured rules come first, then the built-in ones. noting: what is wrong with a rule was
 * noted already. */
static bool make_guardrails(struct team *team, const struct config *config, bool noting,
                            struct err *e) {
    size_t listed = config->guardrail_count;
    team->guardrails = mem_zero(listed + GUARDRAIL_PERSONAL_COUNT, sizeof(struct guardrail *));
    for (size_t i = 0; i < listed + GUARDRAIL_PERSONAL_COUNT; i++) {
        const struct guardrail_rule *rule =
            i < listed ? &config->guardrails[i].rule : &guardrail_personal[i - listed];
        struct err why;
        if (!guardrail_new(rule, &team->guardrails[team->guardrail_count++], &why) && !noting)
            return err_set(e, why.code, "guardrail '" STR_FMT "': %s", STR_ARG(rule->name),
                           why.text);
    }
    return true;
}

/* The rules of an agent for one direction. */
struct picked {
    struct guardrail **rules;
    size_t count;
};

static void pick_named(const struct team *team, const struct config *config, struct str name,
                       enum config_guard_direction other, struct picked *ret) {
    for (size_t i = 0; i < config->guardrail_count; i++) {
        const struct config_guardrail *from = &config->guardrails[i];
        bool named = str_equal(from->rule.name, name) && from->direction != other;
        if (named && team->guardrails[i]) ret->rules[ret->count++] = team->guardrails[i];
    }
    if (!config_guardrail_is_personal(name)) return;
    for (size_t i = 0; i < GUARDRAIL_PERSONAL_COUNT; i++)
        ret->rules[ret->count++] = team->guardrails[config->guardrail_count + i];
}

/* `ret` borrows the list, which the caller owns. */
static struct guardrail **pick_guardrails(const struct team *team, const struct config *config,
                                          const struct config_agent *from, struct agent *ret) {
    size_t room = from->guardrail_count * (GUARDRAIL_PERSONAL_COUNT + 1);
    if (!room) return NULL;
    struct guardrail **list = mem_zero(2 * room, sizeof(struct guardrail *));
    struct picked input = {list, 0}, output = {list + room, 0};
    for (size_t i = 0; i < from->guardrail_count; i++) {
        pick_named(team, config, from->guardrails[i], CONFIG_GUARD_OUTPUT, &input);
        pick_named(team, config, from->guardrails[i], CONFIG_GUARD_INPUT, &output);
    }
    ret->input_rules = (struct guardrails){input.rules, input.count};
    ret->output_rules = (struct guardrails){output.rules, output.count};
    return list;
}

/* --- agents ------------------------------------------------------------------------------- */

/* For an agent that does not set them. */
static struct model_options usual_options(const struct config *config) {
    struct model_options options = MODEL_OPTIONS_NONE;
    options.temperature = config->agent.temperature;
    options.output_tokens_max = (int64_t)config->agent.max_tokens;
    return options;
}

static void team_make_room(struct team *team, size_t agent_count) {
    team->agents = mem_zero(agent_count, sizeof(struct agent));
    team->own = mem_zero(agent_count, sizeof(struct team_own));
}

/* Who plays a script that lists no agents. */
static const struct script_agent script_only_agent = {.slug = STR_INIT("manager"),
                                                      .all_tools = true};

/* The script's own agents. If there is a default model, it answers in place of the script. */
static bool make_script_agents(struct team *team, const struct config *config) {
    const struct script *script = team->script;
    const struct config_model *model = &config->model_default;
    struct provider *provider = model->provider ? provider_of(team, config, model) : NULL;
    if (!provider) {
        provider = scripted_provider_new(STR("scripted"), script);
        team->providers[team->provider_count++] = provider;
    }
    size_t count = script->agent_count ? script->agent_count : 1;
    team_make_room(team, count);
    for (size_t i = 0; i < count; i++) {
        const struct script_agent *from =
            script->agent_count ? &script->agents[i] : &script_only_agent;
        struct agent *agent = &team->agents[team->agent_count++];
        *agent = (struct agent){.slug = from->slug,
                                .description = from->description,
                                .system = config->agent.instructions,
                                .model = model->provider ? model->name : STR_EMPTY,
                                .provider = provider,
                                .options = usual_options(config),
                                .delegates = from->delegates,
                                .delegate_count = from->delegate_count,
                                .shows_thinking = config->agent.thinking};
        team->own[i].tools = team_pick_script_tools(team, config, from, agent);
    }
    return true;
}

static struct model_options model_options_of(const struct config_agent *from) {
    return (struct model_options){.output_tokens_max = (int64_t)from->max_tokens,
                                  .temperature = from->temperature,
                                  .top_p = from->top_p,
                                  .effort = from->effort,
                                  .thinking_tokens = (int64_t)from->thinking_tokens};
}

static struct agent_limits limits_of(const struct config_agent *from) {
    return (struct agent_limits){.model_calls_max = (unsigned)from->limits.model_calls,
                                 .tool_calls_max = (unsigned)from->limits.tool_calls,
                                 .tokens_max = (int64_t)from->limits.tokens,
                                 .cost_nano_max = from->limits.cost_nano};
}

static bool read_schema(const struct config_agent *from, struct agent *ret,
                        struct schema **ret_own, struct err *e) {
    struct err why;
    if (!from->output.len) return true;
    if (!schema_read(from->output, ret_own, &why)) {
        const struct yaml *at = yaml_find(from->at, STR("output"));
        return yaml_err(e, at ? at : yaml_find(from->at, STR("output_file")), "%s", why.text);
    }
    ret->schema = *ret_own;
    ret->schema_text = schema_text(ret->schema);
    return true;
}

/* The provider of an agent, or NULL where a mistake was noted. */
static bool make_answerer(struct team *team, const struct config *config,
                          const struct config_agent *from,
                          const struct team_resources *resources, struct provider **ret,
                          struct err *e) {
    *ret = NULL;
    if (from->kind) {
        if (!from->command_count && !from->url.len && !from->address.len && !from->library.len)
            return true; /* that mistake was noted */
        if (!team_agent_new(from, resources, ret, e))
            return resources->noting && config_goes_on(resources->noting, e);
        team->providers[team->provider_count++] = *ret;
        return true;
    }
    if (from->model.provider) *ret = answerer_of(team, config, from);
    return true;
}

static bool make_config_agents(struct team *team, const struct config *config,
                               const struct team_resources *resources, struct err *e) {
    struct config *noting = resources->noting;
    team_make_room(team, config->agent_count);
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_agent *from = &config->agents[i];
        struct agent *agent = &team->agents[team->agent_count++];
        struct provider *provider;
        if (!make_answerer(team, config, from, resources, &provider, e)) return false;
        if (!provider) continue;
        *agent = (struct agent){.slug = from->slug,
                                .description = from->description,
                                .system = from->system,
                                .model = from->model.name,
                                .provider = provider,
                                .options = model_options_of(from),
                                .delegates = from->delegates,
                                .delegate_count = from->delegate_count,
                                .shows_thinking = from->thinking,
                                .window_tokens = from->window,
                                .limits = limits_of(from)};
        struct team_own *own = &team->own[i];
        if (!read_schema(from, agent, &own->schema, e) &&
            !(noting && config_goes_on(noting, e)))
            return false;
        own->guardrails = pick_guardrails(team, config, from, agent);
        own->tools = team_pick_tools(team, config, from, agent);
    }
    return true;
}

/* --- the whole ---------------------------------------------------------------------------- */

bool team_assemble(const struct config *config, const struct team_resources *given,
                   struct team *ret, struct err *e) {
    struct team team = {0};
    struct team_resources resources = *given;
    /* A replay sends no requests. */
    if (!resources.pool || config->tape.play.len)
        resources.pool = team.own_pool = http_pool_new();
    bool done = team_open_tape(&team, config, e) && load_script(config, &team.script, e) &&
                make_guardrails(&team, config, resources.noting != NULL, e) &&
                make_providers(&team, config, resources.pool, e) &&
                team_make_tools(&team, config, &resources, e) &&
                (config->agent_count ? make_config_agents(&team, config, &resources, e)
                                     : make_script_agents(&team, config));
    if (!done) {
        team_done(&team);
        return false;
    }
    if (given->pool && given->media) make_media(&team, config, resources.pool);
    team_tape(&team);
    *ret = team;
    return true;
}

void team_done(struct team *team) {
    for (size_t i = 0; i < team->agent_count; i++) {
        free(team->own[i].tools);
        free(team->own[i].guardrails);
        schema_free(team->own[i].schema);
    }
    for (size_t i = 0; i < team->guardrail_count; i++) guardrail_free(team->guardrails[i]);
    free(team->guardrails);
    free(team->own);
    free(team->agents);
    free(team->policies);
    free(team->joined_policies);
    free(team->timeouts);
    for (size_t i = 0; i < team->tool_count; i++) tool_free(team->tools[i]);
    free(team->tools);
    free(team->own_tools);
    free(team->mcp_tools);
    for (size_t i = 0; i < team->server_count; i++) mcp_server_unref(team->servers[i]);
    free(team->servers);
    free(team->settled);
    for (size_t i = 0; i < team->media_count; i++) media_free(team->media[i]);
    free(team->media);
    for (size_t i = 0; team->live && i < team->media_count; i++) live_model_free(team->live[i]);
    free(team->live);
    /* A chain comes after the providers that it borrows. */
    while (team->provider_count) provider_free(team->providers[--team->provider_count]);
    free(team->providers);
    script_free(team->script);
    tape_unref(team->tape);
    http_pool_free(team->own_pool);
    *team = (struct team){0};
}

void team_fill(const struct team *team, struct engine *engine) {
    engine->agents = team->agents;
    engine->agent_count = team->agent_count;
    engine->tools = team->tools;
    engine->tool_count = team->tool_count;
    engine->policies = team->joined_policies;
    engine->policy_count = team->joined_count;
    engine->timeouts = team->timeouts;
    engine->timeout_count = team->timeout_count;
}

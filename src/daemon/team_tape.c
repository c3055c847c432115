#include "daemon/team_tape.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "config/setting.h"
#include "provider/tape.h"
#include "tool/tape.h"

#include <stdlib.h>

/* --- opening ------------------------------------------------------------------------------ */

/* What must not appear in a recording: a list that grows. */
struct secrets {
    struct str *list;
    size_t count, room;
};

static void add_secret(struct secrets *secrets, struct str secret) {
    if (secrets->count == secrets->room) {
        secrets->room = 2 * secrets->room + 16;
        secrets->list = mem_resize(secrets->list, secrets->room * sizeof(*secrets->list));
    }
    secrets->list[secrets->count++] = secret;
}

static void add_headers(struct secrets *secrets, const struct config_header *headers,
                        size_t count) {
    for (size_t i = 0; i < count; i++) add_secret(secrets, headers[i].value);
}

/* Whether a name ends as those of secrets do: GITHUB_TOKEN, HOUSE_API_KEY. */
static bool ends_as_secret(struct str name) {
    struct str head;
    do {
        if (secret_name(name)) return true;
        head = str_split(name, '_', &name);
    } while (head.len && name.len);
    return false;
}

/* The value of NAME=value. */
static void add_variable(struct secrets *secrets, struct str variable) {
    struct str value, name = str_split(variable, '=', &value);
    if (ends_as_secret(name)) add_secret(secrets, value);
}

static void add_fields(struct secrets *secrets, const struct request_field *fields,
                       size_t count) {
    for (size_t i = 0; i < count; i++)
        if (secret_name(fields[i].name)) add_secret(secrets, fields[i].value);
}

static void add_settings(struct secrets *secrets, const struct config *config) {
    for (size_t i = 0; i < config->setting_count; i++) {
        if (config->settings[i].kind == SETTING_SECRET)
            add_secret(secrets, setting_text(&config->settings[i], config));
    }
    add_secret(secrets, config->tools.web_search.key);
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *from = &config->providers[i];
        add_secret(secrets, from->key);
        add_headers(secrets, from->headers, from->header_count);
    }
}

static void add_agent(struct secrets *secrets, const struct config_agent *agent) {
    add_secret(secrets, agent->key);
    add_headers(secrets, agent->headers, agent->header_count);
    for (size_t i = 0; i < agent->environment_count; i++)
        add_variable(secrets, agent->environment[i]);
}

static void add_mcp(struct secrets *secrets, const struct config_mcp *mcp) {
    add_secret(secrets, mcp->key);
    add_headers(secrets, mcp->headers, mcp->header_count);
    for (size_t i = 0; mcp->environment && mcp->environment[i]; i++)
        add_variable(secrets, str_from(mcp->environment[i]));
}

static void add_own_tool(struct secrets *secrets, const struct config_own_tool *own) {
    add_secret(secrets, own->key);
    for (size_t i = 0; i < own->secret_count; i++) add_secret(secrets, own->secrets[i].value);
    add_fields(secrets, own->query, own->query_count);
    add_fields(secrets, own->headers, own->header_count);
    for (size_t i = 0; i < own->environment_count; i++)
        add_variable(secrets, own->environment[i]);
}

static struct secrets list_secrets(const struct config *config) {
    struct secrets secrets = {.list = NULL};
    add_settings(&secrets, config);
    for (size_t i = 0; i < config->agent_count; i++) add_agent(&secrets, &config->agents[i]);
    for (size_t i = 0; i < config->mcp_count; i++) add_mcp(&secrets, &config->mcp[i]);
    for (size_t i = 0; i < config->tools.own_count; i++)
        add_own_tool(&secrets, &config->tools.own[i]);
    return secrets;
}

static bool open_folder(struct team *team, const struct config *config, struct err *e) {
    struct secrets secrets = list_secrets(config);
    struct tape_options options = {
        .folder = config->tape.play.len ? config->tape.play : config->tape.record,
        .secrets = secrets.list,
        .secret_count = secrets.count,
        .pace = config->tape.pace,
    };
    bool opened = config->tape.play.len ? tape_play(&options, &team->tape, e)
                                        : tape_record(&options, &team->tape, e);
    free(secrets.list);
    return opened;
}

bool team_open_tape(struct team *team, const struct config *config, struct err *e) {
    bool records = config->tape.record.len > 0, plays = config->tape.play.len > 0;
    if (records && plays)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'record' and 'replay' are both set: what is replayed is recorded "
                       "already; remove one of them");
    if (!plays && (!records || team->own_pool)) return true;
    if (!open_folder(team, config, e)) return false;
    if (plays) {
        log_info("replaying from '" STR_FMT "': no model and no tool is asked",
                 STR_ARG(config->tape.play));
    } else {
        log_info("recording what models and tools are asked and answer into '" STR_FMT "'",
                 STR_ARG(config->tape.record));
    }
    return true;
}

/* --- wrapping providers ------------------------------------------------------------------- */

static struct provider *taped_provider(struct tape *tape, struct provider *provider) {
    return tape_plays(tape) ? playing_provider_new(tape, provider->name)
                            : recording_provider_new(tape, provider);
}

/* Each agent has its own tape provider. They come last, so they are freed before what they
 * borrow. */
static void tape_agents(struct team *team) {
    team->providers = mem_resize(team->providers, (team->provider_count + team->agent_count) *
                                                      sizeof(struct provider *));
    for (size_t i = 0; i < team->agent_count; i++) {
        struct agent *agent = &team->agents[i];
        agent->provider = taped_provider(team->tape, agent->provider);
        team->providers[team->provider_count++] = agent->provider;
    }
}

static void tape_tools(struct team *team) {
    for (size_t i = 0; i < team->tool_count; i++) {
        struct tool **tool = &team->tools[i];
        *tool = tape_plays(team->tape) ? playing_tool_new(team->tape, *tool)
                                       : recording_tool_new(team->tape, *tool);
    }
}

void team_tape(struct team *team) {
    if (!team->tape) return;
    tape_agents(team);
    tape_tools(team);
}

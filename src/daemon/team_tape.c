#include "daemon/team_tape.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/setting.h"
#include "provider/tape.h"
#include "tool/tape.h"

#include <stdlib.h>

/* --- opening ------------------------------------------------------------------------------ */

static size_t count_secrets(const struct config *config) {
    size_t count = config->setting_count + 1; /* more than are secret, and the search key */
    for (size_t i = 0; i < config->provider_count; i++)
        count += 1 + config->providers[i].header_count;
    for (size_t i = 0; i < config->tools.own_count; i++)
        count += 1 + config->tools.own[i].secret_count;
    return count;
}

/* Everything that must not appear in a recording. */
static size_t list_secrets(const struct config *config, struct str *ret) {
    size_t count = 0;
    for (size_t i = 0; i < config->setting_count; i++) {
        if (config->settings[i].kind == SETTING_SECRET)
            ret[count++] = setting_text(&config->settings[i], config);
    }
    ret[count++] = config->tools.web_search.key;
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *from = &config->providers[i];
        ret[count++] = from->key;
        for (size_t h = 0; h < from->header_count; h++) ret[count++] = from->headers[h].value;
    }
    for (size_t i = 0; i < config->tools.own_count; i++) {
        const struct config_own_tool *own = &config->tools.own[i];
        ret[count++] = own->key;
        for (size_t s = 0; s < own->secret_count; s++) ret[count++] = own->secrets[s].value;
    }
    return count;
}

static bool open_folder(struct team *team, const struct config *config, struct err *e) {
    struct str *secrets = mem_zero(count_secrets(config), sizeof(*secrets));
    struct tape_options options = {
        .folder = config->tape.play.len ? config->tape.play : config->tape.record,
        .secrets = secrets,
        .secret_count = list_secrets(config, secrets),
        .pace = config->tape.pace,
    };
    bool opened = config->tape.play.len ? tape_play(&options, &team->tape, e)
                                        : tape_record(&options, &team->tape, e);
    free(secrets);
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

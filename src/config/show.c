/* The lists that were read, shown without their secrets. */
#include "config/build.h"

#include "agent/kind.h"
#include "base/units.h"

static void append_command(const struct config_agent *agent, struct buf *out) {
    buf_printf(out, "agents." STR_FMT ".command =", STR_ARG(agent->slug));
    for (size_t i = 0; i < agent->command_count; i++)
        buf_printf(out, " " STR_FMT, STR_ARG(agent->command[i]));
    buf_append_byte(out, '\n');
}

/* `name`: of the variable that may hold it; empty: it needs no key. */
static void show_append_key(struct str key, struct str source, struct str name,
                            struct buf *out) {
    if (key.len) {
        buf_printf(out, ", key set (" STR_FMT ")", STR_ARG(source));
    } else if (name.len) {
        buf_printf(out, ", key not set (" STR_FMT ")", STR_ARG(name));
    }
}

static void append_server(const struct config_agent *agent, struct buf *out) {
    buf_printf(out, "agents." STR_FMT ".url = " STR_FMT " (%s%s)", STR_ARG(agent->slug),
               STR_ARG(agent->url), agent->kind->name, agent->streams ? "" : ", no stream");
    for (size_t i = 0; i < agent->header_count; i++)
        buf_printf(out, ", header " STR_FMT " set", STR_ARG(agent->headers[i].name));
    show_append_key(agent->key, agent->key_source, agent->key_env, out);
    buf_append_byte(out, '\n');
}

static void append_runtime(const struct config_agent *agent, struct buf *out) {
    buf_printf(out, "agents." STR_FMT ".address = " STR_FMT " (%s%s%s%s" STR_FMT ")",
               STR_ARG(agent->slug), STR_ARG(agent->address), agent->kind->name,
               agent->tls ? ", TLS" : "",
               agent->stream_per_turn ? ", a stream for each turn" : "",
               agent->remote_agent.len ? ", agent " : "", STR_ARG(agent->remote_agent));
    show_append_key(agent->key, agent->key_source, agent->key_env, out);
    buf_append_byte(out, '\n');
}

static void append_model(const struct config_model *model, struct buf *out) {
    if (!model->provider) return;
    buf_append(out, model->provider->name);
    if (model->name.len) buf_printf(out, "/" STR_FMT, STR_ARG(model->name));
}

static void print_provider(const struct config_provider *provider, struct buf *out) {
    buf_printf(out, "providers." STR_FMT " = " STR_FMT, STR_ARG(provider->name),
               STR_ARG(provider->kind));
    if (provider->base_url.len) buf_printf(out, " at " STR_FMT, STR_ARG(provider->base_url));
    if (provider->model.len) buf_printf(out, ", model " STR_FMT, STR_ARG(provider->model));
    if (provider->query.len) buf_append(out, STR(", query set"));
    for (size_t i = 0; i < provider->header_count; i++)
        buf_printf(out, ", header " STR_FMT " set", STR_ARG(provider->headers[i].name));
    show_append_key(provider->key, provider->key_source, provider->key_name, out);
    buf_append_byte(out, '\n');
}

static void print_tools(const struct config_agent *agent, struct buf *out) {
    static const char *const marks[] = {[CONFIG_TOOL_ALLOW] = "",
                                        [CONFIG_TOOL_ASK] = " (asks)",
                                        [CONFIG_TOOL_HIDDEN] = " (hidden)"};
    if (agent->all_tools) return;
    buf_printf(out, "agents." STR_FMT ".tools = ", STR_ARG(agent->slug));
    for (size_t i = 0; i < agent->tool_count; i++)
        buf_printf(out, "%s" STR_FMT "%s", i ? ", " : "", STR_ARG(agent->tools[i].name),
                   marks[agent->tools[i].policy]);
    buf_append(out, agent->tool_count ? STR("\n") : STR("none\n"));
}

static void print_guardrails(const struct config_agent *agent, struct buf *out) {
    if (!agent->guardrail_count) return;
    buf_printf(out, "agents." STR_FMT ".guardrails = ", STR_ARG(agent->slug));
    for (size_t i = 0; i < agent->guardrail_count; i++)
        buf_printf(out, "%s" STR_FMT, i ? ", " : "", STR_ARG(agent->guardrails[i]));
    buf_append_byte(out, '\n');
}

static void print_own_tool(const struct config_own_tool *tool, struct buf *out) {
    buf_printf(out, "tools." STR_FMT " =", STR_ARG(tool->name));
    for (size_t i = 0; i < tool->command_count; i++)
        buf_printf(out, " " STR_FMT, STR_ARG(tool->command[i]));
    if (tool->url.len)
        buf_printf(out, " " STR_FMT " " STR_FMT "%s", STR_ARG(tool->method), STR_ARG(tool->url),
                   tool->key.len ? ", key set" : "");
    buf_append_byte(out, '\n');
}

static void print_agent(const struct config_agent *agent, struct buf *out) {
    if (agent->kind) {
        if (agent->command_count) append_command(agent, out);
        if (agent->url.len) append_server(agent, out);
        if (agent->address.len) append_runtime(agent, out);
        if (agent->library.len)
            buf_printf(out, "agents." STR_FMT ".library = " STR_FMT "\n", STR_ARG(agent->slug),
                       STR_ARG(agent->library));
        print_tools(agent, out);
        print_guardrails(agent, out);
        return;
    }
    buf_printf(out, "agents." STR_FMT ".model = ", STR_ARG(agent->slug));
    append_model(&agent->model, out);
    for (size_t i = 0; i < agent->fallback_count; i++) {
        buf_append(out, STR(", then "));
        append_model(&agent->fallback[i], out);
    }
    buf_append_byte(out, '\n');
    print_tools(agent, out);
    print_guardrails(agent, out);
}

/* With as many digits as it takes, at least two. */
static void append_dollars(int64_t nano, struct buf *out) {
    int64_t fraction = nano % 1000000000;
    int digits = 9;
    while (digits > 2 && fraction % 10 == 0) {
        fraction /= 10;
        digits--;
    }
    buf_printf(out, "$%lld.%0*lld", (long long)(nano / 1000000000), digits,
               (long long)fraction);
}

static void append_part(const char *name, int64_t nano, struct buf *out) {
    if (nano == TOKENS_UNKNOWN) return;
    buf_append(out, str_from(name));
    append_dollars(nano, out);
}

static void print_price(const struct price *price, struct buf *out) {
    buf_printf(out, "prices." STR_FMT " = input ", STR_ARG(price->model));
    append_dollars(price->input, out);
    buf_append(out, STR(", output "));
    append_dollars(price->output, out);
    append_part(", cached ", price->cached, out);
    append_part(", cache_write ", price->cache_write, out);
    append_part(", cache_write_hour ", price->cache_write_hour, out);
    buf_append(out, STR(" for a million tokens\n"));
}

static void print_budget(const struct budget *budget, struct buf *out) {
    buf_printf(out, "budgets." STR_FMT,
               STR_ARG(budget->workspace.len ? budget->workspace : STR("each workspace")));
    if (budget->agent.len) buf_printf(out, "." STR_FMT, STR_ARG(budget->agent));
    buf_append(out, budget->period == BUDGET_DAY ? STR(" a day = ") : STR(" a month = "));
    if (budget->tokens_max) {
        buf_printf(out, "%lld tokens\n", (long long)budget->tokens_max);
    } else {
        append_dollars(budget->cost_nano_max, out);
        buf_append_byte(out, '\n');
    }
}

static void print_connector(const struct config_connector *connector, struct buf *out) {
    buf_printf(out, "connectors." STR_FMT " = " STR_FMT, STR_ARG(connector->id),
               STR_ARG(connector->provider_name));
    for (size_t i = 0; i < connector->model_count; i++)
        buf_printf(out, "%s" STR_FMT, i ? " " : ", models ", STR_ARG(connector->models[i]));
    if (connector->owner.len) buf_printf(out, ", for " STR_FMT, STR_ARG(connector->owner));
    buf_printf(out, "%s%s\n", connector->local ? ", local" : "",
               connector->enabled ? "" : ", off");
}

static void print_issuer(const struct config_issuer *issuer, struct buf *out) {
    buf_printf(out, "issuers." STR_FMT " = for " STR_FMT ", keys of " STR_FMT "\n",
               STR_ARG(issuer->name), STR_ARG(issuer->audience),
               STR_ARG(issuer->url.len ? issuer->url : STR("a file")));
}

void config_print_lists(const struct config *config, struct buf *out) {
    for (size_t i = 0; i < config->provider_count; i++)
        print_provider(&config->providers[i], out);
    for (size_t i = 0; i < config->agent_count; i++) print_agent(&config->agents[i], out);
    for (size_t i = 0; i < config->guardrail_count; i++)
        buf_printf(out, "guardrails." STR_FMT " = %s\n",
                   STR_ARG(config->guardrails[i].rule.name),
                   config_guardrail_actions[config->guardrails[i].rule.action]);
    if (config->tools.web_search.backend.len)
        buf_printf(out, "tools.web_search = " STR_FMT "%s\n",
                   STR_ARG(config->tools.web_search.backend),
                   config->tools.web_search.key.len ? ", key set" : "");
    if (config->tools.files.root.len)
        buf_printf(out, "tools.files = " STR_FMT "\n", STR_ARG(config->tools.files.root));
    if (config->tools.exec.root.len)
        buf_printf(out, "tools.exec = " STR_FMT "%s\n", STR_ARG(config->tools.exec.root),
                   config->tools.exec.limits.network ? ", with the network" : "");
    for (size_t i = 0; i < config->tools.own_count; i++)
        print_own_tool(&config->tools.own[i], out);
    for (size_t i = 0; i < config->tools.policy_count; i++) {
        const struct config_agent_tool *tool = &config->tools.policies[i];
        bool off = tool->policy == CONFIG_TOOL_HIDDEN;
        buf_printf(out, "tools." STR_FMT " = %s", STR_ARG(tool->name),
                   off ? "off" : config_policies[tool->policy]);
        if (tool->timeout_ms) buf_append(out, STR(", timeout "));
        if (tool->timeout_ms) units_append_duration(out, 1000 * tool->timeout_ms);
        buf_append_byte(out, '\n');
    }
    for (size_t i = 0; i < config->connector_count; i++)
        print_connector(&config->connectors[i], out);
    for (size_t i = 0; i < config->issuer_count; i++) print_issuer(&config->issuers[i], out);
    for (size_t i = 0; i < config->price_count; i++) print_price(&config->prices[i], out);
    for (size_t i = 0; i < config->budget_count; i++) print_budget(&config->budgets[i], out);
}

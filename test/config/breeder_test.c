/* Names in an agent.yaml: found in the settings, or refused with the line that would help. */
#include "config/config.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the folder; the folders of its name are made. */
static const char *put(const struct folder *folder, const char *name, const char *text) {
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    for (char *at = path + strlen(folder->path) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    write_file(path, text);
    return path;
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})

static bool try_load(const struct folder *folder, const char *name,
                     const char *const *environment, const char *missing, struct config **ret,
                     struct err *e) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder->path, name);
    const char *args[] = {"-c", path, "--agent-yaml-missing", missing};
    struct config_input input = {
        .args = args, .arg_count = 4, .environment = environment, .cpus = 1};
    e->text[0] = '\0';
    return config_load(&input, ret, e);
}

static struct config *load(const struct folder *folder, const char *name,
                           const char *const *environment) {
    struct err e;
    struct config *config;
    if (!try_load(folder, name, environment, "refuse", &config, &e)) fail_msg("%s", e.text);
    return config;
}

static void refused(const struct folder *folder, const char *name,
                    const char *const *environment, const char *why) {
    struct err e;
    struct config *config;
    if (try_load(folder, name, environment, "refuse", &config, &e))
        fail_msg("not refused: %s", why);
    if (str_find(err_text(&e), str_from(why)) == err_text(&e).len)
        fail_msg("'%s' is not '%s'", e.text, why);
}

static const char *warnings(const struct config *config) {
    static char text[8192];
    text[0] = '\0';
    for (size_t i = 0; i < config->warning_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, STR_FMT "\n", STR_ARG(config->warnings[i]));
    }
    return text;
}

static void assert_tool(const struct config_agent *agent, size_t i, const char *name,
                        enum config_policy policy) {
    assert_true(i < agent->tool_count);
    assert_str(agent->tools[i].name, name);
    assert_int_equal(agent->tools[i].policy, policy);
}

#define AGENT(name)                                                                            \
    "name: " name "\nversion: 1.2.3\nteam: blue\nowner: a@b.example\n"                         \
    "model: {primary: scripted}\ndeploy: {cloud: local}\nframework: custom\n"

/* --- tools -------------------------------------------------------------------------------- */

static void a_tool_is_found_by_its_name_in_the_settings(void **state) {
    const struct folder *folder = *state;
    put(folder, "guide/agent.yaml",
        AGENT("guide") "tools:\n"
                       "  - {ref: tools/zendesk-mcp}\n"
                       "  - {ref: tools/search-crm, approval: {require: true}}\n"
                       "  - {name: calculator, approval: false}\n"
                       "  - {ref: tools/get-current-time}\n"
                       "  - {ref: mcp/zendesk}\n"
                       "knowledge_bases: [{ref: kb/product-docs}]\n"
                       "mcp_servers: [{ref: mcp/GitHub, transport: stdio}]\n");
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: guide/agent.yaml}, {slug: other, provider: scripted}]\n"
        "mcp:\n"
        "  - {name: zendesk, command: [true]}\n"
        "  - {name: github, command: [true], tools: {'search_*': hidden}}\n"
        "  - {name: product_docs, command: [true]}\n"
        "  - {name: crm, command: [true], tools: {search-crm: allow}}\n");
    struct config *config = load(folder, "weir.yaml", NOTHING);
    const struct config_agent *agent = &config->agents[0];
    assert_int_equal(config->agent_count, 2);
    assert_str(agent->slug, "guide");
    assert_str(config->agents[1].slug, "other");
    assert_int_equal(agent->tool_count, 6); /* zendesk is named twice */
    assert_tool(agent, 0, "github/*", CONFIG_TOOL_ALLOW);
    assert_tool(agent, 1, "zendesk/*", CONFIG_TOOL_ALLOW);
    assert_tool(agent, 2, "search-crm", CONFIG_TOOL_ASK);
    assert_tool(agent, 3, "calculator", CONFIG_TOOL_ALLOW);
    assert_tool(agent, 4, "current_time", CONFIG_TOOL_ALLOW);
    assert_tool(agent, 5, "product_docs/*", CONFIG_TOOL_ALLOW);
    assert_false(agent->all_tools);
    config_free(config);
}

static void a_tool_is_found_at_its_address(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml",
        AGENT("guide") "guardrails: [hitl_approve]\n"
                       "tools:\n"
                       "  - {ref: tools/order-lookup}\n"
                       "  - {name: pay, description: Pays., schema: {type: object, properties: "
                       "{sum: {type: integer}}}}\n"
                       "knowledge_bases: [{ref: kb/faq}]\n");
    struct config *config =
        load(folder, "agent.yaml",
             LIST("TOOL_ENDPOINT_TOOLS_ORDER_LOOKUP=http://a.example/full",
                  "TOOL_ENDPOINT_ORDER_LOOKUP=http://a.example/last",
                  "TOOL_ENDPOINT_PAY=http://a.example/%7B{x}",
                  "TOOL_ENDPOINT_FAQ=http://a.example/faq",
                  "AGENT_TOOLS_JSON=[{\"name\":\"order-lookup\",\"description\":\"Finds "
                  "\\ud83d\\ude00.\",\"schema\":{\"type\":\"object\"}},{\"ref\":\"tools/"
                  "calculator\"}]"));
    const struct config_agent *agent = &config->agents[0];
    const struct config_own_tool *found = config->tools.own;
    assert_int_equal(config->tools.own_count, 3);
    assert_str(found[0].url, "http://a.example/full"); /* the whole reference counts first */
    assert_str(found[0].description, "Finds \xf0\x9f\x98\x80.");
    assert_str(found[0].parameters, "{\"type\":\"object\"}");
    assert_str(found[0].method, "POST");
    assert_str(found[0].pick, "output");
    assert_str(found[0].agents[0], "guide");
    assert_str(found[1].name, "pay");
    assert_str(found[1].url, "http://a.example/%7B{{x}}");
    assert_str(found[1].description, "Pays.");
    assert_str(found[1].parameters,
               "{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"integer\"}}}");
    assert_str(found[2].description, "The knowledge base faq.");
    assert_tool(agent, 0, "order-lookup", CONFIG_TOOL_ASK);
    assert_tool(agent, 2, "faq", CONFIG_TOOL_ASK);
    assert_tool(agent, 3, "calculator", CONFIG_TOOL_ASK); /* of AGENT_TOOLS_JSON alone */
    config_free(config);
}

static void different_tools_of_one_name_are_distinguished(void **state) {
    const struct folder *folder = *state;
    put(folder, "a.yaml", AGENT("one") "tools: [{name: find, description: A.}, {name: x}]\n");
    put(folder, "b.yaml", AGENT("two") "tools: [{name: find, description: B.}, {name: x}]\n");
    put(folder, "weir.yaml", "agents: [{agent_yaml: a.yaml}, {agent_yaml: b.yaml}]\n");
    struct config *config =
        load(folder, "weir.yaml",
             LIST("TOOL_ENDPOINT_FIND=http://a.example", "TOOL_ENDPOINT_X=http://a.example"));
    assert_int_equal(config->tools.own_count, 4);
    assert_tool(&config->agents[0], 0, "find", CONFIG_TOOL_ALLOW);
    assert_tool(&config->agents[1], 0, "find_two", CONFIG_TOOL_ALLOW);
    assert_tool(&config->agents[1], 1, "x_two", CONFIG_TOOL_ALLOW);
    config_free(config);
}

static void a_server_is_found_in_the_variable_or_beside_its_name(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml",
        AGENT(
            "guide") "mcp_servers:\n"
                     "  - {ref: mcp/github}\n"
                     "  - {ref: mcp/slack, transport: streamable_http, url: http://s.example}\n"
                     "tools: [{ref: tools/slack-mcp}]\n");
    struct config *config =
        load(folder, "agent.yaml",
             LIST("AGENTBREEDER_MCP_SERVERS={\"github\":{\"transport\":\"http\",\"url\":"
                  "\"http://127.0.0.1:3100/mcp\"}}"));
    assert_int_equal(config->mcp_count, 2);
    assert_str(config->mcp[0].url, "http://127.0.0.1:3100/mcp");
    assert_str(config->mcp[1].url, "http://s.example");
    assert_int_equal(config->mcp[1].agent_count, 1);
    assert_str(config->mcp[1].agents[0], "guide");
    assert_tool(&config->agents[0], 0, "github/*", CONFIG_TOOL_ALLOW);
    assert_tool(&config->agents[0], 1, "slack/*", CONFIG_TOOL_ALLOW);
    assert_int_equal(config->agents[0].tool_count, 2);
    config_free(config);
}

static void a_missing_reference_refuses_the_file_with_the_line_that_helps(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"tools: [{ref: tools/zendesk-mcp}]\n",
         "agent.yaml:8:9: tool 'tools/zendesk-mcp' is nowhere here; write mcp: [{name: "
         "zendesk, "
         "command: [PROGRAM]}] into the settings file that lists this one (agents: "
         "[{agent_yaml: "
         "FILE}]), or set TOOL_ENDPOINT_ZENDESK_MCP=URL; or set agent_yaml.missing: warn"},
        {"tools: [{name: pay}]\n", "agent.yaml:8:9: tool 'pay' is nowhere here; set "
                                   "TOOL_ENDPOINT_PAY=URL, or write tools: "
                                   "{pay: {description: TEXT, command: [PROGRAM]}} into"},
        {"tools: [{ref: tools/web-search}]\n",
         ":8:9: tool 'tools/web-search' needs a search engine; write tools: {web_search: "},
        {"knowledge_bases: [{ref: kb/faq}]\n",
         ":8:19: knowledge base 'kb/faq' is nowhere here; set TOOL_ENDPOINT_FAQ=URL"},
        {"mcp_servers: [{ref: mcp/slack, transport: stdio}]\n",
         ":8:15: MCP server 'mcp/slack' is nowhere here; write mcp: [{name: slack, "},
        {"mcp_servers: [{ref: mcp/slack, transport: sse, url: 'http://a'}]\n",
         ":8:43: servers over HTTP are asked by streamable HTTP"},
        {"subagents: [{ref: agents/clerk}]\n", ":8:13: subagent 'agents/clerk' is nowhere "
                                               "here; write agents/clerk/agent.yaml beside"},
        {"subagents: [{ref: other.yaml}]\n", ":8:19: there is no file 'other.yaml' for"},
        {"prompts: {system: prompts/guide-v1@1.0.0}\n",
         ":8:19: prompt 'prompts/guide-v1@1.0.0' is nowhere here; write its text to "
         "prompts/guide-v1.md beside"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        struct err e;
        struct config *config;
        snprintf(text, sizeof(text), AGENT("guide") "%s", cases[i].text);
        put(folder, "agent.yaml", text);
        refused(folder, "agent.yaml", NOTHING, cases[i].why);
        if (i == 5) continue; /* that one is wrong, not missing */
        if (!try_load(folder, "agent.yaml", NOTHING, "warn", &config, &e))
            fail_msg("%s: %s", cases[i].text, e.text);
        if (!strstr(warnings(config), "agent_yaml.missing: warn"))
            fail_msg("%s", cases[i].text);
        assert_int_equal(config->agents[0].tool_count, 0);
        config_free(config);
    }
}

static void a_tool_asks_however_its_file_says_so(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *approval;
        enum config_policy policy;
        bool warns;
    } cases[] = {
        {"true", CONFIG_TOOL_ASK, false},
        {"True", CONFIG_TOOL_ASK, false},
        {"TRUE", CONFIG_TOOL_ASK, false},
        {"yes", CONFIG_TOOL_ASK, false},
        {"'true'", CONFIG_TOOL_ASK, false},
        {"required", CONFIG_TOOL_ASK, false},
        {"{}", CONFIG_TOOL_ASK, false},
        {"{require: true}", CONFIG_TOOL_ASK, false},
        {"{require: On}", CONFIG_TOOL_ASK, false},
        {"{timeout: 5m}", CONFIG_TOOL_ASK, true},
        {"{require: true, notify: [{slack: '#a'}]}", CONFIG_TOOL_ASK, true},
        {"false", CONFIG_TOOL_ALLOW, false},
        {"No", CONFIG_TOOL_ALLOW, false},
        {"{require: False}", CONFIG_TOOL_ALLOW, false},
        {"{require: off, timeout: 30s}", CONFIG_TOOL_ALLOW, true},
        {"", CONFIG_TOOL_ALLOW, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        snprintf(text, sizeof(text),
                 AGENT("guide") "tools: [{name: calculator, approval: %s}]\n",
                 cases[i].approval);
        put(folder, "agent.yaml", text);
        struct config *config = load(folder, "agent.yaml", NOTHING);
        if (config->agents[0].tools[0].policy != cases[i].policy)
            fail_msg("%s", cases[i].approval);
        if (!strstr(warnings(config), "approvals.deadline") == cases[i].warns)
            fail_msg("%s: %s", cases[i].approval, warnings(config));
        config_free(config);
    }
}

static void a_tool_asks_where_the_variable_says_so(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *approval;
        enum config_policy policy;
    } cases[] = {{"true", CONFIG_TOOL_ASK},    {"{\"require\":true}", CONFIG_TOOL_ASK},
                 {"{}", CONFIG_TOOL_ASK},      {"{\"require\":false}", CONFIG_TOOL_ALLOW},
                 {"false", CONFIG_TOOL_ALLOW}, {"null", CONFIG_TOOL_ALLOW}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char tools[512];
        snprintf(tools, sizeof(tools),
                 "AGENT_TOOLS_JSON=[{\"name\":\"calculator\",\"approval\":%s},"
                 "{\"name\":\"pay\",\"approval\":%s}]",
                 cases[i].approval, cases[i].approval);
        put(folder, "agent.yaml", AGENT("guide") "tools: [{name: calculator}]\n");
        struct config *config =
            load(folder, "agent.yaml", LIST(tools, "TOOL_ENDPOINT_PAY=http://a.example"));
        assert_tool(&config->agents[0], 0, "calculator", cases[i].policy);
        assert_tool(&config->agents[0], 1, "pay", cases[i].policy);
        config_free(config);
    }
    refused(folder, "agent.yaml",
            LIST("AGENT_TOOLS_JSON=[{\"name\":\"calculator\",\"approval\":\"yes\"}]"),
            "a tool's approval is true or false, or {\"require\": true}");
    refused(
        folder, "agent.yaml",
        LIST("AGENT_TOOLS_JSON=[{\"name\":\"calculator\",\"approval\":{\"require\":null}}]"),
        "a tool's approval is true or false, or {\"require\": true}");
    refused(folder, "agent.yaml",
            LIST("AGENT_TOOLS_JSON=[{\"name\":\"calculator\",\"aproval\":true}]"),
            "a tool has no key 'aproval'; did you mean 'approval'?");
}

static void the_items_of_lists_have_upstreams_keys_alone(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"tools: [{name: calculator, aproval: true}]\n",
         "a tool has no key 'aproval'; did you mean 'approval'?"},
        {"tools: [{name: calculator, approval: {requre: true}}]\n",
         "an approval has no key 'requre'; did you mean 'require'?"},
        {"tools: [{name: calculator, approval: maybe}]\n", "an approval is true or false"},
        {"tools: [{name: calculator, approval: 1}]\n", "an approval is true or false"},
        {"tools: [{name: calculator, approval: [true]}]\n", "an approval is true or false"},
        {"tools: [{name: calculator, approval: {require: true, timeout: banana}}]\n",
         "a timeout is a number with s, m or h, such as 30m"},
        {"tools: [{name: calculator, type: banana}]\n", "'banana' is none of function, "},
        {"mcp_servers: [{ref: mcp/a, transport: banana}]\n",
         "'banana' is none of stdio, sse, streamable_http"},
        {"mcp_servers: [{ref: mcp/a, approval: true}]\n", "a server has no key 'approval'"},
        {"knowledge_bases: [{ref: kb/a, hops: 2}]\n", "a knowledge base has no key 'hops'"},
        {"subagents: [{ref: agents/a, role: x}]\n", "a subagent has no key 'role'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[1024];
        snprintf(text, sizeof(text), AGENT("guide") "%s", cases[i].text);
        put(folder, "agent.yaml", text);
        refused(folder, "agent.yaml", NOTHING, cases[i].why);
    }
    put(folder, "agent.yaml", AGENT("guide") "tools: [{name: calculator, x-vendor: 1}]\n");
    struct config *config = load(folder, "agent.yaml", NOTHING);
    if (!strstr(warnings(config), "a tool has no key 'x-vendor'")) fail_msg("no warning");
    config_free(config);
}

static void a_mistake_in_a_variable_is_named(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml",
        AGENT("guide") "tools: [{name: pay}]\nmcp_servers: [{ref: mcp/a}]\n");
    refused(folder, "agent.yaml", LIST("AGENT_TOOLS_JSON={}"),
            "AGENT_TOOLS_JSON: expected a list of tools, found an object");
    refused(folder, "agent.yaml", LIST("AGENT_TOOLS_JSON=["), "AGENT_TOOLS_JSON: JSON 1:2");
    refused(folder, "agent.yaml",
            LIST("AGENT_TOOLS_JSON=[{\"name\":5}]", "TOOL_ENDPOINT_PAY=http://a.example",
                 "AGENTBREEDER_MCP_SERVERS={\"a\":{\"url\":\"http://a.example\"}}"),
            "AGENT_TOOLS_JSON: a tool is an object with the text 'name' or 'ref'");
    refused(folder, "agent.yaml", LIST("AGENTBREEDER_MCP_SERVERS=[]"),
            "AGENTBREEDER_MCP_SERVERS: expected a map of servers, found an array");
    refused(folder, "agent.yaml",
            LIST("AGENTBREEDER_MCP_SERVERS={\"a\":{\"transport\":\"stdio\"}}"),
            "AGENTBREEDER_MCP_SERVERS: 'a' has no url");
    refused(folder, "agent.yaml",
            LIST("AGENTBREEDER_MCP_SERVERS={\"a\":{\"url\":\"http://a.example\"}}",
                 "TOOL_ENDPOINT_PAY=ftp://x"),
            "TOOL_ENDPOINT_PAY: ");
}

static void a_tool_of_the_settings_comes_first(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml", AGENT("guide") "tools: [{ref: tools/order-lookup}]\n");
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: agent.yaml}]\n"
        "tools: {order_lookup: {description: x, url: 'http://a.example'}}\n");
    struct config *config =
        load(folder, "weir.yaml", LIST("TOOL_ENDPOINT_ORDER_LOOKUP=http://b.example"));
    assert_tool(&config->agents[0], 0, "order_lookup", CONFIG_TOOL_ALLOW);
    assert_int_equal(config->tools.own_count, 1);
    config_free(config);
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: agent.yaml}]\n"
        "tools: {order_lookup: {description: x, url: 'http://a.example', "
        "agents: [clerk]}}\n");
    refused(folder, "weir.yaml", NOTHING,
            "agent.yaml:8:9: the tool 'order_lookup' is for other agents; add guide");
}

static void a_server_of_other_agents_is_not_given(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml", AGENT("guide") "tools: [{ref: mcp/zendesk}]\n");
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: agent.yaml}]\n"
        "mcp: [{name: zendesk, command: [true], agents: [other]}]\n");
    refused(folder, "weir.yaml", NOTHING,
            "the MCP server 'zendesk' is for other agents; add guide to its list 'agents'");
}

static void a_prompt_is_a_file_beside(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml", AGENT("guide") "prompts: {system: prompts/guide@1.0.0}\n");
    put(folder, "prompts/guide.txt", "You guide.\n");
    struct config *config = load(folder, "agent.yaml", NOTHING);
    assert_str(config->agents[0].system, "You guide.\n");
    config_free(config);
    put(folder, "prompts/guide.md", "You guide well.\n");
    config = load(folder, "agent.yaml", NOTHING);
    assert_str(config->agents[0].system, "You guide well.\n");
    config_free(config);
}

/* --- subagents ---------------------------------------------------------------------------- */

static void subagents_are_delegates(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml",
        AGENT("guide") "subagents:\n"
                       "  - {ref: agents/walker, description: Walks.}\n"
                       "  - {ref: agents/fact-checker, name: verifier}\n"
                       "  - {ref: more/cook.yaml}\n");
    put(folder, "agents/walker/agent.yaml",
        AGENT("walker") "subagents: [{ref: ../../more/cook.yaml}]\n");
    put(folder, "more/cook.yaml", AGENT("cook") "prompts: {system: prompts/cook}\n");
    put(folder, "more/prompts/cook.md", "You cook.");
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: agent.yaml}, {slug: verifier, provider: scripted}]\n");
    struct config *config = load(folder, "weir.yaml", NOTHING);
    const struct config_agent *agents = config->agents;
    assert_int_equal(config->agent_count, 4);
    assert_int_equal(agents[0].delegate_count, 3);
    assert_str(agents[0].delegates[0], "walker");
    assert_str(agents[0].delegates[1], "verifier");
    assert_str(agents[0].delegates[2], "cook");
    assert_str(agents[2].slug, "walker");
    assert_str(agents[2].description, "Walks.");
    assert_str(agents[2].delegates[0], "cook"); /* the same file by another path */
    assert_str(agents[3].slug, "cook");
    assert_str(agents[3].system, "You cook."); /* beside its own file */
    config_free(config);

    refused(folder, "agent.yaml", NOTHING, "subagent 'agents/fact-checker' is nowhere here");
}

static void subagents_that_go_wrong_are_refused(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml", AGENT("guide") "subagents: [{ref: agents/guide}]\n");
    refused(folder, "agent.yaml", NOTHING,
            "agent.yaml:8:13: an agent cannot be its own subagent");

    put(folder, "agent.yaml", AGENT("guide") "subagents: [{ref: b.yaml}]\n");
    put(folder, "b.yaml", AGENT("bb") "subagents: [{ref: c.yaml}]\n");
    put(folder, "c.yaml", AGENT("cc") "subagents: [{ref: b.yaml}]\n");
    refused(folder, "agent.yaml", NOTHING,
            "b.yaml:8:12: the subagents of 'bb' lead back to it; remove it from theirs");

    put(folder, "c.yaml", AGENT("guide"));
    refused(folder, "agent.yaml", NOTHING, "b.yaml:8:13: a second agent 'guide'");
    put(folder, "c.yaml", "name: cc\n");
    refused(folder, "agent.yaml", NOTHING, "c.yaml:1:1: an agent.yaml needs the key 'version'");
    put(folder, "c.yaml", AGENT("cc") "subagents: [{name: x}]\n");
    refused(folder, "agent.yaml", NOTHING, "c.yaml:8:13: a subagent needs the key 'ref'");

    put(folder, "agent.yaml", AGENT("guide") "subagents: [{ref: n1.yaml}]\n");
    for (int i = 1; i <= 9; i++) {
        char name[32], text[512];
        snprintf(name, sizeof(name), "n%d.yaml", i);
        snprintf(text, sizeof(text), AGENT("n%d") "subagents: [{ref: n%d.yaml}]\n", i, i + 1);
        put(folder, name, text);
    }
    refused(folder, "agent.yaml", NOTHING, "n8.yaml:8:13: subagents are more than 8 deep here");
}

static void an_entry_that_is_a_file_stands_alone(void **state) {
    const struct folder *folder = *state;
    put(folder, "agent.yaml", AGENT("guide"));
    put(folder, "weir.yaml", "agents: [{agent_yaml: agent.yaml, slug: mine}]\n");
    refused(folder, "weir.yaml", NOTHING,
            "weir.yaml:1:35: 'agent_yaml' stands alone; write 'slug'");
    put(folder, "weir.yaml", "agents: [{agent_yaml: none.yaml}]\n");
    refused(folder, "weir.yaml", NOTHING, "weir.yaml:1:23: ");
    put(folder, "weir.yaml", "agents: [{agent_yaml: agent.yaml}, {agent_yaml: agent.yaml}]\n");
    refused(folder, "weir.yaml", NOTHING, "weir.yaml:1:49: a second agent 'guide'");
    put(folder, "weir.yaml", "agents: [{description: x}]\n");
    refused(folder, "weir.yaml", NOTHING, "weir.yaml:1:10: an agent needs the key 'slug'");
}

/* --- guardrails --------------------------------------------------------------------------- */

static void a_guardrail_may_have_its_rule_in_the_settings(void **state) {
    const struct folder *folder = *state;
    put(folder, "a.yaml", AGENT("one") "guardrails: [content_filter, pii_detection]\n");
    put(folder, "b.yaml",
        AGENT("two") "guardrails: [{name: content_filter, type: keyword, pattern: x}]\n");
    put(folder, "weir.yaml",
        "agents: [{agent_yaml: a.yaml}, {agent_yaml: b.yaml}]\n"
        "guardrails: [{name: content_filter, type: keyword, pattern: y}]\n");
    struct config *config = load(folder, "weir.yaml", NOTHING);
    assert_str(config->agents[0].guardrails[0], "content_filter");
    assert_str(config_guardrail_find(config, STR("content_filter"))->rule.pattern, "y");
    assert_str(config->agents[1].guardrails[0], "content_filter@two");
    assert_str(config_guardrail_find(config, STR("content_filter@two"))->rule.pattern, "x");
    config_free(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tool_is_found_by_its_name_in_the_settings),
        cmocka_unit_test(a_tool_is_found_at_its_address),
        cmocka_unit_test(different_tools_of_one_name_are_distinguished),
        cmocka_unit_test(a_server_is_found_in_the_variable_or_beside_its_name),
        cmocka_unit_test(a_missing_reference_refuses_the_file_with_the_line_that_helps),
        cmocka_unit_test(a_tool_asks_however_its_file_says_so),
        cmocka_unit_test(a_tool_asks_where_the_variable_says_so),
        cmocka_unit_test(the_items_of_lists_have_upstreams_keys_alone),
        cmocka_unit_test(a_mistake_in_a_variable_is_named),
        cmocka_unit_test(a_tool_of_the_settings_comes_first),
        cmocka_unit_test(a_server_of_other_agents_is_not_given),
        cmocka_unit_test(a_prompt_is_a_file_beside),
        cmocka_unit_test(subagents_are_delegates),
        cmocka_unit_test(subagents_that_go_wrong_are_refused),
        cmocka_unit_test(an_entry_that_is_a_file_stands_alone),
        cmocka_unit_test(a_guardrail_may_have_its_rule_in_the_settings),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}

#include "config/config.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include "agent/kind.h"
#include "base/mem.h"
#include "cli/contracts.h"
#include "provider/dialect.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})

static bool try_load(const char *file, const char *const *flags, const char *const *environment,
                     bool collect, struct config **ret, struct err *e) {
    const char *args[16] = {"-c", file};
    struct config_input input = {.args = args,
                                 .arg_count = file ? 2 : 0,
                                 .environment = environment,
                                 .collect = collect,
                                 .cpus = 1,
                                 .more = contract_rows,
                                 .more_ctx = &setting_contracts};
    for (; *flags; flags++) args[input.arg_count++] = *flags;
    e->text[0] = '\0';
    return config_load(&input, ret, e);
}

static struct config *load(const char *file, const char *text, const char *const *flags,
                           const char *const *environment) {
    struct err e;
    struct config *config;
    if (text) write_file(file, text);
    if (!try_load(text ? file : NULL, flags, environment, false, &config, &e))
        fail_msg("%s", e.text);
    return config;
}

static struct config *read_text(const struct folder *folder, const char *text) {
    return load(folder->file, text, NOTHING, NOTHING);
}

/* Each case is refused with the name of the file and then `why`. */
struct refusal {
    const char *text, *why;
};

static void refuse_all(const char *file, const struct refusal *cases, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct err e;
        struct config *config;
        write_file(file, cases[i].text);
        if (try_load(file, NOTHING, NOTHING, false, &config, &e))
            fail_msg("'%s' was taken", cases[i].text);
        assert_true(str_starts(err_text(&e), str_from(file)));
        struct str why = str_skip(err_text(&e), strlen(file));
        if (!str_starts(why, str_from(cases[i].why)))
            fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(why), cases[i].why);
    }
}

static const struct config_provider *provider(const struct config *config, const char *name) {
    for (size_t i = 0; i < config->provider_count; i++) {
        if (str_equal(config->providers[i].name, str_from(name))) return &config->providers[i];
    }
    fail_msg("there is no provider '%s'", name);
    return NULL;
}

static void assert_model(const struct config_model *model, const char *name,
                         const char *wanted) {
    assert_non_null(model->provider);
    assert_str(model->provider->name, name);
    assert_str(model->name, wanted);
}

static bool warned(const struct config *config, const char *part) {
    for (size_t i = 0; i < config->warning_count; i++) {
        struct str warning = config->warnings[i];
        if (str_find(warning, str_from(part)) < warning.len) return true;
    }
    return false;
}

static void printed(const struct config *config, const char *part, bool expected) {
    struct buf out;
    buf_init(&out, MIB);
    config_print(config, &out);
    bool found = str_find(buf_str(&out), str_from(part)) < out.len;
    if (found != expected) fail_msg("'%s' in:\n" STR_FMT, part, STR_ARG(buf_str(&out)));
    buf_done(&out);
}

/* --- providers ---------------------------------------------------------------------------- */

static void a_provider_has_every_field_that_its_entry_says(void **state) {
    const struct folder *folder = *state;
    struct config *config = read_text(folder, "providers:\n"
                                              "  - name: team\n"
                                              "    kind: openai-responses\n"
                                              "    base_url: https://host:1/v1/\n"
                                              "    model: big\n"
                                              "    query: api-version=1\n"
                                              "    key_header: api-key\n"
                                              "    headers: {x-team: blue, X_Two: 'a b'}\n"
                                              "    connect: 1s\n"
                                              "    first_byte: 2s\n"
                                              "    stall: 3s\n"
                                              "    total: 4m\n"
                                              "    retries: 0\n"
                                              "    join_users: true\n"
                                              "    http2: true\n"
                                              "agents: [{slug: a}]\n");
    const struct config_provider *team = provider(config, "team");
    assert_str(team->kind, "openai-responses");
    assert_str(team->base_url, "https://host:1/v1");
    assert_str(team->query, "api-version=1");
    assert_str(team->key_header, "api-key");
    assert_true(team->join_users);
    assert_true(team->http2);
    assert_int_equal(team->header_count, 2);
    assert_str(team->headers[1].name, "X_Two");
    assert_str(team->headers[1].value, "a b");
    assert_int_equal(team->connect_ms, 1000);
    assert_int_equal(team->first_byte_ms, 2000);
    assert_int_equal(team->stall_ms, 3000);
    assert_int_equal(team->total_ms, 240000);
    assert_int_equal(team->retries, 0);
    assert_true(team->listed && team->used);
    assert_int_equal(team->key.len, 0);
    assert_model(&config->agents[0].model, "team", "big"); /* the first listed is the usual */
    config_free(config);
}

static void a_mistake_in_a_provider_is_named_at_its_place(void **state) {
    const struct folder *folder = *state;
    static const struct refusal cases[] = {
        {"providers: {}", ":1:12: expected a list of providers"},
        {"providers: [{kind: openai}]", ":1:13: a provider needs the key 'name'"},
        {"providers: [{name: a/b, kind: openai}]", ":1:20: a provider's name holds no '/'"},
        {"providers: [{name: x}]", ":1:13: provider 'x' needs the key 'kind'"},
        {"providers: [{name: x, kind: opnai}]",
         ":1:29: 'opnai' is not one of: scripted, openai, openai-responses, anthropic, gemini; "
         "did you mean 'openai'?"},
        {"providers: [{name: x, knd: openai}]",
         ":1:23: a provider has no key 'knd'; did you mean 'kind'?"},
        {"providers: [{name: openai}, {name: openai}]", ":1:29: a second provider 'openai'"},
        {"providers: [{name: openai, base_url: host}]",
         ":1:38: base_url: it is not an address"},
        {"providers: [{name: openai, base_url: 'http://'}]",
         ":1:38: base_url: it is not an address"},
        {"providers: [{name: openai, base_url: 'http://a:s3cret@h/v1'}]",
         ":1:38: base_url: a password cannot stand in an address"},
        {"providers: [{name: openai, base_url: 'http://h/v1?x=1'}]",
         ":1:38: base_url: '?' and '#' cannot stand in it"},
        {"providers: [{name: openai, base_url: 'http://h/ v1'}]",
         ":1:38: base_url: it holds a"},
        {"providers: [{name: openai, headers: [a]}]", ":1:37: expected headers as a map"},
        {"providers: [{name: openai, headers: {Host: a}}]", ":1:38: the header 'host' is made"},
        {"providers: [{name: openai, headers: {'a b': a}}]", ":1:38: 'a b' is not a header"},
        {"providers: [{name: openai, headers: {a: \"b\\nc\"}}]", ":1:41: this value holds a"},
        {"providers: [{name: openai, connect: 5}]", ":1:37: '5' has no unit"},
        {"providers: [{name: openai, retries: 11}]", ":1:37: more than 10 retries"},
        {"providers: [{name: openai, key_file: nothere}]", ":1:38: key_file: read '"},
    };
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void a_key_comes_from_a_variable_a_file_or_a_credential(void **state) {
    const struct folder *folder = *state;
    char file_variable[160], credentials[96];
    const char *own = "providers: [{name: mine, kind: openai, key_env: MINE, base_url: "
                      "'https://h/v1'}]\nmodel: mine/x\n";
    write_file(folder->other, "of-the-file\n");
    snprintf(file_variable, sizeof(file_variable), "MINE_FILE=%s", folder->other);

    struct config *config = load(folder->file, own, NOTHING, LIST("MINE= k1 ", file_variable));
    assert_str(provider(config, "mine")->key, "k1");
    assert_str(provider(config, "mine")->key_source, "MINE");
    config_free(config);

    config = load(folder->file, own, NOTHING, LIST(file_variable));
    assert_str(provider(config, "mine")->key, "of-the-file");
    assert_str(provider(config, "mine")->key_source, "MINE_FILE");
    config_free(config);

    config = load(folder->file, "providers: [{name: other, kind: openai, key_file: other}]\n",
                  NOTHING, NOTHING);
    assert_str(provider(config, "other")->key, "of-the-file");
    config_free(config);

    snprintf(credentials, sizeof(credentials), "CREDENTIALS_DIRECTORY=%s", folder->path);
    config = load(folder->file,
                  "providers: [{name: cred, kind: openai, key_env: other}]\nmodel: cred/x\n",
                  NOTHING, LIST(credentials));
    assert_str(provider(config, "cred")->key, "of-the-file");
    assert_str(provider(config, "cred")->key_source, "systemd credential");
    config_free(config);

    config = load(folder->file, own, NOTHING, LIST(credentials));
    assert_int_equal(provider(config, "mine")->key.len, 0);
    assert_true(warned(config, "provider 'mine' has no key: set MINE, or MINE_FILE"));
    config_free(config);
}

static void the_key_of_a_vendor_is_not_sent_to_an_unknown_server(void **state) {
    const struct folder *folder = *state;
    struct config *config =
        load(folder->file,
             "providers:\n  - {name: own, kind: openai, base_url: 'https://h/v1'}\n"
             "  - {name: vendor, kind: openai}\n  - {name: r, kind: openai-responses}\n",
             NOTHING, LIST("OPENAI_API_KEY=sk-hush"));
    assert_int_equal(provider(config, "own")->key.len, 0);
    assert_str(provider(config, "vendor")->key, "sk-hush");
    assert_str(provider(config, "r")->key, "sk-hush");
    config_free(config);
}

static void each_dialect_is_a_kind_and_knows_its_vendors_variables(void **state) {
    const struct folder *folder = *state;
    for (size_t i = 0; i < DIALECT_COUNT; i++) {
        const char *const *variable = dialects[i]->key_env;
        for (size_t v = 0; v < ARRAY_LEN(dialects[i]->key_env) && variable[v]; v++) {
            char text[96], key[96];
            snprintf(text, sizeof(text), "providers: [{name: x, kind: %s}]\n",
                     dialects[i]->name);
            snprintf(key, sizeof(key), "%s=sk-hush", variable[v]);
            struct config *config = load(folder->file, text, NOTHING, LIST(key));
            assert_str(provider(config, "x")->kind, dialects[i]->name);
            assert_str(provider(config, "x")->key, "sk-hush");
            config_free(config);
        }
    }
}

static void a_key_is_printed_nowhere(void **state) {
    const struct folder *folder = *state;
    struct err e;
    struct config *config =
        load(folder->file,
             "providers: [{name: a, kind: openai, key_env: A, base_url: 'http://h.example/v1', "
             "query: key=hush2, headers: {x-key: hush3}}]\nmodel: a/m\n",
             NOTHING, LIST("A=hush1"));
    printed(config, "hush", false);
    printed(config,
            "providers.a = openai at http://h.example/v1, query set, header x-key set, "
            "key set (A)\n",
            true);
    assert_true(warned(config, "the key of provider 'a' is sent to h.example without"));
    assert_false(warned(config, "hush"));
    config_free(config);
    assert_false(try_load(NULL, LIST("--model", "openai/x"), LIST("OPENAI_API_KEY=hush hush"),
                          false, &config, &e));
    assert_null(strstr(e.text, "hush"));
}

static void known_providers_need_no_entry_and_listen_to_their_variables(void **state) {
    static const struct {
        const char *model, *variable, *url;
    } cases[] = {
        {"ollama/a", "X=1", "http://127.0.0.1:11434/v1"},
        {"ollama/a", "OLLAMA_HOST=0.0.0.0", "http://127.0.0.1:11434/v1"},
        {"ollama/a", "OLLAMA_HOST=0.0.0.0:99", "http://127.0.0.1:99/v1"},
        {"ollama/a", "OLLAMA_HOST=:99", "http://127.0.0.1:99/v1"},
        {"ollama/a", "OLLAMA_HOST=box", "http://box:11434/v1"},
        {"ollama/a", "OLLAMA_HOST=box:1/", "http://box:1/v1"},
        {"ollama/a", "OLLAMA_HOST=[::1]", "http://[::1]:11434/v1"},
        {"ollama/a", "OLLAMA_HOST=https://box/", "https://box/v1"},
        {"ollama/a", "OLLAMA_BASE_URL=http://box:2/v1", "http://box:2/v1"},
        {"gemini/a", "GEMINI_BASE_URL=http://box:3/v1beta/", "http://box:3/v1beta"},
        {"openrouter/a", "OPENROUTER_BASE_URL=http://box:4/v1", "http://box:4/v1"},
        {"lmstudio/a", "LMSTUDIO_BASE_URL=http://box:5/v1", "http://box:5/v1"},
        {"vllm/a", "VLLM_BASE_URL=http://box:6/v1", "http://box:6/v1"},
        {"llamacpp/a", "LLAMACPP_BASE_URL=http://box:7/v1", "http://box:7/v1"},
        {"openai/a", "OPENAI_BASE_URL=http://h/v1/", "http://h/v1"},
        {"openai/a", "CRAWBL_OPENAI_BASE_URL=http://h/v2", "http://h/v2"},
        {"openai/a", "X=1", ""},
        {"openrouter/a/b", "X=1", "https://openrouter.ai/api/v1"},
        {"lmstudio/a", "X=1", "http://127.0.0.1:1234/v1"},
        {"vllm/a", "X=1", "http://127.0.0.1:8000/v1"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config *config =
            load(NULL, NULL, LIST("--model", cases[i].model), LIST(cases[i].variable));
        assert_str(config->model_default.provider->base_url, cases[i].url);
        config_free(config);
    }
    struct err e;
    struct config *config;
    assert_false(try_load(NULL, LIST("--model", "openai/x"), LIST("OPENAI_BASE_URL=h"), false,
                          &config, &e));
    assert_str(err_text(&e),
               "--model: OPENAI_BASE_URL: it is not an address; write it like https://host/v1");
}

/* --- whose model -------------------------------------------------------------------------- */

static void a_model_alone_makes_one_agent_that_asks_it(void **state) {
    (void)state;
    struct config *config = load(NULL, NULL, LIST("--model", "ollama/library/gemma3:4b"),
                                 LIST("WEIR_MODEL=openai/x", "AGENT_SYSTEM_PROMPT=You\nhelp."));
    assert_int_equal(config->agent_count, 1);
    assert_str(config->agents[0].slug, "manager");
    assert_str(config->agents[0].system, "You\nhelp.");
    assert_model(&config->agents[0].model, "ollama", "library/gemma3:4b");
    assert_int_equal(config->warning_count, 0);
    config_free(config);

    config = load(NULL, NULL, NOTHING, LIST("CRAWBL_OPENAI_MODEL=gpt-5-mini"));
    assert_model(&config->model_default, "openai", "gpt-5-mini");
    config_free(config);

    config = load(NULL, NULL, LIST("--model=claude-x"), LIST("ANTHROPIC_API_KEY=k"));
    assert_model(&config->model_default, "anthropic", "claude-x");
    config_free(config);
}

static void the_usual_options_are_those_of_agents_without_any(void **state) {
    const struct folder *folder = *state;
    struct config *config =
        load(NULL, NULL, LIST("--openai-model", "gpt-5-mini"),
             LIST("WEIR_MODEL=ollama/x", "AGENT_TEMPERATURE=0.3", "AGENT_MAX_TOKENS=4096"));
    assert_model(&config->model_default, "openai", "gpt-5-mini");
    assert_true(config->agents[0].temperature > 0.29 && config->agents[0].temperature < 0.31);
    assert_int_equal(config->agents[0].max_tokens, 4096);
    printed(config, "model = openai/gpt-5-mini (--openai-model)\n", true);
    printed(config, "agent.temperature = 0.3 (AGENT_TEMPERATURE)\n", true);
    config_free(config);

    config = load(folder->file,
                  "agents:\n"
                  "  - {slug: a, model: ollama/m, temperature: 1.5, max_tokens: 7}\n"
                  "  - {slug: b, model: ollama/m}\n",
                  LIST("--agent-temperature=2"), NOTHING);
    assert_true(config->agents[0].temperature == 1.5 && config->agents[1].temperature == 2);
    assert_int_equal(config->agents[0].max_tokens, 7);
    assert_int_equal(config->agents[1].max_tokens, 0);
    config_free(config);

    struct err e;
    static const char *const bad[] = {"2.01", "-1", "warm", ""};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        if (try_load(NULL, LIST("--agent-temperature", bad[i]), NOTHING, false, &config, &e))
            fail_msg("'%s' was taken", bad[i]);
        assert_true(str_starts(err_text(&e), STR("--agent-temperature: ")));
    }
}

static void a_budget_of_a_missing_agent_is_reported(void **state) {
    const struct folder *folder = *state;
    static const char agents[] = "agents: [{slug: researcher, model: ollama/m}]\n"
                                 "budgets:\n"
                                 "  - {agent: researcher, day: $1}\n"
                                 "  - {agent: reseacher, day: $1}\n"
                                 "  - {agent: zzz, day: $1}\n"
                                 "  - {day: $1}\n";
    struct config *config = read_text(folder, agents);
    assert_int_equal(config->warning_count, 2);
    assert_true(warned(config, "a budget is for the agent 'reseacher', and there is none; did "
                               "you mean 'researcher'?"));
    assert_true(warned(config, "a budget is for the agent 'zzz', and there is none"));
    config_free(config);
    /* Agents that only a script or an orchestrator names are no mistake. */
    config = load(folder->file, agents, LIST("--mcp-endpoint", "http://127.0.0.1:7171/mcp/v1"),
                  NOTHING);
    assert_false(warned(config, "a budget is for"));
    config_free(config);
    config = read_text(folder, "budgets: [{agent: zzz, day: $1}]\n");
    assert_false(warned(config, "a budget is for"));
    config_free(config);
}

static void an_unknown_model_is_refused(void **state) {
    static const struct {
        const char *flag, *why;
    } cases[] = {
        {"--model=gemma3", "--model: whose model is this? Write provider/model"},
        {"--model=olama/gemma3",
         "--model: no provider is called 'olama'; did you mean 'ollama'?"},
        {"--model=zzzzzz/y", "--model: no provider is called 'zzzzzz'; list it under"},
        {"--model=openai/", "--model: this is not a model; write provider/model"},
        {"--model=openai/a b", "--model: this is not a model; write provider/model"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct config *config;
        assert_false(try_load(NULL, LIST(cases[i].flag), NOTHING, false, &config, &e));
        if (!str_starts(err_text(&e), str_from(cases[i].why))) fail_msg("%s", e.text);
    }
}

static void each_agent_gets_the_model_that_its_entry_means(void **state) {
    const struct folder *folder = *state;
    struct config *config = read_text(
        folder, "model: ollama/usual\n"
                "providers:\n"
                "  - {name: team, kind: openai, base_url: 'https://h/v1', model: big}\n"
                "  - {name: router, kind: openai, base_url: 'https://r/v1'}\n"
                "agents:\n"
                "  - {slug: a}\n"
                "  - {slug: b, model: anthropic/claude-x}\n"
                "  - {slug: c, model: small}\n"
                "  - {slug: d, provider: team}\n"
                "  - {slug: e, provider: router, model: openai/gpt-x}\n"
                "  - {slug: f, provider: router, model: router/x}\n"
                "  - {slug: g, provider: scripted}\n"
                "  - {slug: h, model: team/m, fallback: [other, ollama/x, gpt-x]}\n"
                "  - {slug: i, model: openai/m, fallback: claude-x}\n");
    static const struct {
        const char *provider, *model;
    } models[] = {{"ollama", "usual"},
                  {"anthropic", "claude-x"},
                  {"team", "small"},
                  {"team", "big"},
                  {"router", "openai/gpt-x"},
                  {"router", "x"},
                  {"scripted", ""},
                  {"team", "m"},
                  {"openai", "m"}};
    assert_int_equal(config->agent_count, ARRAY_LEN(models));
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        assert_model(&config->agents[i].model, models[i].provider, models[i].model);
    const struct config_agent *h = &config->agents[7];
    assert_int_equal(h->fallback_count, 3);
    assert_model(&h->fallback[0], "team", "other");
    assert_model(&h->fallback[1], "ollama", "x");
    assert_model(&h->fallback[2], "team", "gpt-x"); /* of a listed provider: its own word */
    assert_model(&config->agents[8].fallback[0], "anthropic", "claude-x");
    assert_true(provider(config, "anthropic")->used);
    config_free(config);
}

static void without_providers_the_script_answers_as_ever(void **state) {
    const struct folder *folder = *state;
    struct config *config = read_text(folder, "agents: [{slug: a, model: some}, {slug: b}]\n");
    assert_model(&config->agents[0].model, "scripted", "some");
    assert_model(&config->agents[1].model, "scripted", "");
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

/* --- agents ------------------------------------------------------------------------------- */

static void an_agent_has_every_field_that_its_entry_says(void **state) {
    const struct folder *folder = *state;
    write_file(folder->other, "From a file.\n");
    struct config *config =
        read_text(folder, "agents:\n"
                          "  - slug: a\n"
                          "    instructions_file: other\n"
                          "    temperature: 0.25\n"
                          "    top_p: 1\n"
                          "    max_tokens: 100\n"
                          "    effort: high\n"
                          "    thinking_tokens: 2000\n"
                          "    window: 128000\n"
                          "    output: {type: object, required: [days]}\n"
                          "    tools: {look: allow, send: ask, drop: hidden}\n"
                          "    limits: {model_calls: 3, tool_calls: 4, tokens: 5, cost: $0.5}\n"
                          "  - {slug: b, instructions: Short., tools: []}\n");
    const struct config_agent *a = &config->agents[0], *b = &config->agents[1];
    assert_str(a->system, "From a file.\n");
    assert_true(a->temperature > 0.249 && a->temperature < 0.251);
    assert_true(a->top_p > 0.99 && a->top_p < 1.01);
    assert_int_equal(a->max_tokens, 100);
    assert_str(a->effort, "high");
    assert_int_equal(a->thinking_tokens, 2000);
    assert_int_equal(a->window, 128000);
    assert_str(a->output, "{\"type\":\"object\",\"required\":[\"days\"]}");
    assert_false(a->all_tools);
    assert_int_equal(a->tool_count, 3);
    assert_str(a->tools[1].name, "send");
    assert_int_equal(a->tools[0].policy, CONFIG_TOOL_ALLOW);
    assert_int_equal(a->tools[1].policy, CONFIG_TOOL_ASK);
    assert_int_equal(a->tools[2].policy, CONFIG_TOOL_HIDDEN);
    assert_int_equal(a->limits.model_calls, 3);
    assert_int_equal(a->limits.tool_calls, 4);
    assert_int_equal(a->limits.tokens, 5);
    assert_int_equal(a->limits.cost_nano, 500000000);
    assert_str(b->system, "Short.");
    assert_true(b->temperature < 0 && b->top_p < 0);
    assert_true(!b->all_tools && b->tool_count == 0);
    printed(config, "agents.a.tools = look, send (asks), drop (hidden)\n", true);
    config_free(config);

    write_file(folder->other, "{\"type\": \"string\"}");
    config = read_text(folder, "agents: [{slug: a, output_file: other}]\n");
    assert_str(config->agents[0].output, "{\"type\": \"string\"}");
    config_free(config);
}

static void a_mistake_in_an_agent_is_named_at_its_place(void **state) {
    const struct folder *folder = *state;
    static const struct refusal cases[] = {
        {"agents: [{slug: a, temperature: 3}]", ":1:33: '3' is more than 2"},
        {"agents: [{slug: a, temperature: -1}]", ":1:33: '-1' is not a decimal number"},
        {"agents: [{slug: a, temperature: 1e0}]", ":1:33: '1e0' is not a decimal number"},
        {"agents: [{slug: a, top_p: 1.1}]", ":1:27: '1.1' is more than 1"},
        {"agents: [{slug: a, max_tokens: 0}]", ":1:32: max_tokens is a count of tokens"},
        {"agents: [{slug: a, window: many}]", ":1:28: 'many' is not a whole number"},
        {"agents: [{slug: a, effort: hgh}]",
         ":1:28: 'hgh' is not one of: low, medium, high; did you mean 'high'?"},
        {"agents: [{slug: a, system: x, instructions: y}]",
         ":1:31: this agent has instructions already"},
        {"agents: [{slug: a, system: x, instructions_file: y}]",
         ":1:31: this agent has instructions already"},
        {"agents: [{slug: a, instructions_file: nothere}]", ":1:39: read '"},
        {"agents: [{slug: a, output: text}]", ":1:28: expected a map"},
        {"agents: [{slug: a, output_file: nothere}]", ":1:33: read '"},
        {"agents: [{slug: a, output: {}, output_file: x}]", ":1:32: this agent has an output"},
        {"agents: [{slug: a, tools: {x: alow}}]",
         ":1:31: 'alow' is not one of: allow, ask, hidden; did you mean 'allow'?"},
        {"agents: [{slug: a, tools: [x, x]}]", ":1:31: tool 'x' stands here twice"},
        {"agents: [{slug: a, limits: {calls: 1}}]", ":1:29: limits has no key 'calls'"},
        {"agents: [{slug: a, limits: {tokens: 0}}]", ":1:37: a limit of 0 makes no sense"},
        {"agents: [{slug: a, limits: {cost: 1 USD}}]",
         ":1:35: '1 USD' is not a decimal number"},
        {"agents: [{slug: a, limits: {cost: 0}}]", ":1:35: a limit of nothing makes no sense"},
        {"agents: [{slug: a, provider: opena}]",
         ":1:30: no provider is called 'opena'; did you mean 'openai'?"},
        {"agents: [{slug: a, provider: openai}]", ":1:10: which model of 'openai'?"},
        {"agents: [{slug: a, model: opnai/x}]",
         ":1:27: no provider is called 'opnai'; did you mean 'openai'?"},
        {"agents: [{slug: a, model: anthropic/c, max_tokens: 500, thinking_tokens: 1024}]",
         ":1:74: an answer of 500 tokens has no room to think with 1024"},
        {"agents: [{slug: a, model: openai/c, fallback: anthropic/c, thinking_tokens: 99}]",
         ":1:77: Anthropic's models think with 1024 tokens or more, not 99"},
        {"agents: [{slug: a, fallback: {}}]", ":1:30: expected a list of models"},
        {"agents: [{slug: a, fallback: [zzzz/x]}]", ":1:31: no provider is called 'zzzz'"},
    };
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
    /* What one vendor refuses, another takes. */
    config_free(read_text(folder, "agents: [{slug: a, model: openai/c, max_tokens: 500, "
                                  "thinking_tokens: 1024}]"));
}

static void every_mistake_of_every_list_is_found_at_once(void **state) {
    const struct folder *folder = *state;
    struct config *config;
    struct err e;
    write_file(folder->file,
               "providers:\n  - {name: x}\n  - {name: y, kind: opnai}\n"
               "agents:\n  - {slug: a, model: opnai/m}\n"
               "  - {slug: b, temperature: 9}\n  - {slug: c, delegates: [q]}\n"
               "prices:\n  - {model: 'a*b', input: 1, output: 1}\n  - {model: m}\n"
               "budgets:\n  - {}\n  - {day: 5}\n"
               "tools:\n  web_serch: {}\n  files: {}\n");
    static const char *const places[] = {
        ":2:5: ",  ":3:21: ",  ":6:28: ", ":7:27: ",  ":9:13: ", ":10:5: ",
        ":12:5: ", ":13:11: ", ":15:3: ", ":16:10: ", ":5:22: "};
    assert_true(try_load(folder->file, NOTHING, NOTHING, true, &config, &e));
    for (size_t i = 0; i < config->problem_count && i < ARRAY_LEN(places); i++) {
        struct str problem = str_skip(config->problems[i], strlen(folder->file));
        if (!str_starts(problem, str_from(places[i])))
            fail_msg("'" STR_FMT "' is not at '%s'", STR_ARG(problem), places[i]);
    }
    assert_int_equal(config->problem_count, ARRAY_LEN(places));
    config_free(config);
}

static void every_mistake_of_one_agent_is_found_and_none_that_is_not_there(void **state) {
    const struct folder *folder = *state;
    struct config *config;
    struct err e;
    write_file(folder->file, "providers:\n"
                             "  - {name: fake, kind: openai, api_key: x, retries: 99}\n"
                             "agents:\n"
                             "  - slug: a\n"
                             "    model: fake/m\n"
                             "    temprature: 1\n"
                             "    temperature: hot\n"
                             "    max_tokens: \"many\"\n"
                             "    instruction: hey\n"
                             "    effort: much\n"
                             "    delegates: [b]\n"
                             "  - {slgu: c}\n"
                             "  - {slug: d, window: 500, max_tokens: 500}\n");
    static const char *const places[] = {
        ":2:32: a key never stands in the settings",
        ":2:53: more than 10 retries",
        ":6:5: an agent has no key 'temprature'",
        ":9:5: an agent has no key 'instruction'",
        ":8:17: 'many' is not a whole number",
        ":7:18: 'hot' is not a decimal number",
        ":10:13: 'much' is not one of",
        ":12:6: an agent has no key 'slgu'; did you mean 'slug'?",
        ":13:40: a reply of 500 tokens leaves no room in a window of 500",
        ":11:17: no agent is called 'b'",
    };
    assert_true(try_load(folder->file, NOTHING, NOTHING, true, &config, &e));
    for (size_t i = 0; i < config->problem_count && i < ARRAY_LEN(places); i++) {
        struct str problem = str_skip(config->problems[i], strlen(folder->file));
        if (!str_starts(problem, str_from(places[i])))
            fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(problem), places[i]);
    }
    assert_int_equal(config->problem_count, ARRAY_LEN(places));
    config_free(config);
}

/* What stands before the mistake is counted, and those who come after read it. */
static void a_list_that_ends_with_a_mistake_has_what_it_counts(void **state) {
    const struct folder *folder = *state;
    struct config *config;
    struct err e;
    write_file(folder->file, "agents:\n"
                             "  - {slug: a, tools: {calculator: ask, look: alow}}\n"
                             "  - {slug: b, tools: [calculator, calculator]}\n"
                             "  - {slug: c, guardrails: [no-cards, []]}\n"
                             "  - {slug: d, kind: process, command: [python3, []]}\n");
    static const char *const places[] = {
        ":2:46: 'alow' is not one of", ":3:35: tool 'calculator' stands here twice",
        ":4:38: a guardrail is named here", ":5:49: a word of a command is a text"};
    assert_true(try_load(folder->file, NOTHING, NOTHING, true, &config, &e));
    assert_int_equal(config->problem_count, ARRAY_LEN(places));
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct str problem = str_skip(config->problems[i], strlen(folder->file));
        if (!str_starts(problem, str_from(places[i])))
            fail_msg("'" STR_FMT "' is not '%s'", STR_ARG(problem), places[i]);
    }
    assert_int_equal(config->agent_count, 4);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(config->agents[i].tool_count, 1);
        assert_str(config->agents[i].tools[0].name, "calculator");
    }
    assert_int_equal(config->agents[2].guardrail_count, 1);
    assert_str(config->agents[2].guardrails[0], "no-cards");
    assert_int_equal(config->agents[3].command_count, 1);
    assert_str(config->agents[3].command[0], "python3");
    config_free(config);
}

/* --- money and tools ---------------------------------------------------------------------- */

static void prices_and_budgets_are_whole_numbers_of_small_units(void **state) {
    const struct folder *folder = *state;
    struct config *config = read_text(
        folder, "prices:\n"
                "  - {model: gpt-x*, from: 1970-01-02, input: 2.50, output: $10}\n"
                "  - {model: m, from: 2024-02-29, input: 0.075, output: 0, cached: 0}\n"
                "budgets:\n"
                "  - {workspace: w, agent: a, day: $1.25, month: 2000 tokens}\n"
                "  - {month: $5}\n");
    assert_int_equal(config->price_count, 2);
    assert_str(config->prices[0].model, "gpt-x*");
    assert_int_equal(config->prices[0].from_day, 1);
    assert_int_equal(config->prices[0].input, INT64_C(2500000000));
    assert_int_equal(config->prices[0].output, INT64_C(10000000000));
    assert_int_equal(config->prices[0].cached, TOKENS_UNKNOWN);
    assert_int_equal(config->prices[1].from_day, 19782);
    assert_int_equal(config->prices[1].input, 75000000);
    assert_int_equal(config->prices[1].cached, 0);
    assert_int_equal(config->budget_count, 3);
    assert_str(config->budgets[0].workspace, "w");
    assert_str(config->budgets[0].agent, "a");
    assert_int_equal(config->budgets[0].period, BUDGET_DAY);
    assert_int_equal(config->budgets[0].cost_nano_max, INT64_C(1250000000));
    assert_int_equal(config->budgets[1].period, BUDGET_MONTH);
    assert_int_equal(config->budgets[1].tokens_max, 2000);
    assert_int_equal(config->budgets[2].workspace.len, 0);
    printed(config,
            "prices.m = input $0.075, output $0.00, cached $0.00 for a million tokens\n", true);
    printed(config, "budgets.w.a a day = $1.25\n", true);
    printed(config, "budgets.each workspace a month = $5.00\n", true);
    config_free(config);
}

static void a_mistake_in_prices_or_budgets_is_named_at_its_place(void **state) {
    const struct folder *folder = *state;
    static const struct refusal cases[] = {
        {"prices: {}", ":1:9: expected a list of prices"},
        {"prices: [{input: 1, output: 1}]", ":1:10: a price needs the key 'model'"},
        {"prices: [{model: a*b, input: 1, output: 1}]", ":1:18: '*' stands at the end"},
        {"prices: [{model: a, from: 2023-02-29, input: 1, output: 1}]",
         ":1:27: '2023-02-29' is not a date"},
        {"prices: [{model: a, from: 2023-13-01, input: 1, output: 1}]", ":1:27: '2023-13-01'"},
        {"prices: [{model: a, from: 1969-01-01, input: 1, output: 1}]", ":1:27: '1969-01-01'"},
        {"prices: [{model: a, input: 1., output: 1}]", ":1:28: '1.' is not a decimal number"},
        {"prices: [{model: a, input: 0.0000000001, output: 1}]",
         ":1:28: '0.0000000001' has more than 9 digits"},
        {"prices: [{model: a, input: 9999999, output: 1}]", ":1:28: no model costs $9999999"},
        {"prices: [{model: a, input: 99999999999, output: 1}]",
         ":1:28: '99999999999' is too large"},
        {"budgets: [{day: 5}]", ":1:17: expected dollars, such as $5.00, or tokens"},
        {"budgets: [{day: 5 token}]", ":1:17: expected dollars"},
        {"budgets: [{day: $0}]", ":1:17: a budget of 0 allows no call"},
        {"budgets: [{}]", ":1:11: a budget needs the key 'day' or 'month'"},
        {"budgets: [{wrkspace: a}]",
         ":1:12: a budget has no key 'wrkspace'; did you mean 'workspace'?"},
    };
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void dollars_are_read_to_the_last_nano(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *text;
        int64_t nano; /* 0: it is refused */
    } rows[] = {
        {"2.50", INT64_C(2500000000)},
        {"007", INT64_C(7000000000)},
        {"0.000000001", 1},
        {"123456789.987654321", INT64_C(123456789987654321)},
        {"999999999", INT64_C(999999999000000000)},
        {".", 0},
        {".5", 0},
        {"2.", 0},
        {"-1", 0},
        {"+1", 0},
        {"1e3", 0},
        {"1.2.3", 0},
        {"0x10", 0},
        {"nan", 0},
        {"1.5a", 0},
        {"0.0000000001", 0},
        {"10000000000", 0},
        {"99999999999999999999", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[80];
        struct config *config;
        struct err e;
        snprintf(text, sizeof(text), "budgets: [{day: $%s}]\n", rows[i].text);
        write_file(folder->file, text);
        bool read = try_load(folder->file, NOTHING, NOTHING, false, &config, &e);
        if (read != (rows[i].nano > 0)) fail_msg("$%s", rows[i].text);
        if (!read) continue;
        assert_int_equal(config->budgets[0].cost_nano_max, rows[i].nano);
        config_free(config);
    }
}

static void commands_are_set_up(void **state) {
    static const struct refusal cases[] = {
        {"tools: {exec: {}}", ":1:15: exec needs the key 'root'"},
        {"tools: {exec: {root: ''}}", ":1:22: root is a folder"},
        {"tools: {exec: {root: x, memory: 1MiB}}", ":1:33: a process needs 16MiB or more"},
        {"tools: {exec: {root: x, processes: 2}}", ":1:36: a command has 8 to 4096 processes"},
        {"tools: {exec: {root: x, policy: yes}}", ":1:33: 'yes' is not one of"},
        {"tools: {exec: {root: x, netwrok: true}}", ":1:25: exec has no key 'netwrok'"},
    };
    struct config *config = read_text(
        *state, "tools: {exec: {root: ws, cpu: 1500ms, memory: 32MiB, policy: allow}}\n");
    const struct exec_options *exec = &config->tools.exec;
    assert_true(str_ends(exec->root, STR("/ws")) && str_starts(exec->root, STR("/tmp/")));
    assert_int_equal(exec->limits.cpu_s, 2);
    assert_int_equal(exec->limits.memory_bytes, 32 * MIB);
    assert_int_equal(exec->limits.processes, 64);
    assert_int_equal(exec->timeout_ms, 30000);
    assert_false(exec->limits.network);
    assert_str(config->tools.policies[0].name, "exec");
    assert_int_equal(config->tools.policies[0].policy, CONFIG_TOOL_ALLOW);
    config_free(config);
    refuse_all(((const struct folder *)*state)->file, cases, ARRAY_LEN(cases));
}

static void tools_are_set_up_or_switched_off(void **state) {
    const struct folder *folder = *state;
    struct config *config =
        load(folder->file,
             "tools:\n  web_search: {backend: brave, url: 'https://s/', key_env: SEARCH}\n"
             "  files: {root: there}\n  web_fetch: off\n  pay: {policy: ask, timeout: 90s}\n"
             "  drop: hidden\n  look: allow\n  dig: {timeout: 1500ms}\n",
             NOTHING, LIST("SEARCH=hush"));
    char root[128];
    snprintf(root, sizeof(root), "%s/there", folder->path);
    assert_str(config->tools.web_search.backend, "brave");
    assert_str(config->tools.web_search.url, "https://s/");
    assert_str(config->tools.web_search.key, "hush");
    assert_str(config->tools.files.root, root);
    static const struct {
        const char *name;
        enum config_policy policy;
        uint64_t timeout_ms;
    } policies[] = {{"web_fetch", CONFIG_TOOL_HIDDEN, 0},
                    {"pay", CONFIG_TOOL_ASK, 90000},
                    {"drop", CONFIG_TOOL_HIDDEN, 0},
                    {"look", CONFIG_TOOL_ALLOW, 0},
                    {"dig", CONFIG_TOOL_ALLOW, 1500}};
    assert_int_equal(config->tools.policy_count, ARRAY_LEN(policies));
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        assert_str(config->tools.policies[i].name, policies[i].name);
        assert_int_equal(config->tools.policies[i].policy, policies[i].policy);
        assert_int_equal(config->tools.policies[i].timeout_ms, policies[i].timeout_ms);
    }
    printed(config, "tools.pay = ask, timeout 90s\n", true);
    printed(config, "tools.drop = off\n", true);
    printed(config, "hush", false);
    printed(config, "tools.web_search = brave, key set\n", true);
    printed(config, "tools.web_fetch = off\n", true);
    config_free(config);

    static const struct refusal cases[] = {
        {"tools: [a]", ":1:8: expected a map of tools"},
        {"tools: {web_serch: {backend: x}}",
         ":1:9: 'web_serch' has no settings here; all it may be is allow, ask, hidden or off; "
         "did you mean "
         "'web_search'?"},
        {"tools: {web_fetch: on}", ":1:9: 'web_fetch' has no settings here"},
        {"tools: {pay: {timeout: soon}}", ":1:24: "},
        {"tools: {pay: {timeout: 0s}}", ":1:24: a call needs some time"},
        {"tools: {pay: {policy: never}}", ":1:9: 'pay' has no settings here"},
        {"tools: {pay: {timeout: 1s, patience: 2}}", ":1:9: 'pay' has no settings here"},
        {"tools: {web_search: {}}", ":1:21: web_search needs the key 'backend'"},
        {"tools: {web_search: {backend: a, key_file: nothere}}", ":1:21: key_file: read '"},
        {"tools: {files: {root: ''}}", ":1:23: root is a folder"},
        {"tools: {files: {rot: a}}", ":1:17: files has no key 'rot'; did you mean 'root'?"},
    };
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

/* --- agent.yaml --------------------------------------------------------------------------- */

#define BREEDER "name: kyoto-guide\nversion: 1.2.3\nteam: blue\nowner: a@b.example\n"
#define MODEL "model: {primary: openai/gpt-x}\n"
#define DEPLOY "deploy: {cloud: local}\n"

/* --- connectors --------------------------------------------------------------------------- */

static void a_connector_is_a_provider_or_this_machine(void **state) {
    struct config *config = read_text(*state, "connectors:\n"
                                              "  - {id: a, provider: scripted, owner: anna}\n"
                                              "  - {id: b, provider: builtin}\n"
                                              "  - {id: c, provider: builtin, local: false, "
                                              "enabled: false}\n"
                                              "  - {id: d, provider: ollama, local: true, "
                                              "models: [llama3, tiny]}\n");
    const struct config_connector *connectors = config->connectors;
    assert_int_equal(config->connector_count, 4);
    assert_str(connectors[0].provider->name, "scripted");
    assert_str(connectors[0].owner, "anna");
    assert_false(connectors[0].builtin || connectors[0].local);
    assert_true(connectors[1].builtin && connectors[1].local && connectors[1].enabled);
    assert_null(connectors[1].provider);
    assert_int_equal(connectors[1].model_count, 2);
    assert_str(connectors[1].models[0], "espeak-ng");
    assert_str(connectors[1].models[1], "hash-256");
    assert_true(connectors[2].builtin && !connectors[2].local && !connectors[2].enabled);
    assert_str(connectors[3].provider->name, "ollama");
    assert_str(connectors[3].models[1], "tiny");
    printed(config,
            "connectors.a = scripted, for anna\n"
            "connectors.b = builtin, models espeak-ng hash-256, local\n"
            "connectors.c = builtin, models espeak-ng hash-256, off\n"
            "connectors.d = ollama, models llama3 tiny, local\n",
            true);
    config_free(config);
}

static void a_provider_of_that_name_beats_this_machine(void **state) {
    struct config *config = read_text(
        *state, "providers:\n  - {name: builtin, kind: openai, base_url: \"http://[::1]:1\"}\n"
                "connectors:\n  - {id: a, provider: builtin, models: [x]}\n");
    assert_false(config->connectors[0].builtin);
    assert_str(config->connectors[0].provider->name, "builtin");
    config_free(config);
}

static void a_mistake_in_a_connector_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"connectors: x\n", ":1:13: expected a list of connectors"},
        {"connectors:\n  - {id: a, provider: builtin, models: [x]}\n",
         ":2:40: the models of 'builtin' are known: espeak-ng and hash-256; leave 'models' "
         "out"},
        {"connectors:\n  - {id: a, provider: bultin}\n",
         ":2:23: no provider is called 'bultin'; did you mean 'builtin'?"},
        {"connectors:\n  - {id: a, provider: scripted}\n  - {id: a, provider: builtin}\n",
         ":3:5: there is a connector 'a' already; ids are unique"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void an_issuer_has_keys_of_a_url_or_a_file(void **state) {
    struct config *config = read_text(
        *state, "issuers:\n"
                "  - {issuer: a, audience: nimi, jwks_url: \"https://a.example/keys\"}\n"
                "  - {issuer: b, audience: nimi, jwks_url: \"http://127.0.0.1:9/keys\"}\n");
    assert_int_equal(config->issuer_count, 2);
    assert_str(config->issuers[0].name, "a");
    assert_str(config->issuers[0].audience, "nimi");
    assert_str(config->issuers[0].url, "https://a.example/keys");
    printed(config,
            "issuers.a = for nimi, keys of https://a.example/keys\n"
            "issuers.b = for nimi, keys of http://127.0.0.1:9/keys\n",
            true);
    config_free(config);
}

static void a_mistake_in_an_issuer_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"issuers:\n  - {issuer: a, audience: n}\n",
         ":2:5: an issuer needs its public keys: either jwks_url or jwks_file"},
        {"issuers:\n  - {issuer: a, jwks_url: \"https://a\"}\n",
         ":2:5: an issuer needs the key 'audience'"},
        {"issuers:\n  - {issuer: a, audience: n, jwks_url: \"http://a.example\"}\n",
         ":2:40: keys that decide who a caller is must come over https, or from this machine"},
        {"issuers:\n  - {issuer: a, audience: n, jwks_url: \"http://127.0.0.1.a.example\"}\n",
         ":2:40: keys that decide who a caller is must come over https, or from this machine"},
        {"issuers:\n  - {issuer: a, audience: n, jwks_url: \"https://a\"}\n"
         "  - {issuer: a, audience: m, jwks_url: \"https://a\"}\n",
         ":3:5: there is an issuer 'a' already"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void an_agent_yaml_becomes_one_agent(void **state) {
    const struct folder *folder = *state;
    struct config *config =
        load(folder->agent,
             BREEDER "description: Knows Kyoto.\nframework: custom\nlanguage: c\ntags: [a]\n"
                     "model: {primary: claude-x, fallback: gpt-x, temperature: 0.7, "
                     "max_tokens: 9}\nprompts: {system: You guide.}\n"
                     "tools: [{ref: tools/web-fetch}, {name: calculator, approval: true}]\n"
                     "access: {visibility: team}\n" DEPLOY,
             NOTHING, LIST("OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k"));
    const struct config_agent *agent = &config->agents[0];
    assert_int_equal(config->agent_count, 1);
    assert_str(agent->slug, "kyoto-guide");
    assert_str(agent->description, "Knows Kyoto.");
    assert_str(agent->system, "You guide.");
    assert_model(&agent->model, "anthropic", "claude-x");
    assert_model(&agent->fallback[0], "openai", "gpt-x");
    assert_int_equal(agent->max_tokens, 9);
    assert_true(agent->temperature > 0.69 && agent->temperature < 0.71);
    assert_int_equal(agent->tool_count, 2);
    assert_str(agent->tools[0].name, "web_fetch");
    assert_false(agent->tools[0].optional);
    assert_int_equal(agent->tools[1].policy, CONFIG_TOOL_ASK);
    assert_str(config->agent.name, "kyoto-guide");
    assert_str(config->agent.version, "1.2.3");
    assert_str(config->agent.framework, "custom");
    assert_int_equal(config->warning_count, 1);
    assert_true(warned(config, "without a meaning here: access, deploy"));
    config_free(config);

    config =
        load(folder->agent, BREEDER "runtime: {language: go, framework: custom}\n" MODEL DEPLOY,
             LIST("--agent-name", "other"), LIST("OPENAI_API_KEY=k"));
    assert_str(config->agent.framework, "custom");
    assert_str(config->agent.name, "other");
    config_free(config);
}

static void keys_unknown_to_the_schema_of_agent_yaml_are_refused(void **state) {
    const struct folder *folder = *state;
    static const struct refusal cases[] = {
        {BREEDER "framework: custom\n" MODEL, ":1:1: an agent.yaml needs the key 'deploy'"},
        {BREEDER "framework: custom\na2a: {}\n" MODEL DEPLOY,
         ":6:1: an agent.yaml has no key 'a2a'"},
        {BREEDER MODEL DEPLOY, ":1:1: an agent.yaml has either 'framework' or 'runtime'"},
        {BREEDER "framework: custum\n" MODEL DEPLOY,
         ":5:12: 'custum' is not one of: langgraph, crewai, claude_sdk, openai_agents, "
         "google_adk, custom; did you mean 'custom'?"},
        {BREEDER "framework: crewai\nlanguage: c\n" MODEL DEPLOY,
         ":6:1: 'language' stands beside framework: custom"},
        {BREEDER "runtime: {language: cobol, framework: adk}\n" MODEL DEPLOY,
         ":5:21: 'cobol' is not one of: python, node, go, kotlin, rust, csharp"},
        {BREEDER "framework: custom\nmodel: {fallback: x}\n" DEPLOY,
         ":6:8: model needs the key 'primary'"},
        {BREEDER "framework: custom\nmodel: {primary: x/y, temperature: 2.5}\n" DEPLOY,
         ":6:36: a temperature is 0 to 2"},
        {BREEDER "framework: custom\nmodel: {primary: zzzzz/y}\n" DEPLOY,
         ":6:18: no provider is called 'zzzzz'"},
        {BREEDER "framework: custom\n" MODEL "deploy: {cloud: moon}\n",
         ":7:17: 'moon' is not one of: aws, azure"},
        {BREEDER "framework: custom\n" MODEL "deploy: {cloud: aws, moon: 1}\n",
         ":7:22: deploy has no key 'moon'"},
        {"name: K\nversion: 1.2.3\nteam: b\nowner: a@b\nframework: custom\n" MODEL DEPLOY,
         ":1:7: 'K' is not a name"},
        {"name: kk\nversion: '1.2'\nteam: b\nowner: a@b\nframework: custom\n" MODEL DEPLOY,
         ":2:10: '1.2' is not a version"},
        {"name: kk\nversion: 1.2.3\nteam: b\nowner: me\nframework: custom\n" MODEL DEPLOY,
         ":4:8: 'me' is not an e-mail address"},
        {BREEDER "framework: custom\ntools: [{}]\n" MODEL DEPLOY,
         ":6:9: a tool needs the key 'ref' or 'name'"},
    };
    refuse_all(folder->agent, cases, ARRAY_LEN(cases));
}

/* --- processes ---------------------------------------------------------------------------- */

static bool has_variable(const struct config_agent *agent, const char *variable) {
    for (size_t i = 0; i < agent->environment_count; i++) {
        if (str_equal(agent->environment[i], str_from(variable))) return true;
    }
    return false;
}

static void an_agent_can_be_a_program(void **state) {
    const struct folder *folder = *state;
    struct config *config =
        load(folder->file,
             "agents:\n"
             "  - {slug: a, kind: process, command: [python3, weir.yaml, none.py], model: m,\n"
             "     processes: 2, silence: 7s, environment: {A: one, B: , C: }}\n"
             "  - {slug: b, kind: process, command: [cat]}\n",
             NOTHING, LIST("PATH=/bin", "B=two", "OPENAI_API_KEY=k"));
    const struct config_agent *agent = &config->agents[0];
    assert_ptr_equal(agent->kind, agent_kind_find(STR("process")));
    assert_int_equal(agent->command_count, 3);
    assert_str(agent->command[1], folder->file); /* beside the file */
    assert_str(agent->command[2], "none.py");
    assert_str(agent->model.name, "m");
    assert_int_equal(agent->processes, 2);
    assert_int_equal(agent->silence_ms, 7000);
    assert_int_equal(agent->environment_count, 3);
    assert_true(has_variable(agent, "PATH=/bin") && has_variable(agent, "A=one") &&
                has_variable(agent, "B=two"));
    assert_int_equal(config->agents[1].processes, 4);
    assert_int_equal(config->agents[1].environment_count, 1);
    config_free(config);

    config = load(folder->agent, BREEDER "framework: custom\ncommand: [cat]\n" MODEL DEPLOY,
                  NOTHING, LIST("PATH=/bin"));
    assert_ptr_equal(config->agents[0].kind, agent_kind_find(STR("process")));
    assert_str(config->agents[0].command[0], "cat");
    assert_str(config->agents[0].model.name, "openai/gpt-x");
    config_free(config);
}

static void a_mistake_in_a_program_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"agents: [{slug: a, kind: process}]\n",
         ":1:10: an agent with kind: process needs the key 'command'"},
        {"agents: [{slug: a, provider: scripted, command: [x]}]\n",
         ":1:40: 'command' is of an agent with kind: process"},
        {"agents: [{slug: a, kind: proces, command: [x]}]\n",
         ":1:26: 'proces' is not one of: model, process, http, openai, converse, plugin; did "
         "you "
         "mean 'process'?"},
        {"agents: [{slug: a, kind: process, command: []}]\n",
         ":1:44: a command has 1 to 64 words"},
        {"agents: [{slug: a, kind: process, command: x}]\n", ":1:44: expected a list of words"},
        {"agents: [{slug: a, kind: process, command: [x], processes: 0}]\n",
         ":1:60: an agent has 1 to 256 processes"},
        {"agents: [{slug: a, kind: process, command: [x], environment: [A]}]\n",
         ":1:62: expected a map, such as {LOG_LEVEL: debug, API_KEY: }"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

/* --- servers ------------------------------------------------------------------------------ */

static void an_agent_can_be_a_server(void **state) {
    const struct folder *folder = *state;
    struct config *config = load(
        folder->file,
        "agents:\n"
        "  - {slug: a, kind: http, url: 'https://h/x/', key_env: K, silence: 7s, stream: "
        "false,\n"
        "     headers: {x-team: blue}, config: {n: 1}, metadata: {t: [a]}, history: input}\n"
        "  - {slug: b, kind: openai, url: 'http://h/v1', model: m, key_env: K}\n",
        NOTHING, LIST("K=a-canary"));
    const struct config_agent *agent = &config->agents[0];
    assert_ptr_equal(agent->kind, agent_kind_find(STR("http")));
    assert_str(agent->url, "https://h/x");
    assert_str(agent->key, "a-canary");
    assert_int_equal(agent->silence_ms, 7000);
    assert_false(agent->streams);
    assert_int_equal(agent->header_count, 1);
    assert_str(agent->headers[0].value, "blue");
    assert_str(agent->sent_config, "{\"n\":1}");
    assert_str(agent->sent_metadata, "{\"t\":[\"a\"]}");
    assert_int_equal(agent->history, CONFIG_HISTORY_INPUT);
    agent = &config->agents[1];
    assert_ptr_equal(agent->kind, agent_kind_find(STR("openai")));
    assert_str(agent->model.name, "m");
    assert_true(agent->streams);
    assert_int_equal(agent->history, CONFIG_HISTORY_SESSION);
    assert_int_equal(config->warning_count, 1); /* the key goes unencrypted */
    assert_true(str_find(config->warnings[0], STR("the key of agent 'b'")) <
                config->warnings[0].len);
    struct buf shown;
    buf_init(&shown, MIB);
    config_print(config, &shown);
    assert_true(str_find(buf_str(&shown),
                         STR("agents.a.url = https://h/x (http, no stream), header x-team set, "
                             "key set (K)\n")) < shown.len);
    assert_true(str_find(buf_str(&shown), STR("a-canary")) == shown.len);
    buf_done(&shown);
    config_free(config);
}

static void an_agent_can_be_a_runtime_elsewhere(void **state) {
    const struct folder *folder = *state;
    struct config *config = load(folder->file,
                                 "agents:\n"
                                 "  - {slug: a, kind: converse, address: "
                                 "'agents.example:4000', key_env: K, silence: 7s,\n"
                                 "     remote_agent: wally, stream_per_turn: true, tls: true}\n"
                                 "  - {slug: b, kind: converse, address: '[::1]'}\n",
                                 NOTHING, LIST("K=a-canary"));
    const struct config_agent *agent = &config->agents[0];
    assert_ptr_equal(agent->kind, agent_kind_find(STR("converse")));
    assert_str(agent->address, "agents.example:4000");
    assert_str(agent->remote_agent, "wally");
    assert_str(agent->key, "a-canary");
    assert_int_equal(agent->silence_ms, 7000);
    assert_true(agent->stream_per_turn && agent->tls);
    assert_false(config->agents[1].stream_per_turn);
    assert_int_equal(config->agents[1].key.len + config->agents[1].remote_agent.len, 0);
    assert_int_equal(config->warning_count, 0); /* the key signs; it is not sent */
    struct buf shown;
    buf_init(&shown, MIB);
    config_print(config, &shown);
    assert_true(
        str_find(buf_str(&shown),
                 STR("agents.a.address = agents.example:4000 (converse, TLS, a stream for "
                     "each turn, agent wally), key set (K)\n")) < shown.len);
    assert_true(str_find(buf_str(&shown), STR("agents.b.address = [::1] (converse)\n")) <
                shown.len);
    assert_true(str_find(buf_str(&shown), STR("a-canary")) == shown.len);
    buf_done(&shown);
    config_free(config);
}

static void a_mistake_in_a_runtime_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"agents: [{slug: a, kind: converse}]\n",
         ":1:10: an agent with kind: converse needs the key 'address'"},
        {"agents: [{slug: a, kind: converse, address: 'http://h'}]\n",
         ":1:45: address: 'http://h' is not an address; it is host:port"},
        {"agents: [{slug: a, kind: converse, address: 'h:0'}]\n",
         ":1:45: address: 'h:0' is not an address"},
        {"agents: [{slug: a, kind: converse, address: h, url: 'http://h'}]\n",
         ":1:48: 'url' is of an agent with kind: http, openai"},
        {"agents: [{slug: a, kind: http, url: 'http://h', address: h}]\n",
         ":1:49: 'address' is of an agent with kind: converse"},
        {"agents: [{slug: a, provider: scripted, stream_per_turn: true}]\n",
         ":1:40: 'stream_per_turn' is of an agent with kind: converse"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void a_mistake_in_a_server_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"agents: [{slug: a, kind: http}]\n",
         ":1:10: an agent with kind: http needs the key 'url'"},
        {"agents: [{slug: a, kind: http, url: ftp://h}]\n", ":1:37: url: it is not an address"},
        {"agents: [{slug: a, kind: openai, url: 'http://h', config: {a: 1}}]\n",
         ":1:51: 'config' is of an agent with kind: http, plugin"},
        {"agents: [{slug: a, provider: scripted, url: 'http://h'}]\n",
         ":1:40: 'url' is of an agent with kind: http, openai"},
        {"agents: [{slug: a, kind: http, url: 'http://h', api_key: x}]\n",
         ":1:49: a key never stands in the settings"},
        {"agents: [{slug: a, kind: http, url: 'http://h', history: all}]\n",
         ":1:58: 'all' is not one of: session, metadata, input"},
        {"agents: [{slug: a, kind: plugin, url: 'http://h'}]\n",
         ":1:34: 'url' is of an agent with kind: http, openai"},
        {"agents: [{slug: a, kind: plugin}]\n",
         ":1:10: an agent with kind: plugin needs the key 'library'"},
        {"agents: [{slug: a, kind: http, url: 'http://h', config: 7}]\n", ":1:57: expected"},
        {"agents: [{slug: a, kind: http, url: 'http://h', headers: {host: x}}]\n",
         ":1:59: the header 'host' is made by the request itself"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

static void a_key_that_an_agent_has_no_use_for_is_refused(void **state) {
    static const struct refusal cases[] = {
        {"agents: [{slug: a, kind: http, url: 'http://h', temperature: 0.5}]\n",
         ":1:49: 'temperature' does nothing for an agent with kind: http; remove it: its "
         "server "
         "has its own; what it should know goes under 'config', with each turn"},
        {"agents: [{slug: a, kind: http, url: 'http://h', instructions: be brief}]\n",
         ":1:49: 'instructions' does nothing for an agent with kind: http"},
        {"agents: [{slug: a, kind: http, url: 'http://h', tools: [calculator]}]\n",
         ":1:49: 'tools' does nothing for an agent with kind: http"},
        {"agents: [{slug: a, kind: http, url: 'http://h', model: m}]\n",
         ":1:49: 'model' does nothing for an agent with kind: http"},
        {"agents: [{slug: a, kind: openai, url: 'http://h', fallback: m}]\n",
         ":1:51: 'fallback' does nothing for an agent with kind: openai"},
        {"agents: [{slug: a, kind: converse, address: h, delegates: [a]}]\n",
         ":1:48: 'delegates' does nothing for an agent with kind: converse; remove it: its "
         "runtime has its own; set it there"},
        {"agents: [{slug: a, kind: process, command: [cat], max_tokens: 7}]\n",
         ":1:51: 'max_tokens' does nothing for an agent with kind: process; remove it: its "
         "program calls models by itself; tell it in 'environment'"},
        {"agents: [{slug: a, kind: plugin, library: x, top_p: 0.5}]\n",
         ":1:46: 'top_p' does nothing for an agent with kind: plugin"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

/* --- guardrails --------------------------------------------------------------------------- */

static void a_guardrail_is_a_rule_that_agents_name(void **state) {
    struct config *config = read_text(
        *state,
        "agents:\n  - {slug: a, provider: scripted, guardrails: [keys, pii_detection]}\n"
        "guardrails:\n"
        "  - {name: keys, pattern: 'sk-(\\w+)', replace: '<$1>', luhn: true}\n"
        "  - {name: words, type: keyword, pattern: 'a, b', action: warn, on: output}\n");
    const struct config_guardrail *rules = config->guardrails;
    assert_int_equal(config->guardrail_count, 2);
    assert_str(rules[0].rule.name, "keys");
    assert_str(rules[0].rule.pattern, "sk-(\\w+)");
    assert_str(rules[0].rule.replacement, "<$1>");
    assert_int_equal(rules[0].rule.action, GUARDRAIL_REDACT);
    assert_int_equal(rules[0].direction, CONFIG_GUARD_BOTH);
    assert_true(rules[0].rule.luhn);
    assert_int_equal(rules[1].rule.kind, GUARDRAIL_KEYWORD);
    assert_int_equal(rules[1].rule.action, GUARDRAIL_WARN);
    assert_int_equal(rules[1].direction, CONFIG_GUARD_OUTPUT);
    assert_null(rules[1].rule.replacement.at);
    assert_int_equal(config->agents[0].guardrail_count, 2);
    assert_str(config->agents[0].guardrails[1], "pii_detection");
    printed(config,
            "agents.a.guardrails = keys, pii_detection\n"
            "guardrails.keys = redact\n"
            "guardrails.words = warn\n",
            true);
    config_free(config);
}

static void a_mistake_in_a_guardrail_is_named_at_its_place(void **state) {
    static const struct refusal cases[] = {
        {"guardrails: [{name: a}]\n", ":1:14: a guardrail needs the key 'pattern'"},
        {"guardrails: [{name: a, pattern: '('}]\n",
         ":1:33: the pattern is wrong at byte 1: missing closing parenthesis"},
        {"guardrails: [{name: a, pattern: b, replace: $1}]\n",
         ":1:45: the replacement names the group '1'"},
        {"guardrails: [{name: a, pattern: b, action: drop}]\n",
         ":1:44: 'drop' is not one of: redact, block, warn"},
        {"guardrails: [{name: a, pattern: b}, {name: a, pattern: c}]\n",
         ":1:44: a second guardrail 'a'"},
        {"guardrails: [{name: pii_detection, pattern: c}]\n",
         ":1:21: pii_detection is the name of the built-in rules"},
        {"guardrails: [{name: keys, pattern: c}]\n"
         "agents: [{slug: a, provider: scripted, guardrails: [kyes]}]\n",
         ":2:53: no guardrail is called 'kyes'; did you mean 'keys'?"},
        {"agents: [{slug: a, provider: scripted, guardrails: [{name: x}]}]\n",
         ":1:53: a guardrail is named here"},
    };
    const struct folder *folder = *state;
    refuse_all(folder->file, cases, ARRAY_LEN(cases));
}

#define GUARDED BREEDER "framework: custom\n" MODEL DEPLOY "guardrails:\n"

static void the_guardrails_of_an_agent_yaml_are_rules_or_refused(void **state) {
    const struct folder *folder = *state;
    static const struct refusal cases[] = {
        {GUARDED "  - content_filter\n",
         ":9:5: guardrail 'content_filter' has no rule here; write - {name: content_filter, "},
        {GUARDED "  - {name: mine, endpoint: 'http://x', action: block}\n",
         ":9:5: guardrail 'mine' has no rule here"},
        {GUARDED "  - {name: mine, pattern: '('}\n", ":9:27: the pattern is wrong"},
        {GUARDED "  - {name: mine, ports: 1}\n", ":9:18: a guardrail has no key 'ports'"},
    };
    refuse_all(folder->agent, cases, ARRAY_LEN(cases));

    struct config *config =
        load(folder->agent,
             GUARDED "  - {name: pii_detection, action: block}\n"
                     "  - {name: content_filter, type: keyword, pattern: x}\n"
                     "  - hitl_approve\n"
                     "tools: [{name: calculator}]\n",
             NOTHING, LIST("OPENAI_API_KEY=k"));
    const struct config_agent *agent = &config->agents[0];
    assert_int_equal(agent->guardrail_count, GUARDRAIL_PERSONAL_COUNT + 1);
    assert_str(agent->guardrails[0], "default-pii-ssn");
    assert_int_equal(config->guardrails[0].rule.action, GUARDRAIL_BLOCK);
    assert_str(agent->guardrails[3], "content_filter");
    assert_int_equal(agent->tools[0].policy, CONFIG_TOOL_ASK);
    assert_false(warned(config, "guardrails"));
    config_free(config);

    config = load(folder->agent, GUARDED "  - content_filter\n  - pii_detection\n",
                  LIST("--agent-yaml-missing", "warn"), LIST("OPENAI_API_KEY=k"));
    assert_true(warned(config, "guardrail 'content_filter' has no rule here"));
    assert_int_equal(config->agents[0].guardrail_count, GUARDRAIL_PERSONAL_COUNT);
    config_free(config);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_can_be_a_program),
        cmocka_unit_test(a_mistake_in_a_program_is_named_at_its_place),
        cmocka_unit_test(an_agent_can_be_a_server),
        cmocka_unit_test(a_mistake_in_a_server_is_named_at_its_place),
        cmocka_unit_test(a_key_that_an_agent_has_no_use_for_is_refused),
        cmocka_unit_test(an_agent_can_be_a_runtime_elsewhere),
        cmocka_unit_test(a_mistake_in_a_runtime_is_named_at_its_place),
        cmocka_unit_test(a_guardrail_is_a_rule_that_agents_name),
        cmocka_unit_test(a_mistake_in_a_guardrail_is_named_at_its_place),
        cmocka_unit_test(the_guardrails_of_an_agent_yaml_are_rules_or_refused),
        cmocka_unit_test(a_provider_has_every_field_that_its_entry_says),
        cmocka_unit_test(a_mistake_in_a_provider_is_named_at_its_place),
        cmocka_unit_test(a_key_comes_from_a_variable_a_file_or_a_credential),
        cmocka_unit_test(the_key_of_a_vendor_is_not_sent_to_an_unknown_server),
        cmocka_unit_test(each_dialect_is_a_kind_and_knows_its_vendors_variables),
        cmocka_unit_test(a_key_is_printed_nowhere),
        cmocka_unit_test(known_providers_need_no_entry_and_listen_to_their_variables),
        cmocka_unit_test(a_model_alone_makes_one_agent_that_asks_it),
        cmocka_unit_test(the_usual_options_are_those_of_agents_without_any),
        cmocka_unit_test(a_budget_of_a_missing_agent_is_reported),
        cmocka_unit_test(an_unknown_model_is_refused),
        cmocka_unit_test(each_agent_gets_the_model_that_its_entry_means),
        cmocka_unit_test(without_providers_the_script_answers_as_ever),
        cmocka_unit_test(an_agent_has_every_field_that_its_entry_says),
        cmocka_unit_test(a_mistake_in_an_agent_is_named_at_its_place),
        cmocka_unit_test(every_mistake_of_every_list_is_found_at_once),
        cmocka_unit_test(every_mistake_of_one_agent_is_found_and_none_that_is_not_there),
        cmocka_unit_test(a_list_that_ends_with_a_mistake_has_what_it_counts),
        cmocka_unit_test(prices_and_budgets_are_whole_numbers_of_small_units),
        cmocka_unit_test(a_mistake_in_prices_or_budgets_is_named_at_its_place),
        cmocka_unit_test(dollars_are_read_to_the_last_nano),
        cmocka_unit_test(commands_are_set_up),
        cmocka_unit_test(tools_are_set_up_or_switched_off),
        cmocka_unit_test(a_connector_is_a_provider_or_this_machine),
        cmocka_unit_test(a_provider_of_that_name_beats_this_machine),
        cmocka_unit_test(a_mistake_in_a_connector_is_named_at_its_place),
        cmocka_unit_test(an_issuer_has_keys_of_a_url_or_a_file),
        cmocka_unit_test(a_mistake_in_an_issuer_is_named_at_its_place),
        cmocka_unit_test(an_agent_yaml_becomes_one_agent),
        cmocka_unit_test(keys_unknown_to_the_schema_of_agent_yaml_are_refused),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}

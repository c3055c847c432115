#include "config/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "cli/contracts.h"
#include "config/setting.h"
#include "contract/admin/options.h"
#include "contract/agentbreeder/options.h"
#include "contract/crawbl/options.h"
#include "contract/nimi/options.h"
#include "engine/engine.h"
#include "helper/test_folder.h"
#include "server/server.h"
#include "session/session.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NOTHING ((const char *const[]){NULL})

static bool try_load(const char *const *args, const char *const *environment, bool demo,
                     struct config **ret, struct err *e) {
    struct config_input input = {.args = args,
                                 .environment = environment,
                                 .demo = demo,
                                 .cpus = 3,
                                 .more = contract_rows,
                                 .more_ctx = &setting_contracts};
    while (args[input.arg_count]) input.arg_count++;
    e->text[0] = '\0';
    return config_load(&input, ret, e);
}

static struct config *load(const char *const *args, const char *const *environment) {
    struct err e;
    struct config *config;
    if (!try_load(args, environment, false, &config, &e)) fail_msg("%s", e.text);
    return config;
}

static void refused(const char *const *args, const char *const *environment, const char *why) {
    struct err e;
    struct config *config;
    assert_false(try_load(args, environment, false, &config, &e));
    if (!str_starts(err_text(&e), str_from(why))) fail_msg("'%s' is not '%s'", e.text, why);
}

static bool is(struct str text, const char *expected) {
    return str_equal(text, str_from(expected));
}

static bool warned(const struct config *config, const char *part) {
    for (size_t i = 0; i < config->warning_count; i++) {
        struct str warning = config->warnings[i];
        if (str_find(warning, str_from(part)) < warning.len) return true;
    }
    return false;
}

/* --- defaults ------------------------------------------------------------------------- */

static void nothing_said_means_the_defaults(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("HOME=/home/me"));
    assert_true(is(agentbreeder_options(config)->listen, "127.0.0.1:8080"));
    assert_true(is(crawbl_options(config)->listen, "127.0.0.1:42618"));
    assert_int_equal(nimi_options(config)->grpc.len, 0);
    assert_int_equal(nimi_options(config)->http.len, 0);
    assert_int_equal(admin_options(config)->address.len, 0);
    assert_true(is(config->data, "/home/me/.local/share/weir"));
    assert_int_equal(config->durability, STORE_FULL);
    assert_int_equal(config->threads, 3);
    assert_true(config->reflection);
    assert_false(crawbl_options(config)->lenient);
    assert_true(is(agentbreeder_options(config)->workspace, "default"));
    assert_int_equal(agentbreeder_options(config)->history, BROUGHT_MERGE);
    assert_int_equal(config->session.busy, SESSION_QUEUE);
    assert_int_equal(config->log.level, LOG_INFO);
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

static void the_limits_are_those_of_the_parts_that_keep_them(void **state) {
    (void)state;
    struct config *config = load(NOTHING, NOTHING);
    assert_int_equal(config->limits.message_bytes, 4 * MIB);
    assert_int_equal(config->limits.body_bytes, 8 * MIB);
    assert_int_equal(config->limits.heartbeat_ms, 15000);
    assert_int_equal(crawbl_options(config)->token_window_ms, 300000);
    const struct server_limits *server = &server_limits_default;
    assert_int_equal(config->limits.server.fields_max, server->fields_max);
    assert_int_equal(config->limits.server.fields_max_bytes, server->fields_max_bytes);
    assert_int_equal(config->limits.server.target_max_bytes, server->target_max_bytes);
    assert_int_equal(config->limits.server.streams_max, server->streams_max);
    assert_int_equal(config->limits.server.streams_max_stranger, server->streams_max_stranger);
    assert_int_equal(config->limits.server.connections_max, server->connections_max);
    assert_int_equal(config->limits.server.connection_max_bytes, server->connection_max_bytes);
    assert_int_equal(config->limits.server.header_timeout_ms, server->header_timeout_ms);
    assert_int_equal(config->limits.server.write_stall_ms, server->write_stall_ms);
    assert_int_equal(config->limits.server.idle_timeout_ms, server->idle_timeout_ms);
    assert_int_equal(config->limits.server.keepalive_ms, server->keepalive_ms);
    assert_int_equal(config->limits.server.keepalive_timeout_ms, server->keepalive_timeout_ms);
    assert_int_equal(config->limits.server.ping_apart_ms, server->ping_apart_ms);
    const struct run_limits *run = &run_limits_default;
    assert_int_equal(config->limits.run.model_calls_max, run->model_calls_max);
    assert_int_equal(config->limits.run.tool_calls_max, run->tool_calls_max);
    assert_int_equal(config->limits.run.tools_at_once, run->tools_at_once);
    assert_int_equal(config->limits.run.tool_max_ms, run->tool_max_ms);
    assert_int_equal(config->limits.run.reply_max_bytes, run->reply_max_bytes);
    assert_int_equal(config->limits.run.memory_max_bytes, run->memory_max_bytes);
    assert_int_equal(config->limits.run.result_max_bytes, run->result_max_bytes);
    assert_int_equal(config->limits.run.pace_max_bytes, run->pace_max_bytes);
    assert_int_equal(config->limits.run.turn_max_ms, run->turn_max_ms);
    config_free(config);
}

static void the_data_folder_follows_xdg_and_needs_no_home(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("HOME=/h", "XDG_DATA_HOME=/xdg"));
    assert_true(is(config->data, "/xdg/weir"));
    config_free(config);
    config = load(NOTHING, LIST("HOME=/h", "XDG_DATA_HOME=relative"));
    assert_true(is(config->data, "/h/.local/share/weir"));
    config_free(config);
    config = load(NOTHING, NOTHING);
    assert_true(is(config->data, "/var/lib/weir"));
    config_free(config);
}

static void PORT_opens_the_http_listener_to_the_world(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("PORT=9000", "AGENT_AUTH_TOKEN=t"));
    assert_true(is(agentbreeder_options(config)->listen, "0.0.0.0:9000"));
    assert_int_equal(config->warning_count, 0);
    config_free(config);
    config = load(NOTHING, LIST("PORT=9000", "WEIR_HTTP=127.0.0.1:1"));
    assert_true(is(agentbreeder_options(config)->listen, "127.0.0.1:1"));
    config_free(config);
    config = load(NOTHING, LIST("PORT="));
    assert_true(is(agentbreeder_options(config)->listen, "127.0.0.1:8080"));
    config_free(config);
    refused(NOTHING, LIST("PORT=http"), "PORT: '0.0.0.0:http' has no port");
    refused(NOTHING, LIST("PORT=70000"), "PORT: '0.0.0.0:70000' has no port");
}

static void a_signing_key_opens_the_grpc_listener_but_not_that_of_the_demo(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=k"));
    assert_true(is(crawbl_options(config)->listen, ":42618"));
    config_free(config);

    struct err e;
    assert_true(try_load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=k"), true, &config, &e));
    assert_true(is(crawbl_options(config)->listen, "127.0.0.1:42618"));
    config_free(config);

    config = load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=k", "CRAWBL_GRPC_LISTEN=10.0.0.1:1"));
    assert_true(is(crawbl_options(config)->listen, "10.0.0.1:1"));
    config_free(config);
}

/* --- precedence ----------------------------------------------------------------------- */

static void flags_beat_environment_beats_file_beats_defaults(void **state) {
    struct folder *folder = *state;
    write_file(folder->file, "listen:\n  http: 127.0.0.1:1\n  grpc: 127.0.0.1:1\n"
                             "  nimi_grpc: 127.0.0.1:1\n");
    struct config *config = load(LIST("-c", folder->file, "--http", "127.0.0.1:3"),
                                 LIST("WEIR_HTTP=127.0.0.1:2", "WEIR_GRPC=127.0.0.1:2"));
    assert_true(is(agentbreeder_options(config)->listen, "127.0.0.1:3"));
    assert_true(is(crawbl_options(config)->listen, "127.0.0.1:2"));
    assert_true(is(nimi_options(config)->grpc, "127.0.0.1:1"));
    assert_true(nimi_options(config)->http.len == 0);

    struct buf out;
    buf_init(&out, MIB);
    config_print(config, &out);
    static const char *const lines[] = {
        "listen.http = 127.0.0.1:3 (--http)\n", "listen.grpc = 127.0.0.1:2 (WEIR_GRPC)\n",
        "listen.nimi_http = off (default)\n",   "listen.admin = off (default)\n",
        "limits.idle = 5m (default)\n",         "store.durability = full (default)\n",
        "tokens.strict = false (default)\n"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        assert_true(str_find(buf_str(&out), str_from(lines[i])) < out.len);
    buf_done(&out);
    config_free(config);
}

static void our_own_variable_beats_the_familys(void **state) {
    (void)state;
    struct config *config =
        load(NOTHING, LIST("NIMI_RUNTIME_HTTP_ADDR=127.0.0.1:1", "WEIR_NIMI_HTTP=127.0.0.1:2"));
    assert_true(is(nimi_options(config)->http, "127.0.0.1:2"));
    config_free(config);
    config = load(NOTHING, LIST("CRAWBL_ENABLE_REFLECTION=false"));
    assert_false(config->reflection);
    config_free(config);
}

static void flags_come_in_every_usual_form(void **state) {
    (void)state;
    struct config *config =
        load(LIST("--http=off", "--lenient", "--sticky=false", "one", "-v", "--limit-idle",
                  "90s", "--limit-body=1MiB", "-", "--", "--two", "-c"),
             NOTHING);
    assert_int_equal(agentbreeder_options(config)->listen.len, 0);
    assert_true(crawbl_options(config)->lenient);
    assert_false(crawbl_options(config)->sticky);
    assert_int_equal(config->log.level, LOG_DEBUG);
    assert_int_equal(config->limits.server.idle_timeout_ms, 90000);
    assert_int_equal(config->limits.body_bytes, MIB);
    assert_int_equal(config->operand_count, 4);
    assert_true(is(config->operands[0], "one"));
    assert_true(is(config->operands[1], "-"));
    assert_true(is(config->operands[2], "--two"));
    config_free(config);

    config = load(LIST("--help", "--nonsense"), NOTHING);
    assert_true(config->help);
    config_free(config);
}

/* --- the file ------------------------------------------------------------------------- */

static void the_file_sets_everything_and_lists_agents(void **state) {
    struct folder *folder = *state;
    write_file(folder->file,
               "data: here\nscript: play.yaml\n"
               "listen: {http: \"unix:/run/weir.sock\", admin: off, grpc: \"[::1]:0\"}\n"
               "store: {durability: normal}\n"
               "tokens: {strict: true}\n"
               "converse: {lenient: true, errors_as_text: true, sticky: true, on_disconnect: "
               "detach}\n"
               "http: {workspace: acme, on_disconnect: detach-for=1m}\n"
               "limits: {idle: 1m, tools_at_once: 2, keepalive: off}\n"
               "session: {busy: reject}\n"
               "log:\n"
               "agents:\n"
               "  - {slug: manager, system: You lead., delegates: [wally], thinking: true}\n"
               "  - {slug: wally, model: big, tools: [look]}\n");
    struct config *config = load(LIST("--config", folder->file), NOTHING);
    struct buf path;
    buf_init(&path, KIB);
    buf_printf(&path, "%s/play.yaml", folder->path);
    assert_true(str_equal(config->script, buf_str(&path))); /* from where the file stands */
    buf_done(&path);
    assert_true(is(agentbreeder_options(config)->listen, "unix:/run/weir.sock"));
    assert_true(is(crawbl_options(config)->listen, "[::1]:0"));
    assert_int_equal(config->durability, STORE_NORMAL);
    assert_true(crawbl_options(config)->strict && crawbl_options(config)->lenient);
    assert_true(crawbl_options(config)->errors_as_text && crawbl_options(config)->sticky);
    assert_true(is(agentbreeder_options(config)->workspace, "acme"));
    assert_int_equal(crawbl_options(config)->on_disconnect.how, LEAVING_DETACHES);
    assert_int_equal(crawbl_options(config)->on_disconnect.for_ms, 0);
    assert_int_equal(agentbreeder_options(config)->on_disconnect.for_ms, 60000);
    assert_int_equal(config->limits.server.idle_timeout_ms, 60000);
    assert_int_equal(config->limits.run.tools_at_once, 2);
    assert_int_equal(config->session.busy, SESSION_REJECT);
    assert_int_equal(config->agent_count, 2);
    assert_true(is(config->agents[0].system, "You lead."));
    assert_true(config->agents[0].thinking && config->agents[0].all_tools);
    assert_true(is(config->agents[0].delegates[0], "wally"));
    assert_false(config->agents[1].all_tools);
    assert_true(is(config->agents[1].tools[0].name, "look"));
    config_free(config);
}

static void a_mistake_in_the_file_is_named_at_its_place(void **state) {
    struct folder *folder = *state;
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"listn: {}", ":1:1: no setting is called 'listn'; did you mean 'listen'?"},
        {"listen:\n  htttp: off",
         ":2:3: no setting is called 'listen.htttp'; did you mean 'http'?"},
        {"listen: off", ":1:9: 'listen' is a map of settings"},
        {"mcpServers: {}",
         ":1:1: no setting is called 'mcpServers'; MCP servers are a list of the "
         "section mcp (docs/tools.md)"},
        {"listen.http: off", ":1:1: no setting is called 'listen.http'"},
        {"listen: {http: [a]}", ":1:16: 'listen.http' is one value, not a list"},
        {"listen: {http: 8080}", ":1:16: listen.http: '8080' has no port; write host:port, "
                                 "[v6]:port, unix:/path or off"},
        {"store: {durability: ful}", ":1:21: store.durability: 'ful'; did you mean 'full'?"},
        {"limits: {idle: 30}", ":1:16: limits.idle: '30' has no unit"},
        {"limits: {idle: 1us}",
         ":1:16: limits.idle: '1us' is not a whole number of milliseconds"},
        {"limits: {streams: 1e3}", ":1:19: limits.streams: '1e3' is not a whole number"},
        {"tokens: {strict: maybe}", ":1:18: tokens.strict: 'maybe' is neither true nor false"},
        {"tokens: {key_file: nothere}", ":1:20: tokens.key_file: read '"},
        {"http: {on_disconnect: detach-for=30}",
         ":1:23: http.on_disconnect: 'detach-for=30' has no time such as 30s; say cancel, "
         "detach"},
        {"http: {history: stric}", ":1:17: http.history: 'stric'; did you mean 'strict'?"},
        {"http: {workspace: 'a:b'}", ":1:19: http.workspace: 'a:b' is not an id"},
        {"data: \"a\\nb\"", ":1:7: data: it holds a control character"},
        {"[a]", ":1:1: expected settings"},
        {"agents: {}", ":1:9: expected a list of agents"},
        {"agents: [{slug: a, delegates: [b]}]", ":1:32: no agent is called 'b'"},
        {"agents: [{slug: researcher, delegates: [reserch]}]",
         ":1:41: no agent is called 'reserch'; did you mean 'researcher'?"},
        {"agents: [{slug: a}, {slug: a}]", ":1:21: a second agent 'a'"},
        {"agents: [{slg: a}]", ":1:11: an agent has no key 'slg'; did you mean 'slug'?"},
        {"agents: [{slug: a, tools: x}]", ":1:27: expected a list of names"},
        {"agents: [{slug: a, provider: big}]",
         ":1:30: no provider is called 'big'; list it under 'providers'"},
        {"session: {busy: interupt}",
         ":1:17: session.busy: 'interupt'; did you mean 'interrupt'?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf why;
        buf_init(&why, KIB);
        buf_printf(&why, "%s%s", folder->file, cases[i].why);
        buf_append_byte(&why, '\0');
        write_file(folder->file, cases[i].text);
        refused(LIST("-c", folder->file), NOTHING, why.at);
        buf_done(&why);
    }
    refused(LIST("-c", "/nowhere.yaml"), NOTHING,
            "read '/nowhere.yaml': there is no such file");
    refused(NOTHING, LIST("WEIR_CONFIG=/nowhere.yaml"), "read '/nowhere.yaml'");
}

/* --- mistakes elsewhere --------------------------------------------------------------- */

static void a_mistake_on_the_command_line_names_the_flag(void **state) {
    (void)state;
    refused(LIST("--htpt", "x"), NOTHING, "no flag is called --htpt; did you mean --http?");
    refused(LIST("--zzzzzz"), NOTHING, "no flag is called --zzzzzz; see --help");
    refused(LIST("-x"), NOTHING, "no flag is called -x; see --help");
    refused(LIST("--http"), NOTHING, "--http needs a value");
    refused(LIST("--http", "--grpc"), NOTHING, "--http needs a value");
    refused(LIST("-c"), NOTHING, "--config needs a value");
    refused(LIST("--http="), NOTHING, "--http: '' has no port");
    refused(LIST("--data="), NOTHING, "--data: it is empty");
    refused(LIST("--http", "8080"), NOTHING, "--http: '8080' has no port");
    refused(LIST("--http", "a b:1"), NOTHING, "--http: 'a b:1' names no host");
    refused(LIST("--http", "::1:80"), NOTHING, "--http: '::1:80' names no host");
    refused(LIST("--http", "x:65536"), NOTHING,
            "--http: 'x:65536' has no port from 0 to 65535");
    refused(LIST("--http", "unix:"), NOTHING, "--http: 'unix:' has a path that is empty");
    refused(LIST("--threads", "0"), NOTHING, "threads: 0 is not from 1 to 256");
    refused(LIST("--threads", "-1"), NOTHING, "--threads: '-1' is not a whole number");
    refused(LIST("--limit-write-stall", "0"), NOTHING,
            "limits.write_stall: 0 lets nothing through; leave it at 30s");
    refused(NOTHING, LIST("CRAWBL_MCP_ENDPOINT=orchestrator:7171"),
            "CRAWBL_MCP_ENDPOINT: it is no URL; write it like");
    refused(NOTHING, LIST("CRAWBL_MCP_ENDPOINT=http://me:secret@o/mcp"),
            "CRAWBL_MCP_ENDPOINT: it names a user or a password; leave");
    refused(NOTHING, LIST("CRAWBL_USER_ID=a:b"), "CRAWBL_USER_ID: 'a:b' is not an id");
}

static void every_mistake_is_found_when_all_are_wanted(void **state) {
    struct folder *folder = *state;
    write_file(folder->file, "listn: {}\nlisten:\n  htttp: off\n  grpc: 7\ndata: here\n"
                             "agents: {}\n");
    struct config_input input = {.args = LIST("-c", folder->file, "--threads", "many"),
                                 .arg_count = 4,
                                 .environment = LIST("PORT=http"),
                                 .collect = true,
                                 .more = contract_rows,
                                 .more_ctx = &setting_contracts};
    struct config *config;
    struct err e;
    static const char *const places[] = {
        ":1:1: no setting", ":3:3: no setting", ":4:9: listen.grpc",
        ":6:9: expected",   "PORT: ",           "--threads: "};
    assert_true(config_load(&input, &config, &e));
    assert_int_equal(config->problem_count, ARRAY_LEN(places));
    for (size_t i = 0; i < ARRAY_LEN(places); i++)
        assert_true(str_find(config->problems[i], str_from(places[i])) <
                    config->problems[i].len);
    config_free(config);
}

static void a_key_that_can_be_guessed_is_warned_of(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=short"));
    assert_true(warned(config, "the signing key has 5 bytes and can be guessed; use 16 or"));
    config_free(config);
    config = load(LIST("--mcp-endpoint", "http://house/mcp"), NOTHING);
    assert_true(warned(config, "the MCP endpoint is not asked: there is no signing key"));
    config_free(config);
    config = load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=one-of-16-bytes!"));
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

static void limits_that_contradict_each_other_are_warned_of(void **state) {
    (void)state;
    struct config *config =
        load(LIST("--limit-reply", "32MiB", "--nimi-slots-per-app", "9"), NOTHING);
    assert_int_equal(config->warning_count, 2);
    assert_true(warned(config, "limits.reply is more than limits.run and never counts"));
    assert_true(warned(config, "nimi.slots_per_app is more than nimi.slots"));
    config_free(config);
    config = load(LIST("--nimi-slots", "0"), NOTHING); /* no limit */
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

static void an_address_may_be_a_port_alone(void **state) {
    (void)state;
    struct config *config = load(LIST("--nimi-grpc", "127.0.0.1:0", "--admin", ":1"), NOTHING);
    assert_int_equal(config->warning_count, 0);
    assert_true(is(admin_options(config)->address, ":1"));
    config_free(config);
}

static void a_variable_that_is_not_read_is_noticed(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("WEIR_HTPP=off", "WEIR_SOMETHING_ELSE=1"));
    assert_true(warned(config, "nothing reads WEIR_HTPP; did you mean WEIR_HTTP?"));
    assert_int_equal(config->warning_count, 1);
    config_free(config);
}

/* --- secrets -------------------------------------------------------------------------- */

static void secrets_come_from_the_environment_or_from_files(void **state) {
    struct folder *folder = *state;
    char variable[128], text[160];
    write_file(folder->other, "s3cret-of-16-bytes\n");
    snprintf(variable, sizeof(variable), "CRAWBL_MCP_SIGNING_KEY_FILE=%s", folder->other);
    struct config *config = load(NOTHING, LIST(variable));
    assert_true(is(crawbl_options(config)->key, "s3cret-of-16-bytes"));
    assert_int_equal(config->warning_count, 0); /* the line end of a file is no surprise */
    config_free(config);

    config = load(NOTHING, LIST(variable, "CRAWBL_MCP_SIGNING_KEY=other"));
    assert_true(is(crawbl_options(config)->key, "other"));
    assert_true(warned(config, "CRAWBL_MCP_SIGNING_KEY_FILE is not read"));
    config_free(config);

    snprintf(text, sizeof(text), "tokens: {key_file: other, auth_token_file: %s}\n",
             folder->other);
    write_file(folder->file, text);
    config = load(LIST("-c", folder->file), LIST("AGENT_AUTH_TOKEN=mine"));
    assert_true(is(crawbl_options(config)->key, "s3cret-of-16-bytes"));
    assert_true(is(agentbreeder_options(config)->token, "mine"));
    config_free(config);

    refused(NOTHING, LIST("AGENT_AUTH_TOKEN_FILE=/nowhere"),
            "AGENT_AUTH_TOKEN_FILE: read '/nowhere': there is no such file");
}

static void white_space_around_a_secret_is_removed_and_said(void **state) {
    (void)state;
    struct config *config =
        load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY= k \n", "AGENT_AUTH_TOKEN=\tt"));
    assert_true(is(crawbl_options(config)->key, "k"));
    assert_true(is(agentbreeder_options(config)->token, "t"));
    assert_true(warned(config, "white space around CRAWBL_MCP_SIGNING_KEY was removed"));
    assert_true(warned(config, "white space around AGENT_AUTH_TOKEN was removed"));
    config_free(config);
    refused(NOTHING, LIST("AGENT_AUTH_TOKEN=  "),
            "AGENT_AUTH_TOKEN: it holds nothing but white");
    refused(NOTHING, LIST("AGENT_AUTH_TOKEN=a b"), "AGENT_AUTH_TOKEN holds a space");
}

static void a_secret_is_never_printed(void **state) {
    (void)state;
    struct config *config =
        load(NOTHING, LIST("CRAWBL_MCP_SIGNING_KEY=hush1 ",
                           "CRAWBL_MCP_SIGNING_KEY_PREVIOUS=hush2", "AGENT_AUTH_TOKEN=hush3"));
    struct buf out;
    buf_init(&out, MIB);
    config_print(config, &out);
    assert_true(str_find(buf_str(&out), STR("hush")) == out.len);
    assert_true(str_find(buf_str(&out),
                         STR("tokens.key_file = set (CRAWBL_MCP_SIGNING_KEY)\n")) < out.len);
    assert_false(warned(config, "hush"));
    buf_done(&out);
    config_free(config);

    struct err e;
    assert_false(try_load(LIST("--signing-key=hush"), NOTHING, false, &config, &e));
    assert_null(strstr(e.text, "hush"));
    assert_false(try_load(NOTHING, LIST("AGENT_AUTH_TOKEN=hush hush"), false, &config, &e));
    assert_null(strstr(e.text, "hush"));
}

static void an_open_door_is_warned_of_with_the_fix(void **state) {
    (void)state;
    struct config *config = load(LIST("--http", "0.0.0.0:1"), NOTHING);
    assert_true(warned(config, "listening on 0.0.0.0:1 without AGENT_AUTH_TOKEN"));
    assert_true(warned(config, "export AGENT_AUTH_TOKEN="));
    config_free(config);
    config = load(LIST("--grpc", ":1"), NOTHING);
    assert_true(warned(config, "listening on :1 without CRAWBL_MCP_SIGNING_KEY"));
    config_free(config);
    config = load(LIST("--http", "unix:/x", "--grpc", "[::1]:1"), NOTHING);
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

/* --- help ----------------------------------------------------------------------------- */

static void the_example_is_a_file_that_works(void **state) {
    (void)state;
    struct config *config = load(LIST("-c", "examples/weir.yaml"), LIST("HOME=/h"));
    assert_true(is(config->script, "examples/hello.yaml"));
    assert_int_equal(config->agent_count, 2);
    assert_int_equal(config->warning_count, 0);
    config_free(config);
}

static bool same(const char *one, const char *other) {
    return one && other && strcmp(one, other) == 0;
}

static void each_name_belongs_to_one_setting_that_has_a_sentence(void **state) {
    (void)state;
    struct config *config = load(NOTHING, LIST("HOME=/h"));
    const struct setting *rows = config->settings;
    for (size_t i = 0; i < config->setting_count; i++) {
        const struct setting *row = &rows[i];
        assert_true(row->key && row->key[0] && row->help && row->help[0] && row->width);
        assert_true(row->env[0]);
        for (size_t other = 0; other < i; other++) {
            assert_false(same(row->key, rows[other].key));
            assert_false(same(row->flag, rows[other].flag));
            assert_false(same(row->flag, rows[other].also.flag));
            for (size_t n = 0; n < SETTING_ENV_MAX; n++)
                assert_false(same(row->env[0], rows[other].env[n]));
            assert_int_not_equal(row->offset, rows[other].offset);
        }
    }
    config_free(config);
}

static void help_tells_each_flag_with_its_variable_and_default(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, MIB);
    struct config *config = load(NOTHING, LIST("HOME=/h"));
    config_help(config, &out);
    config_free(config);
    static const char *const parts[] = {
        "--http ADDR", "[WEIR_HTTP, PORT; default 127.0.0.1:8080", "--lenient ",
        "-c, --config PATH", "[CRAWBL_MCP_SIGNING_KEY, CRAWBL_MCP_SIGNING_KEY_FILE;"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        assert_true(str_find(buf_str(&out), str_from(parts[i])) < out.len);
    assert_true(buf_ok(&out));
    buf_done(&out);
}

static void the_page_of_the_docs_holds_the_table_as_it_is(void **state) {
    (void)state;
    struct buf page, table;
    struct err e;
    buf_init(&page, MIB);
    buf_init(&table, MIB);
    if (!file_read(STR("docs/config.md"), &page, &e)) fail_msg("%s", e.text);
    struct config *config = load(NOTHING, LIST("HOME=/h"));
    config_help_markdown(config, &table);
    config_free(config);
    if (str_find(buf_str(&page), buf_str(&table)) == page.len)
        fail_msg("docs/config.md is behind; its table should be:\n" STR_FMT,
                 STR_ARG(buf_str(&table)));
    buf_done(&page);
    buf_done(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_means_the_defaults),
        cmocka_unit_test(the_limits_are_those_of_the_parts_that_keep_them),
        cmocka_unit_test(the_data_folder_follows_xdg_and_needs_no_home),
        cmocka_unit_test(PORT_opens_the_http_listener_to_the_world),
        cmocka_unit_test(a_signing_key_opens_the_grpc_listener_but_not_that_of_the_demo),
        cmocka_unit_test(flags_beat_environment_beats_file_beats_defaults),
        cmocka_unit_test(our_own_variable_beats_the_familys),
        cmocka_unit_test(flags_come_in_every_usual_form),
        cmocka_unit_test(the_file_sets_everything_and_lists_agents),
        cmocka_unit_test(a_mistake_in_the_file_is_named_at_its_place),
        cmocka_unit_test(a_mistake_on_the_command_line_names_the_flag),
        cmocka_unit_test(every_mistake_is_found_when_all_are_wanted),
        cmocka_unit_test(an_address_may_be_a_port_alone),
        cmocka_unit_test(a_key_that_can_be_guessed_is_warned_of),
        cmocka_unit_test(limits_that_contradict_each_other_are_warned_of),
        cmocka_unit_test(a_variable_that_is_not_read_is_noticed),
        cmocka_unit_test(secrets_come_from_the_environment_or_from_files),
        cmocka_unit_test(white_space_around_a_secret_is_removed_and_said),
        cmocka_unit_test(a_secret_is_never_printed),
        cmocka_unit_test(an_open_door_is_warned_of_with_the_fix),
        cmocka_unit_test(the_example_is_a_file_that_works),
        cmocka_unit_test(each_name_belongs_to_one_setting_that_has_a_sentence),
        cmocka_unit_test(help_tells_each_flag_with_its_variable_and_default),
        cmocka_unit_test(the_page_of_the_docs_holds_the_table_as_it_is),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}

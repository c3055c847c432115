/* The operator's own tools in the section `tools`. */
#include "config/config.h"

#include "helper/assert_str.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const environment[] = {"PATH=/usr/bin:/bin", "CRM_KEY=very-secret",
                                          "BROKEN=a\nb", "LEVEL=high", NULL};

static char file[64];

static int make_file(void **state) {
    (void)state;
    strcpy(file, "/tmp/weir-own-tools-test-XXXXXX");
    int fd = mkstemp(file);
    return fd < 0 || close(fd) != 0;
}

static int drop_file(void **state) {
    (void)state;
    return unlink(file);
}

static bool try_load(const char *text, struct config **ret, struct err *e) {
    const char *args[] = {"-c", file};
    struct config_input input = {
        .args = args, .arg_count = 2, .environment = environment, .cpus = 1};
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return config_load(&input, ret, e);
}

static struct config *load(const char *text) {
    struct config *config;
    struct err e;
    if (!try_load(text, &config, &e)) fail_msg("%s", e.text);
    return config;
}

static bool has(const struct str *list, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(list[i], str_from(text))) return true;
    }
    return false;
}

static void a_program_has_every_field_that_its_entry_says(void **state) {
    (void)state;
    struct config *config =
        load("tools:\n  greet:\n    description: Greets.\n    command: [sh, -c, cat]\n"
             "    environment: {WORD: hello, LEVEL: }\n"
             "    parameters: {type: object, properties: {name: {type: string}}}\n"
             "    answer: json\n    pick: output\n    output: 2KiB\n    timeout: 5s\n"
             "    at_once: 3\n    idempotent: true\n    agents: [a, b]\n    policy: ask\n"
             "  plain: {description: Plain., command: [cat]}\n");
    const struct config_own_tool *tool = &config->tools.own[0];
    assert_int_equal(config->tools.own_count, 2);
    assert_str(tool->name, "greet");
    assert_str(tool->description, "Greets.");
    assert_str(tool->parameters,
               "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}");
    assert_int_equal(tool->command_count, 3);
    assert_str(tool->command[2], "cat");
    assert_true(has(tool->environment, tool->environment_count, "WORD=hello"));
    assert_true(has(tool->environment, tool->environment_count, "LEVEL=high"));
    assert_true(has(tool->environment, tool->environment_count, "PATH=/usr/bin:/bin"));
    assert_false(has(tool->environment, tool->environment_count, "CRM_KEY=very-secret"));
    assert_int_equal(tool->answer, TOOL_OUTPUT_JSON);
    assert_str(tool->pick, "output");
    assert_int_equal(tool->output_bytes, 2 * KIB);
    assert_int_equal(tool->at_once, 3);
    assert_int_equal(tool->idempotent, CONFIG_REPEAT_HARMLESS);
    assert_int_equal(tool->agent_count, 2);
    assert_str(config->tools.policies[0].name, "greet");
    assert_int_equal(config->tools.policies[0].policy, CONFIG_TOOL_ASK);
    assert_int_equal(config->tools.policies[0].timeout_ms, 5000);
    tool = &config->tools.own[1];
    assert_str(tool->parameters, "{\"type\":\"object\"}");
    assert_int_equal(tool->output_bytes, MIB);
    assert_int_equal(tool->at_once, 16);
    assert_int_equal(tool->agent_count, 0);
    assert_int_equal(config->tools.policies[1].policy, CONFIG_TOOL_ALLOW);
    config_free(config);
}

static void a_request_has_every_field_that_its_entry_says(void **state) {
    (void)state;
    struct config *config = load(
        "tools:\n  crm:\n    description: Asks.\n    url: https://crm.example/u/{id}\n"
        "    query: {q: '{q}', k: '{env:CRM_KEY}'}\n    headers: {x-user: '{call:user}'}\n"
        "    body: {to: '{id}', n: 1, in: [x, '{q}', true]}\n    key_env: CRM_KEY\n"
        "    public_only: true\n"
        "    parameters: {type: object, properties: {id: {}, q: {}}}\n"
        "  look: {description: Looks., url: 'http://127.0.0.1:1/', method: DELETE, query: {}}\n"
        "  plain: {description: Plain., url: 'http://127.0.0.1:1/'}\n");
    const struct config_own_tool *tool = &config->tools.own[0];
    assert_str(tool->method, "POST");
    assert_str(tool->url, "https://crm.example/u/{id}");
    assert_int_equal(tool->query_count, 2);
    assert_str(tool->query[1].name, "k");
    assert_str(tool->query[1].value, "{env:CRM_KEY}");
    assert_str(tool->headers[0].name, "x-user");
    assert_str(tool->body, "{\"to\":\"{id}\",\"n\":1,\"in\":[\"x\",\"{q}\",true]}");
    assert_str(tool->key, "very-secret");
    assert_int_equal(tool->secret_count, 1);
    assert_str(tool->secrets[0].name, "CRM_KEY");
    assert_str(tool->secrets[0].value, "very-secret");
    assert_true(tool->public_only);
    assert_true(tool->has_query);
    assert_str(config->tools.own[1].method, "DELETE");
    assert_true(config->tools.own[1].has_query);
    assert_int_equal(config->tools.own[1].query_count, 0);
    assert_str(config->tools.own[2].method, "GET");
    assert_false(config->tools.own[2].has_query);
    struct buf out;
    buf_init(&out, MIB);
    config_print(config, &out);
    assert_true(str_find(buf_str(&out), STR("tools.crm = POST https://crm.example/u/{id}, key "
                                            "set\n")) < out.len);
    assert_int_equal(str_find(buf_str(&out), STR("very-secret")), out.len);
    buf_done(&out);
    config_free(config);
}

#define A_TOOL "tools:\n  t:\n    description: D.\n    "
#define A_REQUEST A_TOOL "url: http://x/\n    "
#define A_PROGRAM A_TOOL "command: [cat]\n    "

/* Looking for mistakes needs no key. */
static void a_variable_that_is_not_set_is_warned_of(void **state) {
    (void)state;
    struct config *config = load(A_REQUEST "headers: {x: '{env:NOPE} {env:NOPE}'}\n");
    assert_int_equal(config->tools.own[0].secret_count, 1);
    assert_int_equal(config->tools.own[0].secrets[0].value.len, 0);
    assert_str(config->warnings[config->warning_count - 1],
               "a tool needs the variable NOPE, which is not set: its calls fail; set it, or "
               "name a file in NOPE_FILE");
    config_free(config);
}

static void a_mistake_in_a_tool_is_named_at_its_place(void **state) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"tools: {t: {command: [cat]}}",
         ":1:12: a tool of your own needs the key 'description'"},
        {"tools: {t: {description: D.}}",
         ":1:9: a tool of your own needs either 'command' or 'url'"},
        {A_PROGRAM "url: http://x/\n",
         ":2:3: a tool of your own needs either 'command' or 'url'"},
        {A_PROGRAM "method: GET\n", ":5:5: a program has no 'method'"},
        {A_PROGRAM "key_env: A\n", ":5:5: a program has no 'key_env'"},
        {A_REQUEST "environment: {A: b}\n", ":5:5: only a program has an environment"},
        {A_PROGRAM "tmeout: 1s\n",
         ":5:5: a tool of your own has no key 'tmeout'; did you mean 'timeout'?"},
        {A_PROGRAM "output: 17MiB\n", ":5:13: an answer has 1B to 16MiB"},
        {A_PROGRAM "output: 0B\n", ":5:13: an answer has 1B to 16MiB"},
        {A_PROGRAM "at_once: 0\n", ":5:14: 1 to 1000 calls may be made at once"},
        {A_PROGRAM "timeout: 0s\n", ":5:14: a call needs some time"},
        {A_PROGRAM "answer: yaml\n", ":5:13: 'yaml' is not one of: auto, json, text"},
        {A_PROGRAM "policy: never\n", ":2:3: 't' has no settings here"},
        {A_PROGRAM "parameters: {type: thing}\n", ":5:17: "},
        {A_PROGRAM "agents: a\n", ":5:13: expected a list of agents"},
        {A_TOOL "command: []\n", ":4:14: a command has 1 to 64 words"},
        {A_TOOL "url: ftp://x/\n", ":4:10: url: it is not an address"},
        {A_TOOL "url: http://{id}/\n", ":4:10: '{id}' is not one of the parameters"},
        {A_TOOL "url: http://{env:CRM_KEY}/\n",
         ":4:10: url: the host must stand there as it is"},
        {A_TOOL "url: http://x/{\n", ":4:10: a '{' has no '}'"},
        {A_REQUEST "query: {a: '{b}'}\n", ":5:16: '{b}' is not one of the parameters"},
        {A_REQUEST "query: [a]\n", ":5:12: expected parameters as a map"},
        {A_REQUEST "headers: {x: '{env:BROKEN}'}\n",
         ":5:18: BROKEN: it holds a space or a character that no header carries"},
        {A_REQUEST "headers: {'x y': a}\n", ":5:15: 'x y' is not a header name"},
        {A_REQUEST "headers: {host: a}\n", ":5:15: the header 'host' is made by the request"},
        {A_REQUEST "body: {a: ['{nope}']}\n", ":5:16: '{nope}' is not one of the parameters"},
        {A_REQUEST "body: {a: '{call:me}'}\n", ":5:15: there is no '{call:me}'"},
        {A_REQUEST "method: HAED\n", ":5:13: 'HAED' is not one of: GET"},
        {"tools: {calculator: {description: D., command: [cat]}}",
         ":1:9: weir brings a tool of that name; choose another"},
        {"tools: {transfer_to_agent: {description: D., command: [cat]}}",
         ":1:9: weir brings a tool of that name; choose another"},
        {"tools: {'a.b': {description: D., command: [cat]}}",
         ":1:9: a tool's name has 1 to 64 letters, digits, '-' and '_'"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config *config;
        struct err e;
        if (try_load(cases[i].text, &config, &e)) fail_msg("'%s' was taken", cases[i].text);
        struct str why = str_skip(err_text(&e), strlen(file));
        if (!str_starts(why, str_from(cases[i].why)))
            fail_msg("%s\n'" STR_FMT "' is not '%s'", cases[i].text, STR_ARG(why),
                     cases[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_has_every_field_that_its_entry_says),
        cmocka_unit_test(a_request_has_every_field_that_its_entry_says),
        cmocka_unit_test(a_variable_that_is_not_set_is_warned_of),
        cmocka_unit_test(a_mistake_in_a_tool_is_named_at_its_place),
    };
    return cmocka_run_group_tests(tests, make_file, drop_file);
}

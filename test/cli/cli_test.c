/* Command lines that need no daemon: which command is selected, which mistakes are refused
 * before anything is done, and what the reading commands print. Data goes to stdout, messages
 * to stderr. */
#include "cli/command.h"

static struct said said;

/* --- which command ------------------------------------------------------------------------ */

static void help_is_data_and_names_every_command(void **state) {
    (void)state;
    static const char *const asks[] = {"--help", "-h", "help"};
    static const char *const names[] = {"serve",  "run",      "init",   "provider",  "tool",
                                        "usage",  "sessions", "token",  "approvals", "config",
                                        "doctor", "version",  "agent",  "validate",  "chat",
                                        "runs",   "logs",     "agents", "status",    "stop"};
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
        weir(&said, NULL, asks[i]);
        assert_int_equal(said.code, EXIT_DONE);
        assert_string_equal(said.err, "");
        for (size_t j = 0; j < ARRAY_LEN(names); j++) {
            char line[32];
            snprintf(line, sizeof(line), "\n  weir %s ", names[j]);
            assert_has(said.out, line);
        }
    }
}

static void every_command_explains_itself(void **state) {
    (void)state;
    static const char *const names[] = {"serve",  "run",      "init",     "provider",  "tool",
                                        "usage",  "sessions", "token",    "approvals", "config",
                                        "doctor", "agent",    "validate", "chat",      "runs",
                                        "logs",   "agents",   "status",   "stop"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char first[32];
        weir(&said, NULL, names[i], "--help");
        assert_int_equal(said.code, EXIT_DONE);
        assert_string_equal(said.err, "");
        snprintf(first, sizeof(first), "weir %s", names[i]);
        assert_memory_equal(said.out, first, strlen(first));
        weir(&said, NULL, names[i], "-h");
        assert_int_equal(said.code, EXIT_DONE);
    }
}

static size_t lines_of(const char *text) {
    size_t count = 0;
    for (; *text; text++) count += *text == '\n';
    return count;
}

static void
all_settings_are_in_the_help_of_a_daemon_and_few_in_that_of_other_commands(void **state) {
    (void)state;
    static const char *const names[] = {"status", "usage", "run", "chat", "token", "migrate"};
    weir(&said, NULL, "serve", "--help");
    assert_has(said.out, "  --nimi-grpc ");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        weir(&said, NULL, names[i], "--help");
        assert_has(said.out, "weir serve --help lists them");
        assert_has(said.out, "  -c, --config PATH");
        assert_has(said.out, "[WEIR_DATA; default $XDG_DATA_HOME/weir]\n");
        assert_null(strstr(said.out, "  --nimi-grpc "));
        assert_true(lines_of(said.out) < 45);
        weir(&said, NULL, "help", names[i], "--words"); /* all may be typed */
        assert_has(said.out, "\n--nimi-grpc\t");
    }
}

static void a_version_is_one_line(void **state) {
    (void)state;
    char line[64];
    weir(&said, NULL, "version");
    assert_int_equal(said.code, EXIT_DONE);
    assert_memory_equal(said.out, "weir ", 5);
    assert_true(strchr(said.out, '\n') == said.out + strlen(said.out) - 1);
    snprintf(line, sizeof(line), "%.63s", said.out);
    weir(&said, NULL, "--version");
    assert_string_equal(said.out, line);
    weir(&said, NULL, "version", "--json");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "{\"name\":\"weir\",\"version\":\"");
}

/* --- what is refused ---------------------------------------------------------------------- */

/* A line of up to six words, and what stderr says. */
static const struct {
    const char *words[6];
    const char *says;
} wrong[] = {
    {{"sesions"}, "no command 'sesions'; did you mean 'sessions'?"},
    {{"frobnicate"}, "no command 'frobnicate'\nweir --help lists them."},
    {{"version", "now"}, "weir version takes only --json"},
    {{"version", "--json", "now"}, "weir version takes only --json"},
    {{"serve", "surplus"}, "takes no argument 'surplus'; name the file with -c"},
    {{"serve", "--htpp", "off"}, "did you mean --http?"},
    {{"run"}, "there is no message\nweir run \""},
    {{"token"}, "say what to do: new or check\nweir token new"},
    {{"token", "frobnicate"}, "'frobnicate' is unknown\nweir token new"},
    {{"token", "chek", "x"}, "did you mean 'weir token check'?"},
    {{"token", "check"}, "the token is missing\nweir token new"},
    {{"token", "check", "x", "y"}, "'y' is one argument too many\nweir token new"},
    {{"token", "new", "surplus"}, "'surplus' is one argument too many\nweir token new"},
    {{"token", "new", "--user"}, "weir token new"},
    {{"token", "new", "--usr", "x"}, "did you mean --user?"},
    {{"token", "new", "--user"}, "--user needs a value"},
    {{"token", "new", "--demo=yes"}, "--demo takes no value"},
    {{"tool"}, "say what to do: list, call or accept\nweir tool list"},
    {{"tool", "lst"}, "weir tool list"},
    {{"tool", "list", "a", "b"}, "'b' is one argument too many\nweir tool list"},
    {{"tool", "list", "--agent", "a"}, "--agent does not belong here; weir tool list AGENT"},
    {{"tool", "call", "calculator", "{}", "--json"},
     "--json does not belong here; only weir tool list"},
    {{"tool", "call"}, "the name of a tool is missing\nweir tool list"},
    {{"tool", "call", ""}, "the name of a tool is missing\nweir tool list"},
    {{"tool", "call", "calculator", "["}, "the arguments: JSON 1:2"},
    {{"tool", "call", "calculator", "5"}, "must be a JSON object, not a number"},
    {{"tool", "call", "calculator", "{}"}, "its arguments do not fit: "},
    {{"tool", "call", "calculator", "{}", "--agent"}, "weir tool list"},
    {{"tool", "accept"}, "the name of a tool is missing\nweir tool list"},
    {{"agent"}, "say what to do: list\nweir agent list"},
    {{"agent", "lst"}, "weir agent list"},
    {{"agent", "list", "surplus"}, "'surplus' is one argument too many\nweir agent list"},
    {{"provider"}, "say what to do: list or test\nweir provider list"},
    {{"provider", "list", "x"}, "'x' is one argument too many\nweir provider list"},
    {{"provider", "tests"}, "'tests' is unknown; did you mean 'test'?"},
    {{"provider", "test"}, "the name of a provider is missing\nweir provider list"},
    {{"provider", "test", "nope"}, "no provider is called 'nope'\nweir provider list "},
    {{"config"}, "say what to do: check or print\nweir config check"},
    {{"config", "--json"}, "say what to do: check or print\nweir config check"},
    {{"config", "chekc"}, "'chekc' is unknown; did you mean 'check'?\nweir config check"},
    {{"config", "check", ""}, "the name of the file is empty\nweir config check"},
    {{"config", "check", "/dev/null", "x"}, "'x' is one argument too many\nweir config check"},
    {{"config", "print", "-c", "/nonexistent"}, "there is no such file; check the name"},
    {{"doctor", "surplus"}, "'surplus' is one argument too many\nweir doctor"},
    {{"health", "surplus"}, "'surplus' is one argument too many\nweir health"},
    {{"migrate", "surplus"}, "'surplus' is one argument too many\nweir migrate"},
    {{"orchestrate", "surplus"}, "'surplus' is one argument too many\nweir orchestrate"},
    {{"watch"}, "METHOD (such as StreamScenario) is missing\nweir watch"},
    {{"watch", "a", "{}", "b"}, "'b' is one argument too many\nweir watch"},
    {{"doctor", "--jsn"}, "did you mean --json?"},
    {{"init", "--frob"}, "no flag is called --frob\nweir init"},
    {{"init", "a", "b"}, "'b' is one argument too many\nweir init"},
    {{"init", ""}, "the name of the folder is missing\nweir init"},
    {{"usage", "surplus"}, "'surplus' is one argument too many\nweir usage"},
    {{"runs", "surplus"}, "'surplus' is one argument too many\nweir runs"},
    {{"runs", "--state", "faild"}, "did you mean 'failed'?\nweir runs"},
    {{"logs", "1", "--after", "x"}, "--after: 'x' is no id of an event; it looks like 7-42"},
    {{"logs"}, "the id of a run (weir runs lists them) is missing\nweir logs"},
    {{"audit", "list", "x"}, "'x' is one argument too many\nweir audit"},
    {{"audit", "--since", "yesterday"}, "'yesterday' is not a time; write 2026-01-31"},
    {{"audit", "--limit", "0"}, "--limit: '0' is not a number above 0"},
    {{"audit", "export", "--format", "xml"}, "it is ndjson or json"},
    {{"chat", "--thinking", "loud"}, "--thinking must be shown, folded or hidden\nweir chat"},
    {{"validate", "--profile", "x"}, "there is no profile 'x'; there are: "},
    {{"usage", "--by"}, "weir usage"},
    {{"usage", "--bi", "day"}, "did you mean --by?"},
    {{"sessions", "export"}, "the id of a session (weir sessions lists them) is missing\n"},
    {{"sessions", "delete", ""}, "the id of a session (weir sessions lists them) is missing\n"},
    {{"sessions", "delet", "x"}, "'delet' is unknown; did you mean 'delete'?"},
    {{"sessions", "list", "--usr=x"}, "did you mean --user?"},
    {{"sessions", "list", "--user"}, "weir sessions [list]"},
    {{"sessions", "list", "--workspac", "w"}, "did you mean --workspace?"},
    {{"approvals", "approve"},
     "the id of an approval (weir approvals lists them) is missing\n"},
    {{"approvals", "perhaps", "1-1"}, "weir approvals approve ID"},
    {{"approvals", "list", "1-1"}, "'1-1' is one argument too many\nweir approvals [list]"},
    {{"approvals", "approve", "1-1", "--args"}, "weir approvals approve ID"},
    {{"approvals", "approve", "1-1", "--args", "5"}, "must be a JSON object, not a number"},
    {{"approvals", "approve", "1-1", "--args", "{"}, "--args is no JSON"},
    {{"approvals", "approve", "1-1", "--reason", "r"},
     "only weir approvals refuse gives one\n"},
    {{"approvals", "refuse", "1-1", "--args", "{}"}, "only weir approvals approve takes "},
    {{"status", "--url", "ftp://x"}, "--url (WEIR_URL) must be the address of a daemon, "},
    {{"runs", "--url", "http://127.0.0.1:99999"}, "not 'http://127.0.0.1:99999'"},
    {{"chat", "--url", "http://[::1"}, "not 'http://[::1'"},
    {{"logs", "1", "--url", "http://:80"}, "not 'http://:80'"},
    {{"stop", "--url", "unix:"}, "not 'unix:'"},
};

static void wrong_usage_is_exit_code_2_with_a_word_on_stderr_and_no_data(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const char *const *words = wrong[i].words;
        weir(&said, NULL, words[0], words[1], words[2], words[3], words[4], words[5]);
        if (said.code != EXIT_USAGE) fail_msg("row %zu: exit code %d", i, said.code);
        assert_string_equal(said.out, "");
        assert_has(said.err, wrong[i].says);
        assert_memory_equal(said.err, "weir: error: ", strlen("weir: error: "));
    }
}

/* --- a daemon that cannot be asked -------------------------------------------------------- */

static const char *const askers[] = {"approvals", "sessions", "usage"};

static const struct {
    const char *http, *says;
} nowhere[] = {
    {"off",
     "(listen.http is off), so the daemon cannot be asked; give it one, or name the one "},
    {"127.0.0.1:0", "name the one it took with --http HOST:PORT"},
    {"unix:/nowhere/socket",
     "ask the daemon at unix:/nowhere/socket (is it running?): no server "},
    {"127.0.0.1:1", "ask the daemon at http://127.0.0.1:1 (is it running?)"},
    {"127.0.0.1:1", "; start it with weir serve, or name another one with --url\n"},
};

static void a_daemon_that_cannot_be_asked_is_a_failure_that_says_why(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(askers) * ARRAY_LEN(nowhere); i++) {
        weir(&said, NULL, askers[i % ARRAY_LEN(askers)], "--http",
             nowhere[i / ARRAY_LEN(askers)].http);
        assert_int_equal(said.code, EXIT_FAILED);
        assert_string_equal(said.out, "");
        assert_memory_equal(said.err, "weir: error: ", 13);
        assert_has(said.err, nowhere[i / ARRAY_LEN(askers)].says);
    }
}

/* --- tokens ------------------------------------------------------------------------------- */

static const char *const key[] = {"CRAWBL_MCP_SIGNING_KEY", "a key for these tests", NULL};
static const char *const other_key[] = {"CRAWBL_MCP_SIGNING_KEY", "another key for them", NULL};

static void a_token_names_its_subject_to_a_holder_of_the_key(void **state) {
    (void)state;
    char token[1024];
    weir(&said, key, "token", "new", "--user", "ann", "--workspace", "acme");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.err, "");
    said.out[strcspn(said.out, "\n")] = '\0';
    snprintf(token, sizeof(token), "%.1000s", said.out);
    weir(&said, key, "token", "check", token);
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "valid: user ann, workspace acme\n");
    weir(&said, key, "token", "check", token, "--json");
    assert_has(said.out, "{\"user\":\"ann\",\"workspace\":\"acme\",\"unix_s\":");
    weir(&said, other_key, "token", "check", token);
    assert_int_equal(said.code, EXIT_FAILED);
    assert_string_equal(said.out, "");
    assert_has(said.err, "weir: error: the token is ");
}

/* A check makes nothing; a new token makes the demo's key, once. */
static void without_a_key_the_demo_makes_its_own(void **state) {
    (void)state;
    char token[1024];
    weir(&said, NULL, "token", "check", "x");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err,
               "set CRAWBL_MCP_SIGNING_KEY, or have `weir token new` make the demo's");
    weir(&said, NULL, "token", "new");
    assert_int_equal(said.code, EXIT_DONE);
    said.out[strcspn(said.out, "\n")] = '\0';
    snprintf(token, sizeof(token), "%.1000s", said.out);
    weir(&said, NULL, "token", "check", token);
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "valid: user demo, workspace demo\n");
}

/* --- what is there ------------------------------------------------------------------------ */

static void tools_and_providers_are_listed(void **state) {
    (void)state;
    weir(&said, NULL, "tool", "list");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "\nfile_read ");
    weir(&said, NULL, "tool", "list", "--json");
    assert_has(said.out, "{\"tools\":[{\"name\":\"");
    weir(&said, NULL, "tool", "list", "--model", "openai/gpt-5-mini");
    assert_has(said.out, "\ncalculator ");
    weir(&said, NULL, "agent", "list");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "manager\n  model      scripted\n  tools      web_search (script)\n");
    weir(&said, NULL, "agent", "list", "--json");
    assert_has(said.out, "{\"agents\":[{\"name\":\"manager\"");
    weir(&said, NULL, "tool", "list", "managr");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err, "no agent is called 'managr'; did you mean 'manager'?");
    weir(&said, NULL, "provider", "list");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "key missing (OPENAI_API_KEY)");
}

static void a_tool_is_tried_by_itself(void **state) {
    (void)state;
    weir(&said, NULL, "tool", "call", "calculator", "{\"expression\":\"6*7\"}");
    assert_int_equal(said.code, EXIT_DONE);
    assert_string_equal(said.out, "{\"expression\":\"6*7\",\"result\":42}\n");
    weir(&said, NULL, "tool", "call", "calculator", "{\"expression\":\"6*\"}");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_string_equal(said.out, "");
    weir(&said, NULL, "tool", "call", "calculater");
    assert_int_equal(said.code, EXIT_FAILED);
    assert_has(said.err, "no tool is called 'calculater'; did you mean 'calculator'?");
    weir(&said, NULL, "tool", "call", "web_search"); /* the demo's script has it */
    assert_has(said.err, "its arguments do not fit");
}

/* The key is there, and is not shown. */
static void a_key_is_shown_only_as_being_there(void **state) {
    (void)state;
    static const char *const keys[] = {"OPENAI_API_KEY", "sk-very-secret", NULL};
    weir(&said, keys, "provider", "list");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "OPENAI_API_KEY");
    assert_null(strstr(said.out, "key missing (OPENAI_API_KEY)"));
    assert_null(strstr(said.out, "sk-very"));
    assert_null(strstr(said.err, "sk-very"));
}

static void settings_are_printed_with_where_they_come_from(void **state) {
    (void)state;
    static const char *const variables[] = {"CRAWBL_GRPC_LISTEN", "off", "AGENT_AUTH_TOKEN",
                                            "s3cret", NULL};
    weir(&said, variables, "config", "print", "--http", "127.0.0.1:9999");
    assert_int_equal(said.code, EXIT_DONE);
    assert_has(said.out, "listen.http = 127.0.0.1:9999 (--http)\n");
    assert_has(said.out, "listen.grpc = off (CRAWBL_GRPC_LISTEN)\n");
    assert_has(said.out, "listen.admin = off (default)\n");
    assert_null(strstr(said.out, "s3cret"));
}

static void a_file_of_settings_is_checked_with_the_place_of_each_mistake(void **state) {
    (void)state;
    char path[96];
    snprintf(path, sizeof(path), "%s/weir.yaml", home);
    weir(&said, NULL, "init", home);
    assert_int_equal(said.code, EXIT_DONE);
    weir(&said, NULL, "init", home); /* what is there is left alone */
    assert_int_equal(said.code, EXIT_FAILED);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("listen:\n  htttp: off\n", file);
    fclose(file);
    weir(&said, NULL, "config", "check", path);
    assert_int_equal(said.code, EXIT_USAGE);
    assert_string_equal(said.out, "");
    assert_has(said.err, "weir.yaml:2:3");
    assert_has(said.err, "did you mean");
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("listen: {http: off}\n", file);
    fclose(file);
    weir(&said, NULL, "config", "check", path);
    assert_int_equal(said.code, EXIT_DONE);
    weir(&said, NULL, "config", "check", "/nonexistent");
    assert_int_equal(said.code, EXIT_USAGE);
    assert_string_equal(said.err,
                        "read '/nonexistent': there is no such file; check the name\n");
}

static void a_folder_that_cannot_be_looked_at_is_not_said_to_have_no_daemon(void **state) {
    (void)state;
    char lock[96];
    snprintf(lock, sizeof(lock), "%s/weir.lock", home);
    weir(&said, NULL, "status", "--data", home, "--http", "127.0.0.1:1");
    assert_int_equal(said.code, EXIT_UNREACHABLE);
    assert_has(said.out, "no daemon has the data folder ");
    assert_int_equal(symlink("/nowhere", lock), 0); /* root may read everything else */
    weir(&said, NULL, "status", "--data", home, "--http", "127.0.0.1:1");
    assert_int_equal(said.code, EXIT_UNREACHABLE);
    assert_has(said.out, "whether a daemon has the data folder is not known: ");
    assert_has(said.out, "/weir.lock cannot be read: ");
    assert_null(strstr(said.out, "no daemon has the data folder "));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, home_setup, home_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(help_is_data_and_names_every_command),
        TEST(every_command_explains_itself),
        TEST(all_settings_are_in_the_help_of_a_daemon_and_few_in_that_of_other_commands),
        TEST(a_version_is_one_line),
        TEST(wrong_usage_is_exit_code_2_with_a_word_on_stderr_and_no_data),
        TEST(a_daemon_that_cannot_be_asked_is_a_failure_that_says_why),
        TEST(a_folder_that_cannot_be_looked_at_is_not_said_to_have_no_daemon),
        TEST(a_token_names_its_subject_to_a_holder_of_the_key),
        TEST(without_a_key_the_demo_makes_its_own),
        TEST(tools_and_providers_are_listed),
        TEST(a_tool_is_tried_by_itself),
        TEST(a_key_is_shown_only_as_being_there),
        TEST(settings_are_printed_with_where_they_come_from),
        TEST(a_file_of_settings_is_checked_with_the_place_of_each_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

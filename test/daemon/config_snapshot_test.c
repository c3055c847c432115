#include "daemon/config_snapshot.h"

#include "helper/assert_str.h"
#include "helper/test_folder.h"

#include "base/mem.h"
#include "cli/contracts.h"
#include "contract/agentbreeder/contract.h"
#include "contract/crawbl/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SCRIPT                                                                                 \
    "script: 1\n"                                                                              \
    "agents: [{slug: manager}]\n"                                                              \
    "tools: [{name: open_drawer, result: {found: ink}}]\n"                                     \
    "scenes: [{reply: hello}]\n"

static struct config *load(const struct folder *folder, const char *settings) {
    const char *args[] = {"-c", folder->file};
    const char *environment[] = {"HOME=/h", "CRAWBL_MCP_SIGNING_KEY=k", NULL};
    struct config_input input = {.args = args,
                                 .arg_count = 2,
                                 .environment = environment,
                                 .cpus = 1,
                                 .more = contract_rows,
                                 .more_ctx = &contracts};
    struct config *config;
    struct err e;
    write_file(folder->other, SCRIPT);
    write_file(folder->file, settings);
    if (!config_load(&input, &config, &e)) fail_msg("%s", e.text);
    return config;
}

static struct config_snapshot *make(struct config *config) {
    struct config_snapshot *snapshot;
    struct err e;
    struct config_snapshot_options options = {
        .config = config, .owns_config = true, .contracts = &contracts};
    if (!config_snapshot_new(&options, &snapshot, &e)) fail_msg("%s", e.text);
    return snapshot;
}

static void a_snapshot_hands_each_setting_to_the_part_that_keeps_it(void **state) {
    const struct folder *folder = *state;
    struct config_snapshot *snapshot = make(
        load(folder,
             "script: other\n"
             "session: {busy: reject}\n"
             "converse: {workspace: w, user: u, sticky: true, lenient: true}\n"
             "http: {workspace: h}\n"
             "approvals: {deadline: 3s, expires: approve}\n"
             "limits: {message: 1KiB, body: 2KiB, body_grace: 2s, body_rate: 100B, lag: 3KiB,\n"
             "         heartbeat: 4s, write_stall: 5s, tool_output: 60B, turn: 7s}\n"
             "agents: [{slug: clerk, tools: [open_drawer], thinking: true}]\n"));
    const struct engine *engine = &snapshot->engine;
    assert_int_equal(engine->agent_count, 1);
    assert_str(engine->agents[0].slug, "clerk");
    assert_true(engine->agents[0].shows_thinking);
    assert_int_equal(agent_tool_policy(&engine->agents[0], STR("open_drawer")), TOOL_ALLOW);
    assert_int_equal(agent_tool_policy(&engine->agents[0], STR("other")), TOOL_HIDDEN);
    assert_int_equal(engine->limits.pace_max_bytes, 3 * KIB);
    assert_int_equal(engine->limits.result_max_bytes, 60);
    assert_int_equal(engine->limits.turn_max_ms, 7000);
    assert_int_equal(engine->limits.approval_max_ms, 3000);
    assert_true(engine->limits.approval_expires_yes);
    const struct crawbl_settings *crawbl = config_snapshot_settings(snapshot, &crawbl_contract);
    const struct converse_settings *converse = &crawbl->converse;
    assert_true(crawbl->secured);
    assert_ptr_equal(converse->guard.keys, crawbl->keys);
    assert_str(converse->guard.workspace, "w");
    assert_str(converse->guard.user, "u");
    assert_true(converse->sticky && converse->lenient);
    assert_int_equal(converse->busy, SESSION_REJECT);
    assert_int_equal(converse->message_max_bytes, KIB);
    assert_int_equal(converse->stall_ms, 5000);
    const struct agentbreeder_settings *breeder =
        config_snapshot_settings(snapshot, &agentbreeder_contract);
    const struct guest_settings *runtime = &breeder->runtime.guest;
    assert_str(runtime->workspace, "h");
    assert_int_equal(runtime->rules.busy, SESSION_REJECT);
    assert_int_equal(runtime->body_max_bytes, 2 * KIB);
    assert_int_equal(runtime->body_stretch_ms, 2000);
    assert_int_equal(runtime->body_stretch_bytes, 200);
    assert_int_equal(runtime->rules.heartbeat_ms, 4000);
    assert_int_equal(runtime->rules.stall_ms, 5000);
    config_snapshot_unref(snapshot);
}

/* A sanitizer sees who used it afterwards, and that it went at all. */
static void a_snapshot_lives_as_long_as_its_engine_is_referenced(void **state) {
    const struct folder *folder = *state;
    struct config_snapshot *snapshot = make(load(folder, "script: other\n"));
    struct engine *engine = engine_ref(&snapshot->engine);
    config_snapshot_unref(snapshot);
    assert_str(engine->agents[0].slug, "manager");
    engine_unref(engine);
}

static void contradicting_settings_make_no_snapshot(void **state) {
    const struct folder *folder = *state;
    static const struct {
        const char *settings, *why;
    } cases[] = {
        {"script: nothere.yaml\n", "read '"},
        {"script: other\nagents: [{slug: a, tools: [open_drawr]}]\n",
         ":2:28: no tool is called 'open_drawr'; did you mean 'open_drawer'?"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config_snapshot *snapshot;
        struct err e;
        struct config_snapshot_options options = {.config = load(folder, cases[i].settings),
                                                  .owns_config = true};
        assert_false(config_snapshot_new(&options, &snapshot, &e));
        struct str text = err_text(&e); /* with the name of the file before its place */
        if (str_starts(text, str_from(folder->file)))
            text = str_skip(text, strlen(folder->file));
        if (!str_starts(text, str_from(cases[i].why))) fail_msg("%s", e.text);
    }
}

static void only_what_a_start_reads_needs_a_restart(void **state) {
    const struct folder *folder = *state;
    struct config *before = load(folder, "limits: {idle: 1m, turn: 1m}\n");
    struct config *same = load(folder, "limits: {idle: 60s, turn: 2m}\nlog: {level: debug}\n");
    struct config *other =
        load(folder, "limits: {idle: 2m}\nlisten: {http: off}\nthreads: 3\ndata: there\n");
    struct buf out;
    buf_init(&out, KIB);
    config_snapshot_needs_restart(before, same, &out);
    assert_str(buf_str(&out), "");
    config_snapshot_needs_restart(before, other, &out);
    assert_str(buf_str(&out), "listen.http, data, threads, limits.idle");
    buf_done(&out);
    config_free(before);
    config_free(same);
    config_free(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_hands_each_setting_to_the_part_that_keeps_it),
        cmocka_unit_test(a_snapshot_lives_as_long_as_its_engine_is_referenced),
        cmocka_unit_test(contradicting_settings_make_no_snapshot),
        cmocka_unit_test(only_what_a_start_reads_needs_a_restart),
    };
    return cmocka_run_group_tests(tests, test_folder_setup, test_folder_teardown);
}

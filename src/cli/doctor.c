#include "cli/doctor.h"
#include "cli/cli.h"
#include "contract/agentbreeder/options.h"
#include "contract/crawbl/options.h"
#include "daemon/team.h"

#include <stdio.h>

#define KEY_GOOD_BYTES 32
#define OUT_MAX_BYTES (1 * MIB)

#define NEW_KEY "export CRAWBL_MCP_SIGNING_KEY=$(openssl rand -hex 32)"
#define NEW_TOKEN "export AGENT_AUTH_TOKEN=$(openssl rand -hex 32)"

static const char usage[] =
    "weir doctor [-c FILE] [--json]\n\n"
    "Look at this machine and at the settings with the eyes of weir serve: settings, script,\n"
    "ports, open files, memory, clock, keys, speech, commands, store and disk. Each bad line\n"
    "ends with a command to copy. Nothing is changed. Exit code 1: something is bad.\n";

static const char *const finding_names[] = {
    [FINDING_GOOD] = "good", [FINDING_NOTE] = "note", [FINDING_BAD] = "bad"};

void doctor_say(struct doctor *doctor, enum finding finding, const char *what, const char *fix,
                const char *format, ...) {
    struct buf text;
    va_list values;
    buf_init(&text, 16 * KIB);
    va_start(values, format);
    buf_vprintf(&text, format, values);
    va_end(values);
    if (finding == FINDING_BAD) doctor->bad++;
    if (doctor->json) {
        struct json_writer *json = &doctor->writer;
        json_open_object(json);
        json_member_str(json, "what", str_from(what));
        json_member_str(json, "finding", str_from(finding_names[finding]));
        json_member_str(json, "text", buf_str(&text));
        if (fix) json_member_str(json, "fix", str_from(fix));
        json_close(json);
    } else {
        buf_printf(&doctor->out, "%-5s %-9s " STR_FMT, finding_names[finding], what,
                   STR_ARG(buf_str(&text)));
        buf_printf(&doctor->out, "%s%s\n", fix ? "; try: " : "", fix ? fix : "");
    }
    buf_done(&text);
}

/* --- settings ----------------------------------------------------------------------------- */

static void check_settings(struct doctor *doctor) {
    const struct config *config = doctor->config;
    struct str file = config->file.len ? config->file : STR("no file, defaults");
    char fix[512];
    snprintf(fix, sizeof(fix), "weir config check " STR_FMT, STR_ARG(config->file));
    for (size_t i = 0; i < config->problem_count; i++)
        doctor_say(doctor, FINDING_BAD, "settings", fix, STR_FMT, STR_ARG(config->problems[i]));
    for (size_t i = 0; i < config->warning_count; i++)
        doctor_say(doctor, FINDING_NOTE, "settings", NULL, STR_FMT,
                   STR_ARG(config->warnings[i]));
    if (config->problem_count == 0)
        doctor_say(doctor, FINDING_GOOD, "settings", NULL, STR_FMT, STR_ARG(file));
}

static void check_script(struct doctor *doctor) {
    struct team team;
    struct err e;
    const struct config *config = doctor->config;
    if (!team_assemble(config, &(struct team_resources){0}, &team, &e)) {
        char fix[512];
        snprintf(fix, sizeof(fix), "weir config check " STR_FMT, STR_ARG(config->file));
        doctor_say(doctor, FINDING_BAD, "agents", fix, "%s", e.text);
        return;
    }
    doctor_say(doctor, FINDING_GOOD, "agents", NULL, "%zu, with %zu tool%s", team.agent_count,
               team.tool_count, team.tool_count == 1 ? "" : "s");
    team_done(&team);
}

static void check_keys(struct doctor *doctor) {
    const struct crawbl_options *crawbl = crawbl_options(doctor->config);
    const struct agentbreeder_options *agentbreeder = agentbreeder_options(doctor->config);
    size_t len = crawbl->key.len;
    if (len == 0) {
        doctor_say(doctor, FINDING_NOTE, "tokens", NEW_KEY,
                   "no signing key: callers of Converse are who they say they are");
    } else if (len < CRAWBL_KEY_MIN_BYTES) {
        doctor_say(doctor, FINDING_BAD, "tokens", NEW_KEY,
                   "the signing key has %zu bytes and can be guessed; %d are good", len,
                   KEY_GOOD_BYTES);
    } else {
        bool good = len >= KEY_GOOD_BYTES;
        doctor_say(doctor, good ? FINDING_GOOD : FINDING_NOTE, "tokens", good ? NULL : NEW_KEY,
                   "a signing key of %zu bytes%s", len, good ? "" : "; 32 are good");
    }
    if (len && !crawbl->strict)
        doctor_say(doctor, FINDING_NOTE, "tokens", "export WEIR_STRICT_TOKENS=true",
                   "tokens without a date are accepted and never expire");
    if (agentbreeder->listen.len && agentbreeder->token.len == 0)
        doctor_say(
            doctor, FINDING_NOTE, "tokens", NEW_TOKEN,
            "no AGENT_AUTH_TOKEN: any client that reaches the HTTP listener may run agents");
}

/* --- the command -------------------------------------------------------------------------- */

static doctor_check *const checks[] = {
    check_settings, check_script,  check_keys,  doctor_ports, doctor_files, doctor_memory,
    doctor_clock,   doctor_speech, doctor_exec, doctor_store, doctor_disk};

static int examine(struct config *config, void *ctx) {
    struct doctor *doctor = ctx;
    doctor->config = config;
    buf_init(&doctor->out, OUT_MAX_BYTES);
    doctor->writer = json_writer(&doctor->out);
    if (doctor->json) {
        json_open_object(&doctor->writer);
        json_member_array(&doctor->writer, "findings");
    }
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) checks[i](doctor);
    if (doctor->json) {
        json_close(&doctor->writer);
        json_member_bool(&doctor->writer, "good", doctor->bad == 0);
        json_close(&doctor->writer);
        buf_append_byte(&doctor->out, '\n');
    }
    printf(STR_FMT, STR_ARG(buf_str(&doctor->out)));
    buf_done(&doctor->out);
    return doctor->bad ? EXIT_FAILED : EXIT_DONE;
}

int command_doctor(int arg_count, const char *const *args) {
    struct arguments arguments;
    struct doctor doctor = {.json = false};
    const struct argument_flag flags[] = {{.name = "json", .given = &doctor.json},
                                          {.name = NULL}};
    if (!arguments_read(arg_count, args, NULL, flags, usage, &arguments)) return EXIT_USAGE;
    struct config_input input = cli_input(arguments.rest_count, arguments.rest, false);
    input.own_flags = arguments.names;
    input.collect = true;
    int code = cli_look_at(&input, usage, examine, &doctor);
    arguments_done(&arguments);
    return code;
}

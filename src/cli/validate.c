/* weir validate: check a server against the contracts that it should keep. */
#include "base/file.h"
#include "base/id.h"
#include "base/nearest.h"
#include "base/units.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "validate/report.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char usage[] =
    "weir validate http://127.0.0.1:8080 [OPTIONS]\n"
    "weir validate [OPTIONS] -- ./server --port {port}\n"
    "weir validate registry/agent:1.2 [OPTIONS]\n"
    "weir validate --list | --explain ID\n\n"
    "Check a server against the contracts of agent runtimes, and say what it breaks: what was\n"
    "expected, what was seen, and what to change. A command is started for it, with a free "
    "port\n"
    "in PORT and in place of {port}, and ended afterwards; an image needs docker or podman.\n\n"
    "  --profile NAME        what to check: one that --list shows; without it, what is found\n"
    "  --strict              what the contract says strictly: more checks can fail\n"
    "  --token TOKEN         the bearer token (AGENT_AUTH_TOKEN); a command gets a random "
    "one.\n"
    "                        Tokens of Converse are signed with CRAWBL_MCP_SIGNING_KEY for\n"
    "                        --user USER and --workspace WORKSPACE\n"
    "  --input TEXT          what the agent is asked (ping); an object or array of JSON is "
    "sent\n"
    "                        as one; --input-file FILE reads it\n"
    "  --error-input TEXT    what makes the agent fail; without it, some checks are skipped\n"
    "  --hitl-input TEXT     what makes the agent ask a human\n"
    "  --model NAME          the model that nimi.runtime.v1 is asked for; without it, one that "
    "the\n"
    "                        server lists\n"
    "  --timeout 30s         for one response; --boot-timeout 60s until it is healthy\n"
    "  --env NAME=VALUE      for a command or an image; may be repeated\n"
    "  --port N              on which an image listens (8080)\n"
    "  --no-auth-probe       send no wrong tokens\n"
    "  --behind-sidecar      the target stands behind the sidecar; --behind-proxy: a proxy\n"
    "  --only IDS, --skip IDS   ids (HLTH-01) or groups (HLTH), separated by commas\n"
    "  --format text|json|junit|tap\n"
    "  --version 1           of the contract; there is no other\n\n"
    "Exit code: 0 nothing failed, 1 something failed, 2 wrong usage, 3 not reached or not "
    "booted.\n";

#define TIMEOUT_MS 30000
#define BOOT_TIMEOUT_MS 60000
#define INPUT_MAX_BYTES (4 * MIB)
#define RANDOM_TOKEN_BYTES 16

struct command_line {
    const char *profile, *version, *token, *input, *input_file, *error_input, *hitl_input;
    const char *user, *workspace, *model, *timeout, *boot_timeout, *port, *only, *skip, *format,
        *explain;
    bool strict, no_auth_probe, behind_sidecar, behind_proxy, list, help;
    struct argument_values env;
    const char *target;         /* NULL: none */
    const char *const *command; /* after --; NULL: none */
};

/* What it comes to, with the texts that it owns. */
struct request {
    struct validate_options options;
    struct target_options target;
    struct selection selection;
    const struct profile *profile;
    enum report_format format;
    struct buf input, error_input, hitl_input, url, shown;
    char token[2 * RANDOM_TOKEN_BYTES + 1], key[2 * RANDOM_TOKEN_BYTES + 1];
};

/* --- values -------------------------------------------------------------------------------------- */

/* "30" is seconds, "1500ms" is what it says. */
static bool validate_read_duration(const char *name, const char *text, uint64_t usual_ms,
                                   uint64_t *ret_ms, struct err *e) {
    uint64_t value;
    *ret_ms = usual_ms;
    if (!text) return true;
    if (str_to_u64(str_from(text), &value)) {
        if (value > 24 * 3600) value = 0;
        value *= 1000000;
    } else if (!units_duration(str_from(text), &value, e)) {
        return err_add(e, "--%s", name);
    }
    *ret_ms = value / 1000;
    return *ret_ms || err_set(e, ERR_INVALID_ARGUMENT,
                              "--%s needs a time from 1ms to 24h, not '%.100s'", name, text);
}

/* An object or an array of JSON stays one, all else becomes a string. */
static bool validate_put_input(const char *name, struct str text, struct buf *out,
                               struct err *e) {
    struct json json;
    struct err none;
    bool structured =
        json_read(text, &json, &none) && (json.kind == JSON_OBJECT || json.kind == JSON_ARRAY);
    if (structured)
        buf_append(out, json.raw);
    else
        json_put_str(out, text);
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "--%s is too long", name);
}

static bool read_input_file(const char *path, struct buf *out, struct err *e) {
    struct buf text;
    buf_init(&text, INPUT_MAX_BYTES);
    bool good = file_read(str_from(path), &text, e) &&
                validate_put_input("input-file", str_trim(buf_str(&text)), out, e);
    buf_done(&text);
    return good;
}

static bool read_inputs(const struct command_line *line, struct request *request,
                        struct err *e) {
    if (line->input && line->input_file)
        return err_set(e, ERR_INVALID_ARGUMENT, "give --input or --input-file, not both");
    bool good = line->input_file
                    ? read_input_file(line->input_file, &request->input, e)
                    : validate_put_input("input", str_from(line->input ? line->input : "ping"),
                                         &request->input, e);
    if (good && line->error_input)
        good = validate_put_input("error-input", str_from(line->error_input),
                                  &request->error_input, e);
    if (good && line->hitl_input)
        good = validate_put_input("hitl-input", str_from(line->hitl_input),
                                  &request->hitl_input, e);
    return good;
}

static bool read_profile(const char *name, const struct profile **ret, struct err *e) {
    struct nearest nearest;
    *ret = NULL;
    if (!name) return true;
    nearest_init(&nearest, str_from(name));
    for (size_t i = 0; profiles[i]; i++) nearest_offer(&nearest, str_from(profiles[i]->name));
    *ret = profile_find(str_from(name));
    if (*ret) return true;
    struct buf names;
    buf_init(&names, KIB);
    for (size_t i = 0; profiles[i]; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", profiles[i]->name);
    err_set(e, ERR_INVALID_ARGUMENT, "there is no profile '%.100s'%s; there are: " STR_FMT,
            name, nearest_hint(&nearest), STR_ARG(buf_str(&names)));
    buf_done(&names);
    return false;
}

static bool read_choices(const struct command_line *line, struct request *request,
                         struct err *e) {
    if (line->version && strcmp(line->version, "1") != 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "only --version 1 of the contract is known, not '%.100s'",
                       line->version);
    if (line->format && !report_format_named(str_from(line->format), &request->format))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--format is text, json, junit or tap, not '%.100s'", line->format);
    request->selection.only = str_from(line->only);
    request->selection.skip = str_from(line->skip);
    return read_profile(line->profile, &request->profile, e) &&
           selection_check(&request->selection, e);
}

/* --- the target ----------------------------------------------------------------------------------- */

static bool is_number(struct str text) {
    uint64_t number;
    return str_to_u64(text, &number) && number < 65536;
}

/* "localhost:8080" and "127.0.0.1:8080" are meant as URLs; any other name is an image. */
static bool is_local_address(struct str text) {
    struct str port, host = str_split(text, ':', &port);
    return is_number(port) &&
           (str_equal(host, STR("localhost")) || str_starts(host, STR("127.")));
}

/* Its arguments may hold a key. */
static void show_command(const char *const *words, struct buf *out) {
    struct buf text;
    buf_init(&text, 64 * KIB);
    for (size_t i = 0; words[i]; i++) buf_printf(&text, "%s%s", i ? " " : "-- ", words[i]);
    evidence_append(out, buf_str(&text), NULL, 0);
    buf_done(&text);
}

static bool read_target(const struct command_line *line, struct request *request,
                        struct err *e) {
    struct str text = str_from(line->target);
    if (!line->target && !line->command)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "there is no target: give a URL, an image, or "
                       "a command after --");
    if (line->target && line->command)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "give one target, '%.100s' or the command after --", line->target);
    for (size_t i = 0; i < line->env.count; i++) {
        if (!strchr(line->env.at[i], '='))
            return err_set(e, ERR_INVALID_ARGUMENT, "--env needs NAME=VALUE, not '%.100s'",
                           line->env.at[i]);
    }
    if (line->port && (!str_to_u64(str_from(line->port), &request->target.image_port) ||
                       !is_number(str_from(line->port)) || !request->target.image_port))
        return err_set(e, ERR_INVALID_ARGUMENT, "--port needs a number from 1 to 65535");
    request->target.command = line->command;
    request->target.more = line->env.at;
    if (line->command) {
        show_command(line->command, &request->shown);
        return true;
    }
    struct forward_server server;
    bool local = is_local_address(text);
    if (str_starts(text, STR("grpc://"))) {
        local = true;
        text = str_skip(text, STR("grpc://").len);
    } else if (str_starts(text, STR("grpcs://"))) {
        buf_append(&request->url, STR("https://"));
        text = str_skip(text, STR("grpcs://").len);
    }
    buf_append(&request->shown, text);
    if (local || request->url.len || str_find(text, STR("://")) < text.len) {
        if (local) buf_append(&request->url, STR("http://"));
        buf_append(&request->url, text);
        return forward_server_of(buf_str(&request->url), &server, e);
    }
    request->target.image = text;
    return true;
}

static struct str random_text(char out[2 * RANDOM_TOKEN_BYTES + 1]) {
    unsigned char random[RANDOM_TOKEN_BYTES];
    ssize_t got = getrandom(random, sizeof(random), 0);
    assert(got == sizeof(random));
    (void)got;
    for (size_t i = 0; i < sizeof(random); i++) snprintf(out + 2 * i, 3, "%02x", random[i]);
    return str_from(out);
}

/* A server that is started gets a token of its own, so that no real one is risked. */
static void choose_token(const struct command_line *line, struct request *request) {
    struct validate_options *options = &request->options;
    bool is_url = request->url.len;
    /* NOLINTBEGIN(concurrency-mt-unsafe): nothing changes our environment */
    const char *environment = getenv("AGENT_AUTH_TOKEN");
    const char *key = getenv("CRAWBL_MCP_SIGNING_KEY");
    /* NOLINTEND(concurrency-mt-unsafe) */
    if (line->token || is_url)
        options->token = str_trim(str_from(line->token ? line->token : environment));
    else
        options->token = random_text(request->token);
    options->signing_key = is_url ? str_trim(str_from(key)) : random_text(request->key);
    options->user = str_from(line->user ? line->user : "validate");
    options->workspace = str_from(line->workspace ? line->workspace : "validate");
    request->target.signing_key = options->signing_key;
}

/* Ids that a token cannot carry make no sense with one. */
static bool check_ids(const struct request *request, struct err *e) {
    const struct validate_options *options = &request->options;
    if (!id_check("--user", options->user, e) ||
        !id_check("--workspace", options->workspace, e))
        return false;
    if (str_find_byte(options->user, ':') < options->user.len ||
        str_find_byte(options->workspace, ':') < options->workspace.len)
        return err_set(e, ERR_INVALID_ARGUMENT, "--user and --workspace must not contain ':'");
    return true;
}

static bool validate_read_request(const struct command_line *line, struct request *request,
                                  struct err *e) {
    struct validate_options *options = &request->options;
    if (!read_choices(line, request, e) || !read_target(line, request, e) ||
        !read_inputs(line, request, e) ||
        !validate_read_duration("timeout", line->timeout, TIMEOUT_MS, &options->timeout_ms,
                                e) ||
        !validate_read_duration("boot-timeout", line->boot_timeout, BOOT_TIMEOUT_MS,
                                &options->boot_timeout_ms, e))
        return false;
    choose_token(line, request);
    options->model = str_trim(str_from(line->model));
    options->input = buf_str(&request->input);
    options->error_input = buf_str(&request->error_input);
    options->hitl_input = buf_str(&request->hitl_input);
    options->strict = line->strict;
    options->no_auth_probe = line->no_auth_probe;
    options->behind_sidecar = line->behind_sidecar;
    options->behind_proxy = line->behind_proxy || line->behind_sidecar;
    request->target.url = buf_str(&request->url);
    request->target.token = options->token;
    request->target.timeout_ms = options->timeout_ms;
    request->target.boot_timeout_ms = options->boot_timeout_ms;
    request->target.any_answer = request->profile && !request->profile->is_http;
    return check_ids(request, e);
}

/* --- the command ------------------------------------------------------------------------------------ */

static int run_request(const struct request *request) {
    struct report report;
    struct validate_result result;
    report_begin(&report, request->format, buf_str(&request->shown), request->options.strict);
    validate_run(&request->target, &request->options, request->profile, &request->selection,
                 &report_sink, &report, &result);
    report_end(&report, &result);
    if (result.unreachable) {
        cli_fail(EXIT_UNREACHABLE, &result.why);
        return EXIT_UNREACHABLE;
    }
    return result.verdicts[VERDICT_FAIL] ? EXIT_FAILED : EXIT_DONE;
}

static int validate(const struct command_line *line) {
    struct request request = {.format = REPORT_TEXT};
    struct err e;
    buf_init(&request.input, INPUT_MAX_BYTES);
    buf_init(&request.error_input, INPUT_MAX_BYTES);
    buf_init(&request.hitl_input, INPUT_MAX_BYTES);
    buf_init(&request.url, 64 * KIB);
    buf_init(&request.shown, 64 * KIB);
    int code = validate_read_request(line, &request, &e) ? run_request(&request)
                                                         : cli_fail(EXIT_USAGE, &e);
    buf_done(&request.input);
    buf_done(&request.error_input);
    buf_done(&request.hitl_input);
    buf_done(&request.url);
    buf_done(&request.shown);
    return code;
}

static int validate_explain(const char *id) {
    const struct profile *profile;
    const struct check *check = check_find(str_from(id), &profile);
    struct err e;
    if (!check) {
        err_set(&e, ERR_INVALID_ARGUMENT, "there is no check '%.100s' (--list shows them)", id);
        return cli_fail(EXIT_USAGE, &e);
    }
    report_explain(stdout, profile, check);
    return EXIT_DONE;
}

static int validate_act(const struct command_line *line) {
    const struct profile *profile;
    struct err e;
    if (line->help) {
        printf("%s", usage);
        return EXIT_DONE;
    }
    if (line->explain) return validate_explain(line->explain);
    if (!line->list) return validate(line);
    if (!read_profile(line->profile, &profile, &e)) return cli_fail(EXIT_USAGE, &e);
    report_list(stdout, profile);
    return EXIT_DONE;
}

/* The rest: at most one operand, no flags. */
static bool take_rest(const struct arguments *arguments, struct command_line *line) {
    for (int i = 0; i < arguments->rest_count; i++) {
        const char *arg = arguments->rest[i];
        if (arg[0] == '-') {
            struct nearest nearest;
            nearest_init(&nearest, str_from(arg + (arg[1] == '-' ? 2 : 1)));
            for (const char *const *name = arguments->names; *name; name++)
                nearest_offer(&nearest, str_from(*name));
            fprintf(stderr, "weir: error: weir validate has no %s%s\n", arg,
                    nearest_hint(&nearest));
            return false;
        }
        if (line->target) {
            fprintf(stderr, "weir: error: one target at a time: '%s' or '%s'\n", line->target,
                    arg);
            return false;
        }
        line->target = arg;
    }
    return true;
}

int command_validate(int arg_count, const char *const *args) {
    struct command_line line = {.profile = NULL};
    struct arguments arguments;
    const struct argument_flag flags[] = {
        {.name = "profile", .value = &line.profile},
        {.name = "version", .value = &line.version},
        {.name = "token", .value = &line.token},
        {.name = "input", .value = &line.input},
        {.name = "input-file", .value = &line.input_file},
        {.name = "error-input", .value = &line.error_input},
        {.name = "hitl-input", .value = &line.hitl_input},
        {.name = "user", .value = &line.user},
        {.name = "workspace", .value = &line.workspace},
        {.name = "model", .value = &line.model},
        {.name = "timeout", .value = &line.timeout},
        {.name = "boot-timeout", .value = &line.boot_timeout},
        {.name = "port", .value = &line.port},
        {.name = "only", .value = &line.only},
        {.name = "skip", .value = &line.skip},
        {.name = "format", .value = &line.format},
        {.name = "explain", .value = &line.explain},
        {.name = "env", .values = &line.env},
        {.name = "strict", .given = &line.strict},
        {.name = "no-auth-probe", .given = &line.no_auth_probe},
        {.name = "behind-sidecar", .given = &line.behind_sidecar},
        {.name = "behind-proxy", .given = &line.behind_proxy},
        {.name = "list", .given = &line.list},
        {.name = "help", .given = &line.help},
        {.name = NULL}};
    int own = 0;
    while (own < arg_count && strcmp(args[own], "--") != 0) own++;
    static const char *const help[] = {"--help"};
    if (own == 1 && strcmp(args[0], "-h") == 0) args = help;
    if (own + 1 < arg_count) line.command = args + own + 1; /* argv ends with NULL */
    if (!arguments_read(own, args, NULL, flags, usage, &arguments)) return EXIT_USAGE;
    int code = take_rest(&arguments, &line) ? validate_act(&line) : EXIT_USAGE;
    arguments_done(&arguments);
    return code;
}

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "daemon/team.h"
#include "server/server.h"
#include "tls/trust.h"
#include "wire/json.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char usage[] =
    "weir config check [FILE] [--json]\n"
    "weir config print [-c FILE] [--json]\n\n"
    "check: is everything right with the settings and with what they name? Each mistake is\n"
    "one line with its place; exit code 2 when there is one. Nothing is started or written.\n"
    "print: every setting, its value, and where that came from. Secrets show only whether\n"
    "they are set.\n"
    "--json: the same as one object, on stdout.\n";

/* --- the files that settings name: nothing is made --------------------------------------- */

static void problem(struct config *config, const char *setting, struct err *e) {
    err_add(e, "%s", setting);
    config_problem(config, e);
}

static void check_certificates(struct config *config) {
    const struct tls_options tls = {config->tls.cert, config->tls.key, config->tls.ca};
    struct err e;
    if ((tls.cert.len || tls.key.len || tls.ca.len) && !server_check_tls(&tls, &e))
        config_problem(config, &e);
}

static void check_trust(struct config *config) {
    const struct trust_options options = {.file = config->tls.trust};
    struct trust *trust = NULL;
    struct err e;
    if (options.file.len && !trust_load(&options, &trust, &e)) problem(config, "tls.trust", &e);
    trust_unref(trust);
}

static bool path_text(struct str path, char ret[static PATH_MAX]) {
    if (path.len == 0 || path.len >= PATH_MAX) return false;
    memcpy(ret, path.at, path.len);
    ret[path.len] = '\0';
    return true;
}

/* A start makes the folder if there is none. */
static void check_folder(struct config *config, const char *setting, struct str path) {
    char text[PATH_MAX];
    struct stat info;
    struct err e;
    if (!path_text(path, text) || stat(text, &info) != 0 || S_ISDIR(info.st_mode)) return;
    err_set(&e, ERR_INVALID_ARGUMENT, "'%s' is no folder; name one, or a new path", text);
    problem(config, setting, &e);
}

/* The folder of a path, which is cut there. */
static const char *folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return ".";
    slash[slash == path] = '\0'; /* "/" itself stays */
    return path;
}

/* A start makes the file, but not its folder. */
static void check_parent(struct config *config, const char *setting, struct str path) {
    char text[PATH_MAX];
    struct stat info;
    struct err e;
    if (!path_text(path, text)) return;
    const char *folder = folder_of(text);
    if (stat(folder, &info) != 0) {
        err_set(&e, ERR_INVALID_ARGUMENT, "the folder '%s': %s", folder,
                strerrordesc_np(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        err_set(&e, ERR_INVALID_ARGUMENT, "'%s' is no folder", folder);
    } else {
        return;
    }
    problem(config, setting, &e);
}

static void check_sockets(struct config *config) {
    char setting[64];
    for (size_t i = 0; i < contracts.count; i++) {
        const struct contract *contract = contracts.rows[i];
        if (!contract_is_wanted(contract, config)) continue;
        for (size_t n = 0; n < contract->listener_count; n++) {
            struct str address = contract->listeners[n].address(config);
            if (!str_starts(address, STR("unix:"))) continue;
            snprintf(setting, sizeof(setting), "listener '%s'", contract->listeners[n].name);
            check_parent(config, setting, str_skip(address, sizeof("unix:") - 1));
        }
    }
}

static void check_files(struct config *config) {
    check_certificates(config);
    check_trust(config);
    check_folder(config, "data", config->data);
    check_folder(config, "record", config->tape.record);
    check_parent(config, "ports_file", config->ports_file);
    check_sockets(config);
}

/* --- check -------------------------------------------------------------------------------- */

static void print_lines(const char *before, const struct str *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s" STR_FMT "\n", before, STR_ARG(lines[i]));
}

struct verdict {
    bool good;
    size_t agents, tools;
};

/* Check that files named by the settings can be read too. */
static void check_team(struct config *config, struct verdict *ret) {
    struct team team;
    struct err e;
    if (!team_assemble(config, &(struct team_resources){.noting = config}, &team, &e)) {
        config_problem(config, &e);
        return;
    }
    *ret = (struct verdict){config->problem_count == 0, team.agent_count, team.tool_count};
    team_done(&team);
}

static void say_verdict(const struct config *config, const struct verdict *verdict) {
    print_lines("warning: ", config->warnings, config->warning_count);
    print_lines("", config->problems, config->problem_count);
    if (!verdict->good) return;
    printf(STR_FMT ": good; %zu agent%s, %zu tool%s\n",
           STR_ARG(config->file.len ? config->file : STR("the settings")), verdict->agents,
           verdict->agents == 1 ? "" : "s", verdict->tools, verdict->tools == 1 ? "" : "s");
}

static void put_lines(struct json_writer *json, const char *key, const struct str *lines,
                      size_t count) {
    json_member_array(json, key);
    for (size_t i = 0; i < count; i++) json_write_str(json, lines[i]);
    json_close(json);
}

static void say_verdict_json(const struct config *config, const struct verdict *verdict) {
    struct buf out;
    buf_init(&out, MIB);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    json_member_str(&json, "file", config->file);
    json_member_bool(&json, "good", verdict->good);
    put_lines(&json, "problems", config->problems, config->problem_count);
    put_lines(&json, "warnings", config->warnings, config->warning_count);
    if (verdict->good) {
        json_member_u64(&json, "agents", verdict->agents);
        json_member_u64(&json, "tools", verdict->tools);
    }
    json_close(&json);
    printf(STR_FMT "\n", STR_ARG(buf_str(&out)));
    buf_done(&out);
}

static int cli_config_check(struct config *config, void *ctx) {
    const bool *as_json = ctx;
    struct verdict verdict = {.good = false};
    check_files(config);
    check_team(config, &verdict);
    (*as_json ? say_verdict_json : say_verdict)(config, &verdict);
    return verdict.good ? EXIT_DONE : EXIT_USAGE;
}

/* --- print -------------------------------------------------------------------------------- */

static int print(struct config *config, void *ctx) {
    const bool *as_json = ctx;
    struct buf out;
    buf_init(&out, 4 * MIB);
    (*as_json ? config_print_json : config_print)(config, &out);
    printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    return EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------- */

static const char *const own_flags[] = {"json", NULL};

/* act: what stands where `check` or `print` should. */
static int explain(const char *act) {
    static const char *const acts[] = {"check", "print", NULL};
    if (act && (!strcmp(act, "--help") || !strcmp(act, "-h"))) {
        printf("%s", usage);
        return EXIT_DONE;
    }
    if (act && act[0] && act[0] != '-') {
        (void)arguments_refuse_act(act, acts, usage);
    } else {
        cli_say_acts(acts);
        fprintf(stderr, "%s", usage);
    }
    return EXIT_USAGE;
}

static int refuse_empty(void) {
    fprintf(stderr, "weir: error: the name of the file is empty\n%s", usage);
    return EXIT_USAGE;
}

int command_config(int arg_count, const char *const *args) {
    bool checks = arg_count > 0 && strcmp(args[0], "check") == 0;
    bool prints = arg_count > 0 && strcmp(args[0], "print") == 0;
    if (!checks && !prints) {
        return explain(arg_count ? args[0] : NULL);
    }
    /* FILE is short for -c FILE. */
    const char **all = mem_zero((size_t)arg_count + 2, sizeof(char *));
    int count = 0;
    bool as_json = false, has_file = false;
    for (int i = 1; i < arg_count; i++) {
        if (strcmp(args[i], "--json") == 0) {
            as_json = true;
            continue;
        }
        bool is_file = checks && count == 0 && args[i][0] != '-';
        if (is_file && !args[i][0]) { /* a variable of a shell that is not set */
            free(all);
            return refuse_empty();
        }
        if (is_file && !has_file) all[count++] = "-c";
        has_file = has_file || is_file;
        all[count++] = args[i];
    }
    struct config_input input = cli_input(count, all, false);
    input.own_flags = own_flags;
    input.collect = checks;
    int code = cli_look_at(&input, usage, checks ? cli_config_check : print, &as_json);
    free(all);
    return code;
}

#include "base/mem.h"
#include "cli/cli.h"
#include "daemon/team.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "weir config check [FILE]\n"
    "weir config print [-c FILE]\n\n"
    "check: is everything right with the settings and with what they name? Each mistake is\n"
    "one line with its place; exit code 2 when there is one. Nothing is started or written.\n"
    "print: every setting, its value, and where that came from. Secrets show only whether\n"
    "they are set.\n";

/* --- check -------------------------------------------------------------------------------- */

static void print_lines(const char *before, const struct str *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s" STR_FMT "\n", before, STR_ARG(lines[i]));
}

/* What the settings name can be read, too. */
static bool check_team(const struct config *config) {
    struct team team;
    struct err e;
    if (!team_assemble(config, &(struct team_means){0}, &team, &e)) {
        print_lines("", &(struct str){e.text, strlen(e.text)}, 1);
        return false;
    }
    printf(STR_FMT ": good; %zu agent%s, %zu tool%s\n",
           STR_ARG(config->file.len ? config->file : STR("the settings")), team.agent_count,
           team.agent_count == 1 ? "" : "s", team.tool_count, team.tool_count == 1 ? "" : "s");
    team_done(&team);
    return true;
}

static int check(const struct config *config) {
    print_lines("warning: ", config->warnings, config->warning_count);
    print_lines("", config->problems, config->problem_count);
    bool good = config->problem_count == 0;
    return good && check_team(config) ? EXIT_DONE : EXIT_USAGE;
}

/* --- print -------------------------------------------------------------------------------- */

static int print(const struct config *config) {
    struct buf out;
    buf_init(&out, MIB);
    config_print(config, &out);
    printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    return EXIT_DONE;
}

/* --- the command -------------------------------------------------------------------------- */

static int act(struct config_input *input, bool checks) {
    struct config *config;
    struct err e;
    input->collect = checks;
    if (!config_load(input, &config, &e)) return cli_fail(EXIT_USAGE, &e);
    int code = EXIT_DONE;
    if (config->help) {
        printf("%s", usage);
    } else if (config->operand_count) {
        fprintf(stderr, "%s", usage);
        code = EXIT_USAGE;
    } else {
        code = checks ? check(config) : print(config);
    }
    config_free(config);
    return code;
}

int command_config(int arg_count, const char *const *args) {
    bool checks = arg_count > 0 && strcmp(args[0], "check") == 0;
    bool prints = arg_count > 0 && strcmp(args[0], "print") == 0;
    if (!checks && !prints) {
        bool asked = arg_count > 0 && (!strcmp(args[0], "--help") || !strcmp(args[0], "-h"));
        fprintf(asked ? stdout : stderr, "%s", usage);
        return asked ? EXIT_DONE : EXIT_USAGE;
    }
    /* FILE stands for -c FILE. */
    const char **all = mem_zero((size_t)arg_count + 1, sizeof(char *));
    int count = 0;
    bool has_file = checks && arg_count > 1 && args[1][0] != '-';
    if (has_file) all[count++] = "-c";
    for (int i = 1; i < arg_count; i++) all[count++] = args[i];
    struct config_input input = cli_input(count, all, false);
    int code = act(&input, checks);
    free(all);
    return code;
}

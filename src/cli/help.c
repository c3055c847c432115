/* help: the commands, one command's --help, and both as a manual page or as words for a shell. */
#include "cli/arguments.h"
#include "cli/cli.h"
#include "cli/completion.h"
#include "cli/help_text.h"
#include "cli/manual.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char usage[] =
    "weir help [COMMAND]\n"
    "weir help [COMMAND | weir.yaml] --man\n"
    "weir help [COMMAND] --words\n\n"
    "What the commands do; with COMMAND, what that one does. --man writes it as a manual "
    "page,\n"
    "also of the settings file. --words writes what may be typed next, one word a line, each\n"
    "with a tab and its meaning; the completion of a shell asks so.\n";

#define HELP_MAX_BYTES (1 * MIB)

struct help_wish {
    const char *topic; /* NULL: all commands */
    bool man, words;
};

/* --- the text of --help ------------------------------------------------------------------- */

static bool read_back(int fd, struct buf *out) {
    off_t at = 0;
    for (;;) {
        char *room = buf_room(out, 16 * KIB);
        ssize_t got = room ? pread(fd, room, 16 * KIB, at) : -1;
        if (got <= 0) return got == 0;
        buf_grew(out, (size_t)got);
        at += got;
    }
}

/* Run COMMAND --help with its stdout in memory. */
static bool help_capture(const struct command *command, struct buf *out) {
    static const char *const args[] = {"--help"};
    fflush(stdout);
    int kept = dup(STDOUT_FILENO), fd = memfd_create("help", MFD_CLOEXEC);
    bool ok = kept >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0;
    if (ok) {
        ok = command->run(1, args) == EXIT_DONE;
        ok = fflush(stdout) == 0 && ok;
        ok = dup2(kept, STDOUT_FILENO) >= 0 && ok;
        ok = ok && read_back(fd, out);
    }
    if (kept >= 0) close(kept);
    if (fd >= 0) close(fd);
    return ok;
}

/* --- forms -------------------------------------------------------------------------------- */

static void help_settings_page(struct buf *out) {
    struct config_input input = cli_input(0, NULL, false);
    struct config *config;
    struct err e;
    struct buf tables;
    static const char *const args[] = {"--help"};
    input.args = args, input.arg_count = 1; /* nothing is read, and the rows are there */
    buf_init(&tables, HELP_MAX_BYTES);
    if (config_load(&input, &config, &e)) {
        config_help_markdown(config, &tables);
        config_free(config);
    }
    manual_write_settings(buf_str(&tables), out);
    buf_done(&tables);
}

static void help_command_page(const struct command *command, struct str text, struct buf *out) {
    char name[64];
    const char *end = strstr(command->what, ": weir ");
    struct str what = str_from(command->what);
    if (end) what = str_head(what, (size_t)(end - command->what));
    snprintf(name, sizeof(name), "weir-%s", command->name);
    manual_write_command(
        &(struct manual_page){.name = str_from(name),
                              .what = what,
                              .help = text,
                              .settings_apart = command->run != command_sidecar},
        out);
}

/* False: the command did not explain itself. */
static bool help_of_command(const struct command *command, const struct help_wish *wish,
                            struct buf *out) {
    struct buf text;
    buf_init(&text, HELP_MAX_BYTES);
    bool ok = help_capture(command, &text);
    if (!ok) {
        fprintf(stderr, "weir: error: weir %s --help cannot be read\n", command->name);
    } else if (wish->man) {
        help_command_page(command, buf_str(&text), out);
    } else if (wish->words) {
        /* --help of most commands names a few settings; all may be typed. */
        if (help_text_read(buf_str(&text)).settings.len && command->run != command_sidecar)
            ok = cli_settings_help(&text);
        completion_words(str_from(command->name), buf_str(&text), out);
    } else {
        buf_append(out, buf_str(&text));
    }
    buf_done(&text);
    return ok;
}

static void help_of_all(const struct help_wish *wish, struct buf *out) {
    struct buf text;
    buf_init(&text, HELP_MAX_BYTES);
    cli_help(&text);
    if (wish->man) {
        manual_write_overview(buf_str(&text), out);
    } else if (wish->words) {
        size_t count;
        const struct command *all = cli_commands(&count);
        for (size_t i = 0; i < count; i++)
            completion_word(str_from(all[i].name), str_from(all[i].what), out);
        completion_word(STR("--help"), STR("what there is"), out);
        completion_word(STR("--version"), STR("which weir this is"), out);
    } else {
        buf_append(out, buf_str(&text));
    }
    buf_done(&text);
}

/* --- the command -------------------------------------------------------------------------- */

static int help_act(const struct help_wish *wish) {
    struct buf out;
    bool ok = true;
    buf_init(&out, HELP_MAX_BYTES);
    if (!wish->topic) {
        help_of_all(wish, &out);
    } else if (wish->man && strcmp(wish->topic, "weir.yaml") == 0) {
        help_settings_page(&out);
    } else {
        const struct command *command = cli_command_find(wish->topic);
        if (!command) {
            buf_done(&out);
            return cli_refuse_command(wish->topic);
        }
        ok = help_of_command(command, wish, &out);
    }
    fwrite(buf_str(&out).at, 1, out.len, stdout);
    buf_done(&out);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int command_help(int arg_count, const char *const *args) {
    struct help_wish wish = {.topic = NULL};
    struct arguments arguments;
    bool help = false;
    const struct argument_flag flags[] = {{.name = "man", .given = &wish.man},
                                          {.name = "words", .given = &wish.words},
                                          {.name = "help", .given = &help},
                                          {.name = NULL}};
    if (!arguments_read(arg_count, args, NULL, flags, usage, &arguments)) return EXIT_USAGE;
    int count = arguments.rest_count;
    if (count == 1) wish.topic = arguments.rest[0];
    if (wish.topic && strcmp(wish.topic, "-h") == 0) help = true, wish.topic = NULL;
    arguments_done(&arguments);
    if (count > 1 || (wish.topic && wish.topic[0] == '-')) {
        fprintf(stderr, "weir: error: weir help takes one command\n%s", usage);
        return EXIT_USAGE;
    }
    if (!help) return help_act(&wish);
    printf("%s", usage);
    return EXIT_DONE;
}

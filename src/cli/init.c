#include "cli/cli.h"
#include "cli/model_discovery.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "weir init [DIR]\n\n"
    "Write a settings file, DIR/weir.yaml, with a word about each part of it. A file that is\n"
    "there already is left alone (exit code 1). The model in it is one that can be asked from\n"
    "here, if there is one: a key in the environment, or a model server on this machine.\n";

/* The text before and after the model's name. */
static const char head[] =
    "# Settings of weir. Start it here with: weir serve -c weir.yaml\n"
    "# Look for mistakes with: weir config check weir.yaml. A running weir reads the file "
    "again\n"
    "# on SIGHUP; a mistake then changes nothing. docs/config.md lists every key.\n"
    "\n"
    "# The model of every agent below that names none: provider/model. Known by name are\n"
    "# openai, anthropic, gemini, openrouter, ollama, lmstudio, vllm and llamacpp; their keys\n"
    "# come from the environment (OPENAI_API_KEY, ...), never from this file.\n"
    "model: ";

static const char tail[] =
    "\n\n"
    "# Further providers, or other addresses of the known ones:\n"
    "# providers:\n"
    "#   - name: team\n"
    "#     kind: openai                # and all that speak it\n"
    "#     base_url: https://models.example.com/v1\n"
    "#     key_env: TEAM_API_KEY       # or key_file: PATH\n"
    "\n"
    "# The first agent takes every turn that names no agent.\n"
    "agents:\n"
    "  - slug: manager\n"
    "    description: Answers, or hands the turn to the one who knows better.\n"
    "    instructions: |\n"
    "      You are a helpful assistant. Answer briefly and to the point.\n"
    "      Hand questions about numbers and dates to the clerk.\n"
    "    delegates: [clerk]\n"
    "  - slug: clerk\n"
    "    description: Calculates, and knows what time it is.\n"
    "    instructions: You calculate and tell dates. Always use your tools; never guess.\n"
    "    tools: [calculator, current_time]\n"
    "    limits: {model_calls: 10}     # of one turn\n"
    "\n"
    "# What may be spent; tokens, or dollars where the price is known.\n"
    "# budgets:\n"
    "#   - {day: 500000 tokens}\n"
    "\n"
    "listen:\n"
    "  http: 127.0.0.1:8080            # /invoke, /stream\n"
    "  grpc: 127.0.0.1:42618           # Converse\n";

#define MODEL_MAX_BYTES KIB
#define MODEL_USUAL "ollama/gemma3"

/* Keep the first model found. */
static void keep_first(struct str what, struct str model, void *ctx) {
    struct buf *kept = ctx;
    (void)what;
    if (!kept->len) buf_append(kept, model);
}

/* As YAML, between double quotes: the name is what a server says. It has no control characters. */
static void write_quoted(struct str model, struct buf *out) {
    buf_append_byte(out, '"');
    for (size_t i = 0; i < model.len; i++) {
        if (model.at[i] == '"' || model.at[i] == '\\') buf_append_byte(out, '\\');
        buf_append_byte(out, model.at[i]);
    }
    buf_append_byte(out, '"');
}

static bool write_whole(int fd, struct str text) {
    while (text.len) {
        ssize_t wrote = write(fd, text.at, text.len);
        if (wrote < 0) return false;
        text = str_skip(text, (size_t)wrote);
    }
    return true;
}

static bool init_write_file(const char *path, struct str model, struct err *e) {
    struct buf text;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0 && errno == EEXIST)
        return err_set(e, ERR_ALREADY_EXISTS,
                       "'%s' is there already and stays as it is; name another folder: weir "
                       "init DIR",
                       path);
    if (fd < 0)
        return err_set(e, ERR_UNAVAILABLE,
                       "cannot write '%s': %m; name another folder: weir init DIR", path);
    buf_init(&text, sizeof(head) + sizeof(tail) + 2 * MODEL_MAX_BYTES);
    buf_append(&text, str_from(head));
    write_quoted(model, &text);
    buf_append(&text, str_from(tail));
    bool done = buf_ok(&text) && write_whole(fd, buf_str(&text));
    int why = errno;
    buf_done(&text);
    done = close(fd) == 0 && done;
    if (done) return true;
    unlink(path); /* half of it would be in the way of the next try */
    return err_set(e, ERR_UNAVAILABLE,
                   "cannot write '%s': %s; name another folder: weir init DIR", path,
                   strerrordesc_np(why));
}

/* False: none can be asked from here. */
static bool find_model(struct buf *model) {
    struct config_input input = cli_input(0, NULL, false);
    model_discovery_keys(&input, keep_first, model);
    if (!model->len) model_discovery_servers(keep_first, model);
    bool found = model->len;
    if (!found) buf_append(model, STR(MODEL_USUAL));
    return found;
}

static int init_write(const char *folder, struct buf *model) {
    char path[4096];
    struct err e;
    bool found = find_model(model);
    snprintf(path, sizeof(path), "%s/weir.yaml", folder);
    if (!init_write_file(path, buf_str(model), &e)) return cli_fail(EXIT_FAILED, &e);
    printf("%s\n", path);
    fprintf(stderr, "its model is " STR_FMT "%s\nnext: weir serve -c %s\n",
            STR_ARG(buf_str(model)),
            found ? "" : ", which has no provider here yet: set a key, or start Ollama", path);
    return EXIT_DONE;
}

static int init(const char *folder) {
    struct buf model;
    struct err e;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        err_set(&e, ERR_UNAVAILABLE,
                "cannot make the folder '%s': %m; name another one: weir init DIR", folder);
        return cli_fail(EXIT_FAILED, &e);
    }
    buf_init(&model, MODEL_MAX_BYTES);
    int code = init_write(folder, &model);
    buf_done(&model);
    return code;
}

static bool init_fits(int arg_count, const char *const *args, struct err *e) {
    if (arg_count == 0) return true;
    if (args[0][0] == '-')
        return err_set(e, ERR_INVALID_ARGUMENT, "no flag is called %s", args[0]);
    if (!args[0][0])
        return err_set(e, ERR_INVALID_ARGUMENT, "the name of the folder is missing");
    return arg_count == 1 ||
           err_set(e, ERR_INVALID_ARGUMENT, "'%s' is one argument too many", args[1]);
}

int command_init(int arg_count, const char *const *args) {
    bool help = arg_count == 1 && (!strcmp(args[0], "--help") || !strcmp(args[0], "-h"));
    if (help) {
        printf("%s", usage);
        return EXIT_DONE;
    }
    struct err e;
    if (init_fits(arg_count, args, &e)) return init(arg_count ? args[0] : ".");
    cli_fail(EXIT_USAGE, &e);
    fprintf(stderr, "%s", usage);
    return EXIT_USAGE;
}

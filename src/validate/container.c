#include "validate/container.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CONTAINER_ASK_MS 15000
#define CONTAINER_PORT 8080
#define CONTAINER_TOLD_PORT 18099 /* no server's default */

extern char **environ;

/* --- one short command of the engine ---------------------------------------------------------- */

struct asked_engine {
    struct loop *loop;
    struct child *child;
    bool over;
    int exit_code;
};

static void container_on_output(struct str bytes, void *ctx) {
    (void)bytes, (void)ctx;
}

static void container_on_end(const struct child_end *end, void *ctx) {
    struct asked_engine *asked = ctx;
    asked->over = true;
    asked->exit_code = end->exit_code;
    loop_stop(asked->loop);
}

static void container_on_late(void *ctx) {
    loop_stop(((struct asked_engine *)ctx)->loop);
}

static const struct child_sink quiet = {container_on_output, container_on_end, NULL};

/* Whether it ended with exit code 0 in time. */
static bool engine_does(struct loop *loop, const char *engine, const char *const *args) {
    struct asked_engine asked = {.loop = loop};
    struct child_options options = {
        .path = engine, .args = args, .environment = (const char *const *)environ};
    struct timer timer;
    struct err e;
    if (!child_start(loop, &options, &quiet, &asked, &asked.child, &e)) return false;
    timer_init(&timer, loop, container_on_late, &asked);
    timer_start(&timer, CONTAINER_ASK_MS);
    loop_run(loop);
    timer_stop(&timer);
    if (!asked.over) child_kill(asked.child);
    return asked.over && asked.exit_code == 0;
}

/* --- finding it -------------------------------------------------------------------------------- */

static const char *try_engine(struct target *target, const char *name) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
    struct str search = str_from(getenv("PATH"));
    const char *const args[] = {name, "info", NULL};
    if (!child_find(str_from(name), search, &target->engine)) return "is not installed";
    if (engine_does(target->asker->loop, target->engine.at, args)) return NULL;
    return "is installed and does not work here (`info` fails)";
}

bool container_find_engine(struct target *target, struct err *e) {
    const char *docker = try_engine(target, "docker");
    const char *podman = docker ? try_engine(target, "podman") : NULL;
    if (!docker || !podman) return true;
    return err_set(e, ERR_UNAVAILABLE,
                   "'" STR_FMT "' is neither a URL nor can it be run as an image: docker %s, "
                   "podman %s. Start the agent yourself and give its URL, or give its command "
                   "after --",
                   STR_ARG(str_head(target->options->image, 200)), docker, podman);
}

/* --- running it -------------------------------------------------------------------------------- */

static void add_word(struct buf *words, struct str word) {
    buf_append(words, word);
    buf_append_byte(words, '\0');
}

/* -e NAME: the engine takes the value from its own environment. */
static void add_variables(struct buf *words, const char *const *lines) {
    for (; lines && *lines; lines++) {
        struct str value, name = str_split(str_from(*lines), '=', &value);
        add_word(words, STR("-e"));
        add_word(words, name);
    }
}

void container_command(struct target *target, const struct target_boot *boot, uint16_t port,
                       struct buf *words) {
    const struct target_options *options = target->options;
    bool told = boot->port == TARGET_PORT_TOLD;
    unsigned inside = options->image_port ? (unsigned)options->image_port : CONTAINER_PORT;
    if (told) inside = CONTAINER_TOLD_PORT;
    buf_clear(&target->container);
    buf_printf(&target->container, "weir-validate-%ld-%u", (long)getpid(), port);
    add_word(words, buf_str(&target->engine));
    words->len -= words->len && words->at[words->len - 2] == '\0'; /* it ends in NUL already */
    static const struct str run[] = {STR_INIT("run"), STR_INIT("--rm"),
                                     STR_INIT("--add-host=host.docker.internal:host-gateway"),
                                     STR_INIT("--name")};
    for (size_t i = 0; i < ARRAY_LEN(run); i++) add_word(words, run[i]);
    add_word(words, buf_str(&target->container));
    add_word(words, STR("-p"));
    buf_printf(words, "127.0.0.1:%u:%u", port, inside);
    buf_append_byte(words, '\0');
    if (told) {
        add_word(words, STR("-e"));
        buf_printf(words, "PORT=%u", inside);
        buf_append_byte(words, '\0');
    }
    if (!boot->open) {
        add_word(words, STR("-e"));
        add_word(words, STR("AGENT_AUTH_TOKEN"));
    }
    if (options->signing_key.len) {
        add_word(words, STR("-e"));
        add_word(words, STR("CRAWBL_MCP_SIGNING_KEY"));
    }
    add_variables(words, options->more);
    add_variables(words, boot->more);
    add_word(words, options->image);
}

void container_kill(struct target *target) {
    struct buf name;
    buf_init(&name, 256);
    buf_append(&name, buf_str(&target->container));
    buf_append_byte(&name, '\0');
    const char *const args[] = {target->engine.at, "kill", name.at, NULL};
    bool killed = engine_does(target->asker->loop, target->engine.at, args);
    (void)killed; /* it may have ended by itself */
    buf_done(&name);
}

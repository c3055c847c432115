/* weir mcp: the agents as tools for a client that starts a program and speaks over its pipes.
 *
 * stdout carries the protocol alone. A daemon that runs with these settings is asked; if none
 * does, one is started for as long as the client stays (cli/own_daemon.h). */
#include "base/mem.h"
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/own_daemon.h"
#include "contract/agentbreeder/options.h"
#include "toolserver/bridge.h"
#include "wire/lines.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

static const char usage[] =
    "weir mcp [-c weir.yaml] [--url URL] [--token TOKEN]\n\n"
    "Serves the agents as tools of the Model Context Protocol over stdin and stdout, for\n"
    "clients that start a program. The daemon of these settings is asked if it runs;\n"
    "otherwise one is started, which ends with the last command that uses it. --url names\n"
    "another daemon, http://host:8080 or its endpoint http://host:8080/mcp, and --token its\n"
    "token (else AGENT_AUTH_TOKEN).\n"
    "stdout carries the protocol alone; the log goes to stderr.\n";

#define URL_MAX_BYTES (4 * KIB)
#define READ_BYTES (64 * KIB)
#define ENDPOINT "/mcp"
#define LINES_AHEAD 64 /* read and not yet sent */

struct mcp_pipes {
    struct loop *loop;
    struct toolserver_bridge *bridge;
    sem_t room; /* for lines that wait for the loop */
    struct mail over;
    bool ended;    /* the client says no more */
    bool broken;   /* the client reads no more */
    bool too_long; /* a line was; set before `ended` is */
};

/* A line on its way from the reading thread to the loop. */
struct mcp_line {
    struct mail mail;
    struct mcp_pipes *pipes;
    struct text text;
};

/* --- stdout ------------------------------------------------------------------------------- */

static bool mcp_write_all(struct str bytes) {
    while (bytes.len) {
        ssize_t wrote = write(STDOUT_FILENO, bytes.at, bytes.len);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0) return false;
        bytes = str_skip(bytes, (size_t)wrote);
    }
    return true;
}

static void stop_if_over(struct mcp_pipes *pipes) {
    if (pipes->broken || (pipes->ended && toolserver_bridge_is_idle(pipes->bridge)))
        loop_stop(pipes->loop);
}

static void mcp_on_message(struct str message, void *ctx) {
    struct mcp_pipes *pipes = ctx;
    pipes->broken = pipes->broken || !mcp_write_all(message) || !mcp_write_all(STR("\n"));
    stop_if_over(pipes);
}

static void on_idle(void *ctx) {
    stop_if_over(ctx);
}

/* --- stdin, on a thread of its own -------------------------------------------------------- */

static void on_line(void *ctx) {
    struct mcp_line *line = ctx;
    struct mcp_pipes *pipes = line->pipes;
    toolserver_bridge_take(pipes->bridge, text_str(line->text));
    text_done(&line->text);
    free(line);
    sem_post(&pipes->room);
}

static void on_over(void *ctx) {
    struct mcp_pipes *pipes = ctx;
    pipes->ended = true;
    stop_if_over(pipes);
}

static void post_line(struct mcp_pipes *pipes, struct str text) {
    struct mcp_line *line = MEM_NEW(struct mcp_line);
    line->pipes = pipes;
    line->text = text_copy(text);
    while (sem_wait(&pipes->room) != 0) {
    }
    loop_post(pipes->loop, &line->mail, on_line, line);
}

/* False: a line is too long to be one of the protocol's. */
static bool post_lines(struct mcp_pipes *pipes, struct lines *lines) {
    struct str line;
    enum lines_found found;
    while ((found = lines_next(lines, &line)) == LINES_ONE) post_line(pipes, line);
    return found == LINES_NONE;
}

static void *mcp_read_lines(void *ctx) {
    struct mcp_pipes *pipes = ctx;
    struct lines lines;
    char *room = mem_alloc(READ_BYTES);
    ssize_t got;
    lines_init(&lines, TOOLSERVER_LINE_MAX_BYTES);
    while ((got = read(STDIN_FILENO, room, READ_BYTES)) != 0) {
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        pipes->too_long =
            !lines_feed(&lines, str_of(room, (size_t)got)) || !post_lines(pipes, &lines);
        if (pipes->too_long) break;
    }
    /* The last line may have no end. */
    if (got == 0 && lines_waiting(&lines) && lines_feed(&lines, STR("\n")))
        (void)post_lines(pipes, &lines);
    loop_post(pipes->loop, &pipes->over, on_over, pipes);
    lines_done(&lines);
    free(room);
    return NULL;
}

/* --- the bridge --------------------------------------------------------------------------- */

struct mcp_target {
    struct daemon_target daemon; /* in use until the client has left */
    struct buf url;
};

static struct mcp_pipes *pipes_new(struct http_pool *pool, const struct mcp_target *target) {
    struct mcp_pipes *pipes = MEM_NEW(struct mcp_pipes);
    pipes->loop = loop_new();
    sem_init(&pipes->room, 0, LINES_AHEAD);
    http_pool_add(pool, pipes->loop);
    pipes->bridge = toolserver_bridge_new(&(struct toolserver_bridge_options){
        .loop = pipes->loop,
        .pool = pool,
        .url = buf_str(&target->url),
        .authorization = buf_str(&target->daemon.authorization),
        .on_message = mcp_on_message,
        .on_idle = on_idle,
        .ctx = pipes});
    return pipes;
}

static void pipes_free(struct mcp_pipes *pipes, struct http_pool *pool) {
    toolserver_bridge_free(pipes->bridge);
    http_pool_leave(pool, pipes->loop);
    loop_free(pipes->loop);
    http_pool_free(pool);
    sem_destroy(&pipes->room);
    free(pipes);
}

/* The thread that reads cannot be woken while it waits for the client. So when the client reads no
 * more, the thread and what it uses are left to the end of the process. */
static bool run_bridge(const struct mcp_target *target, struct err *e) {
    struct http_pool *pool = daemon_target_pool(&target->daemon);
    struct mcp_pipes *pipes = pipes_new(pool, target);
    pthread_t reader;
    bool ok = http_pool_need(pool, e) &&
              (pthread_create(&reader, NULL, mcp_read_lines, pipes) == 0 ||
               err_set(e, ERR_UNAVAILABLE, "no thread can be started to read stdin"));
    if (ok) {
        loop_run(pipes->loop);
        if (!pipes->ended) return true;
        pthread_join(reader, NULL);
        if (pipes->too_long)
            ok = err_set(e, ERR_TOO_LARGE, "a line of stdin is longer than %d MiB",
                         (int)(TOOLSERVER_LINE_MAX_BYTES / MIB));
    }
    pipes_free(pipes, pool);
    return ok;
}

/* --- which daemon ------------------------------------------------------------------------- */

static bool mcp_answers(const struct daemon_target *target) {
    struct buf answer;
    struct err e;
    buf_init(&answer, 64 * KIB);
    bool there = ask_target_whole(target, STR("GET"), STR("/health"), STR_EMPTY, &answer, &e);
    buf_done(&answer);
    return there;
}

/* The daemon that WEIR_URL names, or that runs with these settings, or one of our own. */
static bool choose_daemon(const struct config *config, struct daemon_target *ret,
                          struct own_daemon *own, const struct arguments *all, struct err *e) {
    const struct own_daemon_options options = {.config = config,
                                               .arg_count = all->rest_count,
                                               .args = all->rest,
                                               .more = {"--mcp-server=true"}};
    bool found = daemon_target_find(config, NULL, NULL, ret, e);
    if (daemon_url(NULL)) return found;
    if (found && mcp_answers(ret)) return true;
    return own_daemon_start(own, &options, ret, e);
}

/* "http://host:8080" has no path yet. */
static bool names_endpoint(struct str url) {
    size_t scheme = str_find(url, STR("://"));
    struct str place = scheme < url.len ? str_skip(url, scheme + 3) : url;
    struct str path = str_skip(place, str_find(place, STR("/")));
    while (str_ends(path, STR("/"))) path.len--;
    return path.len > 0;
}

/* An address alone is that of a weir, whose endpoint is /mcp. */
static bool take_endpoint(struct str url, struct buf *out, struct err *e) {
    bool whole = names_endpoint(url);
    if (str_find(url, STR("://")) >= url.len) buf_append(out, STR("http://"));
    while (!whole && str_ends(url, STR("/"))) url.len--;
    buf_append(out, url);
    if (!whole) buf_append(out, STR(ENDPOINT));
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT, "the URL is too long");
}

static bool find_named(const struct asked *asked, struct mcp_target *target, struct err *e) {
    daemon_target_init(&target->daemon, asked->config);
    daemon_target_authorize(&target->daemon, asked->token
                                                 ? str_from(asked->token)
                                                 : agentbreeder_options(asked->config)->token);
    struct str url = str_from(asked->url);
    if (daemon_target_take_socket(&target->daemon, url)) url = STR("http://localhost");
    return take_endpoint(url, &target->url, e);
}

static bool find_target(const struct asked *asked, struct mcp_target *target,
                        struct own_daemon *own, struct err *e) {
    struct daemon_target *daemon = &target->daemon;
    if (asked->url) return find_named(asked, target, e);
    if (!choose_daemon(asked->config, daemon, own, asked->all, e)) return false;
    bool private = own->process > 0 || daemon->shared.lock >= 0;
    if (asked->token && !private) daemon_target_authorize(daemon, str_from(asked->token));
    buf_append(&target->url, buf_str(&daemon->base));
    return str_ends(buf_str(&target->url), STR(ENDPOINT)) ||
           buf_append(&target->url, STR(ENDPOINT)) ||
           err_set(e, ERR_INVALID_ARGUMENT, "the URL is too long");
}

static int mcp_act(const struct asked *asked, void *ctx) {
    struct mcp_target target;
    struct own_daemon own;
    struct err e;
    (void)ctx;
    buf_init(&target.url, URL_MAX_BYTES);
    own_daemon_init(&own);
    bool ok = find_target(asked, &target, &own, &e) && run_bridge(&target, &e);
    own_daemon_stop(&own);
    daemon_target_done(&target.daemon);
    buf_done(&target.url);
    return ok ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

int command_mcp(int arg_count, const char *const *args) {
    static const struct command_form form = {
        .usage = usage, .takes = TAKES_DAEMON, .act = mcp_act};
    signal(SIGPIPE, SIG_IGN); /* a client that reads no more is an error of write() */
    return cli_command(arg_count, args, &form, NULL);
}

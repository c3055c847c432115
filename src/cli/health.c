/* health: does the daemon of these settings serve? For containers without a shell or curl. */
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "contract/admin/options.h"
#include "contract/agentbreeder/options.h"
#include "server/address.h"
#include "wire/json.h"

#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

static const char usage[] =
    "weir health [-c weir.yaml]\n\n"
    "Ask the running daemon whether it serves: /readyz of the operator's listener where there\n"
    "is one (listen.admin), else /health of the HTTP listener (listen.http). It needs no "
    "token,\n"
    "no shell and no other program, as HEALTHCHECK of a container. Exit code 0: it serves; 1: "
    "it\n"
    "does not, or does not answer; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * KIB)
#define WAIT_S 5

/* The whole answer; HTTP/1.0, so it ends with the connection. */
static bool health_exchange(int fd, const struct address *to, struct str request,
                            struct buf *out) {
    const struct timeval wait = {.tv_sec = WAIT_S};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* also of connect() */
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (connect(fd, &to->as.any, to->len) != 0) return false;
    if (send(fd, request.at, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) return false;
    for (;;) {
        char *room = buf_room(out, 4 * KIB);
        ssize_t got = room ? recv(fd, room, 4 * KIB, 0) : -1;
        if (got <= 0) return got == 0;
        buf_grew(out, (size_t)got);
    }
}

/* The body of an answer 200. */
static bool health_read(struct str answer, struct str *ret_body, struct err *e) {
    size_t gap = str_find(answer, STR("\r\n\r\n"));
    struct str rest, line = str_split(answer, '\r', &rest);
    if (gap == answer.len || !str_starts(line, STR("HTTP/1.")))
        return err_set(e, ERR_UNAVAILABLE, "what listens there does not answer as HTTP");
    *ret_body = str_trim(str_skip(answer, gap + 4));
    line = str_skip(line, sizeof("HTTP/1.1 ") - 1);
    if (str_starts(line, STR("200"))) return true;
    return err_set(e, ERR_UNAVAILABLE, "it does not serve (" STR_FMT "): " STR_FMT,
                   STR_ARG(line), STR_ARG(str_head(*ret_body, 512)));
}

/* A wildcard address is reached over loopback. */
static bool health_address(const struct daemon_listener *listener, struct address *ret,
                           struct err *e) {
    char loopback[32];
    struct str where = listener->address;
    if (!address_parse(where, ret, e)) return false;
    if (address_is_local(ret)) return true;
    if (address_port(ret) == 0)
        return err_set(
            e, ERR_FAILED_PRECONDITION,
            "the daemon chose its port itself (%s says 0); name the one it took with "
            "%s HOST:PORT",
            listener->setting, listener->flag);
    bool wild = str_starts(where, STR(":")) || str_starts(where, STR("0.0.0.0:")) ||
                str_starts(where, STR("[::]:"));
    if (!wild) return true;
    snprintf(loopback, sizeof(loopback), "127.0.0.1:%d", address_port(ret));
    return address_parse(str_from(loopback), ret, e);
}

static bool health_get(const struct daemon_listener *listener, const char *path,
                       struct buf *answer, struct str *ret_body, struct err *e) {
    struct address to;
    char request[128];
    if (!health_address(listener, &to, e)) return false;
    int fd = socket(to.as.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return err_set(e, ERR_UNAVAILABLE, "there is no socket to ask with: %m");
    snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\nhost: localhost\r\n\r\n", path);
    bool ok = health_exchange(fd, &to, str_from(request), answer);
    if (!ok) err_set(e, ERR_UNAVAILABLE, "is it running with these settings? %m");
    close(fd);
    return (ok && health_read(buf_str(answer), ret_body, e)) ||
           err_add(e, "ask for %s at " STR_FMT, path, STR_ARG(listener->address));
}

/* /health answers 200 also while weir loads. */
static bool health_is_loaded(struct str body, struct err *e) {
    struct json document;
    struct str status = STR_EMPTY;
    if (!json_read(body, &document, e)) return err_add(e, "the answer of /health");
    struct json member = json_find(document, STR("status"));
    if (member.kind == JSON_STRING && member.raw.len >= 2)
        status = str_head(str_skip(member.raw, 1), member.raw.len - 2);
    return str_equal(status, STR("healthy")) || str_equal(status, STR("ok")) ||
           err_set(e, ERR_UNAVAILABLE, "it does not serve yet: its status is \"" STR_FMT "\"",
                   STR_ARG(status));
}

static bool health_ask(const struct config *config, struct buf *answer, struct err *e) {
    const struct daemon_listener admin = {admin_options(config)->address, "operator's",
                                          "listen.admin", "--admin"};
    const struct daemon_listener http = {agentbreeder_options(config)->listen, "HTTP",
                                         "listen.http", "--http"};
    struct str body;
    if (admin.address.len) return health_get(&admin, "/readyz", answer, &body, e);
    if (!http.address.len)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "these settings have neither listen.admin nor listen.http to ask; turn "
                       "one on, such as --admin 127.0.0.1:9464");
    if (!config->tls.cert.len)
        return health_get(&http, "/health", answer, &body, e) && health_is_loaded(body, e);
    if (ask_daemon_whole(config, STR("GET"), STR("/health"), STR_EMPTY, answer, e))
        return health_is_loaded(buf_str(answer), e);
    return err_add(e, "listen.http has TLS; a listener without it is --admin 127.0.0.1:9464");
}

int command_health(int arg_count, const char *const *args) {
    struct config *config;
    struct buf answer;
    struct err e = {0};
    int code;
    if (!cli_config_quiet(arg_count, args, false, usage, NULL, &config, &code)) return code;
    buf_init(&answer, ANSWER_MAX_BYTES);
    if (config->operand_count) {
        fprintf(stderr, "%s", usage);
        code = EXIT_USAGE;
    } else if (health_ask(config, &answer, &e)) {
        printf("weir serves\n");
        code = EXIT_DONE;
    } else {
        code = cli_fail(EXIT_FAILED, &e);
    }
    buf_done(&answer);
    config_free(config);
    return code;
}

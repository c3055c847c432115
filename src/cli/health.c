/* health: does the daemon of these settings serve? For containers without a shell or curl. */
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "contract/admin/options.h"
#include "contract/agentbreeder/options.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir health [-c weir.yaml]\n\n"
    "Ask the running daemon whether it serves: /readyz of the operator's listener where there\n"
    "is one (listen.admin), else /health of the HTTP listener (listen.http). It needs no "
    "token,\n"
    "no shell and no other program, as HEALTHCHECK of a container. Exit code 0: it serves; 1: "
    "it\n"
    "does not, or does not answer; 2: wrong usage.\n";

#define ANSWER_MAX_BYTES (64 * KIB)
#define WAIT_MS 5000

static bool health_get(const struct config *config, const struct daemon_listener *listener,
                       const char *path, struct buf *answer, struct err *e) {
    const struct daemon_question question = {.method = STR("GET"),
                                             .path = str_from(path),
                                             .on_body = ask_daemon_keep,
                                             .ctx = answer,
                                             .answer_ms = WAIT_MS,
                                             .doubt = "is it running with these settings?"};
    struct daemon_target target;
    bool ok =
        daemon_target_at(config, listener, &target, e) && ask_target(&target, &question, e);
    daemon_target_done(&target);
    return ok || err_add(e, "ask for %s", path);
}

/* /health answers 200 also while weir loads. */
static bool health_is_loaded(struct str body, struct err *e) {
    struct json document;
    if (!json_read(body, &document, e)) return err_add(e, "the answer of /health");
    struct json status = json_find(document, STR("status"));
    return json_is(status, STR("healthy")) || json_is(status, STR("ok")) ||
           err_set(e, ERR_UNAVAILABLE, "it does not serve yet: its status is " STR_FMT,
                   STR_ARG(status.raw));
}

static bool health_ask(const struct config *config, struct buf *answer, struct err *e) {
    const struct daemon_listener admin = {admin_options(config)->address, "operator's",
                                          "listen.admin", "--admin"};
    const struct daemon_listener http = {agentbreeder_options(config)->listen, "HTTP",
                                         "listen.http", "--http"};
    if (admin.address.len) return health_get(config, &admin, "/readyz", answer, e);
    if (!http.address.len)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "these settings have neither listen.admin nor listen.http to ask; turn "
                       "one on, such as --admin 127.0.0.1:9464");
    if (!config->tls.cert.len)
        return health_get(config, &http, "/health", answer, e) &&
               health_is_loaded(buf_str(answer), e);
    if (ask_daemon_whole(config, STR("GET"), STR("/health"), STR_EMPTY, answer, e))
        return health_is_loaded(buf_str(answer), e);
    return err_add(e, "ask for /health");
}

int command_health(int arg_count, const char *const *args) {
    struct config *config;
    struct buf answer;
    struct err e = {0};
    int code;
    if (!cli_config_quiet(arg_count, args, FOR_COMMAND, usage, NULL, &config, &code))
        return code;
    buf_init(&answer, ANSWER_MAX_BYTES);
    if (!cli_operands_fit(config, 0, 0, NULL)) {
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

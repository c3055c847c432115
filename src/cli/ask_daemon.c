#include "cli/ask_daemon.h"

#include "cli/cli.h"
#include "cli/daemon_process.h"
#include "config/build.h"
#include "contract/agentbreeder/options.h"
#include "text/terminal_text.h"
#include "wire/json.h"

#include <stdlib.h>

#define REFUSAL_MAX_BYTES (64 * KIB)
#define TEXT_MAX_BYTES (16 * KIB)
#define ANSWER_MS 120000

struct daemon_ask {
    struct loop *loop;
    const struct daemon_question *question;
    struct str where;
    unsigned status;
    struct buf refusal; /* the body of a refusal */
    struct err *e;
    bool ok;
};

/* --- the daemon's address ----------------------------------------------------------------- */

/* A listener on a wildcard address is reached over loopback. */
static struct str host_of(struct str host) {
    if (host.len == 0 || str_equal(host, STR("0.0.0.0"))) return STR("127.0.0.1");
    return str_equal(host, STR("[::]")) ? STR("[::1]") : host;
}

bool daemon_write_base(const struct config *config, const struct daemon_listener *listener,
                       struct buf *out, struct err *e) {
    struct str address = listener->address;
    size_t colon = address.len;
    while (colon > 0 && address.at[colon - 1] != ':') colon--;
    if (address.len == 0)
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "these settings have no %s listener (%s is off), so the "
                       "daemon cannot be asked; give it one, or name the one it has with %s "
                       "HOST:PORT",
                       listener->what, listener->setting, listener->flag);
    if (str_starts(address, STR("unix:")))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "%s is a Unix socket, which this command cannot ask; give it "
                       "an address with %s",
                       listener->setting, listener->flag);
    struct str port = str_skip(address, colon);
    if (str_equal(port, STR("0")))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "the daemon chose its port itself (%s says 0); name the one it "
                       "took with %s HOST:PORT",
                       listener->setting, listener->flag);
    buf_append(out, config->tls.cert.len ? STR("https://") : STR("http://"));
    buf_append(out, host_of(str_head(address, colon - 1)));
    buf_append_byte(out, ':');
    buf_append(out, port);
    return buf_ok(out) || err_set(e, ERR_INVALID_ARGUMENT, "the address is too long");
}

/* --- whom to ask -------------------------------------------------------------------------- */

static struct daemon_listener http_listener(const struct config *config) {
    return (struct daemon_listener){.address = agentbreeder_options(config)->listen,
                                    .what = "HTTP",
                                    .setting = "listen.http",
                                    .flag = "--http"};
}

/* Whether the settings name a port. By default they name one that any daemon may have. */
static bool names_port(const struct config *config) {
    const struct str *listen = &agentbreeder_options(config)->listen;
    return config_is_set(config, listen) && !str_ends(*listen, STR(":0"));
}

/* The address of the daemon that has the data folder. */
static bool write_resident(const struct config *config, struct buf *out) {
    struct daemon_process process;
    struct err e;
    int64_t port;
    if (names_port(config) || !daemon_process_find(config->data, &process, &e)) return false;
    daemon_process_done(&process);
    if (!daemon_process_port(config->data, STR("http"), &port)) return false;
    buf_printf(out, "%s://127.0.0.1:%lld", config->tls.cert.len ? "https" : "http",
               (long long)port);
    return buf_ok(out);
}

void daemon_target_init(struct daemon_target *target, const struct config *config) {
    target->trust = config->tls.trust;
    target->socket = STR_EMPTY;
    shared_daemon_init(&target->shared);
    buf_init(&target->base, TEXT_MAX_BYTES);
    buf_init(&target->authorization, TEXT_MAX_BYTES);
}

struct str daemon_target_where(const struct daemon_target *target) {
    return target->socket.len ? target->socket : buf_str(&target->base);
}

#define UNIX STR("unix:")

static bool is_socket(struct str url) {
    return str_starts(url, UNIX) && url.len > UNIX.len;
}

struct http_pool *daemon_target_pool(const struct daemon_target *target) {
    struct http_pool *pool = http_pool_new();
    http_pool_trust(pool, target->trust);
    if (target->socket.len) http_pool_connect_to(pool, str_skip(target->socket, UNIX.len));
    return pool;
}

bool daemon_target_take_socket(struct daemon_target *target, struct str address) {
    if (!is_socket(address)) return false;
    target->socket = address;
    return true;
}

void daemon_target_done(struct daemon_target *target) {
    shared_daemon_leave(&target->shared);
    buf_done(&target->base);
    buf_done(&target->authorization);
}

void daemon_target_authorize(struct daemon_target *target, struct str token) {
    buf_clear(&target->authorization);
    if (!token.len) return;
    buf_append(&target->authorization, STR("Bearer "));
    buf_append(&target->authorization, token);
}

bool daemon_target_join(struct daemon_target *target, const struct config *config) {
    struct buf token;
    buf_init(&token, KIB);
    bool joined = shared_daemon_join(&target->shared, config, &target->base, &token);
    if (joined) daemon_target_authorize(target, buf_str(&token));
    buf_done(&token);
    return joined;
}

/* The token is for this machine: a proxy must not see it. */
static void ask_without_proxy(void) {
    /* NOLINTBEGIN(concurrency-mt-unsafe): a command has one thread */
    setenv("no_proxy", "*", 1);
    setenv("NO_PROXY", "*", 1);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

const char *daemon_url(const char *flag) {
    const char *url = flag ? flag : getenv("WEIR_URL"); /* NOLINT(concurrency-mt-unsafe) */
    return url && url[0] ? url : NULL;
}

/* Whether it is a host, and a port where it has one. */
static bool names_host(struct str authority) {
    uint64_t port;
    size_t bracket = str_starts(authority, STR("[")) ? str_find_byte(authority, ']') : 0;
    if (bracket == authority.len) return false;
    size_t colon = bracket + str_find_byte(str_skip(authority, bracket), ':');
    if (colon == 0 || colon == authority.len) return colon > 0;
    return str_to_u64(str_skip(authority, colon + 1), &port) && port > 0 && port < 65536;
}

/* What stands between the scheme and the path. */
static struct str authority_of(struct str url) {
    size_t scheme = str_find(url, STR("://"));
    if (scheme < url.len) url = str_skip(url, scheme + 3);
    url = str_head(url, str_find_byte(url, '/'));
    size_t at = str_find_byte(url, '@');
    return at < url.len ? str_skip(url, at + 1) : url;
}

/* "127.0.0.1:8080" is enough. */
static bool take_url(struct str url, struct buf *out, struct err *e) {
    while (str_ends(url, STR("/"))) url.len--;
    bool known = str_starts(url, STR("http://")) || str_starts(url, STR("https://"));
    bool named = url.len && !str_equal(url, UNIX);
    if ((!known && (!named || str_find(url, STR("://")) < url.len)) ||
        !names_host(authority_of(url)))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "--url (WEIR_URL) must be the address of a daemon, http://HOST:PORT or "
                       "unix:/path, not '" STR_FMT "'",
                       STR_ARG(str_head(url, 200)));
    if (!known) buf_append(out, STR("http://"));
    return buf_append(out, url) || err_set(e, ERR_INVALID_ARGUMENT, "the URL is too long");
}

bool daemon_url_check(const char *flag, struct err *e) {
    struct buf base;
    const char *url = daemon_url(flag);
    if (!url || is_socket(str_from(url))) return true;
    buf_init(&base, TEXT_MAX_BYTES);
    bool fits = take_url(str_from(url), &base, e);
    buf_done(&base);
    return fits;
}

/* --- whose daemon it is ------------------------------------------------------------------- */

/* Whether the settings name a folder that one daemon alone can have. */
static bool names_folder(const struct config *config) {
    return config_is_set(config, &config->data) && !config->store.url.len;
}

/* The daemon's own number of its process. False: it does not say. */
static bool ask_process(const struct daemon_target *target, int64_t *ret) {
    struct buf body;
    struct json answer = {.kind = JSON_NONE};
    struct err e;
    buf_init(&body, REFUSAL_MAX_BYTES);
    bool known =
        ask_target_whole(target, STR("GET"), STR("/weir/v1/status"), STR_EMPTY, &body, &e) &&
        json_read(buf_str(&body), &answer, &e);
    struct json pid = json_find(answer, STR("pid"));
    known = known && json_i64(pid, ret);
    buf_done(&body);
    return known;
}

/* At the usual address any daemon may listen, and --data means one alone. A daemon in a container
 * has the folder under a process id of the container, which the lock repeats. */
static bool check_folder(const struct config *config, const struct daemon_target *target,
                         struct err *e) {
    int64_t its, owner = 0;
    if (!names_folder(config) || !ask_process(target, &its)) return true;
    bool recorded = daemon_process_recorded(config->data, &owner, e);
    if (recorded && owner == its) return true;
    if (!recorded && e->code != ERR_NOT_FOUND) return false;
    return err_set(e, ERR_ABORTED,
                   "no daemon has the data folder " STR_FMT "; the one at " STR_FMT
                   " (process %lld) has another. Start one there, or name a daemon with --url",
                   STR_ARG(config->data), STR_ARG(buf_str(&target->base)), (long long)its);
}

/* The URL of a Unix socket's daemon, which every host name would be. */
static bool append_local(const struct config *config, struct daemon_target *target) {
    return buf_append(&target->base, config->tls.cert.len ? STR("https://localhost")
                                                          : STR("http://localhost"));
}

static bool find_listener(const struct config *config, const struct daemon_listener *listener,
                          struct daemon_target *ret, struct err *e) {
    if (daemon_target_take_socket(ret, listener->address)) return append_local(config, ret);
    return daemon_write_base(config, listener, &ret->base, e);
}

bool daemon_target_at(const struct config *config, const struct daemon_listener *listener,
                      struct daemon_target *ret, struct err *e) {
    daemon_target_init(ret, config);
    ask_without_proxy();
    return find_listener(config, listener, ret, e);
}

/* Where a daemon listens unless it is told otherwise. */
static bool find_usual(const struct config *config, struct daemon_target *ret, struct err *e) {
    const struct daemon_listener http = http_listener(config);
    return find_listener(config, &http, ret, e) &&
           (ret->socket.len || names_port(config) || check_folder(config, ret, e));
}

bool daemon_target_find(const struct config *config, const char *url, const char *token,
                        struct daemon_target *ret, struct err *e) {
    daemon_target_init(ret, config);
    daemon_target_authorize(ret, token ? str_from(token) : agentbreeder_options(config)->token);
    url = daemon_url(url);
    if (url && daemon_target_take_socket(ret, str_from(url))) return append_local(config, ret);
    if (url) return take_url(str_from(url), &ret->base, e);
    ask_without_proxy();
    return daemon_target_join(ret, config) || write_resident(config, &ret->base) ||
           find_usual(config, ret, e);
}

size_t daemon_target_headers(const struct daemon_target *target, struct str body,
                             struct http_header ret[2]) {
    size_t count = 0;
    if (target->authorization.len)
        ret[count++] =
            (struct http_header){STR("authorization"), buf_str(&target->authorization)};
    if (body.len)
        ret[count++] = (struct http_header){STR("content-type"), STR("application/json")};
    return count;
}

/* --- the answer --------------------------------------------------------------------------- */

static void ask_daemon_on_head(const struct http_head *head, void *ctx) {
    ((struct daemon_ask *)ctx)->status = head->status;
}

static void ask_daemon_on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct daemon_ask *ask = ctx;
    if (ask->status < 300) {
        ask->question->on_body(bytes, ask->question->ctx);
    } else {
        buf_append(&ask->refusal, bytes);
    }
}

static enum err_code code_of(unsigned status) {
    if (status == 404) return ERR_NOT_FOUND;
    if (status == 409) return ERR_ABORTED;
    if (status == 503) return ERR_UNAVAILABLE;
    return status < 500 ? ERR_INVALID_ARGUMENT : ERR_INTERNAL;
}

/* {"error":{"message":"..."}}; what else it says is shown as it is. */
bool daemon_refused(unsigned status, struct str body, struct err *e) {
    struct json answer;
    struct err none;
    struct buf shown;
    struct arena *arena = arena_new(REFUSAL_MAX_BYTES);
    struct str message = str_head(str_trim(body), 512);
    buf_init(&shown, ERR_TEXT_BYTES);
    if (json_read(body, &answer, &none)) {
        struct json said = json_find(json_find(answer, STR("error")), STR("message"));
        if (said.kind == JSON_STRING && !json_str(said, arena, &message))
            message = STR("its reason is too long");
    }
    if (!message.len) message = STR("it gave no reason");
    if (terminal_text_append(&shown, message, TERMINAL_ONE_LINE)) message = buf_str(&shown);
    err_set(e, code_of(status), "the daemon answered %u: " STR_FMT "%s", status,
            STR_ARG(message),
            status == 401 || status == 403
                ? " (the token is AGENT_AUTH_TOKEN, or tokens.auth_token_file of the settings)"
                : "");
    buf_done(&shown);
    arena_free(arena);
    return false;
}

static void ask_daemon_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct daemon_ask *ask = ctx;
    if (failed) {
        *ask->e = *failed;
        if (stage == HTTP_CONNECTING && !ask->question->doubt)
            err_set(ask->e, failed->code,
                    "%s; start it with weir serve, or name another one with --url",
                    failed->text);
        err_add(ask->e, "ask the daemon at " STR_FMT " (%s)", STR_ARG(ask->where),
                ask->question->doubt ? ask->question->doubt : "is it running?");
    } else {
        ask->ok =
            ask->status < 300 || daemon_refused(ask->status, buf_str(&ask->refusal), ask->e);
    }
    loop_stop(ask->loop);
}

static const struct http_sink sink = {ask_daemon_on_head, ask_daemon_on_body,
                                      ask_daemon_on_end};

/* --- the request -------------------------------------------------------------------------- */

static bool ask_daemon_start(struct daemon_ask *ask, struct http_pool *pool,
                             const struct daemon_target *target, struct str url) {
    struct http_header headers[2];
    struct str body = ask->question->body;
    size_t count = daemon_target_headers(target, body, headers);
    if (!http_pool_need(pool, ask->e)) return false;
    http_start(pool, ask->loop,
               &(struct http_request){.method = ask->question->method,
                                      .url = url,
                                      .headers = headers,
                                      .header_count = count,
                                      .body = body,
                                      .connect_ms = 5000,
                                      .first_byte_ms = ask->question->answer_ms
                                                           ? ask->question->answer_ms
                                                           : ANSWER_MS,
                                      .stall_ms = 60000},
               &sink, ask);
    loop_run(ask->loop);
    return ask->ok;
}

bool ask_target(const struct daemon_target *target, const struct daemon_question *question,
                struct err *e) {
    struct daemon_ask ask = {
        .question = question, .where = daemon_target_where(target), .e = e};
    struct buf url;
    bool ok = false;
    buf_init(&url, TEXT_MAX_BYTES);
    buf_init(&ask.refusal, REFUSAL_MAX_BYTES);
    buf_append(&url, buf_str(&target->base));
    if (!buf_append(&url, question->path)) {
        err_set(e, ERR_INVALID_ARGUMENT, "the question is too long");
    } else {
        struct http_pool *pool = daemon_target_pool(target);
        ask.loop = loop_new();
        http_pool_add(pool, ask.loop);
        ok = ask_daemon_start(&ask, pool, target, buf_str(&url));
        http_pool_leave(pool, ask.loop);
        loop_free(ask.loop);
        http_pool_free(pool);
    }
    buf_done(&ask.refusal);
    buf_done(&url);
    return ok;
}

void daemon_path_add(struct buf *path, const char *name, struct str value) {
    buf_append_byte(path, str_find_byte(buf_str(path), '?') < path->len ? '&' : '?');
    buf_printf(path, "%s=", name);
    buf_append_percent(path, value, "-._~");
}

void ask_daemon_keep(struct str bytes, void *ctx) {
    buf_append(ctx, bytes);
}

bool ask_target_whole(const struct daemon_target *target, struct str method, struct str path,
                      struct str body, struct buf *out, struct err *e) {
    struct daemon_question question = {method, path, body, ask_daemon_keep, out, 0, NULL};
    if (!ask_target(target, &question, e)) return false;
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the daemon's answer is too long");
}

bool ask_daemon_whole(const struct config *config, struct str method, struct str path,
                      struct str body, struct buf *out, struct err *e) {
    struct daemon_target target;
    bool ok = daemon_target_find(config, NULL, NULL, &target, e) &&
              ask_target_whole(&target, method, path, body, out, e);
    daemon_target_done(&target);
    return ok;
}

/* --- for commands ------------------------------------------------------------------------- */

bool asked_answer(const struct asked *asked, const struct daemon_question *question,
                  struct err *e) {
    struct daemon_target target;
    bool ok = daemon_target_find(asked->config, asked->url, asked->token, &target, e) &&
              ask_target(&target, question, e);
    daemon_target_done(&target);
    return ok;
}

bool asked_whole(const struct asked *asked, struct str method, struct str path, struct str body,
                 struct buf *out, struct err *e) {
    const struct daemon_question question = {method, path, body, ask_daemon_keep, out, 0, NULL};
    if (!asked_answer(asked, &question, e)) return false;
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the daemon's answer is too long");
}

#include "cli/ask_daemon.h"

#include "client/http.h"
#include "contract/agentbreeder/options.h"
#include "wire/json.h"

#include <stdlib.h>

#define REFUSAL_MAX_BYTES (64 * KIB)
#define TEXT_MAX_BYTES (16 * KIB)

struct asking {
    struct loop *loop;
    const struct daemon_question *question;
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

static bool write_url(const struct config *config, struct str path, struct buf *out,
                      struct err *e) {
    const struct daemon_listener http = {agentbreeder_options(config)->listen, "HTTP",
                                         "listen.http", "--http"};
    if (!daemon_write_base(config, &http, out, e)) return false;
    return buf_append(out, path) ||
           err_set(e, ERR_INVALID_ARGUMENT, "the question is too long");
}

/* --- the answer --------------------------------------------------------------------------- */

static void on_head(const struct http_head *head, void *ctx) {
    ((struct asking *)ctx)->status = head->status;
}

static void on_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct asking *asking = ctx;
    if (asking->status < 300) {
        asking->question->on_body(bytes, asking->question->ctx);
    } else {
        buf_append(&asking->refusal, bytes);
    }
}

static enum err_code code_of(unsigned status) {
    if (status == 404) return ERR_NOT_FOUND;
    if (status == 409) return ERR_ABORTED;
    return status < 500 ? ERR_INVALID_ARGUMENT : ERR_INTERNAL;
}

/* Report the daemon's own message: {"error":{"message":"..."}}. */
static bool ask_daemon_refuse(const struct asking *asking) {
    struct json body;
    struct err none;
    struct arena *arena = arena_new(REFUSAL_MAX_BYTES);
    struct str message = STR("it gave no reason");
    if (json_read(buf_str(&asking->refusal), &body, &none)) {
        struct json said = json_find(json_find(body, STR("error")), STR("message"));
        if (said.kind == JSON_STRING && !json_str(said, arena, &message))
            message = STR("its reason is too long");
    }
    err_set(asking->e, code_of(asking->status), "the daemon answered %u: " STR_FMT "%s",
            asking->status, STR_ARG(message),
            asking->status == 401 || asking->status == 403
                ? " (the token is AGENT_AUTH_TOKEN, or tokens.auth_token_file of the settings)"
                : "");
    arena_free(arena);
    return false;
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct asking *asking = ctx;
    (void)stage;
    if (failed) {
        *asking->e = *failed;
        err_add(asking->e, "ask the daemon (is it running with these settings?)");
    } else {
        asking->ok = asking->status < 300 || ask_daemon_refuse(asking);
    }
    loop_stop(asking->loop);
}

static const struct http_sink sink = {on_head, on_body, on_end};

/* --- the request -------------------------------------------------------------------------- */

static bool ask_daemon_start(struct asking *asking, struct http_pool *pool,
                             const struct config *config, struct str url,
                             struct str authorization) {
    struct http_header headers[2];
    size_t count = 0;
    struct str body = asking->question->body;
    if (agentbreeder_options(config)->token.len)
        headers[count++] = (struct http_header){STR("authorization"), authorization};
    if (body.len)
        headers[count++] = (struct http_header){STR("content-type"), STR("application/json")};
    if (!http_pool_need(pool, asking->e)) return false;
    http_start(pool, asking->loop,
               &(struct http_request){.method = asking->question->method,
                                      .url = url,
                                      .headers = headers,
                                      .header_count = count,
                                      .body = body,
                                      .connect_ms = 5000,
                                      .stall_ms = 60000},
               &sink, asking);
    loop_run(asking->loop);
    return asking->ok;
}

bool ask_daemon(const struct config *config, const struct daemon_question *question,
                struct err *e) {
    struct asking asking = {.question = question, .e = e};
    struct buf url, authorization;
    buf_init(&url, TEXT_MAX_BYTES);
    buf_init(&authorization, TEXT_MAX_BYTES);
    buf_init(&asking.refusal, REFUSAL_MAX_BYTES);
    buf_append(&authorization, STR("Bearer "));
    buf_append(&authorization, agentbreeder_options(config)->token);
    /* The token is for this machine: a proxy must not see it. */
    /* NOLINTBEGIN(concurrency-mt-unsafe): a command has one thread */
    setenv("no_proxy", "*", 1);
    setenv("NO_PROXY", "*", 1);
    /* NOLINTEND(concurrency-mt-unsafe) */
    bool ok = false;
    if (write_url(config, question->path, &url, e)) {
        struct http_pool *pool = http_pool_new();
        http_pool_trust(pool, config->tls.trust);
        asking.loop = loop_new();
        http_pool_add(pool, asking.loop);
        ok = ask_daemon_start(&asking, pool, config, buf_str(&url), buf_str(&authorization));
        http_pool_leave(pool, asking.loop);
        loop_free(asking.loop);
        http_pool_free(pool);
    }
    buf_done(&asking.refusal);
    buf_done(&authorization);
    buf_done(&url);
    return ok;
}

static void ask_daemon_keep(struct str bytes, void *ctx) {
    buf_append(ctx, bytes);
}

bool ask_daemon_whole(const struct config *config, struct str method, struct str path,
                      struct str body, struct buf *out, struct err *e) {
    struct daemon_question question = {method, path, body, ask_daemon_keep, out};
    if (!ask_daemon(config, &question, e)) return false;
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the daemon's answer is too long");
}

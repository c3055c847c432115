#include "orchestrator/kube.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "wire/json.h"

#include <stdlib.h>

#define TOKEN_MAX_BYTES (64 * KIB)
#define LINE_MAX_BYTES (2 * MIB) /* one event of a watch */
#define FIRST_BYTE_MS 30000
#define STALL_MS 600000 /* a watch is silent between events; the server ends it before */

struct kube {
    struct loop *loop;
    struct http_pool *http, *own; /* own: with an authority of its own; may be NULL */
    struct text url, token_file, namespace;
};

struct kube_ask {
    struct kube *kube;
    struct kube_events events;
    void *ctx;
    struct http_call *call;
    struct text body, what;
    struct buf answer; /* the body, or the line so far */
    unsigned status;
    int64_t retry_after_ms;
    bool too_long;
};

/* --- where it is -------------------------------------------------------------------------- */

/* NOLINTBEGIN(concurrency-mt-unsafe): the environment is never set */
static bool find_server(const struct kube_options *options, struct buf *ret, struct err *e) {
    const char *host = getenv("KUBERNETES_SERVICE_HOST"),
               *port = getenv("KUBERNETES_SERVICE_PORT");
    if (options->url.len) {
        buf_append(ret, options->url);
        while (str_ends(buf_str(ret), STR("/"))) buf_drop(ret, 1);
        return true;
    }
    if (!host || !*host)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the runtime driver 'kubernetes' is not in a cluster "
                       "(KUBERNETES_SERVICE_HOST is not set); set orchestrator.kubernetes.url");
    bool six = str_find_byte(str_from(host), ':') < strlen(host);
    return buf_printf(ret, six ? "https://[%s]:%s" : "https://%s:%s", host,
                      port && *port ? port : "443");
}
/* NOLINTEND(concurrency-mt-unsafe) */

static bool find_namespace(const struct kube_options *options, struct buf *ret, struct err *e) {
    struct buf text;
    if (options->namespace.len) return buf_append(ret, options->namespace);
    buf_init(&text, KIB);
    bool read = file_read(STR(KUBE_FOLDER "/namespace"), &text, e);
    if (read) buf_append(ret, str_trim(buf_str(&text)));
    buf_done(&text);
    return read ||
           err_add(e, "the namespace of runtimes; set orchestrator.kubernetes.namespace");
}

bool kube_new(const struct kube_options *options, struct kube **ret, struct err *e) {
    struct buf url, namespace;
    bool inside = options->url.len == 0;
    struct str ca = options->ca_file, token = options->token_file;
    if (inside && !ca.len) ca = STR(KUBE_FOLDER "/ca.crt");
    if (inside && !token.len) token = STR(KUBE_FOLDER "/token");
    buf_init(&url, 4 * KIB);
    buf_init(&namespace, KIB);
    bool good = find_server(options, &url, e) && find_namespace(options, &namespace, e);
    if (good) {
        struct kube *kube = MEM_NEW(struct kube);
        kube->loop = options->loop;
        kube->http = options->http;
        kube->url = text_copy(buf_str(&url));
        kube->namespace = text_copy(buf_str(&namespace));
        kube->token_file = text_copy(token);
        if (ca.len) {
            kube->http = kube->own = http_pool_new();
            http_pool_trust(kube->own, ca);
            http_pool_add(kube->own, kube->loop);
        }
        good = http_pool_need(kube->http, e);
        *ret = kube;
        if (!good) {
            kube_leave(kube);
            kube_free(kube);
        }
    }
    buf_done(&url);
    buf_done(&namespace);
    return good;
}

void kube_leave(struct kube *kube) {
    if (kube->own) http_pool_leave(kube->own, kube->loop);
}

void kube_free(struct kube *kube) {
    if (!kube) return;
    http_pool_free(kube->own);
    text_done(&kube->url);
    text_done(&kube->token_file);
    text_done(&kube->namespace);
    free(kube);
}

struct str kube_namespace(const struct kube *kube) {
    return text_str(kube->namespace);
}

/* --- refusals ----------------------------------------------------------------------------- */

static const struct {
    unsigned status;
    enum err_code code;
    bool again;
    const char *fix;
} faults[] = {
    {401, ERR_UNAUTHENTICATED, true, "the token of the service account is not accepted"},
    {403, ERR_PERMISSION_DENIED, false,
     "grant the service account get, list, watch, create and delete on deployments and "
     "services"},
    {404, ERR_NOT_FOUND, false, "is the namespace there?"},
    {409, ERR_ABORTED, true, "it is being changed"},
    {410, ERR_OUT_OF_RANGE, false, "the version is too old"},
    {422, ERR_FAILED_PRECONDITION, false, "correct orchestrator.kubernetes.*"},
    {429, ERR_RESOURCE_EXHAUSTED, true, "the API server is busy"},
};

/* A quota is a 403 whose text says so. */
static bool is_quota(unsigned status, struct str message) {
    return status == 403 && str_find(message, STR("exceeded quota")) < message.len;
}

bool kube_fault(unsigned status, struct str body, struct str what, struct err *ret) {
    struct json root;
    struct err e;
    enum err_code code = ERR_UNAVAILABLE;
    const char *fix = "try again later";
    bool again = status >= 500 || status == 408;
    struct json message = {0};
    bool read = json_read(body, &root, &e);
    if (read) message = json_find(root, STR("message"));
    struct buf whole;
    buf_init(&whole, 4 * KIB);
    (void)json_text(message, &whole);
    struct str text = str_head(buf_str(&whole), 180);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (faults[i].status != status) continue;
        code = faults[i].code;
        fix = faults[i].fix;
        again = faults[i].again;
    }
    if (read && status == 409 && json_is(json_find(root, STR("reason")), STR("AlreadyExists")))
        code = ERR_ALREADY_EXISTS;
    if (is_quota(status, buf_str(&whole))) {
        code = ERR_RESOURCE_EXHAUSTED;
        fix = "raise the quota of the namespace";
    }
    err_set(ret, code, "Kubernetes refused (%u) to " STR_FMT "%s" STR_FMT "; %s", status,
            STR_ARG(what), text.len ? ": " : "", STR_ARG(text), fix);
    buf_done(&whole);
    return again;
}

/* --- one request -------------------------------------------------------------------------- */

static void kube_ask_free(struct kube_ask *ask) {
    buf_done(&ask->answer);
    text_done(&ask->body);
    text_done(&ask->what);
    free(ask);
}

static bool is_good(const struct kube_ask *ask) {
    return ask->status >= 200 && ask->status < 300;
}

static void on_head(const struct http_head *head, void *ctx) {
    struct kube_ask *ask = ctx;
    ask->status = head->status;
    ask->retry_after_ms = head->retry_after_ms;
}

/* on_line may cancel, so nothing of the ask is touched after the last line. */
static void on_body(struct lent bytes, void *ctx) {
    struct kube_ask *ask = ctx;
    struct buf lines;
    buf_append(&ask->answer, lent_read(bytes));
    if (!ask->events.on_line || !is_good(ask)) return;
    struct str whole = buf_str(&ask->answer);
    size_t end = whole.len;
    while (end > 0 && whole.at[end - 1] != '\n') end--;
    ask->too_long = !buf_ok(&ask->answer);
    if (end == 0) return;
    buf_init(&lines, end);
    buf_append(&lines, str_head(whole, end));
    struct text rest = text_copy(str_skip(whole, end));
    buf_clear(&ask->answer);
    buf_append(&ask->answer, text_str(rest));
    text_done(&rest);
    void (*on_line)(struct str lines, void *ctx) = ask->events.on_line;
    void *line_ctx = ask->ctx;
    on_line(buf_str(&lines), line_ctx);
    buf_done(&lines);
}

static void on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct kube_ask *ask = ctx;
    struct err why;
    bool again = true;
    (void)stage;
    ask->call = NULL;
    if (failed) {
        why = *failed;
        err_add(&why, "the Kubernetes API at " STR_FMT, STR_ARG(text_str(ask->kube->url)));
        failed = &why;
    } else if (!is_good(ask)) {
        again = kube_fault(ask->status, buf_str(&ask->answer), text_str(ask->what), &why);
        failed = &why;
    } else if (!buf_ok(&ask->answer) || ask->too_long) {
        again = !err_set(&why, ERR_TOO_LARGE, "an answer of Kubernetes is too long");
        failed = &why;
    }
    int64_t again_ms = !again ? -1 : ask->retry_after_ms > 0 ? ask->retry_after_ms : 0;
    ask->events.on_end(buf_str(&ask->answer), failed, again_ms, ask->ctx);
    kube_ask_free(ask);
}

static void add_token(const struct kube *kube, struct buf *ret) {
    struct err e;
    struct buf token;
    if (!kube->token_file.at) return;
    buf_init(&token, TOKEN_MAX_BYTES);
    if (text_str(kube->token_file).len && file_read(text_str(kube->token_file), &token, &e))
        buf_printf(ret, "Bearer " STR_FMT, STR_ARG(str_trim(buf_str(&token))));
    buf_done(&token);
}

struct kube_ask *kube_start(struct kube *kube, struct str method, struct str path,
                            struct str body, const struct kube_events *events, void *ctx) {
    static const struct http_sink sink = {on_head, on_body, on_end};
    struct kube_ask *ask = MEM_NEW(struct kube_ask);
    struct buf url, token;
    struct http_header headers[3];
    size_t count = 0;
    *ask = (struct kube_ask){.kube = kube, .events = *events, .ctx = ctx, .retry_after_ms = -1};
    buf_init(&ask->answer, events->on_line ? LINE_MAX_BYTES : KUBE_BODY_MAX_BYTES);
    ask->body = text_copy(body);
    buf_init(&url, 8 * KIB);
    buf_init(&token, TOKEN_MAX_BYTES + 16);
    buf_printf(&url, STR_FMT " " STR_FMT, STR_ARG(method),
               STR_ARG(str_head(path, str_find_byte(path, '?'))));
    ask->what = text_copy(buf_str(&url));
    buf_clear(&url);
    buf_append(&url, text_str(kube->url));
    buf_append(&url, path);
    add_token(kube, &token);
    headers[count++] = (struct http_header){STR("accept"), STR("application/json")};
    if (body.len)
        headers[count++] =
            (struct http_header){STR("content-type"), str_equal(method, STR("PATCH"))
                                                          ? STR("application/merge-patch+json")
                                                          : STR("application/json")};
    if (token.len)
        headers[count++] = (struct http_header){STR("authorization"), buf_str(&token)};
    ask->call = http_start(kube->http, kube->loop,
                           &(struct http_request){.method = method,
                                                  .url = buf_str(&url),
                                                  .headers = headers,
                                                  .header_count = count,
                                                  .body = text_str(ask->body),
                                                  .first_byte_ms = FIRST_BYTE_MS,
                                                  .stall_ms = STALL_MS},
                           &sink, ask);
    buf_done(&url);
    buf_done(&token);
    return ask;
}

void kube_cancel(struct kube_ask *ask) {
    http_cancel(ask->call);
    kube_ask_free(ask);
}

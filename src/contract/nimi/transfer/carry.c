#include "contract/nimi/transfer/carry.h"

#include "base/mem.h"
#include "contract/nimi/endpoint.h"
#include "contract/nimi/offered.h"
#include "contract/nimi/transfer/pull.h"
#include "contract/nimi/transfer/speed.h"
#include "wire/json.h"

#include <stdlib.h>

#define TELL_MS 250                /* between two events of one download */
#define BODY_MAX_BYTES (512 * MIB) /* a week of lines */
#define ERROR_MAX_BYTES (4 * KIB)
#define URL_MAX_BYTES (8 * KIB)

struct download_carry {
    struct download *download;
    struct http_call *call; /* NULL: over */
    struct buf body;        /* of the request */
    struct buf refusal;     /* the body of a refusal */
    unsigned status;        /* 0: no answer yet */
    struct pull pull;
    struct speed speed;
    uint64_t told_ms;   /* 0: nothing yet */
    struct timer later; /* tells what came too soon after that */
};

/* --- ending ------------------------------------------------------------------------------- */

static void carry_free(struct download *download) {
    struct download_carry *carry = download->carry;
    download->carry = NULL;
    list_remove(&download->carried);
    timer_stop(&carry->later);
    pull_done(&carry->pull);
    buf_done(&carry->body);
    buf_done(&carry->refusal);
    free(carry);
}

void download_carry_stop(struct download *download) {
    if (!download->carry) return;
    if (download->carry->call) http_cancel(download->carry->call);
    carry_free(download);
}

static void carry_fail(struct download_carry *carry, int reason, bool retryable,
                       struct str message) {
    struct download *download = carry->download;
    const struct download_end end = {DOWNLOAD_FAILED, message, reason, retryable};
    download_finish(download, &end); /* copies the message */
    download_carry_stop(download);
}

/* What the server said went wrong. */
static void server_failed(struct download_carry *carry, struct str why, bool retryable) {
    bool mismatch = str_find(why, STR("digest mismatch")) < why.len;
    carry_fail(carry,
               mismatch ? NIMI_AI_LOCAL_DOWNLOAD_HASH_MISMATCH : NIMI_AI_LOCAL_DOWNLOAD_FAILED,
               retryable, why);
}

/* What it sent cannot be read. */
static void carry_spoil(struct download_carry *carry, const struct err *why) {
    carry_fail(carry, NIMI_AI_LOCAL_DOWNLOAD_FAILED, why->code == ERR_UNAVAILABLE,
               err_text(why));
}

/* --- progress ----------------------------------------------------------------------------- */

static const char *phase_of(struct str status) {
    static const struct {
        struct str head;
        const char *phase;
    } phases[] = {
        {STR_INIT("pulling manifest"), "manifest"},
        {STR_INIT("pulling "), "download"},
        {STR_INIT("verifying"), "verify"},
    };
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        if (str_starts(status, phases[i].head)) return phases[i].phase;
    }
    return "install";
}

static void carry_report(struct download_carry *carry, uint64_t now_ms) {
    const struct pull *pull = &carry->pull;
    int64_t speed = speed_now(&carry->speed, now_ms, pull->received);
    carry->told_ms = now_ms;
    download_report(
        carry->download,
        &(struct download_news){.phase = str_from(phase_of(str_from(pull->text))),
                                .message = str_from(pull->text),
                                .received = pull->received,
                                .total = pull->total,
                                .speed = speed,
                                .left_s = speed_left_s(speed, pull->received, pull->total)});
}

static void on_later(void *ctx) {
    struct download_carry *carry = ctx;
    carry_report(carry, loop_now_ms(carry->download->home->host->loop));
}

/* At once, or when enough time has passed since the last event: then with what is known then. */
static void note_progress(struct download_carry *carry, uint64_t now_ms) {
    speed_note(&carry->speed, now_ms, carry->pull.received);
    if (timer_waits(&carry->later)) return;
    if (carry->told_ms && now_ms < carry->told_ms + TELL_MS) {
        timer_start(&carry->later, carry->told_ms + TELL_MS - now_ms);
    } else {
        carry_report(carry, now_ms);
    }
}

/* False: the download is over. */
static bool look_at_outcome(struct download_carry *carry) {
    struct download *download = carry->download;
    const struct pull *pull = &carry->pull;
    if (pull->outcome == PULL_FAILED) {
        server_failed(carry, str_from(pull->text), true);
        return false;
    }
    if (pull->outcome == PULL_GOES_ON) return true;
    download_report(download, &(struct download_news){.phase = STR("install"),
                                                      .message = str_from(pull->text),
                                                      .received = pull->total,
                                                      .total = pull->total});
    download_finish(download, &(struct download_end){DOWNLOAD_COMPLETED,
                                                     STR("the model is installed"), 0, false});
    download_carry_stop(download);
    return false;
}

/* --- the answer --------------------------------------------------------------------------- */

static void carry_on_head(const struct http_head *head, void *ctx) {
    struct download_carry *carry = ctx;
    carry->status = head->status;
}

static void carry_on_body(struct lent bytes, void *ctx) {
    struct download_carry *carry = ctx;
    struct err e;
    if (carry->status != 200) {
        buf_append(&carry->refusal,
                   str_head(lent_read(bytes), ERROR_MAX_BYTES - carry->refusal.len));
    } else if (!pull_feed(&carry->pull, lent_read(bytes), &e)) {
        carry_spoil(carry, &e);
    } else if (look_at_outcome(carry)) {
        note_progress(carry, loop_now_ms(carry->download->home->host->loop));
    }
}

/* {"error": "..."}, or what a server that has no such thing says. */
static void carry_refused(struct download_carry *carry) {
    struct json said;
    struct err e;
    struct buf why, text;
    buf_init(&why, ERROR_MAX_BYTES);
    buf_init(&text, ERROR_MAX_BYTES);
    bool told = json_read(buf_str(&carry->refusal), &said, &e) &&
                json_text(json_find(said, STR("error")), &text);
    buf_printf(&why, "the server answered %u", carry->status);
    if (told) buf_printf(&why, ": " STR_FMT, STR_ARG(buf_str(&text)));
    if (!told && (carry->status == 404 || carry->status == 405))
        buf_append(&why, STR(" to POST /api/pull: it installs no models; install this one by "
                             "its own means"));
    server_failed(carry, buf_str(&why), carry->status >= 500 || carry->status == 429);
    buf_done(&text);
    buf_done(&why);
}

static void carry_broke(struct download_carry *carry, const struct err *failed) {
    bool silent = failed->code == ERR_DEADLINE_EXCEEDED;
    int reason = !carry->status ? NIMI_AI_PROVIDER_UNAVAILABLE : NIMI_AI_LOCAL_DOWNLOAD_FAILED;
    carry_fail(carry, silent ? NIMI_AI_PROVIDER_TIMEOUT : reason,
               failed->code != ERR_PERMISSION_DENIED && failed->code != ERR_TOO_LARGE,
               err_text(failed));
}

static void carry_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct download_carry *carry = ctx;
    struct err e;
    (void)stage;
    carry->call = NULL;
    if (failed) {
        carry_broke(carry, failed);
    } else if (carry->status != 200) {
        carry_refused(carry);
    } else if (!pull_end(&carry->pull, &e)) {
        carry_spoil(carry, &e);
    } else {
        look_at_outcome(carry);
    }
}

/* --- the request -------------------------------------------------------------------------- */

void download_url(struct str base_url, struct buf *out) {
    static const struct str tails[] = {STR_INIT("/"), STR_INIT("/v1"), STR_INIT("/")};
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        if (str_ends(base_url, tails[i]))
            base_url = str_head(base_url, base_url.len - tails[i].len);
    }
    buf_append(out, base_url);
    buf_append(out, STR("/api/pull"));
}

static const struct nimi_connector *connector_of(const struct download *download) {
    const struct nimi_connector *connector =
        offered_find(download->home->settings, text_str(download->connector));
    bool asked = connector && connector->local && connector->enabled;
    return asked && connector->probe_url.len ? connector : NULL;
}

static void carry_put_body(struct buf *out, struct str model) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "model", model);
    json_member_bool(&json, "stream", true);
    json_close(&json);
}

static void carry_ask(struct download_carry *carry, struct str url) {
    static const struct http_sink sink = {carry_on_head, carry_on_body, carry_on_end};
    static const struct http_header headers[] = {
        {STR_INIT("content-type"), STR_INIT("application/json")},
        {STR_INIT("accept"), STR_INIT("application/x-ndjson")}};
    const struct nimi_instance *home = carry->download->home;
    const struct http_request request = {.method = STR_INIT("POST"),
                                         .url = url,
                                         .headers = headers,
                                         .header_count = ARRAY_LEN(headers),
                                         .body = buf_str(&carry->body),
                                         .first_byte_ms = home->settings->transfer_silence_ms,
                                         .stall_ms = home->settings->transfer_silence_ms,
                                         .body_max_bytes = BODY_MAX_BYTES,
                                         .reach = HTTP_NOT_LINK_LOCAL,
                                         .once = true};
    carry->call = http_start(home->keys.pool, home->host->loop, &request, &sink, carry);
}

void download_carry_start(struct download *download) {
    const struct nimi_connector *connector = connector_of(download);
    const struct nimi_settings *settings = download->home->settings;
    struct download_carry *carry = MEM_NEW(struct download_carry);
    struct buf url;
    carry->download = download;
    download->carry = carry;
    list_append(&download->home->downloads, &download->carried);
    timer_init(&carry->later, download->home->host->loop, on_later, carry);
    pull_init(&carry->pull);
    buf_init(&carry->body, ERROR_MAX_BYTES);
    buf_init(&carry->refusal, ERROR_MAX_BYTES);
    buf_init(&url, URL_MAX_BYTES);
    carry_put_body(&carry->body, text_str(download->model));
    if (connector) download_url(connector->probe_url, &url);
    if (!connector || !buf_ok(&url) || !buf_ok(&carry->body) || !download->home->keys.pool) {
        carry_fail(
            carry, NIMI_AI_CONNECTOR_NOT_FOUND, true,
            STR("the connector of this model is gone, is switched off, or has no server"));
    } else if (!endpoint_is_safe(connector->probe_url, settings->allow_loopback
                                                           ? ENDPOINT_LOOPBACK_TOO
                                                           : ENDPOINT_FAR_ONLY)) {
        carry_fail(carry, NIMI_AI_PROVIDER_ENDPOINT_FORBIDDEN, false,
                   STR("the connector's endpoint must be https, or on this machine with "
                       "nimi.allow_loopback_provider_endpoint"));
    } else {
        carry_ask(carry, buf_str(&url));
    }
    buf_done(&url);
}

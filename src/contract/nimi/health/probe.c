#include "contract/nimi/health/probe.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URL_MAX_BYTES (2 * KIB)
#define BODY_MAX_BYTES (4 * MIB) /* the body is ignored */

/* --- judging a response ------------------------------------------------------------------- */

enum probe_verdict probe_judge(unsigned status) {
    if (status >= 200 && status < 400) return PROBE_REACHED;
    switch (status) {
    case 401:
    case 403:
    case 429: return PROBE_REACHED;
    case 404: return PROBE_NEXT;
    default: return PROBE_MISSED;
    }
}

static bool is_version(struct str segment) {
    return segment.len > 1 && segment.at[0] == 'v' && segment.at[1] >= '0' &&
           segment.at[1] <= '9';
}

static struct str without_version(struct str url) {
    while (str_ends(url, STR("/"))) url = str_head(url, url.len - 1);
    size_t slash = url.len;
    while (slash > 0 && url.at[slash - 1] != '/') slash--;
    return slash && is_version(str_skip(url, slash)) ? str_head(url, slash - 1) : url;
}

bool probe_url(struct str base_url, size_t index, struct buf *out) {
    static const struct str paths[] = {STR_INIT("/healthz"), STR_INIT("/v1/models")};
    if (index >= ARRAY_LEN(paths)) return false;
    return buf_append(out, without_version(base_url)) && buf_append(out, paths[index]);
}

bool probed_note(struct nimi_probed *probed, bool healthy, const char *reason, int64_t now_ms) {
    enum nimi_probe_state next = healthy ? NIMI_PROBE_HEALTHY : NIMI_PROBE_UNHEALTHY;
    bool changed = next != probed->state;
    if (changed) probed->changed_ms = now_ms;
    probed->state = next;
    probed->checked_ms = now_ms;
    probed->failures = healthy ? 0 : probed->failures + 1;
    snprintf(probed->reason, sizeof(probed->reason), "%s", reason);
    return changed;
}

/* --- one provider ------------------------------------------------------------------------- */

struct target {
    struct prober *prober;
    char *base_url; /* NUL-terminated */
    struct nimi_probed found;
    struct http_call *call; /* NULL unless a request is open */
    size_t path;            /* index of the path */
    unsigned status;        /* 0: no answer yet */
};

struct prober {
    struct prober_options options;
    struct target targets[NIMI_PROBED_MAX];
    size_t count;
    struct timer timer;
};

static void probe_ask(struct target *target);
static void probe_look(struct prober *prober);

static void probe_settle(struct target *target, bool healthy, const char *reason) {
    if (probed_note(&target->found, healthy, reason, clock_unix_ms())) {
        const struct prober_options *options = &target->prober->options;
        if (options->verdict) options->verdict(&target->found, options->ctx);
        if (healthy) {
            log_info("provider %s can be reached", target->found.name);
        } else {
            log_warning("provider %s cannot be reached: %s", target->found.name, reason);
        }
    }
    probe_look(target->prober);
}

static void probe_on_head(const struct http_head *head, void *ctx) {
    ((struct target *)ctx)->status = head->status;
}

static void probe_on_body(struct lent bytes, void *ctx) {
    (void)bytes, (void)ctx;
}

static void probe_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct target *target = ctx;
    char reason[sizeof(target->found.reason)];
    (void)stage;
    target->call = NULL;
    if (!target->status) {
        probe_settle(target, false, failed ? failed->text : "it did not answer");
        return;
    }
    switch (probe_judge(target->status)) {
    case PROBE_REACHED: probe_settle(target, true, ""); return;
    case PROBE_NEXT:
        target->path++;
        probe_ask(target);
        return;
    case PROBE_MISSED: break;
    }
    snprintf(reason, sizeof(reason), "it answers %u", target->status);
    probe_settle(target, false, reason);
}

static void probe_ask(struct target *target) {
    static const struct http_sink sink = {probe_on_head, probe_on_body, probe_on_end};
    const struct prober_options *options = &target->prober->options;
    struct buf url;
    buf_init(&url, URL_MAX_BYTES);
    target->status = 0;
    if (probe_url(str_from(target->base_url), target->path, &url)) {
        const struct http_request request = {.method = STR_INIT("GET"),
                                             .url = buf_str(&url),
                                             .reach = HTTP_NOT_LINK_LOCAL,
                                             .total_ms = PROBE_TOTAL_MS,
                                             .body_max_bytes = BODY_MAX_BYTES};
        target->call = http_start(options->pool, options->loop, &request, &sink, target);
    } else {
        probe_settle(target, false, "it answers 404");
    }
    buf_done(&url);
}

/* --- all of them -------------------------------------------------------------------------- */

/* Publish the results, and report a change of the runtime's state. */
static void probe_look(struct prober *prober) {
    struct nimi_probed found[NIMI_PROBED_MAX];
    size_t down = 0;
    for (size_t i = 0; i < prober->count; i++) {
        found[i] = prober->targets[i].found;
        down += found[i].state == NIMI_PROBE_UNHEALTHY;
    }
    bool all_down = down && down == prober->count;
    if (nimi_runtime_probed(prober->options.runtime, found, prober->count, all_down))
        prober->options.changed(prober->options.ctx);
}

static void probe_on_time(void *ctx) {
    struct prober *prober = ctx;
    timer_start(&prober->timer, prober->options.settings->probe_ms);
    for (size_t i = 0; i < prober->count; i++) {
        if (prober->targets[i].call) continue; /* the previous probe is still open */
        prober->targets[i].path = 0;
        probe_ask(&prober->targets[i]);
    }
}

static struct str name_of(const struct nimi_connector *connector) {
    return connector->provider ? connector->provider->name : connector->media->name;
}

static struct target *probe_find(struct prober *prober, struct str name) {
    for (size_t i = 0; i < prober->count; i++) {
        if (str_equal(str_from(prober->targets[i].found.name), name))
            return &prober->targets[i];
    }
    return NULL;
}

static void probe_drop(struct target *target) {
    if (target->call) http_cancel(target->call);
    target->call = NULL;
    free(target->base_url);
}

/* The earlier state of a provider, if its name and base URL are unchanged. */
static struct nimi_probed known(const struct target *before, size_t count, struct str name,
                                struct str base_url) {
    struct nimi_probed ret = {.state = NIMI_PROBE_UNKNOWN};
    for (size_t i = 0; i < count; i++) {
        if (str_equal(str_from(before[i].found.name), name) &&
            str_equal(str_from(before[i].base_url), base_url))
            return before[i].found;
    }
    snprintf(ret.name, sizeof(ret.name), STR_FMT, STR_ARG(name));
    return ret;
}

static void probe_fill(struct prober *prober) {
    const struct nimi_settings *settings = prober->options.settings;
    struct target before[NIMI_PROBED_MAX];
    size_t before_count = prober->count;
    memcpy(before, prober->targets, sizeof(before));
    prober->count = 0;
    for (size_t i = 0; i < settings->connector_count; i++) {
        const struct nimi_connector *connector = &settings->connectors[i];
        struct str url = connector->probe_url;
        if (!url.len || !connector->enabled || prober->count == NIMI_PROBED_MAX) continue;
        struct str name = str_head(name_of(connector), NIMI_PROBED_NAME_BYTES - 1);
        if (probe_find(prober, name)) continue;
        struct target *target = &prober->targets[prober->count++];
        *target = (struct target){.prober = prober,
                                  .base_url = str_dup(url),
                                  .found = known(before, before_count, name, url)};
    }
    for (size_t i = 0; i < before_count; i++) probe_drop(&before[i]);
}

void prober_use(struct prober *prober, const struct nimi_settings *settings) {
    prober->options.settings = settings;
    timer_stop(&prober->timer);
    for (size_t i = 0; i < prober->count; i++) {
        if (prober->targets[i].call) http_cancel(prober->targets[i].call);
        prober->targets[i].call = NULL;
    }
    probe_fill(prober);
    probe_look(prober);
    if (prober->count && settings->probe_ms) probe_on_time(prober);
}

struct prober *prober_start(const struct prober_options *options) {
    struct prober *prober = MEM_NEW(struct prober);
    prober->options = *options;
    timer_init(&prober->timer, options->loop, probe_on_time, prober);
    prober_use(prober, options->settings);
    return prober;
}

void prober_free(struct prober *prober) {
    if (!prober) return;
    timer_stop(&prober->timer);
    for (size_t i = 0; i < prober->count; i++) probe_drop(&prober->targets[i]);
    free(prober);
}

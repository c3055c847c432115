#include "orchestrator/kube_watch.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "object/ask.h"
#include "orchestrator/kube_manifest.h"
#include "wire/json.h"

#include <stdlib.h>

#define ARENA_BYTES (64 * KIB)
#define VERSION_MAX_BYTES 256
#define WATCH_S "240" /* then the server ends it, and we go on */
#define SHORT_MS 1000 /* a watch that ends in this time was none */

struct kube_watch {
    struct kube *kube;
    struct loop *loop;
    struct kube_watch_events events;
    void *ctx;
    struct kube_ask *ask; /* NULL: waiting for the timer */
    struct timer timer;
    struct buf version; /* empty: list */
    struct buf next;    /* of a list: the next page */
    unsigned failures;
    uint64_t asked_ms;
    bool heard; /* an event since it was asked */
    bool stale; /* the version is of no use any more */
};

/* --- objects ------------------------------------------------------------------------------ */

static void see(struct kube_watch *watch, struct json object, bool gone) {
    struct arena *arena = arena_new(ARENA_BYTES);
    struct json meta = json_find(object, STR("metadata")),
                status = json_find(object, STR("status"));
    struct kube_seen seen = {.workspace = STR_EMPTY};
    int64_t ready = 0, made = 0, observed = 0;
    bool named = json_str(json_find(meta, STR("name")), arena, &seen.name) &&
                 json_str(json_find(json_find(meta, STR("annotations")), STR(KUBE_WORKSPACE)),
                          arena, &seen.workspace);
    (void)!json_i64(json_find(status, STR("readyReplicas")), &ready);
    (void)!json_i64(json_find(meta, STR("generation")), &made);
    (void)!json_i64(json_find(status, STR("observedGeneration")), &observed);
    seen.deleting = json_find(meta, STR("deletionTimestamp")).kind == JSON_STRING;
    seen.ready = ready > 0 && observed >= made && !seen.deleting;
    if (named && gone)
        watch->events.on_gone(seen.name, watch->ctx);
    else if (named)
        watch->events.on_there(&seen, watch->ctx);
    arena_free(arena);
}

static void take_version(struct kube_watch *watch, struct json object) {
    struct buf version;
    buf_init(&version, VERSION_MAX_BYTES);
    if (json_text(json_find(json_find(object, STR("metadata")), STR("resourceVersion")),
                  &version) &&
        version.len) {
        buf_clear(&watch->version);
        buf_append(&watch->version, buf_str(&version));
    }
    buf_done(&version);
}

/* --- asking ------------------------------------------------------------------------------- */

static void go(void *ctx);

enum pause { PAUSE_NONE, PAUSE_GROWING };

static void again(struct kube_watch *watch, const struct err *failed, enum pause pause,
                  int64_t after_ms) {
    uint64_t pause_ms = pause == PAUSE_GROWING ? object_pause_ms(++watch->failures) : 0;
    if (failed) log_often(LOG_WARNING, "runtimes in Kubernetes: %s", failed->text);
    if (after_ms > 0) pause_ms += (uint64_t)after_ms;
    timer_start(&watch->timer, pause_ms);
}

static bool take_event(struct kube_watch *watch, struct str line) {
    struct json event;
    struct err e;
    if (!json_read(line, &event, &e)) return false;
    struct json type = json_find(event, STR("type")), object = json_find(event, STR("object"));
    if (json_is(type, STR("ERROR"))) return false; /* 410, mostly */
    take_version(watch, object);
    watch->failures = 0;
    watch->heard = true;
    if (json_is(type, STR("DELETED")))
        see(watch, object, true);
    else if (!json_is(type, STR("BOOKMARK")))
        see(watch, object, false);
    return true;
}

static void on_lines(struct str lines, void *ctx) {
    struct kube_watch *watch = ctx;
    while (lines.len && !watch->stale) {
        struct str line = str_split(lines, '\n', &lines);
        if (str_trim(line).len) watch->stale = !take_event(watch, str_trim(line));
    }
}

/* A server, or a proxy before it, that ends each watch at once is not asked in a circle. */
static void on_watch_end(struct str body, const struct err *failed, int64_t after_ms,
                         void *ctx) {
    struct kube_watch *watch = ctx;
    (void)body;
    watch->ask = NULL;
    if (watch->stale || (failed && failed->code == ERR_OUT_OF_RANGE)) {
        buf_clear(&watch->version);
        failed = NULL;
    }
    watch->stale = false;
    bool at_once = !watch->heard && loop_now_ms(watch->loop) - watch->asked_ms < SHORT_MS;
    again(watch, failed, failed || at_once ? PAUSE_GROWING : PAUSE_NONE, after_ms);
}

static void kube_watch_on_page(struct str body, const struct err *failed, int64_t after_ms,
                               void *ctx) {
    struct kube_watch *watch = ctx;
    struct json list, item;
    struct err why;
    watch->ask = NULL;
    if (!failed && !json_read(body, &list, &why)) failed = &why;
    bool first = watch->next.len == 0;
    buf_clear(&watch->next);
    if (failed) {
        again(watch, failed, PAUSE_GROWING, after_ms);
        return;
    }
    if (first) watch->events.on_list(true, watch->ctx);
    struct json_reader reader = json_enter(json_find(list, STR("items")));
    while (json_next_item(&reader, &item)) see(watch, item, false);
    (void)json_text(json_find(json_find(list, STR("metadata")), STR("continue")), &watch->next);
    if (watch->next.len == 0) {
        watch->events.on_list(false, watch->ctx);
        take_version(watch, list);
        watch->failures = 0;
    }
    again(watch, NULL, PAUSE_NONE, 0);
}

static void go(void *ctx) {
    static const struct kube_events pages = {NULL, kube_watch_on_page},
                                    lines = {on_lines, on_watch_end};
    struct kube_watch *watch = ctx;
    struct buf path;
    buf_init(&path, 8 * KIB);
    buf_append(&path, STR("/apis/apps/v1/namespaces/"));
    buf_append_percent(&path, kube_namespace(watch->kube), "-.");
    buf_append(&path, STR("/deployments?labelSelector="));
    buf_append_percent(&path, STR(KUBE_LABEL "=" KUBE_LABEL_VALUE), "-.");
    if (watch->version.len) {
        buf_append(&path, STR("&watch=1&allowWatchBookmarks=true&timeoutSeconds=" WATCH_S
                              "&resourceVersion="));
        buf_append_percent(&path, buf_str(&watch->version), "-.");
    } else {
        buf_append(&path, STR("&limit=200"));
        if (watch->next.len) buf_append(&path, STR("&continue="));
        buf_append_percent(&path, buf_str(&watch->next), "-.");
    }
    watch->heard = false;
    watch->asked_ms = loop_now_ms(watch->loop);
    watch->ask = kube_start(watch->kube, STR("GET"), buf_str(&path), STR_EMPTY,
                            watch->version.len ? &lines : &pages, watch);
    buf_done(&path);
}

struct kube_watch *kube_watch_start(struct kube *kube, struct loop *loop,
                                    const struct kube_watch_events *events, void *ctx) {
    struct kube_watch *watch = MEM_NEW(struct kube_watch);
    watch->kube = kube;
    watch->loop = loop;
    watch->events = *events;
    watch->ctx = ctx;
    buf_init(&watch->version, VERSION_MAX_BYTES);
    buf_init(&watch->next, 4 * KIB);
    timer_init(&watch->timer, loop, go, watch);
    timer_start(&watch->timer, 0);
    return watch;
}

void kube_watch_stop(struct kube_watch *watch) {
    if (!watch) return;
    if (watch->ask) kube_cancel(watch->ask);
    timer_stop(&watch->timer);
    buf_done(&watch->version);
    buf_done(&watch->next);
    free(watch);
}

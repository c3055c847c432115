#include "orchestrator/kube_sweep.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "object/ask.h"
#include "orchestrator/kube_manifest.h"
#include "wire/json.h"
#include "wire/moment.h"

#include <stdlib.h>

#define ARENA_BYTES (64 * KIB)

struct kube_sweep {
    struct kube *kube;
    struct kube_sweep_events events;
    void *ctx;
    struct kube_ask *ask; /* NULL: waiting for the timer */
    struct timer timer;
    struct buf next; /* the next page; empty: the first */
    unsigned failures;
};

void kube_sweep_stop(struct kube_sweep *sweep) {
    if (!sweep) return;
    if (sweep->ask) kube_cancel(sweep->ask);
    timer_stop(&sweep->timer);
    buf_done(&sweep->next);
    free(sweep);
}

static void sweep_over(struct kube_sweep *sweep) {
    const struct kube_sweep_events events = sweep->events;
    void *ctx = sweep->ctx;
    kube_sweep_stop(sweep);
    events.on_end(ctx);
}

static int64_t since(struct json moment, struct arena *arena) {
    struct str text;
    struct err e;
    int64_t then_s, age_s;
    if (!json_str(moment, arena, &text) || !moment_read(text, &then_s, &e)) return 0;
    age_s = clock_unix_ms() / 1000 - then_s;
    return age_s > 0 ? age_s : 0;
}

static int64_t age_of(struct json meta, struct json annotations, struct arena *arena) {
    struct json created = json_find(meta, STR("creationTimestamp"));
    struct json adopted = json_find(annotations, STR(KUBE_ADOPTED));
    int64_t made_s = since(created, arena);
    int64_t taken_s = adopted.kind == JSON_NONE ? made_s : since(adopted, arena);
    return taken_s < made_s ? taken_s : made_s;
}

static void see_service(struct kube_sweep *sweep, struct json service) {
    struct arena *arena = arena_new(ARENA_BYTES);
    struct json meta = json_find(service, STR("metadata"));
    struct json annotations = json_find(meta, STR("annotations"));
    struct json name = json_find(meta, STR("name")), uid = json_find(meta, STR("uid")),
                version = json_find(meta, STR("resourceVersion")),
                workspace = json_find(annotations, STR(KUBE_WORKSPACE));
    struct kube_service_seen seen = {.age_s = age_of(meta, annotations, arena)};
    if (json_str(name, arena, &seen.name) && json_str(uid, arena, &seen.uid) &&
        json_str(version, arena, &seen.version) && json_str(workspace, arena, &seen.workspace))
        sweep->events.on_service(&seen, sweep->ctx);
    arena_free(arena);
}

static void kube_sweep_on_page(struct str body, const struct err *failed, int64_t again_ms,
                               void *ctx) {
    struct kube_sweep *sweep = ctx;
    struct json list = {.kind = JSON_NONE}, item;
    struct err why;
    sweep->ask = NULL;
    if (!failed && !json_read(body, &list, &why)) failed = &why;
    if (failed) {
        log_often(LOG_WARNING, "services of runtimes in Kubernetes: %s", failed->text);
        if (again_ms < 0)
            sweep_over(sweep);
        else
            timer_start(&sweep->timer, object_pause_ms(++sweep->failures) + (uint64_t)again_ms);
        return;
    }
    struct json items = json_find(list, STR("items")), meta = json_find(list, STR("metadata"));
    struct json_reader reader = json_enter(items);
    while (json_next_item(&reader, &item)) see_service(sweep, item);
    struct json next = json_find(meta, STR("continue"));
    buf_clear(&sweep->next);
    if (!json_text(next, &sweep->next) || sweep->next.len == 0)
        sweep_over(sweep);
    else
        timer_start(&sweep->timer, 0);
}

static void sweep_go(void *ctx) {
    static const struct kube_events pages = {NULL, kube_sweep_on_page};
    struct kube_sweep *sweep = ctx;
    struct buf path;
    buf_init(&path, 8 * KIB);
    buf_append(&path, STR("/api/v1/namespaces/"));
    buf_append_percent(&path, kube_namespace(sweep->kube), "-.");
    buf_append(&path, STR("/services?labelSelector="));
    buf_append_percent(&path, STR(KUBE_LABEL "=" KUBE_LABEL_VALUE), "-.");
    buf_append(&path, STR("&limit=200"));
    if (sweep->next.len) buf_append(&path, STR("&continue="));
    buf_append_percent(&path, buf_str(&sweep->next), "-.");
    sweep->ask = kube_start(sweep->kube, STR("GET"), buf_str(&path), STR_EMPTY, &pages, sweep);
    buf_done(&path);
}

struct kube_sweep *kube_sweep_start(struct kube *kube, struct loop *loop,
                                    const struct kube_sweep_events *events, void *ctx) {
    struct kube_sweep *sweep = MEM_NEW(struct kube_sweep);
    *sweep = (struct kube_sweep){.kube = kube, .events = *events, .ctx = ctx};
    buf_init(&sweep->next, 4 * KIB);
    timer_init(&sweep->timer, loop, sweep_go, sweep);
    timer_start(&sweep->timer, 0);
    return sweep;
}

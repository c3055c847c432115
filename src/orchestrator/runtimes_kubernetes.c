/* A Deployment and a Service in a cluster for each workspace.
 *
 *     creating ─▶ starting ⇄ serving ─▶ ending ─▶ gone      gone, and needed: creating, again
 *         └───────────┴────────────────────▲      ending, and taken by another process: starting
 *
 * One watch tells which are there and ready, also those that an earlier process has made: they are
 * taken over, and end when no turn needs them for some time. To create what exists is fine. What
 * was made of a runtime that is refused in part is deleted, and so is a Service that an earlier process
 * has left without a Deployment. Another process may be taking that Service as its own at this moment:
 * it changes the Service then, and a Service is deleted only as it was seen, so that one of the two
 * wins, and both know which. A turn that waits too long learns that its runtime is still
 * starting; the runtime goes on. */
#include "orchestrator/runtimes_kubernetes.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "object/ask.h"
#include "orchestrator/kube_manifest.h"
#include "orchestrator/kube_sweep.h"
#include "orchestrator/kube_watch.h"

#include <assert.h>
#include <stdlib.h>

#define MANIFEST_MAX_BYTES (64 * KIB)
/* A Service without a Deployment that is younger may still get one, of a process beside us. */
#define ORPHAN_AGE_S 600

struct cluster {
    struct runtimes_options options;
    struct text image, arguments, secret;
    struct kube *kube;
    struct kube_watch *watch;
    struct kube_sweep *sweep; /* NULL: none is under way */
    struct map *by_name;      /* to struct own */
    struct list all;
    bool left; /* stopped */
};

struct own {
    struct list link;
    struct cluster *cluster;
    enum kube_runtime_state state;
    struct text name, workspace, user, address;
    struct kube_ask *ask;     /* CREATING, ENDING: what is out */
    bool second;              /* of the two objects: the Deployment */
    bool there;               /* the Deployment, as the watch has said last */
    bool ready;               /* likewise */
    struct text uid, version; /* ENDING: delete only what was seen like this; or empty */
    unsigned failures;
    bool listed;        /* by the list that is being read */
    struct timer timer; /* the next try, or SERVING: idle */
    struct list needs;
    size_t need_count;
    struct task told;
};

struct need {
    struct runtimes_need base;
    struct list link; /* in own->needs */
    struct own *own;
    struct timer give_up; /* until it is reported */
    bool told;
};

/* --- states ------------------------------------------------------------------------------- */

/* clang-format off */
const struct state kube_runtime_states[KUBE_RUNTIME_STATE_COUNT] = {
    [KUBE_RUNTIME_CREATING] = {"creating", TO(KUBE_RUNTIME_STARTING) |
                                           TO(KUBE_RUNTIME_ENDING) |
                                           TO(KUBE_RUNTIME_GONE)},
    [KUBE_RUNTIME_STARTING] = {"starting", TO(KUBE_RUNTIME_SERVING) |
                                           TO(KUBE_RUNTIME_ENDING) |
                                           TO(KUBE_RUNTIME_GONE)},
    [KUBE_RUNTIME_SERVING]  = {"serving",  TO(KUBE_RUNTIME_STARTING) |
                                           TO(KUBE_RUNTIME_ENDING) |
                                           TO(KUBE_RUNTIME_GONE)},
    [KUBE_RUNTIME_ENDING]   = {"ending",   TO(KUBE_RUNTIME_STARTING) |
                                           TO(KUBE_RUNTIME_GONE)},
    [KUBE_RUNTIME_GONE]     = {"gone",     TO(KUBE_RUNTIME_CREATING)},
};
/* clang-format on */

/* The only function that writes own->state. */
static void own_move(struct own *own, enum kube_runtime_state next) {
    assert(states_allow(kube_runtime_states, own->state, next));
    own->state = next;
    if (next == KUBE_RUNTIME_GONE) own->ready = false;
}

/* --- telling those who need it ------------------------------------------------------------ */

static void own_forget_seen(struct own *own) {
    text_done(&own->uid);
    text_done(&own->version);
    own->uid = own->version = (struct text){0};
}

static void own_free(struct own *own) {
    (void)map_remove(own->cluster->by_name, text_str(own->name));
    if (own->ask) kube_cancel(own->ask);
    timer_stop(&own->timer);
    task_cancel(&own->told);
    LIST_EACH(&own->needs, link) timer_stop(&CONTAINER_OF(link, struct need, link)->give_up);
    list_remove(&own->link);
    own_forget_seen(own);
    text_done(&own->name);
    text_done(&own->workspace);
    text_done(&own->user);
    text_done(&own->address);
    free(own);
}

/* A need may be left inside, also the last one: the caller holds a count. */
static void tell_need(struct need *need, const struct err *failed) {
    if (need->told) return;
    need->told = true;
    timer_stop(&need->give_up);
    need->base.found(text_str(need->own->address), failed, need->base.ctx);
}

static void tell(struct own *own, const struct err *failed) {
    LIST_EACH(&own->needs, link) {
        tell_need(CONTAINER_OF(link, struct need, link), failed);
    }
}

static void rest(struct own *own);

static void tell_and_rest(struct own *own, const struct err *failed) {
    own->need_count++;
    tell(own, failed);
    own->need_count--;
    rest(own);
}

static void tell_found(void *ctx) {
    struct own *own = ctx;
    if (own->state == KUBE_RUNTIME_SERVING) tell_and_rest(own, NULL);
}

static void on_give_up(void *ctx) {
    struct need *need = ctx;
    struct own *own = need->own;
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "Assistant is still starting");
    own->need_count++;
    tell_need(need, &e);
    own->need_count--;
    rest(own);
}

static bool is_waited_for(const struct own *own) {
    LIST_EACH(&own->needs, link) {
        if (!CONTAINER_OF(link, struct need, link)->told) return true;
    }
    return false;
}

/* --- creating and deleting ---------------------------------------------------------------- */

static void create(void *ctx);
static void drop(void *ctx);

static void own_serves(struct own *own) {
    log_info("the runtime of workspace '" STR_FMT "' serves at " STR_FMT,
             STR_ARG(text_str(own->workspace)), STR_ARG(text_str(own->address)));
    own_move(own, KUBE_RUNTIME_SERVING);
    loop_defer(own->cluster->options.loop, &own->told);
}

/* "/api/v1/namespaces/N/services/NAME"; without a name where one is created. */
static void append_path(const struct own *own, bool named, struct buf *path) {
    buf_append(path, own->second ? STR("/apis/apps/v1") : STR("/api/v1"));
    buf_append(path, STR("/namespaces/"));
    buf_append_percent(path, kube_namespace(own->cluster->kube), "-.");
    buf_append(path, own->second ? STR("/deployments") : STR("/services"));
    if (!named) return;
    buf_append_byte(path, '/');
    buf_append_percent(path, text_str(own->name), "-.");
}

static void own_gone(struct own *own, const struct err *why) {
    timer_stop(&own->timer);
    own_forget_seen(own);
    own_move(own, KUBE_RUNTIME_GONE);
    if (why) {
        tell_and_rest(own, why);
    } else if (own->need_count && is_waited_for(own)) {
        own_move(own, KUBE_RUNTIME_CREATING);
        own->failures = 0;
        create(own);
    } else {
        rest(own);
    }
}

/* Delete the Deployment and then the Service, or the Service alone. */
static void own_end(struct own *own, bool deployment) {
    timer_stop(&own->timer);
    own_move(own, KUBE_RUNTIME_ENDING);
    own->second = deployment;
    own->failures = 0;
    drop(own);
}

/* What operators read; users read that it is not there, and why in a few words. */
static void own_refused(struct own *own, const struct err *failed) {
    struct err why;
    log_warning("the runtime of workspace '" STR_FMT "' cannot be made: %s",
                STR_ARG(text_str(own->workspace)), failed->text);
    err_set(&why, ERR_UNAVAILABLE, "%s",
            failed->code == ERR_RESOURCE_EXHAUSTED
                ? "there is no room for another assistant now; try again later"
                : "the assistant cannot be started; its operator finds the reason in the log");
    if (!own->second) { /* nothing was made */
        own_gone(own, &why);
        return;
    }
    own_end(own, false);
    tell_and_rest(own, &why);
}

static void own_not_created(struct own *own, const struct err *failed, int64_t again_ms) {
    bool waits = again_ms >= 0 && is_waited_for(own);
    if (waits)
        timer_start(&own->timer, object_pause_ms(++own->failures) + (uint64_t)again_ms);
    else
        own_refused(own, failed);
}

static void create_deployment(struct own *own) {
    own->failures = 0;
    own->second = true;
    create(own);
}

/* It may have been deleted before it was taken: then it is made. */
static void on_adopted(struct str body, const struct err *failed, int64_t again_ms, void *ctx) {
    struct own *own = ctx;
    (void)body;
    own->ask = NULL;
    if (failed && failed->code == ERR_PERMISSION_DENIED)
        log_often(LOG_WARNING,
                  "the service '" STR_FMT
                  "' is taken without saying so, and another process may "
                  "delete it as left: %s",
                  STR_ARG(text_str(own->name)), failed->text);
    if (!failed || failed->code == ERR_PERMISSION_DENIED) {
        create_deployment(own);
    } else if (failed->code == ERR_NOT_FOUND) {
        own_not_created(own, failed, 0);
    } else {
        own_not_created(own, failed, again_ms);
    }
}

/* The Service that is there becomes ours. */
static void adopt(struct own *own) {
    static const struct kube_events events = {NULL, on_adopted};
    struct buf path, patch;
    buf_init(&path, KIB);
    buf_init(&patch, KIB);
    append_path(own, true, &path);
    if (!kube_adoption(clock_unix_ms() / 1000, &patch)) buf_clear(&patch);
    own->ask = kube_start(own->cluster->kube, STR("PATCH"), buf_str(&path), buf_str(&patch),
                          &events, own);
    buf_done(&path);
    buf_done(&patch);
}

static void on_created(struct str body, const struct err *failed, int64_t again_ms, void *ctx) {
    struct own *own = ctx;
    (void)body;
    own->ask = NULL;
    if (failed && failed->code != ERR_ALREADY_EXISTS) {
        own_not_created(own, failed, again_ms);
        return;
    }
    if (!own->second) {
        if (failed)
            adopt(own);
        else
            create_deployment(own);
        return;
    }
    own->failures = 0;
    own_move(own, KUBE_RUNTIME_STARTING); /* the watch says when it is ready, or has said it */
    if (own->ready) own_serves(own);
    rest(own);
}

static void create(void *ctx) {
    static const struct kube_events events = {NULL, on_created};
    struct own *own = ctx;
    const struct kube_runtime runtime = {text_str(own->name),
                                         text_str(own->workspace),
                                         text_str(own->user),
                                         text_str(own->cluster->image),
                                         text_str(own->cluster->arguments),
                                         text_str(own->cluster->secret)};
    struct buf path, body;
    buf_init(&path, KIB);
    buf_init(&body, MANIFEST_MAX_BYTES);
    append_path(own, false, &path);
    if (own->second ? kube_deployment(&runtime, &body) : kube_service(&runtime, &body)) {
        own->ask = kube_start(own->cluster->kube, STR("POST"), buf_str(&path), buf_str(&body),
                              &events, own);
    } else {
        struct err e;
        err_set(&e, ERR_INVALID_ARGUMENT, "orchestrator.kubernetes.arguments are too long");
        own_refused(own, &e);
    }
    buf_done(&path);
    buf_done(&body);
}

/* The Service that was left is another process's now. The watch may have shown its Deployment. */
static void own_taken(struct own *own) {
    log_info("the service '" STR_FMT "' stays: another process has taken it",
             STR_ARG(text_str(own->name)));
    if (!own->there) {
        own_gone(own, NULL);
        return;
    }
    own_forget_seen(own);
    own_move(own, KUBE_RUNTIME_STARTING);
    if (own->ready) own_serves(own);
    rest(own);
}

static void on_dropped(struct str body, const struct err *failed, int64_t again_ms, void *ctx) {
    struct own *own = ctx;
    (void)body;
    own->ask = NULL;
    if (failed && failed->code == ERR_ABORTED && own->uid.len) {
        own_taken(own);
        return;
    }
    if (failed && failed->code != ERR_NOT_FOUND) {
        log_often(LOG_WARNING, "the runtime '" STR_FMT "' is not deleted yet: %s",
                  STR_ARG(text_str(own->name)), failed->text);
        timer_start(&own->timer,
                    object_pause_ms(++own->failures) + (uint64_t)(again_ms > 0 ? again_ms : 0));
        return;
    }
    own->failures = 0;
    if (own->second) {
        own->second = false;
        drop(own);
        return;
    }
    own_gone(own, NULL);
}

static void drop(void *ctx) {
    static const struct kube_events events = {NULL, on_dropped};
    struct own *own = ctx;
    struct buf path, deletion;
    buf_init(&path, KIB);
    buf_init(&deletion, 4 * KIB);
    append_path(own, true, &path);
    (void)kube_deletion(text_str(own->uid), text_str(own->version), &deletion);
    own->ask = kube_start(own->cluster->kube, STR("DELETE"), buf_str(&path), buf_str(&deletion),
                          &events, own);
    buf_done(&path);
    buf_done(&deletion);
}

static void on_timer(void *ctx) {
    struct own *own = ctx;
    if (own->state == KUBE_RUNTIME_CREATING) {
        create(own);
    } else if (own->state == KUBE_RUNTIME_ENDING) {
        drop(own);
    } else {
        log_info("the runtime of workspace '" STR_FMT "' is idle and ends",
                 STR_ARG(text_str(own->workspace)));
        own_end(own, true);
    }
}

/* No turn needs it: it is freed when it is gone, or ends when it has been idle for long
 * enough. */
static void rest(struct own *own) {
    if (own->need_count) return;
    if (own->state == KUBE_RUNTIME_GONE)
        own_free(own);
    else if ((own->state == KUBE_RUNTIME_STARTING || own->state == KUBE_RUNTIME_SERVING) &&
             !timer_waits(&own->timer))
        timer_start(&own->timer, own->cluster->options.idle_ms);
}

/* --- what the watch sees ------------------------------------------------------------------ */

static struct own *own_new(struct cluster *cluster, struct str name, struct str workspace,
                           struct str user, enum kube_runtime_state state) {
    struct own *own = MEM_NEW(struct own);
    struct buf address;
    own->cluster = cluster;
    own->state = state;
    own->name = text_copy(name);
    own->workspace = text_copy(workspace);
    own->user = text_copy(user);
    buf_init(&address, KIB);
    buf_printf(&address, STR_FMT "." STR_FMT ".svc.cluster.local:%d", STR_ARG(name),
               STR_ARG(kube_namespace(cluster->kube)), KUBE_PORT);
    const struct runtimes_word words[] = {{STR("{service}"), name},
                                          {STR("{workspace}"), workspace}};
    if (cluster->options.address.len) { /* where cluster names do not resolve */
        buf_clear(&address);
        runtimes_fill(cluster->options.address, words, ARRAY_LEN(words), &address);
    }
    own->address = text_copy(buf_str(&address));
    buf_done(&address);
    list_init(&own->needs);
    list_append(&cluster->all, &own->link);
    timer_init(&own->timer, cluster->options.loop, on_timer, own);
    task_init(&own->told, tell_found, own);
    (void)map_put(cluster->by_name, name, own);
    return own;
}

/* CREATING: the watch may be ahead of the answer to the request that creates it. */
static void own_ready(struct own *own, bool ready) {
    own->ready = ready;
    if (ready && own->state == KUBE_RUNTIME_STARTING)
        own_serves(own);
    else if (!ready && own->state == KUBE_RUNTIME_SERVING)
        own_move(own, KUBE_RUNTIME_STARTING);
}

/* One of an earlier process is taken over. */
static void on_there(const struct kube_seen *seen, void *ctx) {
    struct cluster *cluster = ctx;
    struct own *own = map_find(cluster->by_name, seen->name);
    if (!own && seen->deleting) return;
    if (!own)
        own = own_new(cluster, seen->name, seen->workspace, STR_EMPTY, KUBE_RUNTIME_STARTING);
    own->listed = true;
    own->there = !seen->deleting;
    own_ready(own, seen->ready);
    rest(own);
}

/* Its Deployment was deleted, by us or by someone else. */
static void on_gone(struct str name, void *ctx) {
    struct cluster *cluster = ctx;
    struct own *own = map_find(cluster->by_name, name);
    if (own) own->there = own->ready = false;
    if (!own || (own->state != KUBE_RUNTIME_STARTING && own->state != KUBE_RUNTIME_SERVING))
        return;
    own->second = false;
    if (is_waited_for(own))
        own_gone(own, NULL);
    else
        own_end(own, false);
}

/* --- Services that were left ---------------------------------------------------------------- */

static void on_service(const struct kube_service_seen *seen, void *ctx) {
    struct cluster *cluster = ctx;
    if (seen->age_s < ORPHAN_AGE_S || map_find(cluster->by_name, seen->name)) return;
    log_info("the service '" STR_FMT "' of workspace '" STR_FMT
             "' has no deployment and is deleted",
             STR_ARG(seen->name), STR_ARG(seen->workspace));
    struct own *own =
        own_new(cluster, seen->name, seen->workspace, STR_EMPTY, KUBE_RUNTIME_ENDING);
    own->uid = text_copy(seen->uid);
    own->version = text_copy(seen->version);
    drop(own);
}

static void on_swept(void *ctx) {
    ((struct cluster *)ctx)->sweep = NULL;
}

static void cluster_sweep(struct cluster *cluster) {
    static const struct kube_sweep_events events = {on_service, on_swept};
    if (!cluster->sweep)
        cluster->sweep =
            kube_sweep_start(cluster->kube, cluster->options.loop, &events, cluster);
}

/* One that was created while the list was on its way is seen by the watch after it. */
static void on_list(bool begins, void *ctx) {
    struct cluster *cluster = ctx;
    LIST_EACH(&cluster->all, link) {
        struct own *own = CONTAINER_OF(link, struct own, link);
        if (begins)
            own->listed = false;
        else if (!own->listed && own->state == KUBE_RUNTIME_ENDING)
            own->there = false;
        else if (!own->listed && own->state == KUBE_RUNTIME_SERVING)
            on_gone(text_str(own->name), cluster);
    }
    if (!begins) cluster_sweep(cluster);
}

/* --- the driver --------------------------------------------------------------------------- */

static bool cluster_open(const struct runtimes_options *options, void **ret, struct err *e) {
    static const struct kube_watch_events events = {on_there, on_gone, on_list};
    struct kube *kube;
    if (!options->kubernetes.image.len)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the runtime driver 'kubernetes' needs orchestrator.kubernetes.image");
    if (!kube_new(&(struct kube_options){.loop = options->loop,
                                         .http = options->http,
                                         .url = options->kubernetes.url,
                                         .token_file = options->kubernetes.token_file,
                                         .ca_file = options->kubernetes.ca_file,
                                         .namespace = options->kubernetes.namespace},
                  &kube, e))
        return false;
    struct cluster *cluster = MEM_NEW(struct cluster);
    cluster->options = *options;
    cluster->kube = kube;
    cluster->image = text_copy(options->kubernetes.image);
    cluster->arguments = text_copy(options->kubernetes.arguments);
    cluster->secret = text_copy(options->kubernetes.secret);
    cluster->by_name = map_new();
    list_init(&cluster->all);
    cluster->watch = kube_watch_start(kube, options->loop, &events, cluster);
    *ret = cluster;
    return true;
}

static void own_need(struct own *own, struct need *need) {
    struct cluster *cluster = own->cluster;
    if (own->state == KUBE_RUNTIME_STARTING || own->state == KUBE_RUNTIME_SERVING)
        timer_stop(&own->timer);
    if (own->state == KUBE_RUNTIME_SERVING)
        loop_defer(cluster->options.loop, &own->told);
    else
        timer_start(&need->give_up, cluster->options.start_ms);
}

static struct runtimes_need *cluster_need(void *ctx, struct str workspace, struct str user) {
    struct cluster *cluster = ctx;
    struct need *need = MEM_NEW(struct need);
    struct buf name;
    buf_init(&name, KIB);
    runtimes_service_name(workspace, &name);
    struct own *own = map_find(cluster->by_name, buf_str(&name));
    bool is_new = !own || own->state == KUBE_RUNTIME_GONE;
    if (!own)
        own = own_new(cluster, buf_str(&name), workspace, user, KUBE_RUNTIME_CREATING);
    else if (is_new)
        own_move(own, KUBE_RUNTIME_CREATING);
    if (user.len && !text_str(own->user).len) { /* taken over: its Deployment does not say */
        text_done(&own->user);
        own->user = text_copy(user);
    }
    buf_done(&name);
    need->own = own;
    timer_init(&need->give_up, cluster->options.loop, on_give_up, need);
    list_append(&own->needs, &need->link);
    own->need_count++;
    if (is_new) {
        own->second = false;
        own->failures = 0;
        timer_start(&own->timer, 0);
    }
    own_need(own, need);
    return &need->base;
}

static void cluster_leave(struct runtimes_need *base) {
    struct need *need = CONTAINER_OF(base, struct need, base);
    struct own *own = need->own;
    list_remove(&need->link);
    timer_stop(&need->give_up);
    free(need);
    own->need_count--;
    rest(own);
}

/* The runtimes stay: the next process, or another one, takes them over. */
static void cluster_stop(void *ctx) {
    struct cluster *cluster = ctx;
    if (cluster->left) return;
    cluster->left = true;
    kube_watch_stop(cluster->watch);
    kube_sweep_stop(cluster->sweep);
    LIST_EACH(&cluster->all, link) own_free(CONTAINER_OF(link, struct own, link));
    kube_leave(cluster->kube);
}

static void cluster_close(void *ctx) {
    struct cluster *cluster = ctx;
    cluster_stop(cluster);
    map_free(cluster->by_name);
    kube_free(cluster->kube);
    text_done(&cluster->image);
    text_done(&cluster->arguments);
    text_done(&cluster->secret);
    free(cluster);
}

const struct runtimes_driver runtimes_kubernetes = {.name = STR_INIT("kubernetes"),
                                                    .open = cluster_open,
                                                    .need = cluster_need,
                                                    .leave = cluster_leave,
                                                    .stop = cluster_stop,
                                                    .close = cluster_close};

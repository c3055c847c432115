/* events: a run's journal as server-sent events, with ids to resume from. */
#include "base/mem.h"
#include "contract/event_id.h"
#include "contract/weir/inner.h"
#include "stream/share.h"
#include "wire/event_json.h"
#include "wire/sse.h"

#include <stddef.h>
#include <stdlib.h>

#define EVENT_MAX_BYTES (128 * MIB)
#define ENDS_KEPT 8
#define END_MAX_BYTES (64 * KIB) /* names and text of a run that is kept */

/* The position that a client sends: "<epoch>-<seq>". */
struct place {
    uint64_t epoch, seq;
};

struct watching {
    struct route_call *call;
    struct api_instance *instance;
    char *caller; /* the used part of a struct api_caller, whose names are mostly empty */
    uint64_t run, epoch;
    struct place from;
    struct share_reader *reader;
    struct list link; /* while it waits for a stored run to be read */
    struct late late; /* the refusal: no such run */
    bool streaming;
    bool looked_again; /* it was followed twice, and the stored run has no end */
    bool stopping;     /* the daemon is */
    bool gone;
};

/* --- places ------------------------------------------------------------------------------- */

static bool parse_place(struct str text, struct place *ret) {
    struct str seq, epoch = str_split(text, '-', &seq);
    return seq.at && str_to_u64(epoch, &ret->epoch) && str_to_u64(seq, &ret->seq) &&
           ret->epoch > 0;
}

/* A bad Last-Event-ID is ignored, because a browser sends it. A bad ?after= is an error. */
static bool take_place(struct watching *watching) {
    struct str header = lent_read(route_header(watching->call, STR("last-event-id")));
    struct buf query;
    buf_init(&query, 64);
    enum query_value asked = route_query(watching->call, STR("after"), &query);
    bool valid = true;
    if (asked != QUERY_ABSENT) {
        valid = asked == QUERY_READ && parse_place(buf_str(&query), &watching->from);
        if (!valid) {
            route_refuse(watching->call, 400, STR("INVALID_INPUT"),
                         "after must be the id of an event, <epoch>-<seq>");
        }
    } else if (header.len && !parse_place(header, &watching->from)) {
        watching->from = (struct place){UINT64_MAX, UINT64_MAX}; /* past every end */
    }
    buf_done(&query);
    return valid;
}

/* --- sending ------------------------------------------------------------------------------ */

static void begin_stream(struct watching *watching) {
    if (watching->streaming) return;
    watching->streaming = true;
    route_sse_begin(watching->call);
}

static struct str weir_events_write_id(uint64_t epoch, uint64_t seq, char room[48]) {
    struct buf id = {.at = room, .room = 48, .max_bytes = 48};
    event_id_put(&id, epoch, seq);
    return buf_str(&id);
}

void api_encode_event(const struct event *event, struct buf *out, const void *ctx) {
    const struct store *store = ctx;
    struct buf data;
    char room[48];
    buf_init(&data, EVENT_MAX_BYTES);
    if (event_to_json(event, &data)) {
        sse_append(out, event_kind_name(event->kind),
                   weir_events_write_id(store_epoch(store), event->seq, room), buf_str(&data));
    }
    buf_done(&data);
}

static void send(struct str bytes, void *ctx) {
    route_piece_now(((struct watching *)ctx)->call, bytes);
}

static size_t events_queued(void *ctx) {
    return route_pressure(((struct watching *)ctx)->call);
}

static void events_wake_at(size_t low, void *ctx) {
    route_wake_at(((struct watching *)ctx)->call, low);
}

static uint64_t events_stalled_ms(void *ctx) {
    return route_stalled_ms(((struct watching *)ctx)->call);
}

static void heartbeat(void *ctx) {
    route_sse_comment(((struct watching *)ctx)->call, STR("keep-alive"));
}

/* The body ends after the run's last event. If it ends earlier, the client reconnects with its
 * last id and continues. A body never ends inside an event, nor as if an erased run were over. */
static void events_ended(enum close_cause cause, bool cut, void *ctx) {
    struct watching *watching = ctx;
    if (watching->gone) return;
    if (cause == CAUSE_STALLED) {
        route_cut(watching->call);
    } else if (cut) {
        route_break(watching->call);
    } else {
        begin_stream(watching);
        route_sse_end(watching->call);
    }
}

/* --- following ---------------------------------------------------------------------------- */

static void look_for_end(struct watching *watching);

static void on_begun(void *ctx) {
    struct watching *watching = ctx;
    begin_stream(watching);
    if (watching->stopping) share_end(watching->reader, CAUSE_STOPPING);
}

/* No event follows the client's position: the run is over, or unknown. */
static void weir_events_on_missing(const struct err *failed, void *ctx) {
    struct watching *watching = ctx;
    if (watching->streaming && failed) {
        route_break(watching->call);
    } else if (watching->streaming) {
        route_sse_end(watching->call);
    } else if (failed) {
        route_refuse(watching->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else {
        look_for_end(watching);
    }
}

static const struct share_wire wire = {
    .begun = on_begun,
    .missing = weir_events_on_missing,
    .send = send,
    .queued = events_queued,
    .wake_at = events_wake_at,
    .stalled_ms = events_stalled_ms,
    .heartbeat = heartbeat,
    .ended = events_ended,
};

static void events_follow(struct watching *watching, uint64_t after_seq) {
    const struct api_settings *settings = watching->instance->settings;
    share_close(watching->reader);
    watching->reader =
        share_open(watching->instance->share,
                   &(struct share_reading){.run = watching->run,
                                           .after_seq = after_seq,
                                           .stall_ms = settings->stall_ms,
                                           .heartbeat_ms = settings->heartbeat_ms,
                                           .wire = &wire,
                                           .ctx = watching});
}

/* Report that the client's position no longer exists, and where it continues. */
static void reset(struct watching *watching, uint64_t after_seq) {
    char data_room[64], id_room[48];
    struct buf data = {
        .at = data_room, .room = sizeof(data_room), .max_bytes = sizeof(data_room)};
    struct str id = weir_events_write_id(watching->epoch, after_seq, id_room);
    buf_append(&data, STR("{\"after\":\""));
    buf_append(&data, id);
    buf_append(&data, STR("\"}"));
    begin_stream(watching);
    route_sse_event(watching->call, STR("reset"), id, buf_str(&data));
    events_follow(watching, after_seq);
}

static void events_refuse(struct watching *watching) {
    late_refuse(&watching->late, watching->instance->loop, watching->call,
                api_refuse_unknown_run_late, NULL);
}

static void keep_caller(struct watching *watching, const struct api_caller *caller) {
    size_t len = api_caller_bytes(caller);
    watching->caller = mem_alloc(len);
    memcpy(watching->caller, caller, len);
}

static bool watching_may_see(const struct watching *watching,
                             const struct run_summary *summary) {
    struct api_caller caller;
    memcpy(&caller, watching->caller, offsetof(struct api_caller, names));
    memcpy(&caller, watching->caller, api_caller_bytes(&caller));
    return api_may_see(&caller, summary->workspace, summary->user);
}

/* The stored run has been read to its end. */
static void on_end_known(struct watching *watching, const struct run_summary *summary,
                         const struct err *failed) {
    if (failed) {
        weir_events_on_missing(failed, watching);
        return;
    }
    if (!summary->known || !watching_may_see(watching, summary)) {
        events_refuse(watching);
        return;
    }
    /* The last event, `interrupted`, replaced the events that were lost. */
    bool other_epoch = watching->from.epoch != watching->epoch;
    uint64_t kept =
        summary->interrupted && other_epoch ? summary->last_seq - 1 : summary->last_seq;
    bool elsewhere = !summary->ended_ms && store_is_shared(watching->instance->store);
    if (elsewhere) {
        /* What the client has seen may not be stored yet. */
        events_follow(watching, watching->from.seq);
    } else if (watching->from.seq > kept) {
        reset(watching, kept);
    } else if (watching->from.seq == summary->last_seq && summary->ended_ms) {
        /* 204 makes an EventSource stop reconnecting. */
        route_reply(watching->call, 204, STR_EMPTY, STR_EMPTY);
    } else if (watching->looked_again) {
        /* Its end could not be stored; the next start of the daemon will record one. */
        begin_stream(watching);
        route_sse_end(watching->call);
    } else {
        watching->looked_again = true;
        events_follow(watching, watching->from.seq);
    }
}

/* --- the ends of stored runs -------------------------------------------------------------- */

/* The end of a stored run, read once for all clients that ask for it. */
struct run_end {
    struct list link; /* in the instance, newest first */
    struct api_instance *instance;
    struct run_summary summary;
    struct run_scan *scan; /* NULL: finished */
    uint64_t generation;   /* of the pages when the scan began; detects erased sessions */
    struct list waiting;
};

static void run_end_free(struct run_end *end) {
    list_remove(&end->link);
    run_scan_cancel(end->scan);
    run_summary_done(&end->summary);
    free(end);
}

void api_forget_ends(struct api_instance *instance) {
    LIST_EACH(&instance->ends, link) {
        run_end_free(CONTAINER_OF(link, struct run_end, link));
    }
}

/* Keep only runs that cannot change, and only a few. */
static void run_end_keep(struct run_end *end, const struct err *failed) {
    struct api_instance *instance = end->instance;
    size_t count = 0;
    if (failed || !end->summary.ended_ms || end->summary.names.len > END_MAX_BYTES) {
        run_end_free(end);
        return;
    }
    LIST_EACH(&instance->ends, link) {
        struct run_end *old = CONTAINER_OF(link, struct run_end, link);
        if (++count > ENDS_KEPT && !old->scan) {
            run_end_free(old);
            return;
        }
    }
}

static void on_scanned(const struct err *failed, void *ctx) {
    struct run_end *end = ctx;
    end->scan = NULL;
    while (!list_empty(&end->waiting)) {
        struct watching *watching =
            CONTAINER_OF(list_pop(&end->waiting), struct watching, link);
        on_end_known(watching, &end->summary, failed);
    }
    run_end_keep(end, failed);
}

static struct run_end *find_end(struct watching *watching) {
    struct api_instance *instance = watching->instance;
    LIST_EACH(&instance->ends, link) {
        struct run_end *end = CONTAINER_OF(link, struct run_end, link);
        if (end->summary.run == watching->run &&
            end->generation == pages_generation(instance->pages))
            return end;
    }
    return NULL;
}

static struct run_end *scan_end(struct watching *watching) {
    struct run_end *end = MEM_NEW(struct run_end);
    end->instance = watching->instance;
    end->generation = pages_generation(end->instance->pages);
    list_init(&end->link);
    list_init(&end->waiting);
    list_prepend(&end->instance->ends, &end->link);
    run_summary_init(&end->summary, watching->run);
    end->scan = run_scan_start(end->instance->loop, end->instance->store, &end->summary,
                               on_scanned, end);
    return end;
}

static void look_for_end(struct watching *watching) {
    struct run_end *end = find_end(watching);
    if (end && !end->scan) {
        on_end_known(watching, &end->summary, NULL);
        return;
    }
    if (!end) end = scan_end(watching);
    list_append(&end->waiting, &watching->link);
}

/* --- callbacks of the call ---------------------------------------------------------------- */

static void watching_free(struct watching *watching) {
    late_stop(&watching->late);
    if (list_linked(&watching->link)) list_remove(&watching->link);
    share_close(watching->reader);
    free(watching->caller);
    free(watching);
}

static void on_left(void *ctx) {
    struct watching *watching = ctx;
    watching->gone = true;
    watching_free(watching);
}

static void weir_events_on_drained(void *ctx) {
    struct watching *watching = ctx;
    if (watching->reader) share_drained(watching->reader);
}

/* The daemon stops; the client will ask again for the events it has not seen. */
static void on_stopping(void *ctx) {
    struct watching *watching = ctx;
    watching->stopping = true; /* a search that still runs then ends the call */
    if (watching->reader && watching->streaming) share_end(watching->reader, CAUSE_STOPPING);
}

static void weir_events_on_closed(void *ctx) {
    watching_free(ctx);
}

static const struct route_watch watch = {.left = on_left,
                                         .drained = weir_events_on_drained,
                                         .stopping = on_stopping,
                                         .closed = weir_events_on_closed};

void api_run_events(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    struct live_view view;
    uint64_t run;
    if (!api_identify(call, instance, &caller) || !api_run_id(call, &run)) return;
    struct watching *watching = MEM_NEW(struct watching);
    *watching = (struct watching){
        .call = call, .instance = instance, .run = run, .epoch = store_epoch(instance->store)};
    keep_caller(watching, &caller);
    late_begin(&watching->late);
    list_init(&watching->link);
    if (!take_place(watching)) {
        watching_free(watching);
        return;
    }
    route_watch(call, &watch, watching);
    bool live = directory_find(instance->directory, run, &view);
    bool allowed = live && api_may_see(&caller, view.workspace, view.user);
    bool within = live && watching->from.seq <= journal_visible(view.journal);
    if (live) live_view_done(&view);
    if (live && !allowed) {
        events_refuse(watching);
    } else if (live && within) {
        events_follow(watching, watching->from.seq); /* a live run is from this epoch */
    } else {
        look_for_end(watching); /* also checks access and the position */
    }
}

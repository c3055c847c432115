/* events: a run's journal as server-sent events, with ids to come back by. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "stream/follow.h"
#include "wire/event_json.h"

#include <stdlib.h>

#define EVENT_MAX_BYTES (128 * MIB)

/* Where a client says it stands: "<epoch>-<seq>". */
struct place {
    uint64_t epoch, seq;
};

struct watching {
    struct route_call *call;
    struct api_instance *instance;
    struct api_caller caller;
    uint64_t run, epoch;
    struct place from;
    struct follow *follow;
    struct run_scan *scan; /* while the end of a stored run is looked for */
    struct run_summary summary;
    struct api_late late; /* says that there is no such run */
    bool streaming;
    bool looked_again; /* followed a second time; the stored run has no end */
    bool stopping;     /* the daemon is */
    bool gone;
};

/* --- places ------------------------------------------------------------------------------- */

static bool parse_place(struct str text, struct place *ret) {
    struct str seq, epoch = str_split(text, '-', &seq);
    return seq.at && str_to_u64(epoch, &ret->epoch) && str_to_u64(seq, &ret->seq) &&
           ret->epoch > 0;
}

/* Last-Event-ID is a browser's and forgiven; ?after= is typed and answered. */
static bool take_place(struct watching *watching) {
    struct str header = lent_read(route_header(watching->call, STR("last-event-id")));
    struct buf query;
    buf_init(&query, 64);
    bool asked = route_query(watching->call, STR("after"), &query);
    bool valid = true;
    if (asked) {
        valid = parse_place(buf_str(&query), &watching->from);
        if (!valid) {
            api_refuse(watching->call, 400, STR("INVALID_INPUT"),
                       "after must be the id of an event, <epoch>-<seq>");
        }
    } else if (header.len && !parse_place(header, &watching->from)) {
        watching->from = (struct place){UINT64_MAX, UINT64_MAX}; /* beyond every end: reset */
    }
    buf_done(&query);
    return valid;
}

/* --- what is sent ------------------------------------------------------------------------- */

static void begin_stream(struct watching *watching) {
    if (watching->streaming) return;
    watching->streaming = true;
    route_sse_begin(watching->call);
}

static struct str write_id(struct watching *watching, uint64_t seq, char room[48]) {
    struct buf id = {.at = room, .room = 48, .max_bytes = 48};
    buf_append_u64(&id, watching->epoch);
    buf_append_byte(&id, '-');
    buf_append_u64(&id, seq);
    return buf_str(&id);
}

static void project(const struct event *event, enum close_frame frame, void *ctx) {
    struct watching *watching = ctx;
    struct buf data;
    char room[48];
    (void)frame;
    buf_init(&data, EVENT_MAX_BYTES);
    if (event_to_json(event, &data)) {
        route_sse_event(watching->call, event_kind_name(event->kind),
                        write_id(watching, event->seq, room), buf_str(&data));
    }
    buf_done(&data);
}

static size_t queued(void *ctx) {
    return route_queued(((struct watching *)ctx)->call);
}

static void wake_at(size_t low, void *ctx) {
    route_wake_at(((struct watching *)ctx)->call, low);
}

static uint64_t stalled_ms(void *ctx) {
    return route_stalled_ms(((struct watching *)ctx)->call);
}

static void heartbeat(void *ctx) {
    route_sse_comment(((struct watching *)ctx)->call, STR("keep-alive"));
}

/* The run's last event ends the body. Cut short, the body just ends: the client comes back with
 * the id of what it has, and goes on. */
static void ended(struct close_ending ending, enum close_cause cause, const struct event *last,
                  void *ctx) {
    struct watching *watching = ctx;
    (void)ending;
    (void)last;
    if (watching->gone) return;
    if (cause == CAUSE_STALLED) {
        route_cut(watching->call);
    } else {
        begin_stream(watching);
        route_sse_end(watching->call);
    }
}

static const struct stream_wire wire = {
    .project = project,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .heartbeat = heartbeat,
    .ended = ended,
};

/* --- following ---------------------------------------------------------------------------- */

static void look_for_end(struct watching *watching);

static void on_begun(void *ctx) {
    struct watching *watching = ctx;
    begin_stream(watching);
    if (watching->stopping) follow_end(watching->follow, CAUSE_STOPPING);
}

/* No event follows the client's last one: the run is over, or is unknown. */
static void on_missing(const struct err *failed, void *ctx) {
    struct watching *watching = ctx;
    if (watching->streaming) {
        route_sse_end(watching->call);
    } else if (failed) {
        api_refuse(watching->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
    } else {
        look_for_end(watching);
    }
}

static void follow(struct watching *watching, uint64_t after_seq) {
    follow_free(watching->follow);
    watching->follow = follow_new(
        &(struct follow_options){.loop = watching->instance->loop,
                                 .directory = watching->instance->directory,
                                 .store = watching->instance->store,
                                 .run = watching->run,
                                 .after_seq = after_seq,
                                 .mode = CLOSE_DONE,
                                 .stall_ms = watching->instance->settings->stall_ms,
                                 .heartbeat_ms = watching->instance->settings->heartbeat_ms,
                                 .wire = &wire,
                                 .begun = on_begun,
                                 .missing = on_missing,
                                 .ctx = watching});
}

/* Tell the client that its place is gone, and where it goes on from. */
static void reset(struct watching *watching, uint64_t after_seq) {
    char data_room[64], id_room[48];
    struct buf data = {
        .at = data_room, .room = sizeof(data_room), .max_bytes = sizeof(data_room)};
    struct str id = write_id(watching, after_seq, id_room);
    buf_append(&data, STR("{\"after\":\""));
    buf_append(&data, id);
    buf_append(&data, STR("\"}"));
    begin_stream(watching);
    route_sse_event(watching->call, STR("reset"), id, buf_str(&data));
    follow(watching, after_seq);
}

static void events_refuse(struct watching *watching) {
    api_late_refuse(&watching->late, watching->instance->loop, watching->call,
                    api_refuse_unknown_run);
}

/* The stored run is known from end to end. */
static void on_end_known(const struct err *failed, void *ctx) {
    struct watching *watching = ctx;
    const struct run_summary *summary = &watching->summary;
    watching->scan = NULL;
    if (failed) {
        on_missing(failed, watching);
        return;
    }
    if (!summary->known || !api_may_see(&watching->caller, summary->workspace, summary->user)) {
        events_refuse(watching);
        return;
    }
    /* The event that says `interrupted` took the place of what was lost. */
    bool other_epoch = watching->from.epoch != watching->epoch;
    uint64_t kept =
        summary->interrupted && other_epoch ? summary->last_seq - 1 : summary->last_seq;
    if (watching->from.seq > kept) {
        reset(watching, kept);
    } else if (watching->from.seq == summary->last_seq && summary->ended_ms) {
        /* 204 makes an EventSource stop reconnecting. */
        route_reply(watching->call, 204, STR_EMPTY, STR_EMPTY);
    } else if (watching->looked_again) {
        /* Its end could not be stored: the next start will say what became of it. */
        begin_stream(watching);
        route_sse_end(watching->call);
    } else {
        watching->looked_again = true;
        follow(watching, watching->from.seq);
    }
}

static void look_for_end(struct watching *watching) {
    run_summary_done(&watching->summary);
    run_summary_init(&watching->summary, watching->run);
    watching->scan =
        run_scan_start(watching->instance, &watching->summary, on_end_known, watching);
}

/* --- life --------------------------------------------------------------------------------- */

static void watching_free(struct watching *watching) {
    api_late_stop(&watching->late);
    run_scan_cancel(watching->scan);
    run_summary_done(&watching->summary);
    follow_free(watching->follow);
    free(watching);
}

static void on_left(void *ctx) {
    struct watching *watching = ctx;
    watching->gone = true;
    watching_free(watching);
}

static void on_drained(void *ctx) {
    struct watching *watching = ctx;
    if (watching->follow) follow_drained(watching->follow);
}

/* The daemon stops: what the client has not seen it will ask for again. */
static void on_stopping(void *ctx) {
    struct watching *watching = ctx;
    watching->stopping = true; /* what is still looked for ends when it is found */
    if (watching->follow && watching->streaming) follow_end(watching->follow, CAUSE_STOPPING);
}

static void on_closed(void *ctx) {
    watching_free(ctx);
}

static const struct route_watch watch = {
    .left = on_left, .drained = on_drained, .stopping = on_stopping, .closed = on_closed};

void api_run_events(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_caller caller;
    struct live_view view;
    uint64_t run;
    if (!api_identify(call, instance, &caller) || !api_run_id(call, &run)) return;
    struct watching *watching = MEM_NEW(struct watching);
    *watching = (struct watching){.call = call,
                                  .instance = instance,
                                  .caller = caller,
                                  .run = run,
                                  .epoch = store_epoch(instance->store)};
    api_late_begin(&watching->late);
    run_summary_init(&watching->summary, run);
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
        follow(watching, watching->from.seq); /* a live run is of this epoch */
    } else {
        look_for_end(watching); /* who may see it, and whether the place is still there */
    }
}

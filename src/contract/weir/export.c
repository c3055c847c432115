/* export: everything stored of one session, one event per line, sent while it is read. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/sessions.h"
#include "wire/event_json.h"

#include <stdlib.h>

#define LOAD_MAX_BYTES (256 * KIB)  /* per read */
#define QUEUE_MAX_BYTES (128 * KIB) /* sent, but not yet read by the peer */
#define PIECE_BYTES (32 * KIB)
#define LINE_MAX_BYTES (128 * MIB)

struct export {
    struct route_call *call; /* NULL: gone; the open load then frees this */
    struct api_instance *instance;
    struct sessions_ask *ask;
    uint64_t *runs;
    size_t run_count, next; /* next: index of the current run */
    uint64_t seq;           /* of that run: the last event sent as a line */
    bool loading;
    struct store_load load; /* some of its events */
    size_t section;         /* the current section of the load ... */
    struct str rest;        /* ... and the rest of it */
    struct buf line;
    size_t sent; /* of the line */
};

static void export_free(struct export *export) {
    sessions_forget(export->ask);
    arena_free(export->load.arena);
    buf_done(&export->line);
    free(export->runs);
    free(export);
}

static void export_over(void *ctx) {
    struct export *export = ctx;
    export->call = NULL;
    if (!export->loading) export_free(export);
}

static void export_go_on(struct export *export);

static void weir_export_on_drained(void *ctx) {
    struct export *export = ctx;
    if (!export->loading) export_go_on(export);
}

static const struct route_watch watch = {
    .left = export_over, .drained = weir_export_on_drained, .closed = export_over};

static void export_end(struct export *export) {
    route_sse_end(export->call); /* `closed` follows */
}

/* --- reading ------------------------------------------------------------------------------ */

static void export_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct export *export = ctx; /* `load` is export->load */
    export->loading = false;
    if (!export->call) {
        export_free(export);
    } else if (failed || load->section_count == 0) {
        /* The rest cannot be read, or the run was erased: it was listed, or cut, with more. */
        route_break(export->call); /* so that what was sent does not look complete */
    } else {
        export->section = 0;
        export->rest = STR_EMPTY;
        export_go_on(export);
    }
}

static void export_load(struct export *export) {
    arena_free(export->load.arena);
    export->loading = true;
    export->load = (struct store_load){.question = STORE_RUN,
                                       .run = export->runs[export->next],
                                       .after_seq = export->seq,
                                       .max_bytes = LOAD_MAX_BYTES,
                                       .home = export->instance->loop,
                                       .on_loaded = export_on_loaded,
                                       .ctx = export};
    store_load(export->instance->store, &export->load);
}

/* --- writing ------------------------------------------------------------------------------ */

static bool write_line(struct export *export, const struct event *event) {
    struct buf *line = &export->line;
    struct json_writer json = json_writer(line);
    struct buf text;
    buf_clear(line);
    export->sent = 0;
    buf_init(&text, LINE_MAX_BYTES);
    bool ok = event_to_json(event, &text);
    json_open_object(&json);
    event_json_id(&json, "run_id", export->runs[export->next]);
    json_member_raw(&json, "event", buf_str(&text));
    json_close(&json);
    buf_append_byte(line, '\n');
    buf_done(&text);
    return ok && buf_ok(line);
}

/* False: the load has no more lines, or cannot be read (*ret_bad). */
static bool next_line(struct export *export, bool *ret_bad) {
    struct event event = {0};
    struct err e;
    while (export->rest.len == 0) {
        if (export->section == export->load.section_count) return false;
        export->rest = export->load.sections[export->section].events;
        export->seq = export->load.sections[export->section++].first_seq - 1;
    }
    *ret_bad = !event_decode(&export->rest, &event, &e);
    event.seq = ++export->seq;
    *ret_bad = *ret_bad || !write_line(export, &event);
    return !*ret_bad;
}

/* False: enough is queued for now. */
static bool send_line(struct export *export) {
    while (export->sent < export->line.len) {
        if (route_pressure(export->call) > QUEUE_MAX_BYTES) {
            route_wake_at(export->call, QUEUE_MAX_BYTES / 2);
            return false;
        }
        struct str piece =
            str_head(str_skip(buf_str(&export->line), export->sent), PIECE_BYTES);
        export->sent += piece.len;
        route_piece(export->call, piece);
    }
    return true;
}

static void export_go_on(struct export *export) {
    bool bad = false;
    while (send_line(export)) {
        if (next_line(export, &bad)) continue;
        if (bad) {
            route_break(export->call);
            return;
        }
        bool more = export->load.more;
        export->load.more = false;
        if (!more) {
            export->next++;
            export->seq = 0;
        }
        if (export->next < export->run_count) {
            export_load(export);
        } else {
            export_end(export);
        }
        return;
    }
}

/* --- the route ---------------------------------------------------------------------------- */

static void on_runs(const struct sessions_answer *answer, const struct err *failed, void *ctx) {
    struct export *export = ctx;
    export->ask = NULL;
    if (failed && failed->code == ERR_NOT_FOUND) {
        route_refuse(export->call, 404, STR("SESSION_NOT_FOUND"), "there is no such session");
        return;
    }
    if (failed) {
        route_refuse(export->call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    size_t size = answer->run_count * sizeof(*export->runs);
    export->runs = mem_alloc(size + 1);
    memcpy(export->runs, answer->runs, size);
    export->run_count = answer->run_count;
    route_pieces_begin(export->call, STR("application/x-ndjson"));
    if (export->run_count) {
        export_load(export);
    } else {
        export_end(export);
    }
}

void api_export_session(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct session_name name;
    if (!api_request_begin(&request, call, instance, names)) return;
    if (api_request_session(&request, &name)) {
        struct export *export = MEM_NEW(struct export);
        export->call = call;
        export->instance = instance;
        buf_init(&export->line, LINE_MAX_BYTES);
        route_watch(call, &watch, export);
        export->ask = sessions_runs_start(instance->store, instance->loop, name.workspace,
                                          name.user, name.session, on_runs, export);
    }
    arena_free(request.arena);
}

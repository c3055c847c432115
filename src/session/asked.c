#include "session/asked.h"

#include "base/mem.h"
#include "journal/journal.h"
#include "session/directory.h"

#include <stdlib.h>

#define PIECE_MAX_BYTES (1 * MIB)

struct asked {
    struct asked_options options; /* its texts are in `texts` */
    struct buf texts, user;       /* user: owner of the thread, once found */
    bool has_user, several;
    bool unknown;          /* the run that was named is of another thread, or not there */
    uint64_t run;          /* the newest run so far; 0: none */
    uint64_t seq;          /* of its last question */
    bool waits;            /* that was the last event */
    enum event_kind ended; /* its terminal event; 0: none yet */
    uint64_t read_to;      /* seq of the last event examined */
    struct task begin;
    struct store_load load;
    bool loading, cancelled;
};

static void asked_free(struct asked *asked) {
    buf_done(&asked->texts);
    buf_done(&asked->user);
    free(asked);
}

static void asked_report(struct asked *asked, enum asked_answer answer,
                         const struct err *failed) {
    struct asked_result result = {answer, asked->run, asked->seq, asked->waits, asked->ended};
    asked_fn *on_answer = asked->options.on_answer;
    void *ctx = asked->options.ctx;
    struct err why; /* a copy; the load's own is freed with it */
    if (failed) why = *failed;
    asked_free(asked);
    on_answer(&result, failed ? &why : NULL, ctx);
}

/* --- which run ---------------------------------------------------------------------------- */

static void note_run(struct asked *asked, struct str user, uint64_t run) {
    if (asked->has_user && !str_equal(buf_str(&asked->user), user)) asked->several = true;
    if (!asked->has_user) buf_append(&asked->user, user);
    asked->has_user = true;
    if (run > asked->run) asked->run = run;
}

static void note_live(struct asked *asked) {
    struct directory *directory = session_table_directory(asked->options.sessions);
    const struct session_name *name = &asked->options.name;
    struct session_runs runs;
    directory_of_session(directory, name->workspace, name->user, name->session, &runs);
    for (size_t i = 0; i < runs.count; i++) {
        struct live_view view;
        if (!directory_find(directory, runs.runs[i], &view)) continue;
        note_run(asked, view.user, runs.runs[i]);
        live_view_done(&view);
    }
}

/* --- the last question -------------------------------------------------------------------- */

static bool is_of_thread(const struct asked *asked, const struct event *begins) {
    const struct session_name *name = &asked->options.name;
    return str_equal(begins->started.workspace, name->workspace) &&
           (!name->user.at || str_equal(begins->started.user, name->user)) &&
           str_equal(begins->started.session, name->session);
}

static void asked_note_event(struct asked *asked, const struct event *event, uint64_t seq) {
    if (event->kind == EVENT_STARTED && asked->options.run)
        asked->unknown = !is_of_thread(asked, event);
    if (event->kind != EVENT_ITEM) /* as restore_run_waits() */
        asked->waits = event->kind == EVENT_APPROVAL;
    if (event->kind == EVENT_APPROVAL) asked->seq = seq;
    if (event_is_terminal(event->kind)) asked->ended = event->kind;
    asked->read_to = seq;
}

/* False: the run is not alive, or its journal does not go back to its beginning. */
static bool asked_read_live(struct asked *asked) {
    struct live_view view;
    struct cursor *cursor;
    struct event event;
    struct err e;
    struct directory *directory = session_table_directory(asked->options.sessions);
    if (!directory_find(directory, asked->run, &view)) return false;
    bool opened = cursor_open(view.journal, 0, asked->options.loop, NULL, NULL, &cursor, &e);
    if (opened) {
        while (cursor_next(cursor, &event)) asked_note_event(asked, &event, event.seq);
        cursor_close(cursor);
    }
    live_view_done(&view);
    return opened;
}

static void read_section(struct asked *asked, const struct store_section *section) {
    struct str rest = section->events;
    struct event event = {0};
    struct err e;
    for (uint64_t seq = section->first_seq; rest.len && event_decode(&rest, &event, &e); seq++)
        asked_note_event(asked, &event, seq);
}

static void report_question(struct asked *asked) {
    enum asked_answer answer = asked->unknown ? ASKED_UNKNOWN
                               : asked->seq   ? ASKED_QUESTION
                                              : ASKED_NOTHING;
    asked_report(asked, answer, NULL);
}

static void asked_ask_store(struct asked *asked, store_loaded_fn *on_loaded,
                            struct store_load question) {
    asked->loading = true;
    asked->load = question;
    asked->load.home = asked->options.loop;
    asked->load.on_loaded = on_loaded;
    asked->load.ctx = asked;
    store_load(session_table_store(asked->options.sessions), &asked->load);
}

/* True: it was cancelled and has been freed. */
static bool asked_is_over(struct asked *asked, struct store_load *load) {
    asked->loading = false;
    if (!asked->cancelled) return false;
    arena_free(load->arena);
    asked_free(asked);
    return true;
}

static void asked_read_piece(struct asked *asked);

static void asked_on_piece(struct store_load *load, const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    uint64_t before = asked->read_to;
    if (asked_is_over(asked, load)) return;
    for (size_t i = 0; !failed && i < load->section_count; i++)
        read_section(asked, &load->sections[i]);
    bool more = load->more;
    arena_free(load->arena);
    if (failed) {
        asked_report(asked, ASKED_FAILED, failed);
    } else if (more && asked->read_to > before) {
        asked_read_piece(asked);
    } else {
        report_question(asked);
    }
}

static void asked_read_piece(struct asked *asked) {
    asked_ask_store(asked, asked_on_piece,
                    (struct store_load){.question = STORE_RUN,
                                        .run = asked->run,
                                        .after_seq = asked->read_to,
                                        .max_bytes = PIECE_MAX_BYTES});
}

static void asked_read_run(struct asked *asked) {
    if (asked->several) {
        asked_report(asked, ASKED_SEVERAL, NULL);
    } else if (asked->run == 0) {
        asked_report(asked, ASKED_UNKNOWN, NULL);
    } else if (asked_read_live(asked) || !session_table_store(asked->options.sessions)) {
        report_question(asked);
    } else {
        asked_read_piece(asked);
    }
}

/* --- public functions --------------------------------------------------------------------- */

static void on_threads(struct store_load *load, const struct err *failed, void *ctx) {
    struct asked *asked = ctx;
    if (asked_is_over(asked, load)) return;
    for (size_t i = 0; !failed && i < load->section_count; i++)
        note_run(asked, load->sections[i].events, load->sections[i].run);
    arena_free(load->arena);
    if (failed) {
        asked_report(asked, ASKED_FAILED, failed);
    } else {
        asked_read_run(asked);
    }
}

static void asked_begin(void *ctx) {
    struct asked *asked = ctx;
    const struct session_name *name = &asked->options.name;
    if (asked->options.run) {
        asked->run = asked->options.run;
        asked->unknown = true; /* until its first event has been read */
        asked_read_run(asked);
        return;
    }
    note_live(asked);
    if (!session_table_store(asked->options.sessions)) {
        asked_read_run(asked);
        return;
    }
    asked_ask_store(asked, on_threads,
                    (struct store_load){.question = STORE_THREAD,
                                        .workspace = name->workspace,
                                        .user = name->user,
                                        .session = name->session,
                                        .max_bytes = PIECE_MAX_BYTES});
}

/* Copy the texts, because the request may end before the store answers. */
static void asked_keep_texts(struct asked *asked) {
    struct session_name *name = &asked->options.name;
    struct str *texts[] = {&name->workspace, &name->user, &name->session};
    buf_keep_texts(&asked->texts, texts, ARRAY_LEN(texts));
}

struct asked *asked_look(const struct asked_options *options) {
    struct asked *asked = MEM_NEW(struct asked);
    asked->options = *options;
    asked_keep_texts(asked);
    buf_init(&asked->user, 64 * KIB);
    task_init(&asked->begin, asked_begin, asked);
    loop_defer(options->loop, &asked->begin);
    return asked;
}

void asked_cancel(struct asked *asked) {
    if (!asked) return;
    asked->cancelled = true;
    if (asked->loading) return; /* the store's answer frees it */
    task_cancel(&asked->begin);
    asked_free(asked);
}

#include "store/audit_writer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/audit.h"
#include "store/task.h"

#include <assert.h>
#include <stdlib.h>

#define AGAIN_MS 1000 /* after a failed write */
#define KEY_BYTES 256 /* of what is kept of a kind of refusal */

/* Refusals of one kind, since the last record about them. */
struct refused {
    struct buf texts;
    struct str contract, capability, reason;
    enum err_code outcome;
    uint64_t count; /* 0: this place is free */
    int64_t first_ms;
};

struct audit_writer {
    struct loop *loop;
    struct store *store;
    struct buf waiting, sending; /* records; `sending` is the task's while it runs */
    struct store_task task;
    bool busy, stopping;
    struct timer gather, count;
    uint64_t dropped; /* no room; not said yet */
    struct refused refused[AUDIT_REFUSED_KINDS];
    struct task told; /* that it has stopped */
    task_fn *stopped;
    void *stopped_ctx;
};

/* --- writing ------------------------------------------------------------------------------ */

static bool run_write(struct database *db, void *ctx, struct err *e) {
    struct audit_writer *writer = ctx;
    return audit_note_all(db, buf_str(&writer->sending), e);
}

static void audit_writer_send(struct audit_writer *writer);

static void audit_writer_over(struct audit_writer *writer) {
    if (writer->stopping) loop_defer(writer->loop, &writer->told);
}

/* A record that could not be written is tried again, unless the daemon stops. */
static void on_written(const struct err *failed, void *ctx) {
    struct audit_writer *writer = ctx;
    writer->busy = false;
    if (failed) log_often(LOG_WARNING, "the audit log is not written: %s", failed->text);
    if (failed && !writer->stopping) {
        timer_start(&writer->gather, AGAIN_MS);
        return;
    }
    buf_release(&writer->sending);
    if (!failed && writer->waiting.len) {
        audit_writer_send(writer);
    } else {
        audit_writer_over(writer);
    }
}

static void tell_dropped(struct audit_writer *writer) {
    struct audit_record record = {.at_ms = clock_unix_ms(),
                                  .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.audit"),
                                            [AUDIT_OPERATION] = STR_INIT("dropped")}};
    if (!writer->dropped) return;
    audit_set(&record, AUDIT_OUTCOME, ERR_RESOURCE_EXHAUSTED);
    audit_set(&record, AUDIT_COUNT, writer->dropped);
    if (audit_record_encode(&record, NULL, &writer->waiting)) writer->dropped = 0;
    writer->waiting.full = false;
}

/* What is in `sending` already failed before and goes first. */
static void audit_writer_send(struct audit_writer *writer) {
    if (writer->busy) return;
    timer_stop(&writer->gather);
    if (writer->sending.len == 0) {
        struct buf empty = writer->sending;
        tell_dropped(writer);
        writer->sending = writer->waiting;
        writer->waiting = empty;
    }
    if (writer->sending.len == 0) {
        audit_writer_over(writer);
        return;
    }
    writer->busy = true;
    writer->task = (struct store_task){.fn = run_write, .on_done = on_written};
    store_run(writer->store, writer->loop, &writer->task, writer);
}

static void on_gathered(void *ctx) {
    audit_writer_send(ctx);
}

/* A record that does not fit leaves the ones before it whole. */
void audit_writer_add(struct audit_writer *writer, const struct audit_record *record) {
    if (!writer || writer->stopping) return;
    struct audit_record dated = *record;
    if (!dated.at_ms) dated.at_ms = clock_unix_ms();
    if (!audit_record_encode(&dated, NULL, &writer->waiting)) {
        writer->waiting.full = false;
        writer->dropped++;
    }
    if (!writer->busy && !timer_waits(&writer->gather))
        timer_start(&writer->gather, AUDIT_GATHER_MS);
}

void audit_writer_tell(struct audit_writer *writer, struct str domain, struct str operation,
                       enum err_code outcome, struct str detail) {
    struct audit_record record = {
        .texts = {
            [AUDIT_DOMAIN] = domain, [AUDIT_OPERATION] = operation, [AUDIT_DETAIL] = detail}};
    audit_set(&record, AUDIT_OUTCOME, outcome);
    audit_writer_add(writer, &record);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void add_refusals(struct audit_writer *writer) {
    for (size_t i = 0; i < ARRAY_LEN(writer->refused); i++) {
        struct refused *refused = &writer->refused[i];
        if (refused->count == 0) continue;
        struct audit_record record = {.at_ms = refused->first_ms,
                                      .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.auth"),
                                                [AUDIT_OPERATION] = STR_INIT("refused"),
                                                [AUDIT_CONTRACT] = refused->contract,
                                                [AUDIT_CAPABILITY] = refused->capability,
                                                [AUDIT_REASON] = refused->reason}};
        audit_set(&record, AUDIT_OUTCOME, refused->outcome);
        audit_set(&record, AUDIT_COUNT, refused->count);
        audit_writer_add(writer, &record);
        buf_done(&refused->texts);
        refused->count = 0;
    }
}

static void on_counted(void *ctx) {
    add_refusals(ctx);
}

static void begin_refused(struct refused *refused, const struct audit_record *record) {
    *refused =
        (struct refused){.contract = str_head(record->texts[AUDIT_CONTRACT], KEY_BYTES),
                         .capability = str_head(record->texts[AUDIT_CAPABILITY], KEY_BYTES),
                         .reason = str_head(record->texts[AUDIT_REASON], KEY_BYTES),
                         .outcome = (enum err_code)record->numbers[AUDIT_OUTCOME],
                         .first_ms = clock_unix_ms()};
    struct str *texts[] = {&refused->contract, &refused->capability, &refused->reason};
    buf_keep_texts(&refused->texts, texts, ARRAY_LEN(texts));
}

static bool is_same(const struct refused *refused, const struct audit_record *record) {
    return refused->outcome == (enum err_code)record->numbers[AUDIT_OUTCOME] &&
           str_equal(refused->contract, str_head(record->texts[AUDIT_CONTRACT], KEY_BYTES)) &&
           str_equal(refused->capability,
                     str_head(record->texts[AUDIT_CAPABILITY], KEY_BYTES)) &&
           str_equal(refused->reason, str_head(record->texts[AUDIT_REASON], KEY_BYTES));
}

/* The last place counts all kinds for which there was none. */
static struct refused *find_refused(struct audit_writer *writer,
                                    const struct audit_record *record) {
    static const struct audit_record others = {.texts = {[AUDIT_REASON] = STR_INIT("OTHERS")},
                                               .set[AUDIT_OUTCOME] = true,
                                               .numbers[AUDIT_OUTCOME] = ERR_UNAUTHENTICATED};
    size_t last = ARRAY_LEN(writer->refused) - 1;
    for (size_t i = 0; i < last; i++) {
        struct refused *refused = &writer->refused[i];
        if (refused->count && is_same(refused, record)) return refused;
        if (refused->count) continue;
        begin_refused(refused, record);
        return refused;
    }
    if (!writer->refused[last].count) begin_refused(&writer->refused[last], &others);
    return &writer->refused[last];
}

void audit_writer_refused(struct audit_writer *writer, const struct audit_record *record) {
    if (!writer || writer->stopping) return;
    find_refused(writer, record)->count++;
    if (!timer_waits(&writer->count)) timer_start(&writer->count, AUDIT_REFUSED_MS);
}

/* --- its life ----------------------------------------------------------------------------- */

static void tell_stopped(void *ctx) {
    struct audit_writer *writer = ctx;
    if (writer->stopped) writer->stopped(writer->stopped_ctx);
    writer->stopped = NULL;
}

struct audit_writer *audit_writer_new(struct loop *loop, struct store *store) {
    struct audit_writer *writer = MEM_NEW(struct audit_writer);
    writer->loop = loop;
    writer->store = store;
    buf_init(&writer->waiting, AUDIT_WAITING_BYTES);
    buf_init(&writer->sending, AUDIT_WAITING_BYTES);
    timer_init(&writer->gather, loop, on_gathered, writer);
    timer_init(&writer->count, loop, on_counted, writer);
    task_init(&writer->told, tell_stopped, writer);
    return writer;
}

void audit_writer_free(struct audit_writer *writer) {
    if (!writer) return;
    timer_stop(&writer->gather);
    timer_stop(&writer->count);
    task_cancel(&writer->told);
    for (size_t i = 0; i < ARRAY_LEN(writer->refused); i++) {
        if (writer->refused[i].count) buf_done(&writer->refused[i].texts);
    }
    buf_done(&writer->waiting);
    buf_done(&writer->sending);
    free(writer);
}

void audit_writer_stop(struct audit_writer *writer, task_fn *stopped, void *ctx) {
    assert(!writer->stopping);
    timer_stop(&writer->count);
    add_refusals(writer);
    timer_stop(&writer->gather);
    writer->stopping = true;
    writer->stopped = stopped;
    writer->stopped_ctx = ctx;
    audit_writer_send(writer);
}

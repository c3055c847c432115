/* ExportAuditEvents (mode C): the records there are when it begins, paged from the store. */
#include "contract/nimi/audit/audit.h"
#include "contract/nimi/audit/view.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <zlib.h>

#define CHUNK_BYTES (32 * KIB)
#define QUEUED_MAX_BYTES (256 * KIB) /* more is read when the reader has taken most of it */
#define QUEUED_LOW_BYTES (32 * KIB)
#define PAGE_RECORDS 500
#define TEXT_MAX_BYTES (16 * MIB) /* of a page as JSON, and what was held back before */
#define GZIP_WINDOW (15 + 16)     /* zlib: the largest window, in gzip's format */

static const struct {
    struct str format;
    bool array;
    struct str type, gzip_type;
} formats[] = {
    /* clang-format off */
    {STR_INIT(""),       false, STR_INIT("application/x-ndjson"), STR_INIT("application/x-ndjson+gzip")},
    {STR_INIT("ndjson"), false, STR_INIT("application/x-ndjson"), STR_INIT("application/x-ndjson+gzip")},
    {STR_INIT("jsonl"),  false, STR_INIT("application/x-ndjson"), STR_INIT("application/x-ndjson+gzip")},
    {STR_INIT("json"),   true,  STR_INIT("application/json"),     STR_INIT("application/json+gzip")},
    /* clang-format on */
};

struct export {
    struct nimi_call *call;
    struct store *store;
    struct audit_ask *ask;
    struct audit_query query;
    struct close close;
    struct str type;
    bool array, any; /* any: a record was written */
    z_stream *zip;   /* NULL: not compressed */
    struct buf text; /* of a page; without compression what is not sent yet */
    struct buf out;  /* with compression: what is not sent yet */
    size_t sent;     /* of these bytes */
    uint64_t sequence;
    char id[ULID_LEN + 1];
};

/* --- chunks ------------------------------------------------------------------------------- */

static struct buf *output(struct export *export) {
    return export->zip ? &export->out : &export->text;
}

static struct str unsent(struct export *export) {
    return str_skip(buf_str(output(export)), export->sent);
}

static void send_chunk(struct export *export, struct str bytes, enum close_frame frame) {
    const struct nimi_audit_export_chunk chunk = {.export_id = str_of(export->id, ULID_LEN),
                                                  .sequence = export->sequence++,
                                                  .chunk = bytes,
                                                  .eof = frame == FRAME_EOF,
                                                  .mime_type = export->type};
    close_frame(&export->close, frame);
    struct buf *out = rpc_message_begin(export->call->rpc);
    pb_encode(&nimi_audit_export_chunk_table, &chunk, out);
    rpc_message_end(export->call->rpc);
}

/* Send whole chunks. Some bytes stay back, so that the last chunk is known when it is sent. */
static void send_some(struct export *export) {
    while (unsent(export).len > CHUNK_BYTES) {
        send_chunk(export, str_head(unsent(export), CHUNK_BYTES), FRAME_DATA);
        export->sent += CHUNK_BYTES;
    }
    buf_drop(output(export), export->sent);
    export->sent = 0;
}

static void deflate_text(struct export *export, int flush) {
    z_stream *zip = export->zip;
    struct str text = buf_str(&export->text);
    zip->next_in = (Bytef *)(uintptr_t)text.at;
    zip->avail_in = (uInt)text.len;
    do {
        char *room = buf_room(&export->out, CHUNK_BYTES);
        assert(room); /* at most a page of text is in it */
        zip->next_out = (Bytef *)room;
        zip->avail_out = CHUNK_BYTES;
        deflate(zip, flush);
        buf_grew(&export->out, CHUNK_BYTES - zip->avail_out);
    } while (zip->avail_out == 0);
    buf_clear(&export->text);
}

/* --- the end ------------------------------------------------------------------------------ */

static void export_end(struct export *export) {
    if (export->array) buf_append(&export->text, export->any ? STR("\n]\n") : STR("[]\n"));
    if (export->zip) deflate_text(export, Z_FINISH);
    send_some(export);
    struct close_ending ending = close_decide(&export->close, CAUSE_FINISHED, ERR_NONE);
    send_chunk(export, unsent(export), ending.last);
    close_end(&export->close);
    nimi_end(export->call, ending.status, STR_EMPTY);
}

static void export_fail(struct export *export, enum err_code code, struct str why) {
    struct close_ending ending = close_decide(&export->close, CAUSE_FAILED, code);
    close_end(&export->close);
    nimi_end(export->call, ending.status, why);
}

/* --- pages -------------------------------------------------------------------------------- */

static void read_page(struct export *export);

static void add_record(struct export *export, const struct audit_record *record) {
    struct audit_view view;
    if (export->array) buf_append(&export->text, export->any ? STR(",\n") : STR("[\n"));
    audit_view_init(&view, record);
    audit_view_json(&view, &export->text);
    if (!export->array) buf_append_byte(&export->text, '\n');
    export->any = true;
}

/* Read on as fast as the caller does. */
static void audit_export_go_on(struct export *export) {
    if (rpc_pressure(export->call->rpc) >= QUEUED_MAX_BYTES) {
        rpc_wake_at(export->call->rpc, QUEUED_LOW_BYTES);
    } else {
        read_page(export);
    }
}

static void export_on_page(const struct audit_page *page, const struct err *failed, void *ctx) {
    struct export *export = ctx;
    export->ask = NULL;
    if (export->call->over) return;
    if (failed) {
        export_fail(export, failed->code, STR("the audit log cannot be read now"));
        return;
    }
    if (page->scanned.gap) {
        export_fail(export, ERR_ABORTED,
                    STR("records were pruned before they were read; export again"));
        return;
    }
    if (!export->query.last) export->query.last = page->scanned.newest; /* the snapshot */
    export->query.cursor = page->scanned.cursor;
    for (size_t i = 0; i < page->count; i++) add_record(export, &page->records[i]);
    if (page->scanned.end) {
        export_end(export);
        return;
    }
    if (export->zip) deflate_text(export, Z_NO_FLUSH);
    send_some(export);
    audit_export_go_on(export);
}

static void read_page(struct export *export) {
    export->ask = audit_page_start(export->store, export->call->loop, &export->query,
                                   export_on_page, export);
}

/* --- callbacks of the call ---------------------------------------------------------------- */

static void export_on_drained(void *ctx) {
    struct export *export = ctx;
    if (!export->ask && !export->call->over) audit_export_go_on(export);
}

/* K3: no eof is invented. */
static void export_on_cancelled(enum close_cause why, void *ctx) {
    struct export *export = ctx;
    close_decide(&export->close, why, ERR_CANCELLED);
    close_end(&export->close);
}

static void export_on_closed(void *ctx) {
    struct export *export = ctx;
    audit_forget(export->ask);
    if (export->zip) deflateEnd(export->zip);
    free(export->zip);
    buf_done(&export->text);
    buf_done(&export->out);
    free(export);
}

static const struct nimi_work events = {.drained = export_on_drained,
                                        .cancelled = export_on_cancelled,
                                        .closed = export_on_closed,
                                        .outlasts_stop = true};

/* --- the request -------------------------------------------------------------------------- */

static bool export_choose(struct nimi_call *call,
                          const struct nimi_export_audit_events_request *from,
                          struct export *export, struct fault *fault) {
    const struct audit_choice choice = {from->app_id, from->subject_user_id, from->from_time,
                                        from->to_time};
    if (!audit_choose(call, &choice, &export->query.filter, fault)) return false;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        if (!str_equal(str_trim(from->format), formats[i].format)) continue;
        export->array = formats[i].array;
        export->type = from->compress ? formats[i].gzip_type : formats[i].type;
        return true;
    }
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "format '" STR_FMT "' is not one of ndjson, jsonl and json",
                     STR_ARG(str_head(from->format, 40)));
}

static void begin_zip(struct export *export) {
    export->zip = MEM_NEW(z_stream);
    int result = deflateInit2(export->zip, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MAX_MEM_LEVEL,
                              Z_DEFAULT_STRATEGY);
    assert(result == Z_OK);
    (void)result;
}

void audit_export(struct nimi_call *call, const void *request) {
    const struct nimi_export_audit_events_request *from = request;
    struct export *export = MEM_NEW(struct export);
    struct fault fault;
    export->call = call;
    export->query = (struct audit_query){.order = AUDIT_OLDEST_FIRST, .limit = PAGE_RECORDS};
    buf_init(&export->text, TEXT_MAX_BYTES);
    buf_init(&export->out, TEXT_MAX_BYTES);
    ulid_new(export->id);
    close_init(&export->close, CLOSE_EOF);
    nimi_work(call, &events, export);
    if (!export_choose(call, from, export, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    export->store = audit_store(call);
    if (!export->store) return;
    if (from->compress) begin_zip(export);
    rpc_establish(call->rpc);
    close_establish(&export->close);
    read_page(export);
}

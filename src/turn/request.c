#include "turn/request.h"

#include "turn/turn.h"
#include "wire/json.h"

#define OPTIONS_MAX_BYTES (64 * KIB)

/* Keep the trace. False: the run's memory is full. */
static bool run_keep_trace(struct run *run, const struct trace_context *trace) {
    if (!trace || !trace_context_known(trace)) return true;
    run->request.trace = trace_context_copy(trace, run->arena);
    return run->request.trace != NULL;
}

bool run_restore_trace(struct run *run, struct str text) {
    struct trace_context trace;
    return !trace_context_take(text, &trace) || run_keep_trace(run, &trace);
}

bool run_trace_text(struct run *run, struct str *ret) {
    struct buf text;
    *ret = STR_EMPTY;
    if (!run->request.trace) return true;
    buf_init(&text, KIB);
    trace_context_put(run->request.trace, &text);
    bool kept = run_keep(run, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

bool run_restore_options(struct run *run, struct str text) {
    struct turn_request *to = &run->request;
    struct err e;
    if (!text.len) return true;
    to->options = ARENA_NEW(run->arena, struct model_options);
    return to->options && arena_str(run->arena, text, &to->options_text) &&
           model_options_read(json_of(to->options_text), run->arena, to->options, &e);
}

/* Kept as a restored run reads them, so that both have the same. */
static bool keep_options(struct run *run, const struct model_options *options) {
    struct buf text;
    if (!options) return true;
    buf_init(&text, OPTIONS_MAX_BYTES);
    struct json_writer json = json_writer(&text);
    json_open_object(&json);
    model_options_write(options, &json);
    json_close(&json);
    bool kept = buf_ok(&text) && run_restore_options(run, buf_str(&text));
    buf_done(&text);
    return kept;
}

static bool copy_texts(struct run *run, const struct run_request *from) {
    struct turn_request *to = &run->request;
    struct claim *claim = &run->record.claim;
    to->name = from->name;
    to->text = from->text;
    to->system = from->system;
    to->contract = from->contract;
    to->extras = from->extras;
    to->schema_text = from->schema;
    claim->name.key = from->key;
    claim->print = from->print;
    struct str *const texts[] = {&to->name.workspace, &to->name.user,   &to->name.session,
                                 &to->text,           &to->system,      &to->contract,
                                 &to->extras,         &to->schema_text, &claim->name.key,
                                 &claim->print};
    return arena_keep_texts(run->arena, texts, ARRAY_LEN(texts)) &&
           keep_options(run, from->options) && run_keep_trace(run, from->trace) &&
           run_keep_brought(run, from);
}

bool run_keep_request(struct run *run, const struct run_request *from, struct err *e) {
    struct turn_request *to = &run->request;
    to->newest_known = from->newest_known;
    to->promised = from->promised;
    to->sticky = from->sticky;
    to->schema_loose = from->schema_loose;
    to->addressed = run->agent != &run->record.engine->agents[0];
    if (!copy_texts(run, from))
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a turn may hold");
    if (!run_keep_caller_tools(run, from, e)) return false;
    if (to->schema_text.len && !schema_read(to->schema_text, &to->schema, e))
        return err_add(e, "the schema of the answer");
    return true;
}

void request_done(struct run *run) {
    schema_free(run->request.schema);
}

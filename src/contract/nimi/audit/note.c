#include "contract/nimi/audit/note.h"

#include "store/audit_writer.h"

#define NAME_BYTES 64

/* Whether calls of this method are recorded. */
static bool audit_note_wants(const struct nimi_row *row) {
    return row->facts & NIMI_RECORDED || !(row->facts & (NIMI_READS | NIMI_LOOKS));
}

/* "/nimi.runtime.v1.RuntimeAiService/StreamScenario" is "runtime.ai" and "StreamScenario". */
static struct str domain_of(struct str path, char room[static NAME_BYTES]) {
    static const struct str head = STR_INIT("/nimi.runtime.v1.Runtime"),
                            tail = STR_INIT("Service");
    struct str method, service = str_split(str_skip(path, head.len), '/', &method);
    struct buf name = {.at = room, .room = NAME_BYTES, .max_bytes = NAME_BYTES};
    service = str_head(service, service.len - tail.len);
    buf_append(&name, STR("runtime."));
    for (size_t i = 0; i < service.len; i++) {
        char c = service.at[i];
        buf_append_byte(&name, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
    }
    return buf_str(&name);
}

static struct str note_method_of(struct str path) {
    struct str rest = str_skip(path, 1);
    return str_skip(rest, str_find_byte(rest, '/') + 1);
}

static void set_count(struct audit_record *record, enum audit_number number, int64_t count) {
    if (count >= 0) audit_set(record, number, (uint64_t)count);
}

static struct str first_of(struct str a, struct str b) {
    return a.len ? a : b;
}

void audit_note_call(const struct nimi_call *call) {
    const struct envelope *envelope = &call->envelope;
    const struct nimi_used *used = &call->used;
    char name[NAME_BYTES];
    if (!call->audited || !audit_note_wants(call->row)) return;
    struct str method = note_method_of(call->row->path);
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = domain_of(call->row->path, name),
                  [AUDIT_OPERATION] = method,
                  [AUDIT_WORKSPACE] = first_of(envelope->app_id, used->app),
                  [AUDIT_USER] = first_of(call->subject, used->subject),
                  [AUDIT_CONTRACT] = STR_INIT("nimi"),
                  [AUDIT_CALLER_KIND] = envelope->caller_kind,
                  [AUDIT_CALLER] = envelope->caller_id,
                  [AUDIT_SURFACE] = envelope->surface_id,
                  [AUDIT_TRACE] = nimi_trace(call),
                  [AUDIT_CAPABILITY] = first_of(used->capability, method),
                  [AUDIT_MODEL] = used->model}};
    record.texts[AUDIT_DETAIL] = call->grant_id;
    if (call->reason) record.texts[AUDIT_REASON] = str_from(reason_get(call->reason)->name);
    audit_set(&record, AUDIT_OUTCOME, call->code);
    if (used->capability.len) {
        set_count(&record, AUDIT_INPUT_TOKENS, used->input_tokens);
        set_count(&record, AUDIT_OUTPUT_TOKENS, used->output_tokens);
        set_count(&record, AUDIT_COMPUTE_MS, used->compute_ms);
        set_count(&record, AUDIT_QUEUE_MS, used->queue_ms);
    }
    audit_writer_add(call->instance->audit, &record);
}

void audit_note_refused(const struct nimi_call *call, const struct fault *fault) {
    struct audit_record record = {
        .texts = {[AUDIT_CONTRACT] = STR_INIT("nimi"), [AUDIT_CAPABILITY] = call->row->path}};
    enum err_code code = fault->why.code;
    if (code != ERR_UNAUTHENTICATED && code != ERR_PERMISSION_DENIED) return;
    record.texts[AUDIT_REASON] = str_from(reason_get(fault->reason)->name);
    audit_set(&record, AUDIT_OUTCOME, code);
    audit_writer_refused(call->instance->audit, &record);
}

void audit_note_provider(struct audit_writer *writer, const struct nimi_probed *probed) {
    struct audit_record record = {
        .texts = {[AUDIT_DOMAIN] = STR_INIT("runtime.ai"),
                  [AUDIT_OPERATION] = STR_INIT("provider.health"),
                  [AUDIT_CONTRACT] = STR_INIT("nimi"),
                  [AUDIT_CAPABILITY] = str_from(probed->name),
                  [AUDIT_REASON] = nimi_probe_state_name(probed->state),
                  [AUDIT_DETAIL] = str_from(probed->reason)}};
    audit_set(&record, AUDIT_OUTCOME,
              probed->state == NIMI_PROBE_UNHEALTHY ? ERR_UNAVAILABLE : ERR_NONE);
    audit_writer_add(writer, &record);
}

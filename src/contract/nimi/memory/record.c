#include "contract/nimi/memory/record.h"

#include "contract/nimi/memory/work.h"
#include "proto/nimi.pb.h"

#define YEAR_1_S INT64_C(-62135596800)
#define YEAR_9999_END_S INT64_C(253402300799)
#define EVENT_MAX_BYTES (4 * KIB)

/* --- times -------------------------------------------------------------------------------- */

bool record_moment(const char *name, const struct google_timestamp *at, int64_t *ret_us,
                   struct fault *fault) {
    if (at->seconds < YEAR_1_S || at->seconds > YEAR_9999_END_S || at->nanos < 0 ||
        at->nanos > 999999999)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "%s is no time between the years 1 and 9999", name);
    *ret_us = at->seconds * 1000000 + at->nanos / 1000;
    return true;
}

static struct google_timestamp *moment_at(int64_t us, struct arena *arena) {
    struct google_timestamp *at = ARENA_NEW(arena, struct google_timestamp);
    if (at)
        *at = (struct google_timestamp){.seconds = us / 1000000,
                                        .nanos = (int32_t)(us % 1000000) * 1000};
    return at;
}

static bool time_of(const struct nimi_memory_record_input *input, int64_t *ret_us,
                    struct fault *fault) {
    const struct google_timestamp *at = NULL;
    const char *name = "provenance.committed_at";
    if (input->which_payload == NIMI_MEMORY_RECORD_INPUT_EPISODIC) {
        at = input->episodic->occurred_at;
        name = "occurred_at";
    } else if (input->which_payload == NIMI_MEMORY_RECORD_INPUT_OBSERVATIONAL) {
        at = input->observational->observed_at;
        name = "observed_at";
    }
    if (at) return record_moment(name, at, ret_us, fault);
    if (!input->provenance || !input->provenance->committed_at) return true;
    return record_moment("provenance.committed_at", input->provenance->committed_at, ret_us,
                         fault);
}

/* --- words -------------------------------------------------------------------------------- */

static void record_add_line(struct buf *out, struct str text) {
    if (text.len) buf_append(out, text);
    buf_append_byte(out, '\n');
}

static void put_words(struct buf *out, const struct nimi_memory_record_input *input) {
    switch (input->which_payload) {
    case NIMI_MEMORY_RECORD_INPUT_EPISODIC:
        record_add_line(out, input->episodic->summary);
        for (size_t i = 0; i < input->episodic->participants_count; i++)
            record_add_line(out, input->episodic->participants[i]);
        break;
    case NIMI_MEMORY_RECORD_INPUT_SEMANTIC:
        record_add_line(out, input->semantic->subject);
        record_add_line(out, input->semantic->predicate);
        record_add_line(out, input->semantic->object);
        break;
    default:
        record_add_line(out, input->observational->observation);
        record_add_line(out, input->observational->source_ref);
        break;
    }
}

/* --- the record --------------------------------------------------------------------------- */

/* The kinds are numbered as the payloads are, from 10 on. */
static bool record_kind_of(const struct nimi_memory_record_input *input, int32_t *ret,
                           struct fault *fault) {
    if (!input->which_payload)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a record has no payload; send episodic, semantic or observational");
    *ret = input->which_payload - NIMI_MEMORY_RECORD_INPUT_EPISODIC +
           NIMI_MEMORY_RECORD_KIND_EPISODIC;
    if (!input->kind || input->kind == *ret) return true;
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "a record's kind is %d, and its payload is of kind %d", input->kind, *ret);
}

static bool class_is_known(int32_t class, struct fault *fault) {
    return (class >= 0 && class <= NIMI_MEMORY_CANONICAL_CLASS_DYADIC) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no canonical_class %d",
                     class);
}

static void copy_payload(const struct nimi_memory_record_input *input,
                         struct nimi_memory_record *ret) {
    ret->which_payload = input->which_payload;
    switch (input->which_payload) {
    case NIMI_MEMORY_RECORD_INPUT_EPISODIC: ret->episodic = input->episodic; break;
    case NIMI_MEMORY_RECORD_INPUT_SEMANTIC: ret->semantic = input->semantic; break;
    default: ret->observational = input->observational; break;
    }
}

/* Copies a buffer into the arena, and ends it. */
static bool move_in(struct buf *from, struct arena *arena, struct str *ret) {
    bool ok = buf_ok(from) && arena_str(arena, buf_str(from), ret);
    buf_done(from);
    return ok;
}

static bool encode(const struct pb_message *type, const void *message, struct arena *arena,
                   struct str *ret) {
    struct buf bytes;
    buf_init(&bytes, BANK_RECORD_MAX_BYTES);
    bool fits = pb_encode(type, message, &bytes);
    return move_in(&bytes, arena, ret) && fits;
}

/* The event knows the record by its head; the rest is read from the record itself. */
static bool make_event(const struct locator *bank, const struct nimi_memory_record *record,
                       struct arena *arena, struct str *ret) {
    const struct nimi_memory_record head = {.memory_id = record->memory_id,
                                            .bank = record->bank,
                                            .kind = record->kind,
                                            .canonical_class = record->canonical_class,
                                            .created_at = record->created_at,
                                            .updated_at = record->updated_at};
    const struct nimi_memory_event event = {.which_detail = NIMI_MEMORY_EVENT_RECORD_RETAINED,
                                            .record_retained = &head};
    struct buf bytes;
    buf_init(&bytes, EVENT_MAX_BYTES);
    memory_event_put(&bytes, NIMI_MEMORY_EVENT_TYPE_RECORD_RETAINED, bank, event);
    return move_in(&bytes, arena, ret);
}

static bool make_words(const struct nimi_memory_record_input *input, struct arena *arena,
                       struct str *ret) {
    struct buf words;
    buf_init(&words, BANK_RECORD_MAX_BYTES);
    put_words(&words, input);
    return move_in(&words, arena, ret);
}

bool record_make(const struct nimi_memory_record_input *input, const struct locator *bank,
                 struct str id, int64_t now_us, struct arena *arena, struct bank_record *ret,
                 struct nimi_memory_record *ret_message, struct fault *fault) {
    int32_t kind = 0;
    *ret = (struct bank_record){.name = id, .class = input->canonical_class, .at_us = now_us};
    if (!record_kind_of(input, &kind, fault) ||
        !class_is_known(input->canonical_class, fault) || !time_of(input, &ret->at_us, fault))
        return false;
    ret->kind = kind;
    *ret_message = (struct nimi_memory_record){.memory_id = id,
                                               .bank = &bank->message,
                                               .kind = kind,
                                               .canonical_class = input->canonical_class,
                                               .provenance = input->provenance,
                                               .metadata = input->metadata,
                                               .extensions = input->extensions,
                                               .created_at = moment_at(now_us, arena),
                                               .updated_at = moment_at(now_us, arena)};
    copy_payload(input, ret_message);
    if (encode(&nimi_memory_record_table, ret_message, arena, &ret->body) &&
        make_words(input, arena, &ret->words) &&
        make_event(bank, ret_message, arena, &ret->event))
        return true;
    return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "a record is too long; one has %d KiB",
                     (int)(BANK_RECORD_MAX_BYTES / KIB));
}

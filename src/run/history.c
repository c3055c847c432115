#include "run/history.h"

#include "base/mem.h"

#include <stdlib.h>

/* --- records ------------------------------------------------------------------------------ */

static size_t message_bytes(const struct message *message) {
    return message->agent.len + message->text.len + message->call_id.len + message->tool.len;
}

static struct str copy(char **at, struct str text) {
    if (text.len) memcpy(*at, text.at, text.len);
    struct str kept = str_of(*at, text.len);
    *at += text.len;
    return kept;
}

struct turn_record *turn_record_new(uint64_t run, const struct message *messages,
                                    size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += message_bytes(&messages[i]);
    struct turn_record *record =
        mem_alloc(sizeof(*record) + count * sizeof(struct message) + bytes);
    atomic_init(&record->refs, 1);
    record->run = run;
    record->text_bytes = bytes;
    record->message_count = count;
    char *at = (char *)(record->messages + count);
    for (size_t i = 0; i < count; i++) {
        record->messages[i] = (struct message){.role = messages[i].role,
                                               .error = messages[i].error,
                                               .agent = copy(&at, messages[i].agent),
                                               .text = copy(&at, messages[i].text),
                                               .call_id = copy(&at, messages[i].call_id),
                                               .tool = copy(&at, messages[i].tool)};
    }
    return record;
}

struct turn_record *turn_record_ref(struct turn_record *record) {
    atomic_fetch_add_explicit(&record->refs, 1, memory_order_relaxed);
    return record;
}

void turn_record_unref(struct turn_record *record) {
    if (!record) return;
    if (atomic_fetch_sub_explicit(&record->refs, 1, memory_order_acq_rel) == 1) free(record);
}

/* --- histories ---------------------------------------------------------------------------- */

static struct history *with_room(size_t record_count) {
    struct history *history =
        mem_zero(1, sizeof(*history) + record_count * sizeof(struct turn_record *));
    atomic_init(&history->refs, 1);
    return history;
}

struct history *history_new(void) {
    return with_room(0);
}

struct history *history_ref(struct history *history) {
    atomic_fetch_add_explicit(&history->refs, 1, memory_order_relaxed);
    return history;
}

void history_unref(struct history *history) {
    if (!history) return;
    if (atomic_fetch_sub_explicit(&history->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < history->record_count; i++) turn_record_unref(history->records[i]);
    free(history);
}

static void add(struct history *history, struct turn_record *record) {
    history->records[history->record_count++] = record;
    history->text_bytes += record->text_bytes;
    history->message_count += record->message_count;
}

/* The first record that stays when one of `new_bytes` joins. */
static size_t first_to_stay(const struct history *history, size_t new_bytes) {
    size_t first = 0, bytes = history->text_bytes + new_bytes;
    while (first < history->record_count &&
           (history->record_count - first >= HISTORY_TURNS_MAX || bytes > HISTORY_MAX_BYTES)) {
        bytes -= history->records[first++]->text_bytes;
    }
    return first;
}

struct history *history_with(const struct history *history, struct turn_record *record) {
    size_t first = first_to_stay(history, record->text_bytes);
    struct history *longer = with_room(history->record_count - first + 1);
    for (size_t i = first; i < history->record_count; i++) {
        add(longer, turn_record_ref(history->records[i]));
    }
    add(longer, record);
    return longer;
}

void history_messages(const struct history *history, struct message *ret) {
    for (size_t i = 0; i < history->record_count; i++) {
        const struct turn_record *record = history->records[i];
        memcpy(ret, record->messages, record->message_count * sizeof(struct message));
        ret += record->message_count;
    }
}

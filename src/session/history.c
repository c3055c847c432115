#include "session/history.h"

#include "base/pool.h"

#include <stdlib.h>

/* --- records ------------------------------------------------------------------------------ */

static size_t message_bytes(const struct message *message) {
    return message->agent.len + message->text.len + message->call_id.len + message->tool.len +
           message->heard_by.len + message->parts.len;
}

static struct str history_copy(char **at, struct str text) {
    if (text.len) memcpy(*at, text.at, text.len);
    struct str kept = str_of(*at, text.len);
    *at += text.len;
    return kept;
}

static size_t turn_record_bytes(const struct turn_record *record) {
    return sizeof(*record) + record->message_count * sizeof(struct message) +
           record->text_bytes;
}

/* Which messages of a turn are copied. */
enum recorded { RECORD_ALL, RECORD_REMEMBERED };

static bool is_recorded(const struct message *message, enum recorded which) {
    return which == RECORD_ALL || !message->instructions;
}

static struct turn_record *record_new(uint64_t run, const struct message *messages,
                                      size_t count, enum recorded which) {
    size_t bytes = 0, prompt_bytes = 0, recorded = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_recorded(&messages[i], which)) continue;
        bytes += message_bytes(&messages[i]);
        prompt_bytes += messages[i].text.len + messages[i].tool.len;
        recorded++;
    }
    struct turn_record *record =
        mem_alloc(sizeof(*record) + recorded * sizeof(struct message) + bytes);
    atomic_init(&record->refs, 1);
    record->run = run;
    record->text_bytes = bytes;
    record->prompt_bytes = prompt_bytes;
    record->starts_anew = record->vain = record->inside = false;
    record->message_count = 0;
    char *at = (char *)(record->messages + recorded);
    for (size_t i = 0; i < count; i++) {
        if (!is_recorded(&messages[i], which)) continue;
        record->messages[record->message_count++] =
            (struct message){.role = messages[i].role,
                             .error = messages[i].error,
                             .instructions = messages[i].instructions,
                             .agent = history_copy(&at, messages[i].agent),
                             .text = history_copy(&at, messages[i].text),
                             .call_id = history_copy(&at, messages[i].call_id),
                             .tool = history_copy(&at, messages[i].tool),
                             .heard_by = history_copy(&at, messages[i].heard_by),
                             .parts = history_copy(&at, messages[i].parts)};
    }
    mem_count(turn_record_bytes(record));
    return record;
}

struct turn_record *turn_record_new(uint64_t run, const struct message *messages,
                                    size_t count) {
    return record_new(run, messages, count, RECORD_ALL);
}

struct turn_record *turn_record_ended(uint64_t run, const struct message *messages,
                                      size_t count) {
    return record_new(run, messages, count, RECORD_REMEMBERED);
}

struct turn_record *turn_record_ref(struct turn_record *record) {
    atomic_fetch_add_explicit(&record->refs, 1, memory_order_relaxed);
    return record;
}

void turn_record_unref(struct turn_record *record) {
    if (!record) return;
    if (atomic_fetch_sub_explicit(&record->refs, 1, memory_order_acq_rel) != 1) return;
    mem_uncount(turn_record_bytes(record));
    free(record);
}

/* --- shelves ------------------------------------------------------------------------------ */

struct shelf {
    atomic_uint refs;
    atomic_size_t count; /* records in use; the thread that raises it fills the new place */
    size_t room;
    struct turn_record *records[];
};

static struct shelf *shelf_new(size_t room) {
    struct shelf *shelf = mem_alloc(sizeof(*shelf) + room * sizeof(struct turn_record *));
    atomic_init(&shelf->refs, 1);
    atomic_init(&shelf->count, 0);
    shelf->room = room;
    return shelf;
}

static void shelf_unref(struct shelf *shelf) {
    if (!shelf) return;
    if (atomic_fetch_sub_explicit(&shelf->refs, 1, memory_order_acq_rel) != 1) return;
    size_t count = atomic_load_explicit(&shelf->count, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) turn_record_unref(shelf->records[i]);
    free(shelf);
}

/* Append `record` after the history's last record. False: the shelf is full, or the place is
 * taken. */
static bool shelf_take(const struct history *history, struct turn_record *record) {
    struct shelf *shelf = history->shelf;
    if (!shelf) return false;
    size_t place = (size_t)(history->records - shelf->records) + history->record_count;
    size_t expected = place;
    if (place == shelf->room) return false;
    if (!atomic_compare_exchange_strong(&shelf->count, &expected, place + 1)) return false;
    shelf->records[place] = record;
    return true;
}

/* --- histories ---------------------------------------------------------------------------- */

static _Thread_local struct pool histories = POOL(sizeof(struct history), 256);

struct history *history_new(void) {
    struct history *history = pool_zero(&histories);
    atomic_init(&history->refs, 1);
    return history;
}

struct history *history_ref(struct history *history) {
    atomic_fetch_add_explicit(&history->refs, 1, memory_order_relaxed);
    return history;
}

void history_unref(struct history *history) {
    if (!history) return;
    if (atomic_fetch_sub_explicit(&history->refs, 1, memory_order_acq_rel) != 1) return;
    shelf_unref(history->shelf);
    pool_give(&histories, history);
}

static bool is_over(const struct history *history, size_t first, size_t bytes, size_t turns_max,
                    size_t bytes_max) {
    return first < history->record_count &&
           (history->record_count - first >= turns_max || bytes > bytes_max);
}

/* Index of the first record to keep when one of `new_bytes` is added. Several are dropped at once:
 * a prompt whose beginning changes at each turn is in no provider's cache. */
static size_t first_to_stay(const struct history *history, size_t new_bytes) {
    size_t first = 0, bytes = history->text_bytes + new_bytes;
    if (!is_over(history, 0, bytes, HISTORY_TURNS_MAX, HISTORY_MAX_BYTES)) return 0;
    while (is_over(history, first, bytes, HISTORY_TURNS_LEFT, HISTORY_BYTES_LEFT))
        bytes -= history->records[first++]->text_bytes;
    return first;
}

/* A new shelf with the kept records, the new one, and some room for more. */
static struct shelf *history_move(const struct history *history, size_t first,
                                  struct turn_record *record) {
    size_t count = history->record_count - first;
    struct shelf *shelf = shelf_new(count + 1 + (count + 3) / 4);
    for (size_t i = 0; i < count; i++) {
        shelf->records[i] = turn_record_ref(history->records[first + i]);
    }
    shelf->records[count] = record;
    atomic_init(&shelf->count, count + 1);
    return shelf;
}

struct history *history_with(const struct history *history, struct turn_record *record) {
    size_t first = record->starts_anew ? history->record_count
                                       : first_to_stay(history, record->text_bytes);
    struct history *longer = history_new();
    longer->text_bytes = history->text_bytes + record->text_bytes;
    longer->message_count = history->message_count + record->message_count;
    longer->prompt_bytes = history->prompt_bytes + record->prompt_bytes;
    longer->record_count = history->record_count - first + 1;
    size_t fell_out = history->left_bytes;
    for (size_t i = 0; i < first; i++) {
        fell_out += history->records[i]->text_bytes;
        longer->text_bytes -= history->records[i]->text_bytes;
        longer->message_count -= history->records[i]->message_count;
        longer->prompt_bytes -= history->records[i]->prompt_bytes;
    }
    if (fell_out <= HISTORY_LEFT_BYTES && shelf_take(history, record)) {
        longer->left_bytes = fell_out;
        longer->shelf = history->shelf;
        atomic_fetch_add_explicit(&longer->shelf->refs, 1, memory_order_relaxed);
        longer->records = history->records + first;
    } else {
        longer->shelf = history_move(history, first, record);
        longer->records = longer->shelf->records;
    }
    return longer;
}

const struct message *history_oldest(const struct history *history) {
    for (size_t i = 0; i < history->record_count; i++) {
        const struct turn_record *record = history->records[i];
        if (record->message_count) return &record->messages[0];
    }
    return NULL;
}

const struct message *history_newest_of_agent(const struct history *history) {
    for (size_t i = history->record_count; i-- > 0;) {
        const struct turn_record *record = history->records[i];
        for (size_t k = record->message_count; k-- > 0;) {
            const struct message *message = &record->messages[k];
            if (message->role != MESSAGE_USER && message->role != MESSAGE_SYSTEM)
                return message;
        }
    }
    return NULL;
}

size_t history_bytes(const struct history *history) {
    return sizeof(*history) + history->text_bytes + history->left_bytes +
           history->message_count * sizeof(struct message) +
           history->record_count * (sizeof(struct turn_record) + sizeof(struct turn_record *));
}

void history_messages(const struct history *history, struct message *ret) {
    for (size_t i = 0; i < history->record_count; i++) {
        const struct turn_record *record = history->records[i];
        memcpy(ret, record->messages, record->message_count * sizeof(struct message));
        ret += record->message_count;
    }
}

struct history *history_before(struct history *history, uint64_t run) {
    struct history *before = history_new();
    for (size_t i = 0; i < history->record_count; i++) {
        if (history->records[i]->run >= run) continue;
        struct history *longer = history_with(before, turn_record_ref(history->records[i]));
        history_unref(before);
        before = longer;
    }
    return before;
}

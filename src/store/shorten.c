#include "store/shorten.h"

#include "base/sixteen.h"
#include "store/store.h"
#include "store/varint.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* --- the end of a row --------------------------------------------------------------------- */

struct shorten_end shorten_find(struct str row) {
    struct str rest = row;
    struct store_section section, last = {.events = STR_EMPTY};
    struct event event = {0};
    struct err e;
    bool bad = false;
    while (store_section_next(&rest, &section, &bad)) last = section;
    struct str end = STR_EMPTY; /* the last event */
    while (!bad && last.events.len) {
        event_skip_texts(&last.events, SIZE_MAX);
        end = last.events;
        if (!event_skip(&last.events)) return SHORTEN_NOT;
    }
    if (!end.len || end.at[0] != EVENT_DONE) return SHORTEN_NOT;
    size_t tail = (size_t)(end.at - row.at);
    if (!event_decode(&end, &event, &e) || end.len) return SHORTEN_NOT;
    return (struct shorten_end){event.done.turns, tail};
}

/* --- shortening --------------------------------------------------------------------------- */

struct shortening {
    char *at, *end;   /* where the next step is written; as long as the row, or it is no use */
    struct str turns; /* the ones that were not begun */
    struct str reply; /* what is left of the one that was */
    struct str literal;
    const char *from;   /* in the row: what no step has covered */
    const char *copied; /* in the tail: after what was copied */
    struct str head;    /* of the text event before, up to its text ... */
    size_t text_len;    /* ... which is so long */
};

static void put_number(struct shortening *all, uint64_t number) {
    all->at += varint_put(all->at, number);
}

static void put_bytes(struct shortening *all, struct str bytes) {
    if (bytes.len) memcpy(all->at, bytes.at, bytes.len);
    all->at += bytes.len;
}

/* One step; false when there is no room for it. */
static bool put_step(struct shortening *all, struct str literal, size_t copied,
                     size_t skipped) {
    if ((size_t)(all->end - all->at) < literal.len + 3 * VARINT_MAX_BYTES) return false;
    bool again = str_equal(literal, all->literal);
    put_number(all, again ? 0 : literal.len);
    if (!again) put_bytes(all, literal);
    all->literal = literal;
    put_number(all, (uint64_t)copied << 1 | (skipped != 0));
    if (skipped) put_number(all, skipped);
    return true;
}

/* Copy a text of the row from the tail, if it is what the replies say next. */
static void try_text(struct shortening *all, struct str text) {
    struct event_turn turn;
    while (!all->reply.len && event_turn_next(&all->turns, &turn)) all->reply = turn.text;
    if (text.len == 0 || text.len > all->reply.len ||
        memcmp(text.at, all->reply.at, text.len) != 0) {
        return;
    }
    struct str literal = str_of(all->from, (size_t)(text.at - all->from));
    if (!put_step(all, literal, text.len, (size_t)(all->reply.at - all->copied))) return;
    all->from = text.at + text.len;
    all->reply = str_skip(all->reply, text.len);
    all->copied = all->reply.at;
}

/* Not all zero where the `len` bytes at `a` and at `b` differ. `len` is that of a sixteen or more. */
static inline sixteen text_differs(const char *a, const char *b, size_t len) {
    size_t step = sizeof(sixteen), i = 0;
    sixteen other = sixteen_at(a + len - step) ^ sixteen_at(b + len - step);
    for (; i + 2 * step < len; i += 2 * step) {
        other |= sixteen_at(a + i) ^ sixteen_at(b + i);
        other |= sixteen_at(a + i + step) ^ sixteen_at(b + i + step);
    }
    return i + step < len ? other | (sixteen_at(a + i) ^ sixteen_at(b + i)) : other;
}

#ifdef __x86_64__

#define TARGET __attribute__((target("avx2")))
#define WIDE sizeof(__m256i)

TARGET static inline __m256i wide_differs(const char *a, const char *b) {
    return _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)a),
                            _mm256_loadu_si256((const __m256i *)(const void *)b));
}

/* count_same() for heads of up to sixteen bytes and texts of thirty-two or more. */
TARGET static size_t count_same_wide(const char *at, struct str head, const char *reply,
                                     size_t text_len, size_t most) {
    size_t len = head.len + text_len, left = most;
    sixteen wanted = {0}, mask = {0};
    memcpy(&wanted, head.at, head.len);
    memset(&mask, 0xFF, head.len);
    for (; left; left--, at += len, reply += text_len) {
        sixteen other = (sixteen_at(at) ^ wanted) & mask;
        const char *text = at + head.len;
        __m256i text_other = wide_differs(text + text_len - WIDE, reply + text_len - WIDE);
        for (size_t i = 0; i + WIDE < text_len; i += WIDE)
            text_other = _mm256_or_si256(text_other, wide_differs(text + i, reply + i));
        text_other = _mm256_or_si256(text_other, _mm256_zextsi128_si256((__m128i)other));
        if (!_mm256_testz_si256(text_other, text_other)) break;
    }
    return most - left;
}

static bool may_go_wide(struct str head, size_t text_len) {
    return head.len <= sizeof(sixteen) && text_len >= WIDE && __builtin_cpu_supports("avx2");
}

#endif

/* How many text events at `at`, of `most`, have this head and say what the reply says next. Not
 * inlined: the loop needs the registers. */
static __attribute__((noinline)) size_t
count_same(const char *at, struct str head, const char *reply, size_t text_len, size_t most) {
    size_t len = head.len + text_len, step = sizeof(sixteen), left = most;
    sixteen wanted = {0}, mask = {0};
#ifdef __x86_64__
    if (may_go_wide(head, text_len)) return count_same_wide(at, head, reply, text_len, most);
#endif
    if (head.len > step || text_len < step) {
        for (; left && memcmp(at, head.at, head.len) == 0 &&
               memcmp(at + head.len, reply, text_len) == 0;
             left--, at += len, reply += text_len) {
        }
        return most - left;
    }
    memcpy(&wanted, head.at, head.len);
    memset(&mask, 0xFF, head.len);
    for (; left; left--, at += len, reply += text_len) {
        sixteen other = (sixteen_at(at) ^ wanted) & mask;
        other |= text_differs(at + head.len, reply, text_len);
        if (sixteen_any(other != 0)) break;
    }
    return most - left;
}

/* Write the same bytes `count` times. */
static void put_again(struct shortening *all, const char *bytes, size_t len, size_t count) {
    size_t total = len * count, done = len;
    if (!count) return;
    memcpy(all->at, bytes, len);
    for (size_t more; done < total; done += more) {
        more = done < total - done ? done : total - done;
        memcpy(all->at + done, all->at, more);
    }
    all->at += total;
}

/* The events of one reply mostly differ only in their texts. After copying one such event, take
 * the ones that follow, each as a step of two numbers. */
static void repeat(struct shortening *all, struct str *events) {
    struct str head = all->head;
    size_t text_len = all->text_len, len = head.len + text_len;
    if (all->from != events->at || all->literal.len != head.len) return; /* not its head */
    char step[2 * VARINT_MAX_BYTES] = {0};
    size_t step_len = 1 + varint_put(step + 1, (uint64_t)text_len << 1);
    size_t most = (size_t)(all->end - all->at) / step_len;
    if (most > events->len / len) most = events->len / len;
    if (text_len && most > all->reply.len / text_len) most = all->reply.len / text_len;
    size_t count = count_same(events->at, head, all->reply.at, text_len, most);
    put_again(all, step, step_len, count);
    *events = str_skip(*events, count * len);
    all->reply = str_skip(all->reply, count * text_len);
    all->from += count * len;
    all->copied += count * text_len;
}

static bool next_text(struct shortening *all, struct str *events, struct str *ret) {
    const char *begin = events->at;
    struct str agent;
    if (!event_take_text(events, &agent, ret)) return false;
    all->head = str_of(begin, (size_t)(ret->at - begin));
    all->text_len = ret->len;
    return true;
}

static void shorten_section(struct shortening *all, struct str events) {
    struct str text;
    while (events.len) {
        if (next_text(all, &events, &text)) {
            try_text(all, text);
            repeat(all, &events);
        } else if (!event_skip(&events)) {
            return;
        }
    }
}

bool shorten_row(struct str row, const struct shorten_end *end, struct buf *out) {
    struct str rest = row;
    size_t tail = end->tail;
    if (!end->turns.len) return false;
    char *at = buf_room(out, row.len);
    if (!at || row.len < 3 * VARINT_MAX_BYTES) return false;
    struct shortening all = {.at = at,
                             .end = at + row.len,
                             .turns = end->turns,
                             .reply = STR_EMPTY,
                             .literal = STR_EMPTY,
                             .from = row.at,
                             .copied = row.at + tail,
                             .head = STR_EMPTY};
    put_number(&all, 0);
    put_number(&all, row.len);
    put_number(&all, row.len - tail);
    struct store_section section;
    bool bad = false;
    while (store_section_next(&rest, &section, &bad)) shorten_section(&all, section.events);
    if (all.from == row.at) return false;
    struct str between = str_of(all.from, (size_t)(row.at + tail - all.from));
    if (between.len && !put_step(&all, between, 0, 0)) return false;
    if ((size_t)(all.end - all.at) <= row.len - tail) return false;
    put_bytes(&all, str_skip(row, tail));
    buf_grew(out, (size_t)(all.at - at));
    return true;
}

/* --- undoing it --------------------------------------------------------------------------- */

/* Read a step. False: it is malformed, or longer than what is missing. */
static bool undo_step(struct str *steps, struct str *tail, struct str *literal, struct buf *out,
                      size_t missing) {
    uint64_t len, copied, skipped = 0;
    if (!varint_take(steps, &len) || len > steps->len) return false;
    if (len) {
        *literal = str_head(*steps, (size_t)len);
        *steps = str_skip(*steps, (size_t)len);
    }
    if (!varint_take(steps, &copied)) return false;
    if ((copied & 1) && !varint_take(steps, &skipped)) return false;
    copied >>= 1;
    if (skipped > tail->len || copied > tail->len - skipped) return false;
    if (literal->len > missing || copied > missing - literal->len) return false;
    *tail = str_skip(*tail, (size_t)skipped);
    buf_append(out, *literal);
    buf_append(out, str_head(*tail, (size_t)copied));
    *tail = str_skip(*tail, (size_t)copied);
    return literal->len || copied; /* each brings it nearer to the end */
}

bool shorten_undo(struct str shortened, struct buf *out, struct err *e) {
    struct str rest = str_skip(shortened, 1), literal = STR_EMPTY;
    uint64_t len, tail_len;
    if (!shorten_did(shortened)) goto bad;
    if (!varint_take(&rest, &len) || !varint_take(&rest, &tail_len)) goto bad;
    if (tail_len > rest.len || tail_len > len) goto bad;
    if (len > out->max_bytes - out->len || !buf_room(out, (size_t)len)) goto bad;
    struct str steps = str_head(rest, rest.len - (size_t)tail_len);
    struct str tail = str_skip(rest, steps.len), whole_tail = tail;
    size_t missing = (size_t)(len - tail_len), begun = out->len;
    while (steps.len) {
        size_t done = out->len - begun;
        if (!undo_step(&steps, &tail, &literal, out, missing - done)) goto bad;
    }
    if (out->len - begun != missing) goto bad;
    buf_append(out, whole_tail);
    return true;

bad:
    return err_set(e, ERR_DATA_LOSS, "a shortened row that cannot be made whole");
}

/* json: read JSON without building a tree, write it without a tree.
 *
 * Reading takes two steps. json_read() checks one complete text against the whole grammar, in
 * one pass and without recursion. Its error gives the position, what was expected and what was
 * found. The result is a struct json: a kind and the slice of the text that holds the value.
 * All later functions (next member, find, skip, unescape) work on accepted slices, so they
 * cannot fail on the text and need no error.
 *
 *     struct json chunk, choice;
 *     if (!json_read(text, &chunk, e)) return false;
 *     choice = json_at(json_find(chunk, STR("choices")), 0);
 *     if (json_str(json_find(json_find(choice, STR("delta")), STR("content")), arena, &delta))
 *
 * A missing member has the kind JSON_NONE. Every function accepts it, or a value of the wrong
 * kind, and treats it as empty, so lookups can be chained.
 *
 * Stricter than the RFC must be: no byte order mark, only valid UTF-8, no lone surrogates.
 * Numbers keep their digits; `\u0000` becomes a NUL byte. Among members with the same key the
 * last one wins.
 *
 * Memory   a struct json borrows the text that was read. A writer borrows its buffer.
 * Threads  none; values only.
 * Source   RFC 8259; RFC 3629 for UTF-8.
 */
#ifndef WEIR_WIRE_JSON_H
#define WEIR_WIRE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Maximum nesting depth of arrays and objects; deeper texts are refused. */
#define JSON_DEPTH_MAX 64

enum json_kind {
    JSON_NONE, /* no value: what json_find() answers when there is none */
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
};

struct json {
    enum json_kind kind;
    struct str raw; /* the value's source text, without white space around it */
};

/* ---- Reading ---- */

/* Check `text`, one JSON value with nothing but space around it.
 * errors  ERR_MALFORMED "JSON 3:14 (byte 57): expected ..."; columns count characters */
MUST_CHECK bool json_read(struct str text, struct json *ret, struct err *e);

/* Whether `text` is one JSON object; *ret is that object, or of kind JSON_NONE. */
bool json_read_object(struct str text, struct json *ret);

/* The same as json_read() with fewer levels, 1 to JSON_DEPTH_MAX; 0 reads no array and no object
 * at all. */
MUST_CHECK bool json_read_depth(struct str text, unsigned depth_max, struct json *ret,
                                struct err *e);

/* Whether `text` is one JSON object. */
MUST_CHECK static inline bool json_reads_as_object(struct str text) {
    struct json object;
    return json_read_object(text, &object);
}

/* The position after the valid string, or the number, that begins at `at`; NULL without one. What
 * follows it is not looked at: of 01 the number is 0. */
const char *json_string_end(const char *at, const char *end);
const char *json_number_end(const char *at, const char *end);

/* A slice that was accepted earlier and kept, as a value again. Not for unread text. */
struct json json_of(struct str raw);

/* "an object", "a string", "nothing": for messages such as "expected a string". */
const char *json_kind_name(enum json_kind kind);

/* Whether there is no value, or it is null. */
static inline bool json_is_absent(struct json value) {
    return value.kind == JSON_NONE || value.kind == JSON_NULL;
}

/* A walk through the members of an object or the items of an array. */
struct json_reader {
    struct str rest;
    enum json_kind kind;
};

/* Start at the first member or item. A value of any other kind has none. */
struct json_reader json_enter(struct json container);

/* The next member of an object; false at the end. The key is a string as it came: compare
 * it with json_is(), read it with json_str(). */
bool json_next_member(struct json_reader *reader, struct json *ret_key, struct json *ret_value);

/* The next item of an array; false at the end. */
bool json_next_item(struct json_reader *reader, struct json *ret_item);

/* The member under `key` (unescaped); the last one when there are several. */
struct json json_find(struct json object, struct str key);

/* The members under `count` keys, in one walk instead of one for each: ret[i] becomes what
 * json_find(object, keys[i]) answers. */
void json_find_each(struct json object, const struct str *keys, size_t count, struct json *ret);

/* The same of an object in which each of the keys may stand once, as json_check_once() has it. */
MUST_CHECK bool json_find_once(struct json object, const struct str *keys, size_t count,
                               struct json *ret, struct err *e);

/* Check that each of `keys` (at most 63, ends with NULL) occurs at most once in the object.
 * Given two, one reader takes the first and another the last.
 * errors  ERR_MALFORMED names the key */
MUST_CHECK bool json_check_once(struct json object, const char *const *keys, struct err *e);

/* The item at `index`, counted from 0. */
struct json json_at(struct json array, size_t index);

/* Items of an array or members of an object. */
size_t json_count(struct json container);

/* ---- Values. Each answers false, and stores nothing, for a value of another kind. ---- */

/* Append the unescaped text of a string; false also at the limit of the buffer. */
bool json_text(struct json string, struct buf *out);

/* The unescaped text of a string: a view of the text where nothing was escaped, otherwise
 * memory of the arena. False also at the limit of the arena. */
MUST_CHECK bool json_str(struct json string, struct arena *arena, struct str *ret);

/* Whether this is a string that says `text`. */
bool json_is(struct json string, struct str text);

/* With an exponent beyond this, a number is 0 or fits no integer. */
#define JSON_EXPONENT_MAX INT64_C(1000000000000000)

/* The exponent of a number, from its digits after 'e'; cut to +-JSON_EXPONENT_MAX. */
int64_t json_exponent(struct str text);

/* An integer in any spelling (5, 5.0, 50e-1) that fits; false for 5.5 and for 1e99. */
MUST_CHECK bool json_i64(struct json number, int64_t *ret);

/* The nearest double; a number too large for one is infinite. */
MUST_CHECK bool json_double(struct json number, double *ret);

MUST_CHECK bool json_bool(struct json value, bool *ret);

/* ---- Writing. Appends without looking; ask buf_ok() of the buffer once at the end. ---- */

/* Append `text` as a JSON string with its quotes. Ill-formed UTF-8 becomes U+FFFD. */
bool json_put_str(struct buf *out, struct str text);

/* Copy `text` to `to`, and return whether the copy may stand between the quotes of a string: it is
 * ASCII, and nothing in it must be escaped. If not, use json_put_str(). */
MUST_CHECK bool json_copy_plain(char *to, struct str text);

/* Append the shortest spelling that reads back as the same double; null when not finite. */
bool json_put_double(struct buf *out, double number);

/* Append the accepted value `raw` without white space between tokens; strings and numbers are
 * unchanged. */
bool json_compact(struct str raw, struct buf *out);

/* The same, in memory of the arena. False at the arena's limit. */
MUST_CHECK bool json_compact_copy(struct json value, struct arena *arena, struct str *ret);

/* Append `text`, unread JSON, with \ufffd in place of each escape of half a surrogate pair. Models
 * write such halves when they escape text themselves; json_read() refuses them. */
void json_mend_surrogates(struct str text, struct buf *out);

/* Read what a peer wrote, with such halves mended: the whole message would be lost else. The value
 * borrows `text`, or `room` if something was mended.
 * errors  as json_read(); ERR_TOO_LARGE `room` is too small */
MUST_CHECK bool json_read_mended(struct str text, struct buf *room, struct json *ret,
                                 struct err *e);

/* A stream of texts in which a string goes on from one to the next, so that a pair may be cut
 * between two of them. All zeroes at first. */
struct json_pairs {
    char high[6]; /* the first half, as it was escaped, if it waits for the second */
    bool waits;
};

/* Whether halves stand alone in the next text of the stream; then it is appended to `out` without
 * them. A first half at the end of a string is held back, and joined with a second half at the
 * beginning of a later one; any other half becomes \ufffd. */
bool json_pairs_mend(struct json_pairs *pairs, struct str text, struct buf *out);

/* Puts the commas and knows what is open:
 *
 *     struct json_writer w = json_writer(&out);
 *     json_open_object(&w);
 *     json_member_str(&w, "id", id);
 *     json_key(&w, STR("parts"));
 *     json_open_array(&w);
 *     json_write_i64(&w, 7);
 *     json_close(&w);
 *     json_close(&w);                  {"id":"...","parts":[7]}
 */
struct json_writer {
    struct buf *out;
    uint64_t objects; /* bit d: level d is an object */
    unsigned depth;   /* levels open, at most JSON_DEPTH_MAX */
    bool comma;       /* a comma is needed before the next value */
    bool keyed;       /* a key was written and waits for its value */
};

struct json_writer json_writer(struct buf *out);

void json_open_object(struct json_writer *writer);
void json_open_array(struct json_writer *writer);
void json_close(struct json_writer *writer); /* whichever was opened last */

void json_key(struct json_writer *writer, struct str key);

/* One value: an item of the open array, or what belongs to the key before it. */
void json_write_str(struct json_writer *writer, struct str text);
void json_write_i64(struct json_writer *writer, int64_t number);
void json_write_u64(struct json_writer *writer, uint64_t number);
void json_write_double(struct json_writer *writer, double number);
void json_write_bool(struct json_writer *writer, bool value);
void json_write_null(struct json_writer *writer);
void json_write_raw(struct json_writer *writer, struct str raw); /* accepted JSON, as it is */

/* Key and value in one. The key is a constant that ends in NUL. */
void json_member_str(struct json_writer *writer, const char *key, struct str text);
void json_member_i64(struct json_writer *writer, const char *key, int64_t number);
void json_member_u64(struct json_writer *writer, const char *key, uint64_t number);
void json_member_bool(struct json_writer *writer, const char *key, bool value);
void json_member_null(struct json_writer *writer, const char *key);
void json_member_raw(struct json_writer *writer, const char *key, struct str raw);

/* Key, and the container that is its value. */
void json_member_object(struct json_writer *writer, const char *key);
void json_member_array(struct json_writer *writer, const char *key);

#endif

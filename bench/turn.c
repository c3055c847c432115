#include "turn.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <nettle/base64.h>
#include <nettle/hmac.h>
#include <stdio.h>

#define AGENT "manager"
#define NUMBER_DIGITS 8
#define HASH_FIRST UINT64_C(0x9e3779b97f4a7c15)

_Static_assert(sizeof(TURN_TAIL) - 1 + NUMBER_DIGITS == TURN_TEXT_BYTES, "a chunk's length");

/* Field numbers of ConverseEvent's oneof, ChunkEvent, DoneEvent, Turn. */
enum { EVENT_CHUNK = 1, EVENT_DONE = 5, EVENT_USAGE = 6 };
enum { CHUNK_AGENT = 1, CHUNK_TEXT = 2, DONE_MODEL = 1, DONE_TURNS = 2 };
enum { USAGE_SEQUENCE = 9 };
enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

/* ---- protobuf, as much as is needed ---- */

struct field {
    uint64_t number, wire, value;
    struct str bytes;
};

static bool get_varint(struct str *rest, uint64_t *ret) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && rest->len; shift += 7) {
        unsigned char byte = (unsigned char)rest->at[0];
        *rest = str_skip(*rest, 1);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    return false;
}

static bool get_field(struct str *rest, struct field *ret) {
    uint64_t tag;
    if (!get_varint(rest, &tag) || !get_varint(rest, &ret->value)) return false;
    ret->number = tag >> 3;
    ret->wire = tag & 7;
    ret->bytes = STR_EMPTY;
    if (ret->wire == WIRE_VARINT) return true;
    if (ret->wire != WIRE_BYTES || ret->value > rest->len) return false;
    ret->bytes = str_head(*rest, ret->value);
    *rest = str_skip(*rest, ret->value);
    return true;
}

static void put_varint(struct buf *out, uint64_t value) {
    for (; value >= 0x80; value >>= 7) buf_append_byte(out, (char)(value | 0x80));
    buf_append_byte(out, (char)value);
}

static void put_text(struct buf *out, unsigned number, struct str text) {
    if (!text.len) return;
    put_varint(out, number << 3 | WIRE_BYTES);
    put_varint(out, text.len);
    buf_append(out, text);
}

/* ---- the texts ---- */

static uint64_t hash_text(uint64_t hash, struct str text) {
    for (; text.len >= 8; text = str_skip(text, 8)) {
        uint64_t word;
        memcpy(&word, text.at, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    assert(text.len == 0);
    return hash;
}

static bool number_is(struct str text, unsigned number) {
    for (size_t i = NUMBER_DIGITS; i-- > 0; number /= 10)
        if (text.at[i] != (char)('0' + number % 10)) return false;
    return true;
}

static bool text_is(struct str text, unsigned number, bool paced) {
    if (text.len != TURN_TEXT_BYTES || !number_is(text, number)) return false;
    return paced || str_equal(str_skip(text, NUMBER_DIGITS), STR(TURN_TAIL));
}

/* ---- one turn ---- */

void turn_begin(struct turn *turn, unsigned paced_chunks) {
    *turn = (struct turn){.expected = paced_chunks ? paced_chunks : TURN_CHUNKS,
                          .paced = paced_chunks > 0,
                          .hash = HASH_FIRST};
}

static bool wrong(struct err *e, const struct turn *turn, const char *what, struct str seen) {
    return err_set(e, ERR_DATA_LOSS, "after %u of %u chunks: %s: '" STR_FMT "'", turn->chunks,
                   turn->expected, what, STR_ARG(str_head(seen, 200)));
}

static bool take_chunk(struct turn *turn, struct str body, struct err *e) {
    struct field agent, text;
    struct str rest = body;
    if (!get_field(&rest, &agent) || !get_field(&rest, &text) || rest.len)
        return wrong(e, turn, "a chunk that does not parse", body);
    if (agent.number != CHUNK_AGENT || !str_equal(agent.bytes, STR(AGENT)))
        return wrong(e, turn, "a chunk of another agent", body);
    if (text.number != CHUNK_TEXT || turn->chunks == turn->expected || turn->usage ||
        !text_is(text.bytes, turn->chunks, turn->paced))
        return wrong(e, turn, "another chunk was due", text.bytes);
    turn->hash = hash_text(turn->hash, text.bytes);
    turn->chunks++;
    return true;
}

static bool take_usage(struct turn *turn, struct str body, struct err *e) {
    struct field field;
    if (turn->usage || turn->chunks != turn->expected)
        return wrong(e, turn, "usage too early or twice", body);
    for (struct str rest = body; rest.len;) {
        if (!get_field(&rest, &field)) return wrong(e, turn, "usage that does not parse", body);
        if (field.number == USAGE_SEQUENCE && field.value != 0)
            return wrong(e, turn, "a second model call", body);
    }
    turn->usage = true;
    return true;
}

static bool take_reply(struct turn *turn, struct str body, struct err *e) {
    struct field agent, text;
    struct str rest = body;
    if (!get_field(&rest, &agent) || !get_field(&rest, &text) || rest.len ||
        !str_equal(agent.bytes, STR(AGENT)))
        return wrong(e, turn, "a reply that does not parse", body);
    if (text.bytes.len != (size_t)turn->expected * TURN_TEXT_BYTES ||
        hash_text(HASH_FIRST, text.bytes) != turn->hash)
        return wrong(e, turn, "done says another text than the chunks", text.bytes);
    return true;
}

static bool take_done(struct turn *turn, struct str body, struct err *e) {
    struct field field;
    unsigned replies = 0;
    for (struct str rest = body; rest.len;) {
        if (!get_field(&rest, &field)) return wrong(e, turn, "done that does not parse", body);
        if (field.number == DONE_MODEL && str_starts(field.bytes, STR("ERROR:")))
            return wrong(e, turn, "the turn failed", field.bytes);
        if (field.number != DONE_TURNS) continue;
        if (!take_reply(turn, field.bytes, e)) return false;
        replies++;
    }
    if (replies != 1) return wrong(e, turn, "not one reply in done", body);
    if (!turn->usage) return wrong(e, turn, "done without usage", body);
    turn->done = true;
    return true;
}

bool turn_take(struct turn *turn, struct str message, enum turn_event *ret, struct err *e) {
    struct field event;
    struct str rest = message;
    if (!get_field(&rest, &event) || rest.len || event.wire != WIRE_BYTES)
        return wrong(e, turn, "an event that does not parse", message);
    if (turn->done) return wrong(e, turn, "an event after done", message);
    switch (event.number) {
    case EVENT_CHUNK: *ret = TURN_CHUNK; return take_chunk(turn, event.bytes, e);
    case EVENT_USAGE: *ret = TURN_USAGE; return take_usage(turn, event.bytes, e);
    case EVENT_DONE: *ret = TURN_DONE; return take_done(turn, event.bytes, e);
    default: return wrong(e, turn, "an event nobody asked for", message);
    }
}

/* ---- asking ---- */

void turn_request(const struct turn_asker *asker, unsigned paced_chunks, struct buf *out) {
    char message[32] = "go";
    if (paced_chunks) snprintf(message, sizeof(message), "paced %u", paced_chunks);
    put_text(out, 1, str_from(asker->session));
    put_text(out, 2, str_from(message));
    put_text(out, 5, str_from(asker->workspace));
    put_text(out, 6, str_from(asker->user));
}

static void hex(const uint8_t *bytes, size_t len, struct buf *out) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        buf_append_byte(out, digits[bytes[i] >> 4]);
        buf_append_byte(out, digits[bytes[i] & 15]);
    }
}

void turn_bearer(const struct turn_asker *asker, struct str key, struct buf *out) {
    char payload[128], packed[BASE64_ENCODE_RAW_LENGTH(sizeof(payload))];
    int len = snprintf(payload, sizeof(payload), "%s:%s:%" PRId64, asker->user,
                       asker->workspace, clock_unix_ms() / 1000);
    assert(len > 0 && (size_t)len < sizeof(payload));

    struct base64_encode_ctx encode;
    base64url_encode_init(&encode);
    size_t packed_len =
        base64_encode_update(&encode, packed, (size_t)len, (const uint8_t *)payload);
    packed_len += base64_encode_final(&encode, packed + packed_len);
    while (packed_len && packed[packed_len - 1] == '=') packed_len--;

    struct hmac_sha256_ctx hmac;
    uint8_t digest[SHA256_DIGEST_SIZE];
    hmac_sha256_set_key(&hmac, key.len, (const uint8_t *)key.at);
    hmac_sha256_update(&hmac, packed_len, (const uint8_t *)packed);
    hmac_sha256_digest(&hmac, sizeof(digest), digest);

    buf_append(out, STR("Bearer "));
    buf_append(out, str_of(packed, packed_len));
    buf_append_byte(out, '.');
    hex(digest, sizeof(digest), out);
}

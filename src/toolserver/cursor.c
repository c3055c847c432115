#include "toolserver/cursor.h"

#include "wire/base64.h"

static bool cursor_write_value(struct json value, struct buf *out) {
    return buf_append_byte(out, '.') &&
           base64_encode(out, value.raw, BASE64_URL, BASE64_UNPADDED);
}

bool toolserver_cursor_write(const struct toolserver_cursor *cursor, struct buf *out) {
    buf_append_u64(out, cursor->run);
    buf_append_byte(out, '.');
    buf_append_u64(out, cursor->seq);
    cursor_write_value(cursor->id, out);
    if (cursor->token.kind != JSON_NONE) cursor_write_value(cursor->token, out);
    return buf_ok(out);
}

/* A string or an integer, as both JSON values are. */
static bool cursor_read_value(struct str text, struct arena *arena, struct json *ret) {
    struct err e;
    int64_t number;
    size_t len;
    if (text.len == 0 || text.len > base64_encoded_len(TOOLSERVER_ID_MAX_BYTES)) return false;
    char *room = arena_alloc(arena, base64_decoded_len(text.len) + 1);
    if (!room || !base64_decode(text, BASE64_URL, BASE64_UNPADDED, room, &len)) return false;
    struct str raw = str_of(room, len);
    if (!json_read_depth(raw, 0, ret, &e) || !str_equal(ret->raw, raw)) return false;
    return ret->kind == JSON_STRING || (ret->kind == JSON_NUMBER && json_i64(*ret, &number));
}

/* One spelling for each number. */
static bool cursor_read_number(struct str text, uint64_t *ret) {
    return (text.len == 1 || (text.len > 1 && text.at[0] != '0')) && str_to_u64(text, ret);
}

bool toolserver_cursor_read(struct str text, struct arena *arena,
                            struct toolserver_cursor *ret) {
    struct toolserver_cursor cursor = {.token = {.kind = JSON_NONE}};
    struct str seq, id, token;
    if (text.len > TOOLSERVER_CURSOR_MAX_BYTES) return false;
    struct str run = str_split(text, '.', &seq);
    seq = str_split(seq, '.', &id);
    id = str_split(id, '.', &token);
    if (!cursor_read_number(run, &cursor.run) || !cursor_read_number(seq, &cursor.seq) ||
        !cursor.run)
        return false;
    if (!cursor_read_value(id, arena, &cursor.id)) return false;
    if (token.at && !cursor_read_value(token, arena, &cursor.token)) return false;
    *ret = cursor;
    return true;
}

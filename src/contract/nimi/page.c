#include "contract/nimi/page.h"

#include "wire/base64.h"
#include "wire/digest.h"
#include "wire/json.h"

#include <stdio.h>

static bool page_refuse(struct fault *fault) {
    return fault_set(fault, NIMI_PAGE_TOKEN_INVALID,
                     "this page_token is not of this list and filter; begin again without one");
}

static void put_hex(const uint8_t *digest, char ret[2 * PAGE_DIGEST_BYTES + 1]) {
    digest_digits(digest, DIGEST_DIGITS, ret);
    ret[DIGEST_DIGITS] = '\0';
}

/* The cursor is copied over the front of the room: it is shorter than its JSON. */
static bool read_token(struct str token, struct page *page) {
    char hex[2 * PAGE_DIGEST_BYTES + 1];
    struct json whole;
    struct err e;
    size_t len;
    if (token.len > PAGE_TOKEN_MAX_BYTES ||
        !base64_decode(token, BASE64_URL, BASE64_UNPADDED, page->room, &len) ||
        !json_read_depth(str_of(page->room, len), 1, &whole, &e))
        return false;
    put_hex(page->filter, hex);
    if (!json_is(json_find(whole, STR("f")), str_from(hex))) return false;
    char cursor[PAGE_TOKEN_MAX_BYTES];
    struct buf text = {.at = cursor, .room = sizeof(cursor), .max_bytes = sizeof(cursor)};
    if (!json_text(json_find(whole, STR("c")), &text) || text.len == 0) return false;
    memcpy(page->room, text.at, text.len);
    page->cursor = str_of(page->room, text.len);
    return true;
}

bool page_begin(int32_t size, struct str token, const struct str *filter, size_t filter_count,
                struct page *ret, struct fault *fault) {
    if (size < 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "page_size is %d; it must not be negative", size);
    ret->cursor = STR_EMPTY;
    ret->size = size == 0 ? PAGE_SIZE : size > PAGE_SIZE_MAX ? PAGE_SIZE_MAX : (size_t)size;
    digest_parts(filter, filter_count, ret->filter);
    if (token.len == 0 || read_token(token, ret)) return true;
    return page_refuse(fault);
}

void page_next(const struct page *page, struct str cursor, struct buf *out) {
    char hex[2 * PAGE_DIGEST_BYTES + 1], room[PAGE_TOKEN_MAX_BYTES];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct json_writer w = json_writer(&text);
    put_hex(page->filter, hex);
    json_open_object(&w);
    json_member_str(&w, "c", cursor);
    json_member_str(&w, "f", str_from(hex));
    json_close(&w);
    base64_encode(out, buf_str(&text), BASE64_URL, BASE64_UNPADDED);
}

bool page_index(const struct page *page, size_t *ret, struct fault *fault) {
    uint64_t index = 0;
    if (page->cursor.len && (!str_to_u64(page->cursor, &index) || index > SIZE_MAX))
        return page_refuse(fault);
    *ret = (size_t)index;
    return true;
}

void page_next_index(const struct page *page, size_t index, struct buf *out) {
    char digits[24];
    snprintf(digits, sizeof(digits), "%zu", index);
    page_next(page, str_from(digits), out);
}

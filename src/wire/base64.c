#include "wire/base64.h"

#include <assert.h>

static const char letters[][65] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

/* The other way round: the value of a letter plus one, 0 for what is none. */
/* clang-format off */
#define COMMON_LETTERS \
    ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8, \
    ['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, \
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24, \
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, \
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, \
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, \
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, \
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62

static const unsigned char values[][256] = {
    [BASE64_STANDARD] = {COMMON_LETTERS, ['+'] = 63, ['/'] = 64},
    [BASE64_URL] = {COMMON_LETTERS, ['-'] = 63, ['_'] = 64},
};
/* clang-format on */

bool base64_encode(struct buf *out, struct str bytes, enum base64_alphabet alphabet,
                   enum base64_padding padding) {
    assert(padding != BASE64_EITHER);
    const char *letter = letters[alphabet];
    size_t plain_len = base64_encoded_len(bytes.len);
    size_t len = padding == BASE64_PADDED ? (plain_len + 3) / 4 * 4 : plain_len;
    char *at = buf_room(out, len);
    if (!at) return false;
    buf_grew(out, len);

    const unsigned char *in = (const unsigned char *)bytes.at;
    size_t left = bytes.len;
    for (; left >= 3; left -= 3, in += 3) {
        uint32_t three = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        *at++ = letter[three >> 18];
        *at++ = letter[three >> 12 & 63];
        *at++ = letter[three >> 6 & 63];
        *at++ = letter[three & 63];
    }
    if (left == 0) return true;
    uint32_t rest = (uint32_t)in[0] << 16 | (left == 2 ? (uint32_t)in[1] << 8 : 0);
    *at++ = letter[rest >> 18];
    *at++ = letter[rest >> 12 & 63];
    if (left == 2) *at++ = letter[rest >> 6 & 63];
    if (padding == BASE64_UNPADDED) return true;
    memcpy(at, "==", 3 - left);
    return true;
}

/* Take the padding off the end; false when it is there and should not be, or the reverse. */
static bool take_padding(struct str *text, enum base64_padding padding) {
    bool ends_padded = text->len && text->at[text->len - 1] == '=';
    if (padding == BASE64_UNPADDED) return !ends_padded;
    if (padding == BASE64_EITHER && !ends_padded) return true;
    if (text->len % 4 != 0) return false;
    for (int i = 0; i < 2 && text->len && text->at[text->len - 1] == '='; i++) text->len--;
    return true;
}

bool base64_decode(struct str text, enum base64_alphabet alphabet, enum base64_padding padding,
                   char *room, size_t *ret_len) {
    if (!take_padding(&text, padding) || text.len % 4 == 1) return false;
    const unsigned char *value = values[alphabet];
    const unsigned char *in = (const unsigned char *)text.at;
    size_t left = text.len;
    char *at = room;
    for (; left >= 4; left -= 4, in += 4) {
        unsigned a = value[in[0]], b = value[in[1]], c = value[in[2]], d = value[in[3]];
        if (!a || !b || !c || !d) return false;
        uint32_t three = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
        *at++ = (char)(three >> 16);
        *at++ = (char)(three >> 8);
        *at++ = (char)three;
    }
    if (left > 0) {
        unsigned a = value[in[0]], b = value[in[1]], c = left == 3 ? value[in[2]] : 1;
        if (!a || !b || !c) return false;
        uint32_t rest = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6;
        if (rest & (left == 3 ? 0xFF : 0xFFFF)) return false; /* bits left over */
        *at++ = (char)(rest >> 16);
        if (left == 3) *at++ = (char)(rest >> 8);
    }
    *ret_len = (size_t)(at - room);
    return true;
}

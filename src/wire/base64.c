#include "wire/base64.h"

#include <assert.h>

static const char letters[][65] = {
    [BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
    [BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

/* The reverse table: 64 plus the value of a letter, 0 for any other byte. The AND of several
 * entries has bit 64 set only if each of them is a letter. */
#define LETTER 64u
/* clang-format off */
#define COMMON_LETTERS \
    ['A'] = 64, ['B'] = 65, ['C'] = 66, ['D'] = 67, ['E'] = 68, ['F'] = 69, ['G'] = 70, ['H'] = 71, \
    ['I'] = 72, ['J'] = 73, ['K'] = 74, ['L'] = 75, ['M'] = 76, ['N'] = 77, ['O'] = 78, ['P'] = 79, \
    ['Q'] = 80, ['R'] = 81, ['S'] = 82, ['T'] = 83, ['U'] = 84, ['V'] = 85, ['W'] = 86, ['X'] = 87, \
    ['Y'] = 88, ['Z'] = 89, ['a'] = 90, ['b'] = 91, ['c'] = 92, ['d'] = 93, ['e'] = 94, ['f'] = 95, \
    ['g'] = 96, ['h'] = 97, ['i'] = 98, ['j'] = 99, ['k'] = 100, ['l'] = 101, ['m'] = 102, ['n'] = 103, \
    ['o'] = 104, ['p'] = 105, ['q'] = 106, ['r'] = 107, ['s'] = 108, ['t'] = 109, ['u'] = 110, ['v'] = 111, \
    ['w'] = 112, ['x'] = 113, ['y'] = 114, ['z'] = 115, ['0'] = 116, ['1'] = 117, ['2'] = 118, ['3'] = 119, \
    ['4'] = 120, ['5'] = 121, ['6'] = 122, ['7'] = 123, ['8'] = 124, ['9'] = 125

static const unsigned char values[][256] = {
    [BASE64_STANDARD] = {COMMON_LETTERS, ['+'] = 126, ['/'] = 127},
    [BASE64_URL] = {COMMON_LETTERS, ['-'] = 126, ['_'] = 127},
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

/* Remove the padding at the end. False when it is missing, or present and not wanted. */
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
        if (!(a & b & c & d & LETTER)) return false;
        uint32_t three = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6 | (d & 63);
        *at++ = (char)(three >> 16);
        *at++ = (char)(three >> 8);
        *at++ = (char)three;
    }
    if (left > 0) {
        unsigned a = value[in[0]], b = value[in[1]], c = left == 3 ? value[in[2]] : LETTER;
        if (!(a & b & c & LETTER)) return false;
        uint32_t rest = (a & 63) << 18 | (b & 63) << 12 | (c & 63) << 6;
        if (rest & (left == 3 ? 0xFF : 0xFFFF)) return false; /* bits left over */
        *at++ = (char)(rest >> 16);
        if (left == 3) *at++ = (char)(rest >> 8);
    }
    *ret_len = (size_t)(at - room);
    return true;
}

#include "wire/hex.h"

bool hex_append(struct buf *out, struct str bytes) {
    static const char digits[] = "0123456789abcdef";
    char *room = buf_room(out, 2 * bytes.len);
    if (!room) return false;
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        room[2 * i] = digits[byte >> 4];
        room[2 * i + 1] = digits[byte & 15];
    }
    buf_grew(out, 2 * bytes.len);
    return true;
}

bool hex_read(struct str digits, char *ret, size_t count) {
    if (digits.len != 2 * count) return false;
    for (size_t i = 0; i < count; i++) {
        int high = str_hex_digit(digits.at[2 * i]), low = str_hex_digit(digits.at[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        ret[i] = (char)(unsigned char)(high << 4 | low);
    }
    return true;
}

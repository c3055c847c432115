#include "base/id.h"

#include "base/utf8.h"

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether the eight bytes at `at` are ASCII without controls. */
static inline bool are_plain(const char *at) {
    uint64_t eight;
    memcpy(&eight, at, sizeof(eight));
    uint64_t control = eight - EACH(0x20); /* borrows where a byte is below 0x20 */
    uint64_t deleted = eight + EACH(0x01); /* carries where it is 0x7F */
    return !((eight | control | deleted) & EACH(0x80));
}

/* Whether all of it is ASCII without controls; a short one may be it nevertheless. */
static bool is_plain(struct str id) {
    if (id.len < 8) return false;
    for (size_t at = 0; at + 8 < id.len; at += 8) {
        if (!are_plain(id.at + at)) return false;
    }
    return are_plain(id.at + id.len - 8);
}

/* C1 controls are U+0080 to U+009F, encoded as C2 and a byte of that range. */
static bool id_has_control(struct str id) {
    bool found = false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.at[i];
        bool c1 = i > 0 && (unsigned char)id.at[i - 1] == 0xC2 && c < 0xA0;
        found |= (c < 0x20) | (c == 0x7F) | c1;
    }
    return found;
}

bool id_ok(struct str id) {
    if (id.len == 0 || id.len > ID_MAX_BYTES) return false;
    return is_plain(id) || (!id_has_control(id) && utf8_valid(id));
}

bool id_check(const char *name, struct str id, struct err *e) {
    if (id_ok(id)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "%s must be 1 to %d bytes of UTF-8 without control characters", name,
                   ID_MAX_BYTES);
}

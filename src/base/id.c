#include "base/id.h"

#include "base/utf8.h"

/* C1 controls are U+0080 to U+009F, encoded as C2 and a byte of that range. */
static bool has_control(struct str id) {
    bool found = false;
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.at[i];
        bool c1 = i > 0 && (unsigned char)id.at[i - 1] == 0xC2 && c < 0xA0;
        found |= (c < 0x20) | (c == 0x7F) | c1;
    }
    return found;
}

bool id_ok(struct str id) {
    return id.len > 0 && id.len <= ID_MAX_BYTES && !has_control(id) && utf8_valid(id);
}

bool id_check(const char *name, struct str id, struct err *e) {
    if (id_ok(id)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "%s must be 1 to %d bytes of UTF-8 without control characters", name,
                   ID_MAX_BYTES);
}

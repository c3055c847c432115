#include "base/utf8_tail.h"

#include <string.h>

struct str utf8_tail_repair(struct utf8_tail *tail, struct str bytes, struct buf *room) {
    struct buf whole;
    buf_init(room, 3 * (bytes.len + sizeof(tail->bytes)));
    buf_init(&whole, bytes.len + sizeof(tail->bytes));
    buf_append(&whole, str_of(tail->bytes, tail->len));
    buf_append(&whole, bytes);
    tail->len = utf8_pending(buf_str(&whole));
    struct str complete = str_head(buf_str(&whole), whole.len - tail->len);
    memcpy(tail->bytes, complete.at + complete.len, tail->len);
    utf8_append_repaired(room, complete);
    buf_done(&whole);
    return buf_str(room);
}

struct str utf8_tail_end(struct utf8_tail *tail) {
    bool waits = tail->len > 0;
    tail->len = 0;
    return waits ? STR("\xEF\xBF\xBD") : STR_EMPTY;
}

#include "contract/event_id.h"

void event_id_put(struct buf *out, uint64_t run, uint64_t seq) {
    buf_append_u64(out, run);
    buf_append_byte(out, '-');
    buf_append_u64(out, seq);
}

void event_id_write(struct json_writer *json, const char *key, uint64_t run, uint64_t seq) {
    char room[EVENT_ID_BYTES];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    event_id_put(&id, run, seq);
    json_member_str(json, key, buf_str(&id));
}

bool event_id_read(struct str text, uint64_t *ret_run, uint64_t *ret_seq) {
    struct str seq, run = str_split(text, '-', &seq);
    return seq.at && str_to_u64(run, ret_run) && str_to_u64(seq, ret_seq) && *ret_run &&
           *ret_seq;
}

/* pb_peer: our side of pb_diff.py, which asks Google's protobuf the same questions.
 *
 * On standard input, until it ends:   kind 1 byte, length 4 bytes (little endian), a message
 * On standard output, for each:       verdict 1 byte, length 4 bytes, its encoding or the error
 */
#include "proto/memory.pb.h"
#include "proto/runtime.pb.h"
#include "test/kitchen.pb.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_MAX_BYTES (64 * MIB)

/* In the order of KINDS in pb_diff.py. */
static const struct pb_message *const kinds[] = {
    &crawbl_converse_request_table,
    &crawbl_converse_event_table,
    &crawbl_memory_entry_table,
    &crawbl_list_memories_request_table,
    &crawbl_list_memories_response_table,
    &crawbl_create_memory_request_table,
    &crawbl_create_memory_response_table,
    &crawbl_delete_memory_request_table,
    &crawbl_delete_memory_response_table,
    &kitchen_sink_table,
    &google_struct_table,
};

enum verdict { REFUSED, ACCEPTED };

static bool read_all(void *at, size_t len) {
    return fread(at, 1, len, stdin) == len;
}

static void answer(enum verdict verdict, struct str bytes) {
    uint8_t head[5] = {(uint8_t)verdict};
    for (size_t i = 0; i < 4; i++) head[1 + i] = (uint8_t)(bytes.len >> (8 * i));
    fwrite(head, 1, sizeof(head), stdout);
    fwrite(bytes.at, 1, bytes.len, stdout);
}

static void judge(const struct pb_message *type, struct str bytes) {
    struct err e;
    struct buf out;
    struct arena *arena = arena_new(MESSAGE_MAX_BYTES);
    void *message = mem_alloc(type->size);
    buf_init(&out, MESSAGE_MAX_BYTES);
    if (pb_decode_view(type, bytes, arena, message, &e)) {
        bool fits = pb_encode(type, message, &out);
        assert(fits);
        assert(out.len == pb_encoded_len(type, message));
        answer(ACCEPTED, buf_str(&out));
    } else {
        answer(REFUSED, err_text(&e));
    }
    buf_done(&out);
    free(message);
    arena_free(arena);
}

int main(void) {
    uint8_t head[5];
    while (read_all(head, sizeof(head))) {
        size_t len = 0;
        for (size_t i = 0; i < 4; i++) len |= (size_t)head[1 + i] << (8 * i);
        assert(head[0] < ARRAY_LEN(kinds) && len <= MESSAGE_MAX_BYTES);
        char *bytes = mem_alloc(len); /* of exactly this size, so a sanitizer sees its end */
        if (!read_all(bytes, len)) return 1;
        judge(kinds[head[0]], str_of(bytes, len));
        free(bytes);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}

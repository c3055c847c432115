/* Any bytes are some message or none; what is one survives encoding. The first byte chooses
 * the type, the rest is the message. */
#include "base/mem.h"
#include "proto/memory.pb.h"
#include "proto/runtime.pb.h"
#include "test/kitchen.pb.h"
#include "wire/pb_descriptor.h"

#include <assert.h>
#include <stdlib.h>

#define MESSAGE_MAX_BYTES (4 * MIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The corpus counts on this order: add at the end. */
static const struct pb_message *const kinds[] = {
    &kitchen_sink_table,          &crawbl_converse_request_table,
    &crawbl_converse_event_table, &crawbl_list_memories_response_table,
    &google_struct_table,         &pb_file_set_table,
};

static bool decode(const struct pb_message *type, struct str bytes, struct arena *arena,
                   void *ret) {
    struct err e;
    if (pb_decode_view(type, bytes, arena, ret, &e)) return true;
    assert(e.code == ERR_MALFORMED || e.code == ERR_TOO_LARGE);
    return false;
}

/* What was read, written, read and written again is the same bytes both times. */
static void check(const struct pb_message *type, const void *message, struct arena *arena) {
    struct buf once, twice;
    buf_init(&once, 16 * MESSAGE_MAX_BYTES);
    buf_init(&twice, 16 * MESSAGE_MAX_BYTES);
    void *again = mem_alloc(type->size);

    bool encoded = pb_encode(type, message, &once);
    assert(encoded && once.len == pb_encoded_len(type, message));
    if (decode(type, buf_str(&once), arena, again)) {
        encoded = pb_encode(type, again, &twice);
        assert(encoded && str_equal(buf_str(&once), buf_str(&twice)));
    }
    free(again);
    buf_done(&twice);
    buf_done(&once);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const struct pb_message *type = kinds[data[0] % ARRAY_LEN(kinds)];
    struct arena *arena = arena_new(MESSAGE_MAX_BYTES);
    void *message = mem_alloc(type->size);
    if (decode(type, str_of(data + 1, size - 1), arena, message)) check(type, message, arena);
    free(message);
    arena_free(arena);
    return 0;
}

/* Any bytes as a collector's answer: what is read is text that a log may have. */
#include "base/utf8.h"
#include "exporter/answer.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str body = str_of((const char *)data, size);
    struct arena *arena = arena_new(64 * KIB);
    struct exporter_answer taken = exporter_answer_taken(body, arena);
    struct exporter_answer refused = exporter_answer_refused(body, arena);
    assert(utf8_valid(taken.message) && taken.message.len <= size);
    assert(utf8_valid(refused.message) && refused.message.len <= size);
    assert(refused.rejected == 0);
    arena_free(arena);
    return 0;
}

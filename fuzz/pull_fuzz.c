/* pull: whatever a server says while it downloads, and however it is cut, is read the same way,
 * and no sum is negative or more than its total.
 *
 *     STEP answer ...      the answer arrives STEP + 1 bytes at a time
 */
#include "contract/nimi/transfer/pull.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_all(struct str answer, size_t step, struct pull *pull) {
    struct err e;
    pull_init(pull);
    while (answer.len) {
        if (!pull_feed(pull, str_head(answer, step), &e)) return false;
        assert(pull->received >= 0 && pull->received <= pull->total);
        assert(pull->layer_count <= PULL_LAYERS_MAX);
        answer = str_skip(answer, step);
    }
    return pull_end(pull, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct pull whole, cut;
    if (size < 1 || size > 65536) return 0;
    struct str answer = str_of(data + 1, size - 1);
    bool right = read_all(answer, size, &whole);
    assert(read_all(answer, (size_t)data[0] + 1, &cut) == right);
    assert(whole.received == cut.received && whole.total == cut.total);
    assert(whole.outcome == cut.outcome && strcmp(whole.text, cut.text) == 0);
    pull_done(&whole);
    pull_done(&cut);
    return 0;
}

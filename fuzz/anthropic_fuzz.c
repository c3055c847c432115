/* A stream of this API, cut anywhere: see dialect_replay.h. */
#include "dialect_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct replay_promise promise = {&anthropic_dialect, SIZE_MAX, true};
    dialect_replay(&promise, data, size);
    return 0;
}

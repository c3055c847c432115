/* A stream of this API, cut anywhere: see dialect_replay.h. */
#include "dialect_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dialect_replay(&anthropic_dialect, data, size);
    return 0;
}

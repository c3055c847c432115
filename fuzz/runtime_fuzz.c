/* A stream of a Runtime Contract server, cut anywhere: see dialect_replay.h. */
#include "dialect_replay.h"

#include "agent/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct replay_promise promise = {&runtime_dialect, 0, false};
    dialect_replay(&promise, data, size);
    return 0;
}

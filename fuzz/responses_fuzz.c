/* Any stream is read to an outcome, however it is cut, and what was heard can be sent back. */
#include "helper/dialect_noise.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dialect_noise(&responses_dialect, data, size);
    return 0;
}

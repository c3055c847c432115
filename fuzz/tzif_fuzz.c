/* Whatever is read as a time zone answers at every moment, with an offset that is no nonsense.
 */
#include "tool/tzif.h"

#include <assert.h>

static const int64_t moments[] = {INT32_MIN, -1,           0,           1772366400,
                                  INT32_MAX, -62167219200, 253402300799};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    struct tzif zone;
    struct tzrule rule;
    bool read = tzif_read(str_of(data, size), &zone, &e);
    assert(read || e.text[0]);
    for (size_t i = 0; read && i < ARRAY_LEN(moments); i++) {
        int32_t offset_s = tzif_offset(&zone, moments[i]);
        assert(offset_s > -26 * 3600 && offset_s < 27 * 3600);
    }
    if (tzrule_read(str_of(data, size), &rule, &e)) (void)tzrule_offset(&rule, 1772366400);
    return 0;
}

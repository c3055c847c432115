/* ulid: any text is refused or holds one number; and an id holds the number and the time that
 * it was made with. */
#include "contract/nimi/ulid.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str text = str_of((const char *)data, size);
    char made[ULID_LEN + 1];
    uint64_t number = 0, again = 0;
    if (ulid_number(text, &number)) {
        assert(text.len == ULID_LEN);
        ulid_new_numbered(made, 0, number);
        assert(ulid_number(str_from(made), &again) && again == number);
    }
    if (size < sizeof(number)) return 0;
    memcpy(&number, data, sizeof(number));
    int64_t unix_ms = (int64_t)(number >> 17); /* 48 bits are enough for a while */
    ulid_new_numbered(made, unix_ms, number);
    assert(str_from(made).len == ULID_LEN);
    assert(ulid_number(str_from(made), &again) && again == number);
    return 0;
}

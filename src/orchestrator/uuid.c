#include "orchestrator/uuid.h"

#include <stdlib.h>
#include <sys/random.h>

struct uuid uuid_new(void) {
    static const char digits[] = "0123456789abcdef";
    unsigned char random[16];
    struct uuid ret;
    size_t at = 0;
    if (getrandom(random, sizeof(random), 0) != sizeof(random)) abort();
    random[6] = (unsigned char)((random[6] & 0x0f) | 0x40);
    random[8] = (unsigned char)((random[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(random); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) ret.text[at++] = '-';
        ret.text[at++] = digits[random[i] >> 4];
        ret.text[at++] = digits[random[i] & 15];
    }
    return ret;
}

/* moment: Unix times as this protocol writes them. */
#ifndef WEIR_CONTRACT_NIMI_MOMENT_H
#define WEIR_CONTRACT_NIMI_MOMENT_H

#include "proto/google.pb.h"

static inline struct google_timestamp nimi_moment(int64_t unix_ms) {
    return (struct google_timestamp){.seconds = unix_ms / 1000,
                                     .nanos = (int32_t)(unix_ms % 1000) * 1000000};
}

#endif

/* options: the settings of spans for an OpenTelemetry collector. */
#ifndef WEIR_CONTRACT_OTLP_OPTIONS_H
#define WEIR_CONTRACT_OTLP_OPTIONS_H

#include "config/config.h"

struct otlp_options {
    struct str endpoint; /* empty: off */
    struct str headers;  /* "k=v,k=v" */
    struct str protocol; /* we have one; another is warned of */
    struct str service;
    bool disabled;
};

extern const struct setting_rows otlp_rows;

const struct otlp_options *otlp_options(const struct config *config);

#endif

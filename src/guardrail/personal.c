/* The default rules for personal data.
 *
 * A card number ends with a digit, so the space after it is kept. An unbroken number of 13, 16
 * or 19 digits that begins with 1 is a time in milli-, micro- or nanoseconds, because no such
 * cards are issued. */
#include "guardrail/guardrail.h"

const struct guardrail_rule guardrail_personal[GUARDRAIL_PERSONAL_COUNT] = {
    {.name = STR_INIT("default-pii-ssn"),
     .pattern = STR_INIT("\\b\\d{3}-\\d{2}-\\d{4}\\b"),
     .replacement = STR_INIT("[REDACTED-SSN]")},
    {.name = STR_INIT("default-pii-credit-card"),
     .pattern = STR_INIT("\\b(?!1(?:\\d{12}|\\d{15}|\\d{18})\\b)\\d(?:[ -]?\\d){12,18}\\b"),
     .replacement = STR_INIT("[REDACTED-CC]")},
    {.name = STR_INIT("default-pii-email"),
     .pattern = STR_INIT("\\b[A-Za-z0-9._%+-]{1,256}@[A-Za-z0-9.-]{1,255}\\.[A-Za-z]{2,63}\\b"),
     .replacement = STR_INIT("[REDACTED-EMAIL]")},
};

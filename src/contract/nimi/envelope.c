#include "contract/nimi/envelope.h"

#include "base/utf8.h"

#include <stddef.h>

/* The fourteen headers, in the order in which they are checked. */
static const struct {
    const char *name;
    size_t at; /* in struct envelope */
    bool basic;
} headers[] = {
    /* clang-format off */
    {"x-nimi-protocol-version",             offsetof(struct envelope, protocol_version),    true},
    {"x-nimi-participant-protocol-version", offsetof(struct envelope, participant_version), true},
    {"x-nimi-participant-id",               offsetof(struct envelope, participant_id),      true},
    {"x-nimi-domain",                       offsetof(struct envelope, domain),              true},
    {"x-nimi-idempotency-key",              offsetof(struct envelope, idempotency_key),     false},
    {"x-nimi-caller-kind",                  offsetof(struct envelope, caller_kind),         false},
    {"x-nimi-caller-id",                    offsetof(struct envelope, caller_id),           false},
    {"x-nimi-app-id",                       offsetof(struct envelope, app_id),              false},
    {"x-nimi-trace-id",                     offsetof(struct envelope, trace_id),            false},
    {"x-nimi-surface-id",                   offsetof(struct envelope, surface_id),          false},
    {"x-nimi-key-source",                   offsetof(struct envelope, key_source),          false},
    {"x-nimi-provider-type",                offsetof(struct envelope, provider_type),       false},
    {"x-nimi-provider-endpoint",            offsetof(struct envelope, provider_endpoint),   false},
    {"x-nimi-provider-api-key",             offsetof(struct envelope, provider_api_key),    false},
    /* clang-format on */
};

static const struct str kinds[] = {STR_INIT("desktop-core"), STR_INIT("desktop-mod"),
                                   STR_INIT("third-party-app"),
                                   STR_INIT("third-party-service")};
static const struct str sources[] = {STR_INIT("inline"), STR_INIT("managed")};

static bool envelope_is_one_of(struct str value, const struct str *known, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(value, known[i])) return true;
    }
    return value.len == 0;
}

/* The major and minor part of "1.2.3", or empty. */
static struct str line_of(struct str version) {
    struct str rest = version, minor_rest;
    uint64_t number;
    for (size_t part = 0; part < 3; part++) {
        struct str digits = str_split(rest, '.', &minor_rest);
        if (!rest.at || !str_to_u64(digits, &number) || (part == 2 && minor_rest.at))
            return STR_EMPTY;
        if (part < 2 && !minor_rest.at) return STR_EMPTY;
        rest = part == 2 ? digits : minor_rest;
    }
    return str_head(version, (size_t)(rest.at - version.at) - 1);
}

static bool check_versions(const struct envelope *envelope, struct fault *fault) {
    struct str ours = line_of(envelope->protocol_version);
    struct str theirs = line_of(envelope->participant_version);
    if (!ours.len || !theirs.len)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "x-nimi-protocol-version and x-nimi-participant-protocol-version must "
                         "be versions such as 1.0.0");
    return str_equal(ours, theirs) ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "x-nimi-participant-protocol-version must have the major and minor "
                     "number of x-nimi-protocol-version");
}

bool envelope_read(struct rpc_call *call, enum envelope_form form, struct envelope *ret,
                   struct fault *fault) {
    *ret = (struct envelope){0};
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        struct str value = lent_read(rpc_metadata(call, str_from(headers[i].name), NULL));
        value = value.at ? str_trim(value) : STR_EMPTY;
        if (value.len > ENVELOPE_VALUE_MAX_BYTES)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                             "%s is longer than %d bytes", headers[i].name,
                             ENVELOPE_VALUE_MAX_BYTES);
        if (!utf8_valid(value)) /* it would be in replies of others, which could not be read */
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "%s is not UTF-8",
                             headers[i].name);
        if (headers[i].basic && form == ENVELOPE_WHOLE && value.len == 0)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                             "%s is missing; every call of this protocol sends it",
                             headers[i].name);
        *(struct str *)((char *)ret + headers[i].at) =
            value.len ? rpc_keep(call, value) : STR_EMPTY;
    }
    if (form == ENVELOPE_WHOLE && !check_versions(ret, fault)) return false;
    if (!envelope_is_one_of(ret->caller_kind, kinds, ARRAY_LEN(kinds)))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "x-nimi-caller-kind must be desktop-core, desktop-mod, "
                         "third-party-app or third-party-service");
    if (!envelope_is_one_of(ret->key_source, sources, ARRAY_LEN(sources)))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "x-nimi-key-source must be inline or managed");
    return true;
}

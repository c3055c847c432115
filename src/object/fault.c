#include "object/fault.h"

#include "wire/xml.h"

#include <inttypes.h>

#define TEXT_MAX_BYTES 160

/* What the refusal says of itself. */
struct said {
    struct buf code, message, region;
};

static void fault_take(struct str error, struct str name, struct buf *out) {
    struct str content;
    struct buf whole;
    if (!xml_find(error, name, &content)) return;
    buf_init(&whole, 4 * KIB);
    (void)xml_text(content, &whole);
    struct str text = str_head(buf_str(&whole), TEXT_MAX_BYTES);
    for (size_t i = 0; i < text.len; i++)
        buf_append_byte(out, (unsigned char)text.at[i] < 0x20 ? ' ' : text.at[i]);
    buf_done(&whole);
}

static void read_said(struct str body, struct said *ret) {
    struct str error;
    struct err e;
    buf_init(&ret->code, TEXT_MAX_BYTES);
    buf_init(&ret->message, TEXT_MAX_BYTES);
    buf_init(&ret->region, TEXT_MAX_BYTES);
    if (!xml_read(body, &error, &e) || !xml_is(body, STR("Error"))) return;
    fault_take(error, STR("Code"), &ret->code);
    fault_take(error, STR("Message"), &ret->message);
    fault_take(error, STR("Region"), &ret->region);
}

static void said_done(struct said *said) {
    buf_done(&said->code);
    buf_done(&said->message);
    buf_done(&said->region);
}

/* --- what each code means ----------------------------------------------------------------- */

typedef void explain_fn(const struct object_fault_facts *facts, const struct said *said,
                        struct err *ret);

static void no_bucket(const struct object_fault_facts *facts, const struct said *said,
                      struct err *ret) {
    (void)said;
    err_set(ret, ERR_FAILED_PRECONDITION,
            "there is no bucket '" STR_FMT "' at " STR_FMT
            "; create it, or correct files.s3.bucket or files.s3.endpoint",
            STR_ARG(bucket_name(facts->bucket)), STR_ARG(bucket_host(facts->bucket)));
}

static void no_key(const struct object_fault_facts *facts, const struct said *said,
                   struct err *ret) {
    (void)said;
    err_set(ret, ERR_NOT_FOUND, "the bucket has no object '" STR_FMT "'",
            STR_ARG(str_head(facts->key, 200)));
}

static void other_region(const struct object_fault_facts *facts, const struct said *said,
                         struct err *ret) {
    struct str region = facts->region.len ? facts->region : buf_str(&said->region);
    struct str ours = bucket_key(facts->bucket).region;
    if (region.len)
        err_set(ret, ERR_FAILED_PRECONDITION,
                "the bucket '" STR_FMT "' is in the region '" STR_FMT "', not in '" STR_FMT
                "'; set files.s3.region: " STR_FMT " and the endpoint of that region",
                STR_ARG(bucket_name(facts->bucket)), STR_ARG(region), STR_ARG(ours),
                STR_ARG(region));
    else
        err_set(ret, ERR_FAILED_PRECONDITION,
                "the bucket '" STR_FMT "' is not at " STR_FMT " in the region '" STR_FMT
                "'; correct files.s3.endpoint and files.s3.region",
                STR_ARG(bucket_name(facts->bucket)), STR_ARG(bucket_host(facts->bucket)),
                STR_ARG(ours));
}

static void clock_skew(const struct object_fault_facts *facts, const struct said *said,
                       struct err *ret) {
    int64_t ahead_s = (facts->now_ms - facts->date_ms) / 1000;
    (void)said;
    if (facts->date_ms)
        err_set(ret, ERR_FAILED_PRECONDITION,
                "this machine's clock is %" PRId64 " s %s the storage's, which allows 15 "
                "minutes; set the clock (NTP)",
                ahead_s < 0 ? -ahead_s : ahead_s, ahead_s < 0 ? "behind" : "ahead of");
    else
        err_set(ret, ERR_FAILED_PRECONDITION,
                "this machine's clock differs from the storage's by more than 15 minutes; set "
                "the clock (NTP)");
}

static void wrong_secret(const struct object_fault_facts *facts, const struct said *said,
                         struct err *ret) {
    (void)facts, (void)said;
    err_set(ret, ERR_PERMISSION_DENIED,
            "the storage does not accept our signature: the secret key of files.s3 does not "
            "belong to its access key, or a proxy changes requests on their way");
}

static void wrong_access(const struct object_fault_facts *facts, const struct said *said,
                         struct err *ret) {
    (void)said;
    err_set(ret, ERR_PERMISSION_DENIED,
            "the storage at " STR_FMT " does not know the access key of files.s3, or it has "
            "expired; make a new one there",
            STR_ARG(bucket_host(facts->bucket)));
}

static void denied(const struct object_fault_facts *facts, const struct said *said,
                   struct err *ret) {
    (void)said;
    err_set(ret, ERR_PERMISSION_DENIED,
            "the storage does not allow our key to %s%s in the bucket '" STR_FMT
            "'; grant it s3:GetObject, s3:PutObject, s3:DeleteObject, s3:ListBucket and "
            "s3:AbortMultipartUpload",
            str_equal(facts->method, STR("GET")) || str_equal(facts->method, STR("HEAD"))
                ? "read"
            : str_equal(facts->method, STR("DELETE")) ? "delete"
                                                      : "write",
            facts->key.len ? " objects" : "", STR_ARG(bucket_name(facts->bucket)));
}

static void changed(const struct object_fault_facts *facts, const struct said *said,
                    struct err *ret) {
    (void)said;
    err_set(ret, ERR_ABORTED, "the object '" STR_FMT "' was changed meanwhile",
            STR_ARG(str_head(facts->key, 200)));
}

static void past_end(const struct object_fault_facts *facts, const struct said *said,
                     struct err *ret) {
    (void)said;
    err_set(ret, ERR_OUT_OF_RANGE, "the object '" STR_FMT "' ends before that",
            STR_ARG(str_head(facts->key, 200)));
}

static void fault_full(const struct object_fault_facts *facts, const struct said *said,
                       struct err *ret) {
    err_set(ret, ERR_RESOURCE_EXHAUSTED,
            "the storage has no room for it: " STR_FMT "; free some of the bucket '" STR_FMT
            "', or raise its quota",
            STR_ARG(buf_str(&said->message)), STR_ARG(bucket_name(facts->bucket)));
}

static void busy(const struct object_fault_facts *facts, const struct said *said,
                 struct err *ret) {
    err_set(ret, ERR_UNAVAILABLE,
            "the storage at " STR_FMT " cannot answer now (%u " STR_FMT "); try again later",
            STR_ARG(bucket_host(facts->bucket)), facts->status, STR_ARG(buf_str(&said->code)));
}

static void other(const struct object_fault_facts *facts, const struct said *said,
                  struct err *ret) {
    err_set(ret, ERR_UNAVAILABLE,
            "the storage at " STR_FMT " answered %u " STR_FMT "%s" STR_FMT,
            STR_ARG(bucket_host(facts->bucket)), facts->status, STR_ARG(buf_str(&said->code)),
            said->message.len ? ": " : "", STR_ARG(buf_str(&said->message)));
}

/* The first row that fits. A row without a code fits any code, one without a status any. */
static const struct {
    const char *code;
    unsigned status;
    explain_fn *explain;
    bool again;
} faults[] = {
    {"NoSuchBucket", 0, no_bucket, false},
    {"NoSuchKey", 0, no_key, false},
    {"NoSuchUpload", 0, no_key, false},
    {"PermanentRedirect", 0, other_region, false},
    {"TemporaryRedirect", 0, other_region, false},
    {"AuthorizationHeaderMalformed", 0, other_region, false},
    {"IllegalLocationConstraintException", 0, other_region, false},
    {"RequestTimeTooSkewed", 0, clock_skew, false},
    {"SignatureDoesNotMatch", 0, wrong_secret, false},
    {"InvalidAccessKeyId", 0, wrong_access, false},
    {"ExpiredToken", 0, wrong_access, false},
    {"InvalidToken", 0, wrong_access, false},
    {"AccessDenied", 0, denied, false},
    {"PreconditionFailed", 0, changed, false},
    {"InvalidRange", 0, past_end, false},
    {"QuotaExceeded", 0, fault_full, false},
    {"RequestTimeout", 0, busy, true},
    {"RequestTimedOut", 0, busy, true},
    {"BadDigest", 0, busy, true}, /* the body was damaged on its way */
    {"XAmzContentSHA256Mismatch", 0, busy, true},
    {"IncompleteBody", 0, busy, true},
    {"OperationAborted", 0, busy, true},
    {"SlowDown", 0, busy, true},
    {"ServiceUnavailable", 0, busy, true},
    {"InternalError", 0, busy, true},
    {NULL, 301, other_region, false},
    {NULL, 302, other_region, false},
    {NULL, 307, other_region, false},
    {NULL, 308, other_region, false},
    {NULL, 403, denied, false},
    {NULL, 404, no_key, false},
    {NULL, 408, busy, true},
    {NULL, 412, changed, false},
    {NULL, 416, past_end, false},
    {NULL, 429, busy, true},
    {NULL, 500, busy, true},
    {NULL, 502, busy, true},
    {NULL, 503, busy, true},
    {NULL, 504, busy, true},
    {NULL, 507, fault_full, false},
    {NULL, 0, other, false},
};

void object_fault(const struct object_fault_facts *facts, struct err *ret, bool *ret_again) {
    struct said said;
    read_said(facts->body, &said);
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        if (faults[i].code && !str_equal(buf_str(&said.code), str_from(faults[i].code)))
            continue;
        if (faults[i].status && faults[i].status != facts->status) continue;
        faults[i].explain(facts, &said, ret);
        *ret_again = faults[i].again;
        break;
    }
    said_done(&said);
}

#include "contract/nimi/fault.h"

#include "base/utf8.h"
#include "rpc/retry_info.h"
#include "wire/json.h"
#include "wire/pb.h"

#include <stdio.h>

#define CARRIER_MAX_BYTES (4 * KIB)
#define SENTENCE_MAX_BYTES 320 /* of the sentence: the whole message stays below 1 KiB */

#define ERROR_INFO_TYPE STR("type.googleapis.com/google.rpc.ErrorInfo")
#define DOMAIN STR("nimi.runtime.v1")

bool fault_set_list(struct fault *fault, int reason, enum err_code code, const char *format,
                    va_list values) {
    char text[ERR_TEXT_BYTES];
    vsnprintf(text, sizeof(text), format, values);
    *fault = (struct fault){.reason = reason};
    return err_set(&fault->why, code, "%s", text);
}

bool fault_set(struct fault *fault, int reason, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fault_set_list(fault, reason, reason_get(reason)->code, format, values);
    va_end(values);
    return false;
}

bool fault_set_code(struct fault *fault, int reason, enum err_code code, const char *format,
                    ...) {
    va_list values;
    va_start(values, format);
    fault_set_list(fault, reason, code, format, values);
    va_end(values);
    return false;
}

/* The hint, or its default. */
static const char *fault_hint(const struct fault *fault) {
    if (fault->hint) return fault->hint;
    return err_kinds[fault->why.code].retry ? "retry_or_check_runtime_daemon"
                                            : "check_request_and_app_auth";
}

static struct str sentence(const struct fault *fault) {
    struct str text = err_text(&fault->why);
    return str_head(text, utf8_cut(text, SENTENCE_MAX_BYTES));
}

void fault_message(const struct fault *fault, struct str trace_id, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "reasonCode", str_from(reason_get(fault->reason)->name));
    json_member_str(&json, "actionHint", str_from(fault_hint(fault)));
    if (trace_id.len) json_member_str(&json, "traceId", trace_id);
    json_member_bool(&json, "retryable", err_kinds[fault->why.code].retry);
    json_member_str(&json, "message", sentence(fault));
    json_close(&json);
}

/* --- google.rpc.Status -------------------------------------------------------------------- */

/* One entry of ErrorInfo.metadata (3). */
static void put_metadata(struct buf *out, const char *key, struct str value) {
    struct buf entry;
    if (value.len == 0) return;
    buf_init(&entry, CARRIER_MAX_BYTES);
    pb_append_str(&entry, 1, str_from(key));
    pb_append_str(&entry, 2, value);
    pb_append_str(out, 3, buf_str(&entry));
    buf_done(&entry);
}

/* A second detail, where it is known when to come again. */
static void put_retry(const struct fault *fault, struct buf *out) {
    struct buf any;
    if (!fault->why.retry_after_ms) return;
    buf_init(&any, CARRIER_MAX_BYTES);
    retry_info_any(fault->why.retry_after_ms, &any);
    pb_append_str(out, 3, buf_str(&any));
    buf_done(&any);
}

/* Status {1 code, 2 message, 3 details: Any {1 type_url, 2 value: ErrorInfo {1 reason,
 * 2 domain, 3 metadata}}} */
void fault_details(const struct fault *fault, struct str trace_id, struct buf *out) {
    struct buf info, any;
    buf_init(&info, CARRIER_MAX_BYTES);
    buf_init(&any, CARRIER_MAX_BYTES);
    pb_append_str(&info, 1, str_from(reason_get(fault->reason)->name));
    pb_append_str(&info, 2, DOMAIN);
    put_metadata(&info, "action_hint", str_from(fault_hint(fault)));
    put_metadata(&info, "trace_id", trace_id);
    put_metadata(&info, "retryable",
                 err_kinds[fault->why.code].retry ? STR("true") : STR("false"));
    pb_append_str(&any, 1, ERROR_INFO_TYPE);
    pb_append_str(&any, 2, buf_str(&info));
    pb_append_int(out, 1, err_kinds[fault->why.code].grpc_status);
    pb_append_str(out, 2, sentence(fault));
    pb_append_str(out, 3, buf_str(&any));
    put_retry(fault, out);
    buf_done(&any);
    buf_done(&info);
}

void fault_end(struct rpc_call *call, const struct fault *fault, struct str trace_id) {
    struct buf message, details;
    if (!fault->reason) {
        rpc_end(call, fault->why.code, err_text(&fault->why));
        return;
    }
    buf_init(&message, CARRIER_MAX_BYTES);
    buf_init(&details, CARRIER_MAX_BYTES);
    fault_message(fault, trace_id, &message);
    fault_details(fault, trace_id, &details);
    rpc_trailer(call, STR("grpc-status-details-bin"), buf_str(&details));
    retry_info_push_back(call, &fault->why);
    rpc_end(call, fault->why.code, buf_str(&message));
    buf_done(&details);
    buf_done(&message);
}

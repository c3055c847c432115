#include "rpc/retry_info.h"

#include "wire/pb.h"

#define TYPE STR("type.googleapis.com/google.rpc.RetryInfo")
#define NS_A_MS 1000000
#define ANY_MAX_BYTES 128
#define STATUS_MAX_BYTES KIB

/* Any {1 type_url, 2 value: RetryInfo {1 retry_delay: Duration {1 seconds, 2 nanos}}} */
void retry_info_any(uint32_t retry_after_ms, struct buf *out) {
    char delay_room[ANY_MAX_BYTES], info_room[ANY_MAX_BYTES];
    struct buf delay = {
        .at = delay_room, .room = sizeof(delay_room), .max_bytes = sizeof(delay_room)};
    struct buf info = {
        .at = info_room, .room = sizeof(info_room), .max_bytes = sizeof(info_room)};
    pb_append_int(&delay, 1, retry_after_ms / 1000);
    pb_append_int(&delay, 2, (int64_t)(retry_after_ms % 1000) * NS_A_MS);
    pb_append_str(&info, 1, buf_str(&delay));
    pb_append_str(out, 1, TYPE);
    pb_append_str(out, 2, buf_str(&info));
}

void retry_info_push_back(struct rpc_call *call, const struct err *why) {
    char digits[20];
    struct buf text = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    if (!why->retry_after_ms) return;
    buf_append_u64(&text, why->retry_after_ms);
    rpc_trailer(call, STR("grpc-retry-pushback-ms"), buf_str(&text));
}

/* Status {1 code, 2 message, 3 details: Any} */
void retry_info_add(struct rpc_call *call, const struct err *why) {
    struct buf status, any;
    if (!why->retry_after_ms) return;
    buf_init(&status, STATUS_MAX_BYTES);
    buf_init(&any, ANY_MAX_BYTES);
    retry_info_any(why->retry_after_ms, &any);
    pb_append_int(&status, 1, err_kinds[why->code].grpc_status);
    pb_append_str(&status, 2, err_text(why));
    pb_append_str(&status, 3, buf_str(&any));
    rpc_trailer(call, STR("grpc-status-details-bin"), buf_str(&status));
    retry_info_push_back(call, why);
    buf_done(&status);
    buf_done(&any);
}

#include "exporter/answer.h"

#include "wire/pb.h"

#include <stddef.h>

/* --- the messages ----------------------------------------------------------------------------- */

struct partial_success {
    int64_t rejected_spans;
    struct str error_message;
};

static const struct pb_field partial_success_fields[] = {
    {1, PB_INT64, PB_IMPLICIT, offsetof(struct partial_success, rejected_spans), 0, NULL,
     "rejected_spans"},
    {2, PB_STRING, PB_IMPLICIT, offsetof(struct partial_success, error_message), 0, NULL,
     "error_message"},
};

static const struct pb_message partial_success_table = {
    "opentelemetry.proto.collector.trace.v1.ExportTracePartialSuccess",
    partial_success_fields,
    ARRAY_LEN(partial_success_fields),
    2,
    sizeof(struct partial_success),
    false,
};

struct response {
    const struct partial_success *partial_success;
};

static const struct pb_field response_fields[] = {
    {1, PB_MESSAGE, PB_IMPLICIT, offsetof(struct response, partial_success), 0,
     &partial_success_table, "partial_success"},
};

static const struct pb_message response_table = {
    "opentelemetry.proto.collector.trace.v1.ExportTraceServiceResponse",
    response_fields,
    ARRAY_LEN(response_fields),
    1,
    sizeof(struct response),
    false,
};

struct status {
    struct str message;
};

static const struct pb_field status_fields[] = {
    {2, PB_STRING, PB_IMPLICIT, offsetof(struct status, message), 0, NULL, "message"},
};

static const struct pb_message status_table = {
    "google.rpc.Status",   status_fields, ARRAY_LEN(status_fields), 0,
    sizeof(struct status), false,
};

/* --- reading ---------------------------------------------------------------------------------- */

struct exporter_answer exporter_answer_taken(struct str body, struct arena *arena) {
    struct response response;
    struct err e;
    if (!pb_decode_view(&response_table, body, arena, &response, &e) ||
        !response.partial_success)
        return (struct exporter_answer){0, STR_EMPTY};
    return (struct exporter_answer){response.partial_success->rejected_spans,
                                    response.partial_success->error_message};
}

struct exporter_answer exporter_answer_refused(struct str body, struct arena *arena) {
    struct status status;
    struct err e;
    if (!pb_decode_view(&status_table, body, arena, &status, &e))
        return (struct exporter_answer){0, STR_EMPTY};
    return (struct exporter_answer){0, status.message};
}

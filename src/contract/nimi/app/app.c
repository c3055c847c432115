#include "contract/nimi/app/app.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/app/rates.h"
#include "contract/nimi/attached_binding.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/owner.h"
#include "contract/nimi/subscription.h"
#include "proto/nimi.pb.h"

/* --- checks ------------------------------------------------------------------------------- */

/* A caller speaks only for the app that its headers name. */
static bool app_is_the_callers(const struct nimi_call *call, const char *name, struct str app,
                               struct fault *fault) {
    struct str named = call->envelope.app_id;
    if (!owner_id(name, app, fault)) return false;
    if (!named.len || str_equal(named, app)) return true;
    return fault_set(fault, NIMI_PROTOCOL_DOMAIN_FIELD_CONFLICT,
                     "%s is not the app of x-nimi-app-id; a caller speaks for one app", name);
}

static bool subject_is_ok(struct str subject, struct fault *fault) {
    return !subject.len || owner_id("subject_user_id", subject, fault);
}

/* The runtime's own name is no app. No agent's turns are served here. */
static bool target_is_app(struct str to, struct fault *fault) {
    if (!str_equal(to, STR("runtime.agent"))) return true;
    return fault_set_code(fault, NIMI_APP_SCOPE_FORBIDDEN, ERR_PERMISSION_DENIED,
                          "runtime.agent takes no messages in this runtime");
}

static bool type_is_short(struct str type, struct fault *fault) {
    return type.len <= APP_TYPE_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "message_type has %zu bytes, at most %d are allowed", type.len,
                     APP_TYPE_MAX_BYTES);
}

static bool payload_fits(const struct nimi_send_app_message_request *from,
                         struct fault *fault) {
    size_t len = from->payload ? pb_encoded_len(&google_struct_table, from->payload) : 0;
    if (len <= APP_PAYLOAD_MAX_BYTES) return true;
    return fault_set(fault, NIMI_APP_MESSAGE_PAYLOAD_TOO_LARGE,
                     "the payload has %zu bytes, and %zu are allowed", len,
                     APP_PAYLOAD_MAX_BYTES);
}

static bool rate_is_ok(const struct nimi_call *call,
                       const struct nimi_send_app_message_request *from, struct fault *fault) {
    struct rates *rates = call->instance->runtime->apps.rates;
    switch (rates_send(rates, from->from_app_id, from->to_app_id, loop_now_ms(call->loop))) {
    case RATES_OK: return true;
    case RATES_TOO_MANY:
        return fault_set(fault, NIMI_APP_MESSAGE_RATE_LIMITED,
                         "an app may send %d messages a second", RATES_SENDER_MAX);
    case RATES_LOOP: break;
    }
    return fault_set(fault, NIMI_APP_MESSAGE_LOOP_DETECTED,
                     "these two apps answered each other more than %d times in a second; the "
                     "pair is paused for a minute",
                     RATES_PAIR_MAX);
}

static bool check_message(const struct nimi_call *call,
                          const struct nimi_send_app_message_request *from,
                          struct fault *fault) {
    return app_is_the_callers(call, "from_app_id", from->from_app_id, fault) &&
           owner_id("to_app_id", from->to_app_id, fault) &&
           subject_is_ok(from->subject_user_id, fault) &&
           target_is_app(from->to_app_id, fault) && type_is_short(from->message_type, fault) &&
           payload_fits(from, fault) &&
           attached_binding_ok(call, from->from_app_id, from->scoped_binding, fault) &&
           rate_is_ok(call, from, fault);
}

/* --- sending ------------------------------------------------------------------------------ */

/* "FROM\nSUBJECT", what a subscriber's filter looks at. Ids hold no control characters. */
static void put_label(struct buf *out, struct str from, struct str subject) {
    buf_append(out, from);
    buf_append_byte(out, '\n');
    buf_append(out, subject);
}

static void app_publish(struct topic *topic, struct nimi_app_message_event *event,
                        enum nimi_app_message_event_type type) {
    struct buf label;
    buf_init(&label, 2 * KIB);
    put_label(&label, event->from_app_id, event->subject_user_id);
    event->event_type = (int32_t)type;
    topic_publish(topic, &(struct topic_event){.type = &nimi_app_message_event_table,
                                               .message = event,
                                               .sequence = &event->sequence,
                                               .label = buf_str(&label)});
    buf_done(&label);
}

/* The acknowledgement goes to the receiver's subscribers, as upstream has it. */
void app_send(struct nimi_call *call, const void *request) {
    const struct nimi_send_app_message_request *from = request;
    struct fault fault;
    if (!check_message(call, from, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    char id[ULID_LEN + 1];
    ulid_new(id);
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    struct nimi_app_message_event event = {.message_id = str_of(id, ULID_LEN),
                                           .from_app_id = from->from_app_id,
                                           .to_app_id = from->to_app_id,
                                           .subject_user_id = from->subject_user_id,
                                           .message_type = from->message_type,
                                           .payload = from->payload,
                                           .reason_code = NIMI_ACTION_EXECUTED,
                                           .trace_id = nimi_trace(call),
                                           .timestamp = &now};
    struct nimi_apps *apps = &call->instance->runtime->apps;
    struct topic *topic = topics_get(apps->topics, from->to_app_id);
    app_publish(topic, &event, NIMI_APP_MESSAGE_EVENT_RECEIVED);
    if (from->require_ack) app_publish(topic, &event, NIMI_APP_MESSAGE_EVENT_ACKED);
    topic_unref(topic);
    nimi_reply(call, &nimi_send_app_message_response_table,
               &(struct nimi_send_app_message_response){.message_id = str_of(id, ULID_LEN),
                                                        .accepted = true,
                                                        .reason_code = NIMI_ACTION_EXECUTED});
}

/* --- subscribing -------------------------------------------------------------------------- */

/* What a subscriber wants, in one block. */
struct app_filter {
    struct str subject; /* empty: every one */
    size_t from_count;  /* 0: from every app */
    struct str from[];
};

static bool app_wants(struct str label, const void *ctx) {
    const struct app_filter *filter = ctx;
    struct str subject, from = str_split(label, '\n', &subject);
    if (filter->subject.len && !str_equal(filter->subject, subject)) return false;
    for (size_t i = 0; i < filter->from_count; i++) {
        if (str_equal(filter->from[i], from)) return true;
    }
    return filter->from_count == 0;
}

static bool senders_are_ok(const struct nimi_subscribe_app_messages_request *from,
                           struct fault *fault) {
    if (from->from_app_ids_count > APP_FILTERS_MAX)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "there are %zu from_app_ids, at most %d are allowed; without any, "
                         "messages come from every app",
                         from->from_app_ids_count, APP_FILTERS_MAX);
    for (size_t i = 0; i < from->from_app_ids_count; i++) {
        if (!owner_id("from_app_ids", from->from_app_ids[i], fault)) return false;
    }
    return true;
}

/* The texts live as long as the call. */
static struct app_filter *
app_filter_new(struct nimi_call *call, const struct nimi_subscribe_app_messages_request *from) {
    size_t count = from->from_app_ids_count;
    struct app_filter *filter = mem_alloc(sizeof(*filter) + count * sizeof(filter->from[0]));
    filter->subject = nimi_keep(call, from->subject_user_id);
    filter->from_count = count;
    for (size_t i = 0; i < count; i++) filter->from[i] = nimi_keep(call, from->from_app_ids[i]);
    return filter;
}

void app_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_app_messages_request *from = request;
    struct subscription_options options = {.wants = NULL};
    struct fault fault;
    if (!app_is_the_callers(call, "app_id", from->app_id, &fault) ||
        !subject_is_ok(from->subject_user_id, &fault) || !senders_are_ok(from, &fault) ||
        !subscription_cursor(from->cursor, &options, &fault) ||
        !attached_binding_ok(call, from->app_id, from->scoped_binding, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    if (from->subject_user_id.len || from->from_app_ids_count) {
        options.wants = app_wants;
        options.filter = app_filter_new(call, from);
    }
    struct nimi_apps *apps = &call->instance->runtime->apps;
    options.topic = topics_get(apps->topics, from->app_id);
    subscription_settle(call, subscription_start(call, &options, NULL));
    topic_unref(options.topic);
}

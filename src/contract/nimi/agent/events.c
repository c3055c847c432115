#include "contract/nimi/agent/agent.h"

#include "base/mem.h"
#include "contract/nimi/log_subscription.h"
#include "contract/nimi/owner.h"
#include "proto/nimi.pb.h"

#include <stdlib.h>

/* --- from the log ------------------------------------------------------------------------- */

static bool read_event(const struct event_log_event *from, struct arena *arena, void **ret,
                       uint64_t **ret_sequence) {
    struct nimi_agent_event *event = ARENA_NEW(arena, struct nimi_agent_event);
    struct err e;
    if (!event || !pb_decode_view(&nimi_agent_event_table, from->bytes, arena, event, &e))
        return false;
    *ret = event;
    *ret_sequence = &event->sequence;
    return true;
}

const struct log_kind agent_log = {&nimi_agent_event_table, read_event};

/* --- subscribing -------------------------------------------------------------------------- */

/* A label is the digit of its event's type; a filter is a set of 1 << type. */
static bool agent_wants(struct str label, const void *filter) {
    return *(const unsigned *)filter >> (label.at[0] - '0') & 1;
}

static bool take_filters(const struct nimi_subscribe_agent_events_request *from,
                         struct log_subscription_options *options, struct fault *fault) {
    unsigned types = 0;
    for (size_t i = 0; i < from->event_filters_count; i++) {
        int32_t type = from->event_filters[i];
        if (type <= 0 || type > NIMI_AGENT_EVENT_TYPE_PRESENTATION)
            return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                             "there is no type of event %d", type);
        types |= 1u << type;
    }
    if (!types) return true;
    unsigned *filter = mem_alloc(sizeof(*filter));
    *filter = types;
    options->filter = filter;
    options->wants = agent_wants;
    return true;
}

/* The protocol gives this refusal no reason code. */
static bool names_an_agent(const struct nimi_subscribe_agent_events_request *from,
                           struct fault *fault) {
    if (from->agent_id.len) return owner_id("agent_id", from->agent_id, fault);
    fault->reason = 0;
    return err_set(&fault->why, ERR_INVALID_ARGUMENT, "agent_id is required");
}

/* There need be no such agent yet: its events come when it is initialised. So an agent of another
 * owner looks like one that never was. */
void agent_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_agent_events_request *from = request;
    const struct nimi_agent_request_context *context = from->context;
    struct log_subscription_options options = {
        .kind = &agent_log, .key = {.kind = EVENT_LOG_AGENT, .name = from->agent_id}};
    struct fault fault = {.hint = NULL};
    if (!names_an_agent(from, &fault) ||
        !owner_of(call, context ? context->app_id : STR_EMPTY,
                  context ? context->subject_user_id : STR_EMPTY, &options.key.owner, &fault) ||
        !log_subscription_cursor(from->cursor, &options, &fault) ||
        !take_filters(from, &options, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    options.store = owner_store(call);
    if (options.store) {
        log_subscription_start(call, &options);
    } else {
        free(options.filter);
    }
}

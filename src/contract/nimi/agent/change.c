#include "contract/nimi/agent/change.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/agent/life.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/owner.h"

#include <assert.h>
#include <stdlib.h>

#define ARENA_BYTES (32 * MIB) /* to decode an agent and a request */
#define NAME_MAX_BYTES 256

/* --- checks ------------------------------------------------------------------------------- */

static bool text_fits(const char *name, struct str text, size_t max, struct fault *fault) {
    return text.len <= max ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "%s has %zu bytes, at most %zu are allowed", name, text.len, max);
}

static bool struct_fits(const char *name, const struct google_struct *value,
                        struct fault *fault) {
    size_t len = value ? pb_encoded_len(&google_struct_table, value) : 0;
    return len <= CHANGE_STRUCT_MAX_BYTES ||
           fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                     "%s has %zu bytes, at most %zu are allowed", name, len,
                     (size_t)CHANGE_STRUCT_MAX_BYTES);
}

static bool autonomy_is_ok(const struct nimi_agent_autonomy_config *config,
                           struct fault *fault) {
    if (!config) return true;
    if (config->daily_token_budget < 0 || config->max_tokens_per_hook < 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a budget of autonomy_config is negative");
    if (config->mode < 0 || config->mode > NIMI_AGENT_AUTONOMY_MODE_HIGH)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no autonomy mode %d",
                         config->mode);
    return struct_fits("autonomy_config.extensions", config->extensions, fault);
}

bool change_check_initialize(const struct nimi_initialize_agent_request *from,
                             struct fault *fault) {
    return text_fits("display_name", from->display_name, NAME_MAX_BYTES, fault) &&
           (!from->world_id.len || owner_id("world_id", from->world_id, fault)) &&
           struct_fits("metadata", from->metadata, fault) &&
           autonomy_is_ok(from->autonomy_config, fault);
}

static bool key_is_ok(struct str key, struct fault *fault) {
    return (key.len > 0 ||
            fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "an attribute has no key")) &&
           text_fits("an attribute's key", key, CHANGE_KEY_MAX_BYTES, fault);
}

static bool mutation_is_ok(const struct nimi_agent_state_mutation *mutation,
                           struct fault *fault) {
    switch (mutation->which_mutation) {
    case NIMI_AGENT_STATE_MUTATION_SET_STATUS_TEXT:
        return text_fits("status_text", mutation->set_status_text->status_text,
                         CHANGE_STATUS_TEXT_MAX_BYTES, fault);
    case NIMI_AGENT_STATE_MUTATION_SET_WORLD_CONTEXT:
        return owner_id("world_id", mutation->set_world_context->world_id, fault);
    case NIMI_AGENT_STATE_MUTATION_SET_DYADIC_CONTEXT:
        return owner_id("user_id", mutation->set_dyadic_context->user_id, fault);
    case NIMI_AGENT_STATE_MUTATION_PUT_ATTRIBUTE:
        return key_is_ok(mutation->put_attribute->key, fault) &&
               text_fits("an attribute's value", mutation->put_attribute->value,
                         CHANGE_VALUE_MAX_BYTES, fault);
    case NIMI_AGENT_STATE_MUTATION_REMOVE_ATTRIBUTE:
        return key_is_ok(mutation->remove_attribute->key, fault);
    case NIMI_AGENT_STATE_MUTATION_CLEAR_WORLD_CONTEXT:
    case NIMI_AGENT_STATE_MUTATION_CLEAR_DYADIC_CONTEXT: return true;
    default:
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "a mutation names nothing that this runtime can change");
    }
}

bool change_check_update(const struct nimi_update_agent_state_request *from,
                         struct fault *fault) {
    if (from->mutations_count == 0 || from->mutations_count > CHANGE_MUTATIONS_MAX)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "there are %zu mutations; a request has 1 to %d",
                         from->mutations_count, CHANGE_MUTATIONS_MAX);
    for (size_t i = 0; i < from->mutations_count; i++) {
        if (!mutation_is_ok(&from->mutations[i], fault)) return false;
    }
    return true;
}

/* --- a change under way ------------------------------------------------------------------- */

/* What is stored, in a form that can be changed. */
struct changing {
    struct arena *arena;
    struct nimi_agent_record agent;
    struct nimi_agent_state_projection state;
    struct nimi_agent_autonomy_state autonomy; /* of a new one */
    struct nimi_agent_state_projection_attributes_entry
        attributes[CHANGE_ATTRIBUTES_MAX + 1]; /* one more than may be stored */
    struct google_timestamp now;
    struct agent_after *after;
};

static bool change_is_there(const struct changing *changing) {
    return changing->agent.lifecycle_status != NIMI_AGENT_LIFECYCLE_STATUS_UNSPECIFIED;
}

static bool is_terminated(const struct changing *changing) {
    return changing->agent.lifecycle_status == NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED;
}

static bool take_stored(struct changing *changing, struct str before, struct err *e) {
    struct nimi_initialize_agent_response stored;
    if (!before.len) return true;
    if (!pb_decode_view(&nimi_initialize_agent_response_table, before, changing->arena, &stored,
                        e))
        return false;
    if (!stored.agent || !stored.state ||
        stored.state->attributes_count > CHANGE_ATTRIBUTES_MAX)
        return err_set(e, ERR_DATA_LOSS, "an agent in the store cannot be read");
    changing->agent = *stored.agent;
    changing->state = *stored.state;
    for (size_t i = 0; i < stored.state->attributes_count; i++)
        changing->attributes[i] = stored.state->attributes[i];
    changing->state.attributes = changing->attributes;
    return true;
}

static bool emit(struct changing *changing, struct nimi_agent_event *event, struct err *e) {
    struct agent_after *after = changing->after;
    struct event_log_entry *entry = &after->events[after->event_count++];
    struct buf bytes;
    char label = (char)('0' + event->event_type);
    assert(after->event_count <= AGENT_EVENTS_MAX);
    event->agent_id = changing->agent.agent_id;
    event->timestamp = &changing->now;
    buf_init(&bytes, EVENT_LOG_BYTES_MAX);
    bool ok = pb_encode(&nimi_agent_event_table, event, &bytes) &&
              arena_str(after->arena, buf_str(&bytes), &entry->bytes) &&
              arena_str(after->arena, str_of(&label, 1), &entry->label);
    buf_done(&bytes);
    return ok || err_set(e, ERR_RESOURCE_EXHAUSTED, "an agent's event is too long");
}

/* Move the status and the execution state, and tell of both. */
static bool move_life(struct changing *changing, int32_t status, int32_t execution,
                      struct err *e) {
    const struct nimi_agent_lifecycle_event_detail lifecycle = {
        .previous_status = changing->agent.lifecycle_status, .current_status = status};
    const struct nimi_agent_state_event_detail state = {
        .family = NIMI_AGENT_STATE_EVENT_FAMILY_EXECUTION_STATE_CHANGED,
        .previous_execution_state = changing->state.execution_state,
        .current_execution_state = execution};
    life_status_move(&changing->agent, status);
    life_execution_move(&changing->state, execution);
    return emit(changing,
                &(struct nimi_agent_event){.event_type = NIMI_AGENT_EVENT_TYPE_LIFECYCLE,
                                           .which_detail = NIMI_AGENT_EVENT_LIFECYCLE,
                                           .lifecycle = &lifecycle},
                e) &&
           emit(changing,
                &(struct nimi_agent_event){.event_type = NIMI_AGENT_EVENT_TYPE_STATE,
                                           .which_detail = NIMI_AGENT_EVENT_STATE,
                                           .state = &state},
                e);
}

static bool store_changed(struct changing *changing, struct err *e) {
    struct agent_after *after = changing->after;
    const struct nimi_initialize_agent_response stored = {&changing->agent, &changing->state};
    after->changed = true;
    after->status = changing->agent.lifecycle_status;
    after->ended = is_terminated(changing);
    after->autonomous = changing->agent.autonomy && changing->agent.autonomy->enabled;
    changing->agent.updated_at = &changing->now;
    changing->state.updated_at = &changing->now;
    return pb_encode(&nimi_initialize_agent_response_table, &stored, after->body) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "an agent may have %zu bytes in all",
                   (size_t)AGENT_BODY_MAX_BYTES);
}

/* --- initialize --------------------------------------------------------------------------- */

/* Nothing in this runtime acts by itself, so the configuration is kept and autonomy is off. */
static bool make_agent(struct changing *changing,
                       const struct nimi_initialize_agent_request *from, struct err *e) {
    int32_t status = changing->agent.lifecycle_status,
            execution = changing->state.execution_state;
    changing->autonomy.config = from->autonomy_config;
    changing->agent = (struct nimi_agent_record){
        .agent_id = from->agent_id,
        .display_name = from->display_name.len ? from->display_name : from->agent_id,
        .lifecycle_status = status,
        .autonomy = &changing->autonomy,
        .metadata = from->metadata,
        .created_at = &changing->now};
    changing->state = (struct nimi_agent_state_projection){.execution_state = execution,
                                                           .active_world_id = from->world_id};
    return move_life(changing, NIMI_AGENT_LIFECYCLE_STATUS_ACTIVE,
                     NIMI_AGENT_EXECUTION_STATE_IDLE, e) &&
           store_changed(changing, e);
}

/* One that is there already stays as it is. */
static bool initialize(struct changing *changing, const void *from, struct err *e) {
    return (change_is_there(changing) && !is_terminated(changing)) ||
           make_agent(changing, from, e);
}

/* --- terminate ---------------------------------------------------------------------------- */

static bool agent_missing(struct err *e) {
    return err_set(e, ERR_NOT_FOUND, "agent not found");
}

/* Terminating twice is no mistake. */
static bool terminate(struct changing *changing, const void *from, struct err *e) {
    (void)from;
    if (!change_is_there(changing)) return agent_missing(e);
    return is_terminated(changing) ||
           (move_life(changing, NIMI_AGENT_LIFECYCLE_STATUS_TERMINATED,
                      NIMI_AGENT_EXECUTION_STATE_SUSPENDED, e) &&
            store_changed(changing, e));
}

/* --- update ------------------------------------------------------------------------------- */

static size_t attribute_at(const struct changing *changing, struct str key) {
    size_t i = 0;
    while (i < changing->state.attributes_count && !str_equal(changing->attributes[i].key, key))
        i++;
    return i;
}

static bool put_attribute(struct changing *changing,
                          const struct nimi_agent_state_put_attribute *put, struct err *e) {
    size_t at = attribute_at(changing, put->key);
    if (at == CHANGE_ATTRIBUTES_MAX)
        return err_set(e, ERR_RESOURCE_EXHAUSTED, "an agent may have %d attributes; remove one",
                       CHANGE_ATTRIBUTES_MAX);
    if (at == changing->state.attributes_count) changing->state.attributes_count++;
    changing->attributes[at].key = put->key;
    changing->attributes[at].value = put->value;
    changing->state.attributes = changing->attributes;
    return true;
}

static void remove_attribute(struct changing *changing, struct str key) {
    size_t at = attribute_at(changing, key);
    if (at == changing->state.attributes_count) return;
    changing->attributes[at] = changing->attributes[--changing->state.attributes_count];
}

static bool mutate(struct changing *changing, const struct nimi_agent_state_mutation *mutation,
                   struct err *e) {
    struct nimi_agent_state_projection *state = &changing->state;
    switch (mutation->which_mutation) {
    case NIMI_AGENT_STATE_MUTATION_SET_STATUS_TEXT:
        state->status_text = mutation->set_status_text->status_text;
        break;
    case NIMI_AGENT_STATE_MUTATION_SET_WORLD_CONTEXT:
        state->active_world_id = mutation->set_world_context->world_id;
        break;
    case NIMI_AGENT_STATE_MUTATION_CLEAR_WORLD_CONTEXT:
        state->active_world_id = STR_EMPTY;
        break;
    case NIMI_AGENT_STATE_MUTATION_SET_DYADIC_CONTEXT:
        state->active_user_id = mutation->set_dyadic_context->user_id;
        break;
    case NIMI_AGENT_STATE_MUTATION_CLEAR_DYADIC_CONTEXT:
        state->active_user_id = STR_EMPTY;
        break;
    case NIMI_AGENT_STATE_MUTATION_PUT_ATTRIBUTE:
        return put_attribute(changing, mutation->put_attribute, e);
    default: remove_attribute(changing, mutation->remove_attribute->key); break;
    }
    return true;
}

/* The protocol has an event for the status text only. */
static bool report_status_text(struct changing *changing, struct str previous, struct err *e) {
    const struct nimi_agent_state_event_detail detail = {
        .family = NIMI_AGENT_STATE_EVENT_FAMILY_STATUS_TEXT_CHANGED,
        .current_status_text = changing->state.status_text,
        .previous_status_text = previous,
        .has_previous_status_text = previous.len > 0};
    if (str_equal(previous, changing->state.status_text)) return true;
    return emit(changing,
                &(struct nimi_agent_event){.event_type = NIMI_AGENT_EVENT_TYPE_STATE,
                                           .which_detail = NIMI_AGENT_EVENT_STATE,
                                           .state = &detail},
                e);
}

static bool update(struct changing *changing, const void *request, struct err *e) {
    const struct nimi_update_agent_state_request *from = request;
    struct str previous = changing->state.status_text;
    if (!change_is_there(changing)) return agent_missing(e);
    if (is_terminated(changing))
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "the agent is terminated; initialize it again");
    for (size_t i = 0; i < from->mutations_count; i++) {
        if (!mutate(changing, &from->mutations[i], e)) return false;
    }
    return report_status_text(changing, previous, e) && store_changed(changing, e);
}

/* --- the kinds ---------------------------------------------------------------------------- */

struct change_kind {
    const struct pb_message *type; /* of the request */
    bool (*make)(struct changing *changing, const void *from, struct err *e);
    struct str operation;
};

const struct change_kind change_initialize = {&nimi_initialize_agent_request_table, initialize,
                                              STR_INIT("initialize")};
const struct change_kind change_terminate = {&nimi_terminate_agent_request_table, terminate,
                                             STR_INIT("terminate")};
const struct change_kind change_update = {&nimi_update_agent_state_request_table, update,
                                          STR_INIT("update")};

/* The request, encoded, and when it came. */
struct change_request {
    const struct change_kind *kind;
    struct buf bytes;
    int64_t now_ms;
};

static bool change_make(struct str before, struct agent_after *after, const void *ctx,
                        struct err *e) {
    const struct change_request *request = ctx;
    const struct pb_message *type = request->kind->type;
    struct changing *changing = MEM_NEW(struct changing);
    changing->arena = arena_new(ARENA_BYTES);
    changing->now = nimi_moment(request->now_ms);
    changing->after = after;
    void *from = arena_alloc(changing->arena, type->size);
    bool ok = pb_decode_view(type, buf_str(&request->bytes), changing->arena, from, e) &&
              take_stored(changing, before, e) && request->kind->make(changing, from, e);
    arena_free(changing->arena);
    free(changing);
    return ok;
}

static void change_request_free(void *ctx) {
    struct change_request *request = ctx;
    buf_done(&request->bytes);
    free(request);
}

struct agents_change change_new(const struct change_kind *kind, const void *message) {
    struct change_request *request = MEM_NEW(struct change_request);
    request->kind = kind;
    request->now_ms = clock_unix_ms();
    buf_init(&request->bytes, pb_encoded_len(kind->type, message));
    bool fits = pb_encode(kind->type, message, &request->bytes);
    assert(fits); /* it has the length that was found */
    (void)fits;
    return (struct agents_change){change_make, request, change_request_free, kind->operation};
}

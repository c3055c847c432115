#include "contract/nimi/realtime/session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "contract/nimi/moment.h"
#include "contract/nimi/realtime/live.h"
#include "contract/nimi/realtime/turn.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define IDLE_TEXT "the realtime session was idle for too long"

static struct realtime_input *session_input_of(struct list *link) {
    return CONTAINER_OF(link, struct realtime_input, link);
}

/* --- states and events -------------------------------------------------------------------- */

/* The only function that changes the state. The lock is held. */
static void realtime_move(struct realtime_session *session, enum realtime_state next) {
    assert(states_allow(realtime_states, session->state, next));
    log_debug("realtime session %s: %s -> %s", session->id,
              states_name(realtime_states, session->state).at,
              states_name(realtime_states, next).at);
    session->state = next;
}

bool realtime_step(struct realtime_session *session, enum realtime_state next) {
    pthread_mutex_lock(&session->lock);
    bool goes_on = session->state != REALTIME_OVER;
    if (goes_on && session->state != next) realtime_move(session, next);
    pthread_mutex_unlock(&session->lock);
    return goes_on;
}

/* The backlog is memory that the process has promised. */
static void count_backlog(struct realtime_session *session) {
    size_t bytes = topic_bytes(session->topic);
    if (bytes > session->counted) mem_count(bytes - session->counted);
    if (bytes < session->counted) mem_uncount(session->counted - bytes);
    session->counted = bytes;
}

/* The lock is held. */
static void publish_locked(struct realtime_session *session,
                           const struct nimi_realtime_event *event, struct str trace) {
    const struct google_timestamp now = nimi_moment(clock_unix_ms());
    struct nimi_realtime_event sent = *event;
    sent.trace_id = trace;
    sent.timestamp = &now;
    session->last_sequence =
        topic_publish(session->topic, &(struct topic_event){.type = &nimi_realtime_event_table,
                                                            .message = &sent,
                                                            .sequence = &sent.sequence,
                                                            .label = STR_EMPTY});
    session->sent_bytes += pb_encoded_len(&nimi_realtime_event_table, &sent);
    session->sent_upto[session->last_sequence % REALTIME_BACKLOG] = session->sent_bytes;
    count_backlog(session);
}

bool realtime_publish(struct realtime_session *session, const struct nimi_realtime_event *event,
                      struct str trace) {
    pthread_mutex_lock(&session->lock);
    bool goes_on = session->state != REALTIME_OVER;
    if (goes_on) publish_locked(session, event, trace);
    pthread_mutex_unlock(&session->lock);
    return goes_on;
}

/* --- pacing ------------------------------------------------------------------------------- */

/* Whether the reader lacks more than this. The lock is held. */
static bool reader_lags(const struct realtime_session *session, size_t bytes, uint64_t frames) {
    uint64_t lag = session->last_sequence - session->read_sequence;
    if (!session->read || lag == 0) return false;
    if (lag >= frames) return true;
    return session->sent_bytes -
               session->sent_upto[session->read_sequence % REALTIME_BACKLOG] >=
           bytes;
}

bool realtime_is_held(struct realtime_session *session) {
    pthread_mutex_lock(&session->lock);
    bool held = session->state != REALTIME_OVER &&
                reader_lags(session, REALTIME_LAG_BYTES, REALTIME_LAG_FRAMES);
    session->held = held;
    pthread_mutex_unlock(&session->lock);
    return held;
}

/* --- the home ----------------------------------------------------------------------------- */

/* Nothing of the session is left on this loop. */
static void leave_home(struct realtime_session *session) {
    if (!list_linked(&session->link)) return;
    timer_stop(&session->idle);
    realtime_turn_drop(session);
    realtime_live_drop(session);
    list_remove(&session->link);
    realtime_table_remove(session->instance->runtime->realtime, session);
    realtime_unref(session);
}

static void session_on_mail(void *ctx) {
    struct realtime_session *session = ctx;
    pthread_mutex_lock(&session->lock);
    session->mailed = false;
    bool over = session->state == REALTIME_OVER;
    pthread_mutex_unlock(&session->lock);
    if (over) {
        leave_home(session);
    } else {
        realtime_turn_go_on(session);
    }
    realtime_unref(session);
}

/* The lock is held. The home's loop lives while the session is not over. */
static void wake_locked(struct realtime_session *session) {
    if (session->mailed) return;
    session->mailed = true;
    loop_post(session->instance->host->loop, &session->mail, session_on_mail,
              realtime_ref(session));
}

void realtime_wake(struct realtime_session *session) {
    pthread_mutex_lock(&session->lock);
    if (session->state != REALTIME_OVER) wake_locked(session);
    pthread_mutex_unlock(&session->lock);
}

/* A turn is no idleness; its end starts the clock again. */
static void session_on_idle(void *ctx) {
    struct realtime_session *session = ctx;
    pthread_mutex_lock(&session->lock);
    bool idle = session->state == REALTIME_LISTENING && list_empty(&session->inputs) &&
                !session->opening;
    if (idle) {
        realtime_move(session, REALTIME_OVER);
        topic_end(session->topic, ERR_CANCELLED, IDLE_TEXT);
    }
    pthread_mutex_unlock(&session->lock);
    if (idle) leave_home(session);
}

struct realtime_session *realtime_new(const struct realtime_options *options) {
    const struct nimi_open_realtime_session_request *request = options->request;
    const struct nimi_text_generate_scenario_spec system = {.system_prompt =
                                                                request->system_prompt};
    struct realtime_session *session = MEM_NEW(struct realtime_session);
    atomic_init(&session->refs, 2);
    memcpy(session->id, "rt_", 3);
    ulid_new(session->id + 3);
    session->app = text_copy(options->app);
    session->subject = text_copy(options->subject);
    session->owner = text_copy(options->owner);
    session->audio_format = text_copy(str_trim(request->output_audio_format));
    session->audio_rate_hz = request->output_sample_rate_hz;
    session->is_live = options->is_live;
    session->sounds = options->sounds;
    session->instance = options->instance;
    buf_init(&session->head, 8 * MIB); /* bounded as a part of a request */
    pb_encode(&nimi_scenario_request_head_table, request->head, &session->head);
    buf_init(&session->system, 8 * MIB);
    pb_encode(&nimi_text_generate_scenario_spec_table, &system, &session->system);
    session->topic = topic_new(&(struct topic_options){.kind = TOPIC_EVENTS,
                                                       .max_bytes = REALTIME_BACKLOG_BYTES,
                                                       .max_frames = REALTIME_BACKLOG,
                                                       .first_sequence = 1});
    pthread_mutex_init(&session->lock, NULL);
    list_init(&session->inputs);
    dialogue_init(&session->dialogue);
    timer_init(&session->idle, options->instance->host->loop, session_on_idle, session);
    list_append(&options->instance->realtime, &session->link);
    realtime_turn_idle(session);
    return session;
}

void realtime_abandon(struct realtime_session *session) {
    pthread_mutex_lock(&session->lock);
    realtime_move(session, REALTIME_OVER);
    pthread_mutex_unlock(&session->lock);
    leave_home(session);
}

void realtime_discard(struct realtime_session *session) {
    realtime_abandon(session);
    realtime_unref(session);
}

static size_t input_bytes(const struct realtime_input *input) {
    return input->spec.len + input->sound.len;
}

/* The lock is held. */
static struct realtime_input *pop_locked(struct realtime_session *session) {
    struct realtime_input *input = session_input_of(list_pop(&session->inputs));
    session->input_count--;
    session->input_bytes -= input_bytes(input);
    return input;
}

struct realtime_input *realtime_take_input(struct realtime_session *session) {
    pthread_mutex_lock(&session->lock);
    struct realtime_input *input = list_empty(&session->inputs) ? NULL : pop_locked(session);
    pthread_mutex_unlock(&session->lock);
    return input;
}

struct realtime_input *realtime_take_sound(struct realtime_session *session) {
    struct realtime_input *input = NULL;
    pthread_mutex_lock(&session->lock);
    if (!list_empty(&session->inputs) &&
        !realtime_input_is_turn(session_input_of(session->inputs.next)))
        input = pop_locked(session);
    pthread_mutex_unlock(&session->lock);
    return input;
}

void realtime_return_sound(struct realtime_session *session, struct realtime_input *input) {
    pthread_mutex_lock(&session->lock);
    list_prepend(&session->inputs, &input->link);
    session->input_count++;
    session->input_bytes += input_bytes(input);
    pthread_mutex_unlock(&session->lock);
}

bool realtime_waits_spoken(struct realtime_session *session) {
    pthread_mutex_lock(&session->lock);
    bool waits =
        !list_empty(&session->inputs) && session_input_of(session->inputs.next)->spoken;
    pthread_mutex_unlock(&session->lock);
    return waits;
}

/* Their readers are cut as all streams are. */
void realtime_leave_all(struct nimi_instance *instance) {
    LIST_EACH(&instance->realtime, link) {
        struct realtime_session *session = CONTAINER_OF(link, struct realtime_session, link);
        pthread_mutex_lock(&session->lock);
        if (session->state != REALTIME_OVER) realtime_move(session, REALTIME_OVER);
        pthread_mutex_unlock(&session->lock);
        leave_home(session);
    }
}

/* --- any loop ----------------------------------------------------------------------------- */

static bool is_gone(struct fault *fault) {
    return fault_set(fault, NIMI_AI_REALTIME_SESSION_NOT_FOUND,
                     "there is no such realtime session; it was closed, was idle for too long, "
                     "or ended with the runtime");
}

static bool takes_input(const struct realtime_session *session, size_t bytes,
                        struct fault *fault) {
    if (session->state == REALTIME_OVER) return is_gone(fault);
    if (session->input_count < REALTIME_INPUTS_MAX &&
        session->input_bytes + bytes <= REALTIME_INPUT_BYTES)
        return true;
    return fault_set(fault, NIMI_AI_PROVIDER_RATE_LIMITED,
                     "too much input waits for the turn that runs (%zu of %d inputs); append "
                     "more when a turn has ended",
                     session->input_count, REALTIME_INPUTS_MAX);
}

/* Sound comes in many small pieces: those that wait for the same turn are joined. What is left
 * of `input` is the caller's. The lock is held. */
static bool join_locked(struct realtime_session *session, const struct realtime_input *input) {
    if (list_empty(&session->inputs) || input->spec.len) return false;
    struct realtime_input *last = session_input_of(session->inputs.prev);
    if (realtime_input_is_turn(last) || !buf_append(&last->sound, buf_str(&input->sound)))
        return false;
    last->spoken = input->spoken;
    memcpy(last->trace, input->trace, sizeof(last->trace));
    return true;
}

bool realtime_append(struct realtime_session *session, struct realtime_input *input,
                     struct fault *fault) {
    bool joined = false;
    pthread_mutex_lock(&session->lock);
    bool taken = takes_input(session, input_bytes(input), fault);
    if (taken) {
        session->input_bytes += input_bytes(input);
        joined = join_locked(session, input);
        if (!joined) list_append(&session->inputs, &input->link);
        session->input_count += !joined;
        wake_locked(session);
    }
    pthread_mutex_unlock(&session->lock);
    if (!taken || joined) realtime_input_free(input);
    return taken;
}

bool realtime_read(struct realtime_session *session, uint64_t after, struct fault *fault) {
    pthread_mutex_lock(&session->lock);
    bool ahead = after > session->last_sequence;
    bool taken = session->read;
    if (!ahead && !taken) {
        session->read = true;
        session->read_sequence = after;
        realtime_ref(session);
    }
    uint64_t last = session->last_sequence;
    pthread_mutex_unlock(&session->lock);
    if (ahead)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "after_sequence is %llu, and the session's last event is %llu",
                         (unsigned long long)after, (unsigned long long)last);
    return !taken || fault_set(fault, NIMI_AI_REALTIME_SESSION_CLOSED,
                               "this session has a reader; end that one first");
}

/* The lock is held. */
static void release_if_near(struct realtime_session *session) {
    if (!session->held || reader_lags(session, REALTIME_LAG_BYTES / 2, REALTIME_LAG_FRAMES / 2))
        return;
    session->held = false;
    if (session->state != REALTIME_OVER) wake_locked(session);
}

void realtime_turned(uint64_t cursor, void *ctx) {
    struct realtime_session *session = ctx;
    pthread_mutex_lock(&session->lock);
    if (cursor > session->read_sequence) session->read_sequence = cursor;
    release_if_near(session);
    pthread_mutex_unlock(&session->lock);
}

void realtime_left(void *ctx) {
    struct realtime_session *session = ctx;
    pthread_mutex_lock(&session->lock);
    session->read = false;
    release_if_near(session);
    pthread_mutex_unlock(&session->lock);
    realtime_unref(session);
}

bool realtime_close(struct realtime_session *session, struct str trace) {
    const struct nimi_realtime_completed completed = {.finish_reason = NIMI_FINISH_REASON_STOP};
    const struct nimi_realtime_event event = {.event_type = NIMI_REALTIME_EVENT_COMPLETED,
                                              .which_payload =
                                                  NIMI_REALTIME_EVENT_COMPLETED_CASE,
                                              .completed = &completed};
    pthread_mutex_lock(&session->lock);
    bool open = session->state != REALTIME_OVER;
    if (open) {
        publish_locked(session, &event, trace);
        topic_end(session->topic, ERR_NONE, "");
        wake_locked(session);
        realtime_move(session, REALTIME_OVER);
    }
    pthread_mutex_unlock(&session->lock);
    if (open) realtime_table_remove(session->instance->runtime->realtime, session);
    return open;
}

/* --- the table ---------------------------------------------------------------------------- */

struct realtime_table {
    pthread_mutex_t lock;
    struct map *sessions; /* id -> struct realtime_session */
};

struct realtime_table *realtime_table_new(void) {
    struct realtime_table *table = MEM_NEW(struct realtime_table);
    pthread_mutex_init(&table->lock, NULL);
    table->sessions = map_new();
    return table;
}

void realtime_table_free(struct realtime_table *table) {
    if (!table) return;
    assert(map_count(table->sessions) == 0);
    map_free(table->sessions);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

static struct str session_id_of(const struct realtime_session *session) {
    return str_of(session->id, REALTIME_ID_LEN);
}

/* The lock is held. There are few. */
static size_t count_of_app(const struct realtime_table *table, struct str app) {
    size_t cursor = 0, count = 0;
    struct str id;
    void *session;
    while (map_next(table->sessions, &cursor, &id, &session))
        count += str_equal(text_str(((struct realtime_session *)session)->app), app);
    return count;
}

bool realtime_table_add(struct realtime_table *table, struct realtime_session *session,
                        struct fault *fault) {
    pthread_mutex_lock(&table->lock);
    size_t of_app = count_of_app(table, text_str(session->app));
    bool fits = of_app < REALTIME_SESSIONS_PER_APP &&
                map_count(table->sessions) < REALTIME_SESSIONS_MAX;
    if (fits) map_put(table->sessions, session_id_of(session), session);
    pthread_mutex_unlock(&table->lock);
    return fits || fault_set(fault, NIMI_AI_PROVIDER_RATE_LIMITED,
                             "too many realtime sessions are open: %zu of this app, %d are "
                             "allowed, and %d in all; close one",
                             of_app, REALTIME_SESSIONS_PER_APP, REALTIME_SESSIONS_MAX);
}

struct realtime_session *realtime_table_find(struct realtime_table *table, struct str id) {
    pthread_mutex_lock(&table->lock);
    struct realtime_session *session = map_find(table->sessions, id);
    if (session) realtime_ref(session);
    pthread_mutex_unlock(&table->lock);
    return session;
}

void realtime_table_remove(struct realtime_table *table, struct realtime_session *session) {
    pthread_mutex_lock(&table->lock);
    bool there = map_find(table->sessions, session_id_of(session)) == session;
    if (there) map_remove(table->sessions, session_id_of(session));
    pthread_mutex_unlock(&table->lock);
    if (there) realtime_unref(session);
}

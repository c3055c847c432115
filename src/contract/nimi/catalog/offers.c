/* What can be asked here, and whether a call would wait. */
#include "contract/nimi/catalog/catalog.h"

#include "contract/nimi/admit.h"

static const struct {
    int type;
    struct str description;
} profiles[] = {
    {NIMI_SCENARIO_TYPE_TEXT_GENERATE, STR_INIT("a model answers a conversation with text")},
    {NIMI_SCENARIO_TYPE_TEXT_EMBED, STR_INIT("a model turns texts into vectors, one each")},
    {NIMI_SCENARIO_TYPE_IMAGE_GENERATE, STR_INIT("a model draws what a text says")},
    {NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE, STR_INIT("a voice says a text")},
    {NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE, STR_INIT("a model writes down what was said")},
};

#define MODES_MAX 3

/* The execution modes of a type, in the order of the enum. */
static size_t list_modes(int type, int32_t *ret) {
    size_t count = 0;
    for (int mode = NIMI_EXECUTION_MODE_SYNC; mode <= NIMI_EXECUTION_MODE_ASYNC_JOB; mode++) {
        if (admit_modes(type) & 1u << mode) ret[count++] = mode;
    }
    return count;
}

/* List the types that some connector serves, for any model or for the one named. */
void catalog_list_profiles(struct nimi_call *call, const void *request) {
    const struct nimi_list_scenario_profiles_request *from = request;
    int32_t modes[ARRAY_LEN(profiles)][MODES_MAX];
    struct nimi_scenario_profile served[ARRAY_LEN(profiles)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(profiles); i++) {
        int type = profiles[i].type;
        if (!admit_serves(call->instance->settings, type, str_trim(from->model_id))) continue;
        served[count] = (struct nimi_scenario_profile){
            .scenario_type = type,
            .supported_execution_modes = modes[count],
            .supported_execution_modes_count = list_modes(type, modes[count]),
            .description = profiles[i].description};
        count++;
    }
    nimi_reply(call, &nimi_list_scenario_profiles_response_table,
               &(struct nimi_list_scenario_profiles_response){.profiles = served,
                                                              .profiles_count = count});
}

static const struct {
    int state;
    struct str detail;
} judgements[] = {
    {NIMI_SCHEDULING_STATE_RUNNABLE, STR_INIT("a slot is free")},
    {NIMI_SCHEDULING_STATE_QUEUE_REQUIRED, STR_INIT("all slots are taken: a call would wait")},
};

/* All targets share the same slots. */
void catalog_peek_scheduling(struct nimi_call *call, const void *request) {
    const struct nimi_peek_scheduling_request *from = request;
    struct fault fault;
    if (!admit_app(&call->envelope, from->app_id, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    struct occupancy now =
        scheduler_occupancy(call->instance->runtime->scheduler, from->app_id);
    const struct nimi_scheduling_occupancy_snapshot occupancy = {
        .global_used = (int32_t)now.global_used,
        .global_cap = (int32_t)now.global_cap,
        .app_used = (int32_t)now.app_used,
        .app_cap = (int32_t)now.app_cap};
    bool waits = now.global_used >= now.global_cap || now.app_used >= now.app_cap;
    const struct nimi_scheduling_judgement judgement = {.state = judgements[waits].state,
                                                        .detail = judgements[waits].detail,
                                                        .occupancy = &occupancy};
    struct nimi_scheduling_target_judgement *targets =
        arena_alloc(call->arena, (from->targets_count + 1) * sizeof(*targets));
    size_t target_count = targets ? from->targets_count : 0;
    for (size_t i = 0; i < target_count; i++)
        targets[i] = (struct nimi_scheduling_target_judgement){&from->targets[i], &judgement};
    nimi_reply(
        call, &nimi_peek_scheduling_response_table,
        &(struct nimi_peek_scheduling_response){.occupancy = &occupancy,
                                                .aggregate_judgement = &judgement,
                                                .target_judgements = targets,
                                                .target_judgements_count = target_count});
}

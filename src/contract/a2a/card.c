/* The cards of the agents, and their extended form, which says no more. */
#include "contract/a2a/door.h"

#define CARD_MAX_BYTES (16 * MIB)

static const struct agent *card_agent(const struct engine *engine, struct str slug) {
    if (!engine->agent_count) return NULL;
    return slug.len ? engine_agent(engine, slug) : &engine->agents[0];
}

/* False: there is no such agent, or the card is too large. */
static bool write_card(struct route_call *route, const struct a2a_instance *instance,
                       struct str slug, struct buf *out) {
    const struct agent_card_settings *settings = &a2a_settings(instance)->card;
    const struct engine *engine = instance->guest.site.host->engine;
    const struct agent *agent = card_agent(engine, slug);
    struct json_writer w = json_writer(out);
    if (!agent) return false;
    bool first = agent == &engine->agents[0];
    json_open_object(&w);
    json_member_str(&w, "name", first ? settings->name : agent->slug);
    json_member_str(&w, "version", settings->version);
    agent_card_write(route, settings, engine, agent,
                     instance->guest.callers.secured(instance->guest.callers.ctx), &w);
    json_close(&w);
    return buf_ok(out);
}

void a2a_card_route(struct route_call *route, void *ctx) {
    struct buf card, slug;
    buf_init(&card, CARD_MAX_BYTES);
    buf_init(&slug, KIB);
    bool named = lent_read(route_parameter(route, STR("agent"))).len > 0;
    bool known = (!named || route_parameter_text(route, STR("agent"), &slug)) &&
                 write_card(route, ctx, buf_str(&slug), &card);
    if (known) {
        route_reply(route, 200, STR("application/json"), buf_str(&card));
    } else {
        route_fail(route, &(struct route_failure){404, STR("AGENT_NOT_FOUND"),
                                                  STR("there is no agent of this name; "
                                                      "/.well-known/agent-card.json lists them "
                                                      "as skills"),
                                                  STR_EMPTY});
    }
    buf_done(&slug);
    buf_done(&card);
}

void a2a_card(struct a2a_call *call) {
    struct buf card;
    buf_init(&card, CARD_MAX_BYTES);
    if (write_card(call->http.call, call->instance, text_str(call->agent), &card)) {
        a2a_reply(call, &card);
    } else {
        a2a_fail(call, A2A_ERROR_UNAVAILABLE, STR("there is no agent here yet; try again"));
    }
    buf_done(&card);
}

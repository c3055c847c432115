#include "contract/a2a/door.h"

#define AT_AGENT "/a2a/{agent}"
#define CARD "/.well-known/agent-card.json"
#define PUSH "/tasks/{id}/pushNotificationConfigs"

/* The same below the path of an agent: without one it is the first. */
static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("POST"), STR_INIT("/a2a"),   a2a_rpc, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT(AT_AGENT), a2a_rpc, ROUTE_GUARDED, ROUTE_JSON},

    {STR_INIT("POST"),   STR_INIT("/message:send"),     a2a_rest_send,   ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT("/message:stream"),   a2a_rest_stream, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/tasks"),            a2a_rest_list,   ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT("/tasks/{id}"),       a2a_rest_get,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/tasks/{id}"),       a2a_rest_post,   ROUTE_GUARDED, ROUTE_BODY},
    {STR_INIT("GET"),    STR_INIT("/extendedAgentCard"), a2a_rest_card,  ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT(PUSH),                a2a_rest_put_webhook,    ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT(PUSH),                a2a_rest_list_webhooks,  ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT(PUSH "/{config}"),    a2a_rest_get_webhook,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT(PUSH "/{config}"),    a2a_rest_delete_webhook, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT(CARD),                a2a_card_route,  ROUTE_OPEN, ROUTE_HEAD},

    {STR_INIT("POST"),   STR_INIT(AT_AGENT "/message:send"),     a2a_rest_send,   ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT(AT_AGENT "/message:stream"),   a2a_rest_stream, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT "/tasks"),            a2a_rest_list,   ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT "/tasks/{id}"),       a2a_rest_get,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT(AT_AGENT "/tasks/{id}"),       a2a_rest_post,   ROUTE_GUARDED, ROUTE_BODY},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT "/extendedAgentCard"), a2a_rest_card,  ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT(AT_AGENT PUSH),                a2a_rest_put_webhook,    ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT PUSH),                a2a_rest_list_webhooks,  ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT PUSH "/{config}"),    a2a_rest_get_webhook,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT(AT_AGENT PUSH "/{config}"),    a2a_rest_delete_webhook, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT CARD),                a2a_card_route,  ROUTE_OPEN, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT(AT_AGENT "/.well-known/agent.json"), a2a_card_route, ROUTE_OPEN, ROUTE_HEAD},
    /* clang-format on */
};

void a2a_table(struct a2a_instance *instance, struct route_table *ret) {
    guest_table(&instance->guest, rows, ARRAY_LEN(rows), a2a_failure_body, ret);
}

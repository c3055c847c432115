#include "orchestrator/mcp/tools.h"

#define TEXT(about) "{\"type\":\"string\",\"description\":\"" about "\"}"
#define FLAG(about) "{\"type\":\"boolean\",\"description\":\"" about "\"}"
#define WHOLE(about, least, most, usual)                                                       \
    "{\"type\":\"integer\",\"minimum\":" least ",\"maximum\":" most ",\"default\":" usual      \
    ",\"description\":\"" about "\"}"

/* Prompts ask for a `description` in every call; it is shown to users. */
#define SCHEMA(properties, required)                                                           \
    STR_INIT("{\"type\":\"object\",\"properties\":{" properties "\"description\":" TEXT(       \
        "what this call is for, in a few words for the user") "},\"required\":[" required      \
                                                              "],\"additionalProperties\":"    \
                                                              "false}")

#define OPTION                                                                                 \
    "{\"type\":\"object\",\"properties\":{\"label\":{\"type\":\"string\",\"maxLength\":256}}," \
    "\"required\":[\"label\"],\"additionalProperties\":false}"
#define QUESTION                                                                               \
    "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\",\"maxLength\":2048}" \
    ","                                                                                        \
    "\"mode\":{\"type\":\"string\",\"enum\":[\"single\",\"multi\"]},\"options\":{\"type\":"    \
    "\"array\",\"minItems\":2,\"maxItems\":26,\"items\":" OPTION                               \
    "},\"allow_custom\":{\"type\":\"boolean\"}},\"required\":[\"prompt\",\"mode\","            \
    "\"options\"],\"additionalProperties\":false}"
#define TURNS                                                                                  \
    "{\"type\":\"array\",\"minItems\":1,\"maxItems\":10,\"items\":{\"type\":\"object\","       \
    "\"properties\":{\"label\":{\"type\":\"string\",\"maxLength\":128},\"questions\":"         \
    "{\"type\":\"array\",\"minItems\":1,\"maxItems\":20,\"items\":" QUESTION                   \
    "}},\"required\":[\"questions\"],\"additionalProperties\":false}}"

#define CONVERSATION                                                                           \
    "\"conversation_id\":" TEXT("the conversation; without it the one of this turn") ","
#define AGENT                                                                                  \
    "\"agent_id\":" TEXT("of the agent that asks") ",\"agent_slug\":" TEXT(                    \
        "of the agent that asks") ","

const struct orchestrator_tool_row orchestrator_tools[ORCHESTRATOR_TOOL_COUNT] = {
    [ORCHESTRATOR_SEND_PUSH_NOTIFICATION] =
        {STR_INIT("send_push_notification"),
         STR_INIT("Sends a notification to the user's devices."),
         SCHEMA("\"title\":" TEXT("its title") ",\"message\":" TEXT("its text") ",",
                "\"title\",\"message\""),
         false, false},
    [ORCHESTRATOR_GET_USER_PROFILE] =
        {STR_INIT("get_user_profile"), STR_INIT("Returns the profile of the user."),
         SCHEMA("\"include_preferences\":" FLAG("with the user's preferences") ",", ""), true,
         false},
    [ORCHESTRATOR_GET_WORKSPACE_INFO] =
        {STR_INIT("get_workspace_info"), STR_INIT("Returns what this workspace is."),
         SCHEMA("\"include_agents\":" FLAG("with its agents") ",", ""), true, false},
    [ORCHESTRATOR_LIST_CONVERSATIONS] =
        {STR_INIT("list_conversations"), STR_INIT("Lists the conversations of this workspace."),
         SCHEMA("\"include_archived\":" FLAG("with archived ones") ",", ""), true, false},
    [ORCHESTRATOR_SEARCH_PAST_MESSAGES] =
        {STR_INIT("search_past_messages"),
         STR_INIT("Searches the earlier messages of a conversation."),
         SCHEMA("\"conversation_id\":" TEXT("the conversation to search") ",\"query\":" TEXT(
                    "words to look for") ",\"limit\":" WHOLE("how many messages at most", "1",
                                                             "50", "20") ",",
                "\"conversation_id\",\"query\",\"limit\""),
         true, false},
    [ORCHESTRATOR_SEND_MESSAGE_TO_AGENT] =
        {STR_INIT("send_message_to_agent"),
         STR_INIT("Sends a message to another agent of this workspace and returns its answer."),
         SCHEMA("\"agent_slug\":" TEXT("the agent to ask") ",\"message\":" TEXT(
                    "what it is to do") "," CONVERSATION,
                "\"agent_slug\",\"message\""),
         false, true},
    [ORCHESTRATOR_ASK_QUESTIONS] =
        {STR_INIT("ask_questions"),
         STR_INIT("Shows the user a card of questions with options to choose from."),
         SCHEMA("\"turns\":" TURNS "," AGENT CONVERSATION, "\"turns\""), false, false},
    [ORCHESTRATOR_MEMORY_STATUS] = {STR_INIT("memory_status"),
                                    STR_INIT(
                                        "Says how much the memory of this workspace holds."),
                                    SCHEMA("", ""), true, false},
    [ORCHESTRATOR_MEMORY_LIST_WINGS] =
        {STR_INIT("memory_list_wings"),
         STR_INIT("Lists the wings of the memory and how many drawers each has."),
         SCHEMA("", ""), true, false},
    [ORCHESTRATOR_MEMORY_GET_TAXONOMY] =
        {STR_INIT("memory_get_taxonomy"),
         STR_INIT("Returns every wing with its rooms and how many drawers each has."),
         SCHEMA("", ""), true, false},
    [ORCHESTRATOR_MEMORY_LIST_ROOMS] =
        {STR_INIT("memory_list_rooms"),
         STR_INIT("Lists the rooms of a wing, or of all, and how many drawers each has."),
         SCHEMA("\"wing\":" TEXT("this wing alone") ",", ""), true, false},
    [ORCHESTRATOR_MEMORY_SEARCH] =
        {STR_INIT("memory_search"), STR_INIT("Finds the drawers that hold these words."),
         SCHEMA(
             "\"query\":" TEXT("words to look for") ",\"limit\":" WHOLE(
                 "how many drawers at most", "1", "100",
                 "5") ",\"wing\":" TEXT("in this wing alone") ",\"room\":" TEXT("in this room "
                                                                                "alone") ",",
             "\"query\""),
         true, false},
    [ORCHESTRATOR_MEMORY_ADD_DRAWER] =
        {STR_INIT("memory_add_drawer"), STR_INIT("Puts a text into a room of the memory."),
         SCHEMA(
             "\"wing\":" TEXT("the wing") ",\"room\":" TEXT("the room") ",\"content\":" TEXT(
                 "the text, word for "
                 "word") ",\"source_file\":" TEXT("where it comes from; not kept") ",\"added_"
                                                                                   "by\":" TEXT(
                                                                                       "who "
                                                                                       "adds "
                                                                                       "it; "
                                                                                       "not "
                                                                                       "kept") ",",
             "\"wing\",\"room\",\"content\""),
         false, false},
    [ORCHESTRATOR_MEMORY_DELETE_DRAWER] =
        {STR_INIT("memory_delete_drawer"), STR_INIT("Removes a drawer from the memory."),
         SCHEMA("\"drawer_id\":" TEXT("its id") ",", "\"drawer_id\""), false, false},
    [ORCHESTRATOR_MEMORY_DIARY_WRITE] =
        {STR_INIT("memory_diary_write"),
         STR_INIT("Writes an entry into the diary of an agent."),
         SCHEMA("\"agent_name\":" TEXT("whose diary") ",\"entry\":" TEXT(
                    "the text") ",\"topic\":" TEXT("what it is about") ",",
                "\"agent_name\",\"entry\""),
         false, false},
    [ORCHESTRATOR_MEMORY_DIARY_READ] =
        {STR_INIT("memory_diary_read"),
         STR_INIT("Returns the newest entries of an agent's diary."),
         SCHEMA("\"agent_name\":" TEXT("whose diary") ",\"last_n\":" WHOLE(
                    "how many entries at most", "1", "100", "10") ",",
                "\"agent_name\""),
         true, false},
};

enum orchestrator_tool orchestrator_tool_find(struct str name) {
    unsigned tool = 0;
    while (tool < ORCHESTRATOR_TOOL_COUNT && !str_equal(orchestrator_tools[tool].name, name))
        tool++;
    return (enum orchestrator_tool)tool;
}

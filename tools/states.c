/* states: draw the state machines, from the tables that the program itself obeys.
 *
 * `make docs` writes what this prints to docs/states.md. A machine is one row below; its
 * states, their names and their moves are asked of the module that owns them.
 */
#include "contract/nimi/account/states.h"
#include "agent/converse_turn.h"
#include "agent/process.h"
#include "budget/ledger.h"
#include "client/direct.h"
#include "client/grpc_call.h"
#include "client/grpc_keep.h"
#include "client/h2.h"
#include "client/link.h"
#include "client/websocket_call.h"
#include "contract/a2a/push.h"
#include "contract/nimi/agent/life.h"
#include "contract/nimi/job/workflow_graph.h"
#include "contract/nimi/lifecycle.h"
#include "contract/nimi/log_subscription.h"
#include "contract/nimi/memory/embedder.h"
#include "contract/nimi/realtime/state.h"
#include "contract/nimi/shared_once.h"
#include "contract/nimi/shared_slot.h"
#include "contract/nimi/transfer/state.h"
#include "contract/nimi/upload/receive.h"
#include "daemon/daemon_inner.h"
#include "exporter/exporter.h"
#include "job/run_job.h"
#include "library/inner.h"
#include "loop/slots.h"
#include "mcp/client.h"
#include "mcp/hub_inner.h"
#include "mcp/pipe.h"
#include "mcp/stream.h"
#include "object/put.h"
#include "orchestrator/agent_asks.h"
#include "orchestrator/runtimes_child.h"
#include "orchestrator/runtimes_kubernetes.h"
#include "orchestrator/turn.h"
#include "postgres/postgres.h"
#include "provider/live.h"
#include "provider/media_work.h"
#include "provider/remote_inner.h"
#include "reader/reader.h"
#include "record/record.h"
#include "route/answer.h"
#include "rpc/call.h"
#include "rpc/intake.h"
#include "server/conn.h"
#include "server/http1_step.h"
#include "server/server.h"
#include "session/posted_answer.h"
#include "session/shared_place.h"
#include "sidecar/programs.h"
#include "sidecar/relay.h"
#include "socketio/inner.h"
#include "store/bank_search.h"
#include "store/checkpoint.h"
#include "stream/close.h"
#include "stream/share.h"
#include "toolserver/call.h"
#include "topic/topic.h"
#include "turn/admission.h"
#include "turn/answer_box.h"
#include "turn/calls.h"
#include "turn/cancel_box.h"
#include "turn/compaction.h"
#include "turn/long_reply.h"
#include "turn/run.h"

#include <stdio.h>

/* clang-format off */
static const struct machine {
    const char *title, *file, *about;
    unsigned count;
    const struct state *table;
} machines[] = {
    {"The daemon", "src/daemon/daemon.c", "From its start to its stop.", DAEMON_PHASE_COUNT, daemon_phases},
    {"The runtime of nimi.runtime.v1", "src/contract/nimi/lifecycle.c",
     "What its health says, and which calls it admits.", LIFE_COUNT, lifecycle_states},
    {"A record",         "src/record/record.c",   "What every kept execution has: a journal, a place in the directory, an end.",
     RECORD_STATE_COUNT, record_states},
    {"A run",            "src/record/run_state.c",      "One execution: a turn, a job.",
     RUN_STATE_COUNT,    run_states},
    {"A turn's admission", "src/turn/admission.c", "How a turn comes to its session; a place of its workspace comes before.",
     ADMISSION_STATE_COUNT, admission_states},
    {"A tool call of a turn", "src/turn/calls.c", "What a reply asks for, until it is answered.",
     TURN_CALL_STATE_COUNT, turn_call_states},
    {"The text of a long reply", "src/turn/long_reply.c", "Where it is while its caller reads slowly.",
     LONG_REPLY_STATE_COUNT, long_reply_states},
    {"A history that is condensed", "src/turn/compaction.c", "Once a turn at most; if it is given up, the turn goes on without, until it is needed.",
     COMPACTION_STATE_COUNT, compaction_states},
    {"A wait for a budget", "src/budget/ledger.c", "A model call that other calls leave no room for.",
     LEDGER_WAIT_STATE_COUNT, ledger_wait_states},
    {"A lease of a session", "src/session/lease.c", "Which turn writes a conversation, and which turns wait for it.",
     LEASE_STATE_COUNT,  lease_states},
    {"A place among replicas", "src/session/shared_place.c", "One of a workspace's places for turns, counted in the store.",
     SHARED_PLACE_STATE_COUNT, shared_place_states},
    {"A slot among replicas", "src/contract/nimi/shared_slot.c", "A call of nimi.runtime.v1 that waits or runs, counted in the store.",
     SHARED_SLOT_STATE_COUNT, shared_slot_states},
    {"A write that is made once, among replicas", "src/contract/nimi/shared_once.c", "Which replica makes it; the others wait for its reply.",
     SHARED_ONCE_STATE_COUNT, shared_once_states},
    {"Cancellations from other replicas", "src/turn/cancel_box.c", "Reads what is wished for runs of this replica, until they are over.",
     CANCEL_BOX_STATE_COUNT, cancel_box_states},
    {"An answer to another replica", "src/session/posted_answer.c", "A human's answer on its way to the replica that has the run.",
     POSTED_STATE_COUNT, posted_answer_states},
    {"Answers from other replicas", "src/turn/answer_box.c", "Reads what was posted for runs of this replica, one after another.",
     ANSWER_BOX_STATE_COUNT, answer_box_states},
    {"A job",            "src/job/run_job.c",  "Work that needs no caller, and outlives a process.",
     RUN_JOB_STATE_COUNT, run_job_states},
    {"A stream",         "src/stream/close.c", "One caller's view of a journal, and how it ends.",
     CLOSE_STATE_COUNT,  close_states},
    {"A reader of a run", "src/stream/share.c", "What one of a run's many readers waits for.",
     SHARE_STATE_COUNT,  share_states},
    {"The embedder", "src/contract/nimi/memory/embedder.c", "How the records of memory banks get their vectors.",
     EMBEDDER_STATE_COUNT, embedder_states},
    {"A webhook of a task", "src/contract/a2a/push.c", "What the webhook of an A2A client is sent, and when.",
     PUSH_STATE_COUNT, push_states},
    {"A subscription to a log", "src/contract/nimi/log_subscription.c", "Where a subscriber of memory or agents gets its events.",
     LOG_SUBSCRIPTION_STATE_COUNT, log_subscription_states},
    {"A reader of a topic", "src/topic/view.c", "What one of a topic's many subscribers waits for.",
     TOPIC_READER_STATE_COUNT, topic_reader_states},
    {"A gRPC call",      "src/rpc/call.c",     "From the headers to the last byte.",
     CALL_STATE_COUNT,   call_states},
    {"The requests of a gRPC call", "src/rpc/intake.c", "Messages are handed to the method one at a time.",
     INTAKE_STATE_COUNT, intake_states},
    {"An HTTP answer",   "src/route/answer.c", "From the request line to the end of the body.",
     ANSWER_STATE_COUNT, answer_states},
    {"A connection",      "src/server/conn.c",  "From the first byte to the last, in any protocol.",
     CONN_STATE_COUNT,   conn_states},
    {"A connection of HTTP/1.1", "src/server/http1.c", "What it reads or waits for.",
     HTTP1_STEP_COUNT, http1_steps},
    {"The server", "src/server/server.c", "From its first listener to the end of its last connection.",
     SERVER_PHASE_COUNT, server_phases},
    {"A Socket.IO session", "src/socketio/peer.c", "What carries it: long polling, a WebSocket, or first one and then the other.",
     PEER_STATE_COUNT, peer_states},
    {"A socket of a namespace", "src/socketio/socket.c", "A client in one namespace, from CONNECT on.",
     SOCKET_STATE_COUNT, socketio_socket_states},
    {"A request to another server", "src/client/direct.c", "On connections of our own.",
     DIRECT_STATE_COUNT, direct_states},
    {"A connection to another server", "src/client/link.c", "For one call after the other.",
     LINK_STATE_COUNT,   link_states},
    {"A WebSocket to another server", "src/client/websocket_call.c", "From the handshake to the close.",
     WEBSOCKET_CALL_STATE_COUNT, websocket_call_states},
    {"A connection of many calls", "src/client/h2.c", "To another server, over HTTP/2.",
     H2_STATE_COUNT,     h2_states},
    {"A call on such a connection", "src/client/h2_session.c", "From its place on the connection to the end of the answer.",
     H2_STREAM_STATE_COUNT, h2_stream_states},
    {"A gRPC call to another server", "src/client/grpc_call.c", "Messages to and fro, then a status.",
     GRPC_CALL_STATE_COUNT, grpc_call_states},
    {"A gRPC call that is kept open", "src/client/grpc_keep.c", "Between two turns of a conversation.",
     GRPC_KEEP_STATE_COUNT, grpc_keep_states},
    {"A user's session at an MCP server", "src/mcp/session.c", "Opened for the first call, and again after it was lost.",
     MCP_SESSION_STATE_COUNT, mcp_session_states},
    {"The events of an MCP server", "src/mcp/stream.c", "Asked for with a GET, again after each end.",
     MCP_STREAM_STATE_COUNT, mcp_stream_states},
    {"The tools of an MCP server", "src/mcp/hub.c", "Listed at the start, after a change, and again after a failure.",
     MCP_SERVER_STATE_COUNT, mcp_server_states},
    {"An MCP server that is a program", "src/mcp/pipe.c", "Started when it is needed, with a back-off.",
     PIPE_STATE_COUNT, pipe_states},
    {"An object that is written", "src/object/put.c", "In one request, or in parts.",
     PUT_STATE_COUNT, object_put_states},
    {"A process agent",   "src/agent/process_worker.c", "One program that takes turns.",
     PROCESS_STATE_COUNT, process_states},
    {"A turn at a remote runtime", "src/agent/converse_turn.c", "One request to an agent runtime elsewhere.",
     CONVERSE_TURN_STATE_COUNT, converse_turn_states},
    {"A turn of the orchestrator", "src/orchestrator/turn.c",
     "What clients see of one agent's answer, and when it is stored.", TURN_STATE_COUNT,
     turn_states},
    {"A tool call in a turn of the orchestrator", "src/orchestrator/turn.c",
     "One that the runtime has told of; what has no result at the end has failed.",
     TURN_TOOL_STATE_COUNT, turn_tool_states},
    {"A runtime of the orchestrator's", "src/orchestrator/runtimes_child.c",
     "The program that is started for a workspace.", CHILD_RUNTIME_STATE_COUNT,
     child_runtime_states},
    {"A runtime of the orchestrator's in a cluster", "src/orchestrator/runtimes_kubernetes.c",
     "The Deployment and the Service that are made for a workspace.", KUBE_RUNTIME_STATE_COUNT,
     kube_runtime_states},
    {"A question from agent to agent", "src/orchestrator/agent_asks.c",
     "What one agent asks another through the tool send_message_to_agent.",
     AGENT_ASK_STATE_COUNT, agent_ask_states},
    {"A request through the sidecar", "src/sidecar/relay.c",
     "On its way to the agent, and its answer on the way back.", RELAY_STATE_COUNT, relay_states},
    {"An MCP program behind the sidecar", "src/sidecar/programs.c",
     "One that has ended is started and initialized again with the next request.",
     PROGRAM_STATE_COUNT, program_states},
    {"A model call",      "src/provider/remote_call.c", "One question to a vendor's API.",
     REMOTE_STATE_COUNT, remote_states},
    {"A media call",      "src/provider/media_work.c", "One question to a media provider.",
     MEDIA_STATE_COUNT,  media_states},
    {"A live model",     "src/provider/live.c", "One conversation over one WebSocket (OpenAI's Realtime API).",
     LIVE_STATE_COUNT,   live_states},
    {"A slot",           "src/loop/slots.c",   "One of so many at once; the others wait in line.",
     SLOT_STATE_COUNT,   slot_states},
    {"A judge of a stream", "src/reader/reader.c", "The client's side: what its frames say, and what its end comes to.",
     READER_STATE_COUNT, reader_states},
    {"A stream of the client library", "src/library/reading.c", "From the caller's request to the outcome.",
     READING_STATE_COUNT, reading_states},
    {"A realtime session", "src/contract/nimi/realtime/state.c", "A conversation of nimi.runtime.v1 that stays open.",
     REALTIME_STATE_COUNT, realtime_states},
    {"A download of a model", "src/contract/nimi/transfer/state.c", "By a local model server, across restarts.",
     DOWNLOAD_STATE_COUNT, download_states},
    {"An upload", "src/contract/nimi/upload/receive.c", "From its first chunk to its row in the store.",
     RECEIVE_STATE_COUNT, receive_states},
    {"A node of a workflow", "src/contract/nimi/job/workflow_graph.c", "One step of a job that is a graph.",
     NODE_STATE_COUNT, node_states},
    {"An account", "src/contract/nimi/account/states.c", "Who is logged in to the runtime.",
     ACCOUNT_STATE_COUNT, account_states},
    {"A binding of an account", "src/contract/nimi/account/states.c", "What an app may do with the account.",
     BINDING_STATE_COUNT, binding_states},
    {"The status of an agent", "src/contract/nimi/agent/life.c", "By the numbers of nimi.runtime.v1; the other states of the protocol are never reached.",
     LIFE_STATUS_COUNT, life_statuses},
    {"The execution of an agent", "src/contract/nimi/agent/life.c", "Suspended while the agent is terminated.",
     LIFE_EXECUTION_COUNT, life_executions},
    {"A call of a tool server", "src/toolserver/call.c", "One tools/call of an MCP client, from its request to its answer.",
     TOOLSERVER_CALL_STATE_COUNT, toolserver_call_states},
    {"A connection to PostgreSQL", "src/postgres/postgres.c", "Made again whenever it breaks.",
     POSTGRES_STATE_COUNT, postgres_states},
    {"The write-ahead log", "src/store/checkpoint.c", "How it is folded into the database while commits go on.",
     CHECKPOINT_STATE_COUNT, checkpoint_states},
    {"A search of a memory bank", "src/store/bank_search.c", "In steps, so that the store's other readers have their turn.",
     BANK_SEARCH_PHASE_COUNT, bank_search_phases},
    {"The export of traces", "src/exporter/exporter.c", "One request at a time, repeated after a failure.",
     EXPORTER_STATE_COUNT, exporter_states},
    {"A request to PostgreSQL", "src/postgres/postgres.c", "Statements that take effect together.",
     POSTGRES_REQUEST_STATE_COUNT, postgres_request_states},
};
/* clang-format on */

/* Where a protocol's numbers begin with 1, state 0 has no moves. */
static unsigned first_of(const struct machine *machine) {
    return machine->table[0].may_become ? 0 : 1;
}

/* An account is not known before the store was read; its numbers begin with another state. */
static unsigned start_of(const struct machine *machine) {
    return machine->table == account_states ? ACCOUNT_UNAVAILABLE : first_of(machine);
}

/* A protocol may have states that are never reached here. */
static bool is_drawn(const struct machine *machine, unsigned state) {
    return machine->table[state].name != NULL;
}

static bool is_last(const struct machine *machine, unsigned state) {
    for (unsigned next = first_of(machine); next < machine->count; next++) {
        if (states_allow(machine->table, state, next)) return false;
    }
    return true;
}

static void draw(const struct machine *machine) {
    printf("\n## %s\n\n%s The table is in `%s`.\n\n", machine->title, machine->about,
           machine->file);
    printf("```mermaid\nstateDiagram-v2\n    [*] --> " STR_FMT "\n",
           STR_ARG(states_name(machine->table, start_of(machine))));
    for (unsigned state = first_of(machine); state < machine->count; state++) {
        if (!is_drawn(machine, state)) continue;
        struct str from = states_name(machine->table, state);
        for (unsigned next = first_of(machine); next < machine->count; next++) {
            if (!states_allow(machine->table, state, next)) continue;
            struct str to = states_name(machine->table, next);
            printf("    " STR_FMT " --> " STR_FMT "\n", STR_ARG(from), STR_ARG(to));
        }
        if (is_last(machine, state)) printf("    " STR_FMT " --> [*]\n", STR_ARG(from));
    }
    printf("```\n\n| from | may become |\n|---|---|\n");
    for (unsigned state = first_of(machine); state < machine->count; state++) {
        if (!is_drawn(machine, state)) continue;
        struct str from = states_name(machine->table, state);
        printf("| " STR_FMT " |", STR_ARG(from));
        for (unsigned next = first_of(machine); next < machine->count; next++) {
            if (!states_allow(machine->table, state, next)) continue;
            printf(" " STR_FMT, STR_ARG(states_name(machine->table, next)));
        }
        printf("%s |\n", is_last(machine, state) ? " (nothing: it is over)" : "");
    }
}

int main(void) {
    printf("# State machines\n\n"
           "Written by `make docs` from the tables that the program obeys. A move that is not "
           "here is an\nassert, and a test tries every pair.\n");
    for (size_t i = 0; i < ARRAY_LEN(machines); i++) draw(&machines[i]);
    return 0;
}

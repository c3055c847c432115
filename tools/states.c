/* states: draw the state machines, from the tables that the program itself obeys.
 *
 * `make docs` writes what this prints to docs/states.md. A machine is one row below; its
 * states, their names and their moves are asked of the module that owns them.
 */
#include "agent/converse_turn.h"
#include "agent/process.h"
#include "budget/ledger.h"
#include "client/direct.h"
#include "client/grpc_call.h"
#include "client/grpc_keep.h"
#include "client/h2.h"
#include "client/link.h"
#include "client/websocket_call.h"
#include "contract/nimi/log_subscription.h"
#include "contract/nimi/memory/embedder.h"
#include "contract/nimi/realtime/state.h"
#include "contract/nimi/transfer/state.h"
#include "job/run_job.h"
#include "library/inner.h"
#include "loop/slots.h"
#include "mcp/client.h"
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
#include "server/conn.h"
#include "sidecar/programs.h"
#include "sidecar/relay.h"
#include "socketio/inner.h"
#include "stream/close.h"
#include "stream/share.h"
#include "toolserver/call.h"
#include "turn/admission.h"
#include "turn/calls.h"
#include "turn/long_reply.h"
#include "turn/run.h"

#include <stdio.h>

#define MACHINE(prefix)                                                                        \
    static bool prefix##_moves(unsigned state, unsigned next) {                                \
        return prefix##_may_become((enum prefix##_state)state, (enum prefix##_state)next);     \
    }                                                                                          \
    static struct str prefix##_name(unsigned state) {                                          \
        return prefix##_state_name((enum prefix##_state)state);                                \
    }

MACHINE(kube_runtime)
MACHINE(object_put)
MACHINE(record)
MACHINE(program)
MACHINE(relay)
MACHINE(admission)
MACHINE(turn_call)
MACHINE(long_reply)
MACHINE(ledger_wait)
MACHINE(lease)
MACHINE(run)
MACHINE(run_job)
MACHINE(close)
MACHINE(share)
MACHINE(log_subscription)
MACHINE(call)
MACHINE(answer)
MACHINE(conn)
MACHINE(peer)
MACHINE(socketio_socket)
MACHINE(direct)
MACHINE(link)
MACHINE(websocket_call)
MACHINE(h2)
MACHINE(h2_stream)
MACHINE(grpc_call)
MACHINE(grpc_keep)
MACHINE(converse_turn)
MACHINE(turn)
MACHINE(child_runtime)
MACHINE(agent_ask)
MACHINE(mcp_session)
MACHINE(mcp_stream)
MACHINE(pipe)
MACHINE(process)
MACHINE(remote)
MACHINE(media)
MACHINE(embedder)
MACHINE(live)
MACHINE(slot)
MACHINE(reader)
MACHINE(reading)
MACHINE(realtime)
MACHINE(download)
MACHINE(toolserver_call)
MACHINE(postgres)
MACHINE(postgres_request)

/* clang-format off */
static const struct machine {
    const char *title, *file, *about;
    unsigned count;
    bool (*moves)(unsigned state, unsigned next);
    struct str (*name)(unsigned state);
} machines[] = {
    {"A record",         "src/record/record.c",   "What every kept execution has: a journal, a place in the directory, an end.",
     RECORD_STATE_COUNT, record_moves, record_name},
    {"A run",            "src/record/run_state.c",      "One execution: a turn, a job.",
     RUN_STATE_COUNT,    run_moves,    run_name},
    {"A turn's admission", "src/turn/admission.c", "How a turn comes to its session; a place of its workspace comes before.",
     ADMISSION_STATE_COUNT, admission_moves, admission_name},
    {"A tool call of a turn", "src/turn/calls.c", "What a reply asks for, until it is answered.",
     TURN_CALL_STATE_COUNT, turn_call_moves, turn_call_name},
    {"The text of a long reply", "src/turn/long_reply.c", "Where it is while its caller reads slowly.",
     LONG_REPLY_STATE_COUNT, long_reply_moves, long_reply_name},
    {"A wait for a budget", "src/budget/ledger.c", "A model call that other calls leave no room for.",
     LEDGER_WAIT_STATE_COUNT, ledger_wait_moves, ledger_wait_name},
    {"A lease of a session", "src/session/lease.c", "Which turn writes a conversation, and which turns wait for it.",
     LEASE_STATE_COUNT,  lease_moves,  lease_name},
    {"A job",            "src/job/run_job.c",  "Work that needs no caller, and outlives a process.",
     RUN_JOB_STATE_COUNT, run_job_moves, run_job_name},
    {"A stream",         "src/stream/close.c", "One caller's view of a journal, and how it ends.",
     CLOSE_STATE_COUNT,  close_moves,  close_name},
    {"A reader of a run", "src/stream/share.c", "What one of a run's many readers waits for.",
     SHARE_STATE_COUNT,  share_moves,  share_name},
    {"The embedder", "src/contract/nimi/memory/embedder.c", "How the records of memory banks get their vectors.",
     EMBEDDER_STATE_COUNT, embedder_moves, embedder_name},
    {"A subscription to a log", "src/contract/nimi/log_subscription.c", "Where a subscriber of memory or agents gets its events.",
     LOG_SUBSCRIPTION_STATE_COUNT, log_subscription_moves, log_subscription_name},
    {"A gRPC call",      "src/rpc/call.c",     "From the headers to the last byte.",
     CALL_STATE_COUNT,   call_moves,   call_name},
    {"An HTTP answer",   "src/route/answer.c", "From the request line to the end of the body.",
     ANSWER_STATE_COUNT, answer_moves, answer_name},
    {"A connection",      "src/server/conn.c",  "From the first byte to the last, in any protocol.",
     CONN_STATE_COUNT,   conn_moves,   conn_name},
    {"A Socket.IO session", "src/socketio/peer.c", "What carries it: long polling, a WebSocket, or first one and then the other.",
     PEER_STATE_COUNT, peer_moves, peer_name},
    {"A socket of a namespace", "src/socketio/socket.c", "A client in one namespace, from CONNECT on.",
     SOCKET_STATE_COUNT, socketio_socket_moves, socketio_socket_name},
    {"A request to another server", "src/client/direct.c", "On connections of our own.",
     DIRECT_STATE_COUNT, direct_moves, direct_name},
    {"A connection to another server", "src/client/link.c", "For one call after the other.",
     LINK_STATE_COUNT,   link_moves,   link_name},
    {"A WebSocket to another server", "src/client/websocket_call.c", "From the handshake to the close.",
     WEBSOCKET_CALL_STATE_COUNT, websocket_call_moves, websocket_call_name},
    {"A connection of many calls", "src/client/h2.c", "To another server, over HTTP/2.",
     H2_STATE_COUNT,     h2_moves,     h2_name},
    {"A call on such a connection", "src/client/h2_session.c", "From its place on the connection to the end of the answer.",
     H2_STREAM_STATE_COUNT, h2_stream_moves, h2_stream_name},
    {"A gRPC call to another server", "src/client/grpc_call.c", "Messages to and fro, then a status.",
     GRPC_CALL_STATE_COUNT, grpc_call_moves, grpc_call_name},
    {"A gRPC call that is kept open", "src/client/grpc_keep.c", "Between two turns of a conversation.",
     GRPC_KEEP_STATE_COUNT, grpc_keep_moves, grpc_keep_name},
    {"A user's session at an MCP server", "src/mcp/session.c", "Opened for the first call, and again after it was lost.",
     MCP_SESSION_STATE_COUNT, mcp_session_moves, mcp_session_name},
    {"The events of an MCP server", "src/mcp/stream.c", "Asked for with a GET, again after each end.",
     MCP_STREAM_STATE_COUNT, mcp_stream_moves, mcp_stream_name},
    {"An MCP server that is a program", "src/mcp/pipe.c", "Started when it is needed, with a back-off.",
     PIPE_STATE_COUNT, pipe_moves, pipe_name},
    {"An object that is written", "src/object/put.c", "In one request, or in parts.",
     PUT_STATE_COUNT, object_put_moves, object_put_name},
    {"A process agent",   "src/agent/process_worker.c", "One program that takes turns.",
     PROCESS_STATE_COUNT, process_moves, process_name},
    {"A turn at a remote runtime", "src/agent/converse_turn.c", "One request to an agent runtime elsewhere.",
     CONVERSE_TURN_STATE_COUNT, converse_turn_moves, converse_turn_name},
    {"A turn of the orchestrator", "src/orchestrator/turn.c",
     "What clients see of one agent's answer, and when it is stored.", TURN_STATE_COUNT,
     turn_moves, turn_name},
    {"A runtime of the orchestrator's", "src/orchestrator/runtimes_child.c",
     "The program that is started for a workspace.", CHILD_RUNTIME_STATE_COUNT,
     child_runtime_moves, child_runtime_name},
    {"A runtime of the orchestrator's in a cluster", "src/orchestrator/runtimes_kubernetes.c",
     "The Deployment and the Service that are made for a workspace.", KUBE_RUNTIME_STATE_COUNT,
     kube_runtime_moves, kube_runtime_name},
    {"A question from agent to agent", "src/orchestrator/agent_asks.c",
     "What one agent asks another through the tool send_message_to_agent.",
     AGENT_ASK_STATE_COUNT, agent_ask_moves, agent_ask_name},
    {"A request through the sidecar", "src/sidecar/relay.c",
     "On its way to the agent, and its answer on the way back.", RELAY_STATE_COUNT, relay_moves,
     relay_name},
    {"An MCP program behind the sidecar", "src/sidecar/programs.c",
     "One that has ended is started and initialized again with the next request.",
     PROGRAM_STATE_COUNT, program_moves, program_name},
    {"A model call",      "src/provider/remote_call.c", "One question to a vendor's API.",
     REMOTE_STATE_COUNT, remote_moves, remote_name},
    {"A media call",      "src/provider/media_work.c", "One question to a media provider.",
     MEDIA_STATE_COUNT,  media_moves,  media_name},
    {"A live model",     "src/provider/live_state.c", "One conversation over one WebSocket (OpenAI's Realtime API).",
     LIVE_STATE_COUNT,   live_moves,   live_name},
    {"A slot",           "src/loop/slots.c",   "One of so many at once; the others wait in line.",
     SLOT_STATE_COUNT,   slot_moves,   slot_name},
    {"A judge of a stream", "src/reader/reader.c", "The client's side: what its frames say, and what its end comes to.",
     READER_STATE_COUNT, reader_moves, reader_name},
    {"A stream of the client library", "src/library/reading.c", "From the caller's request to the outcome.",
     READING_STATE_COUNT, reading_moves, reading_name},
    {"A realtime session", "src/contract/nimi/realtime/state.c", "A conversation of nimi.runtime.v1 that stays open.",
     REALTIME_STATE_COUNT, realtime_moves, realtime_name},
    {"A download of a model", "src/contract/nimi/transfer/state.c", "By a local model server, across restarts.",
     DOWNLOAD_STATE_COUNT, download_moves, download_name},
    {"A call of a tool server", "src/toolserver/call.c", "One tools/call of an MCP client, from its request to its answer.",
     TOOLSERVER_CALL_STATE_COUNT, toolserver_call_moves, toolserver_call_name},
    {"A connection to PostgreSQL", "src/postgres/postgres.c", "Made again whenever it breaks.",
     POSTGRES_STATE_COUNT, postgres_moves, postgres_name},
    {"A request to PostgreSQL", "src/postgres/postgres.c", "Statements that take effect together.",
     POSTGRES_REQUEST_STATE_COUNT, postgres_request_moves, postgres_request_name},
};
/* clang-format on */

static bool is_last(const struct machine *machine, unsigned state) {
    for (unsigned next = 0; next < machine->count; next++) {
        if (machine->moves(state, next)) return false;
    }
    return true;
}

static void draw(const struct machine *machine) {
    printf("\n## %s\n\n%s The table is in `%s`.\n\n", machine->title, machine->about,
           machine->file);
    printf("```mermaid\nstateDiagram-v2\n    [*] --> " STR_FMT "\n", STR_ARG(machine->name(0)));
    for (unsigned state = 0; state < machine->count; state++) {
        struct str from = machine->name(state);
        for (unsigned next = 0; next < machine->count; next++) {
            struct str to = machine->name(next);
            if (machine->moves(state, next))
                printf("    " STR_FMT " --> " STR_FMT "\n", STR_ARG(from), STR_ARG(to));
        }
        if (is_last(machine, state)) printf("    " STR_FMT " --> [*]\n", STR_ARG(from));
    }
    printf("```\n\n| from | may become |\n|---|---|\n");
    for (unsigned state = 0; state < machine->count; state++) {
        struct str from = machine->name(state);
        printf("| " STR_FMT " |", STR_ARG(from));
        for (unsigned next = 0; next < machine->count; next++) {
            struct str to = machine->name(next);
            if (machine->moves(state, next)) printf(" " STR_FMT, STR_ARG(to));
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

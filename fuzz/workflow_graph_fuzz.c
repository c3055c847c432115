/* Any SubmitWorkflowRequest (from the second byte on): it is refused with a reason, or it can be
 * run to its end, however its nodes end (by the first byte). */
#include "contract/nimi/job/workflow_graph.h"

#include <assert.h>
#include <stdint.h>

/* Take each node whose turn it is, until none is left. */
static void run(const struct workflow_graph *graph, unsigned seed) {
    struct node_view views[WORKFLOW_NODES_MAX] = {{NODE_PENDING, SKIP_NONE, 0}};
    size_t over = 0, before;
    do {
        before = over;
        for (size_t i = 0; i < graph->count; i++) {
            enum node_skip why = SKIP_NONE;
            switch (workflow_turn(graph, views, i, &why)) {
            case TURN_WAIT: continue;
            case TURN_SKIP: views[i] = (struct node_view){NODE_SKIPPED, why, 0}; break;
            case TURN_RUN:
                seed = seed * 1103515245 + 12345;
                views[i].state = seed >> 16 & 3 ? NODE_COMPLETED : NODE_FAILED;
                views[i].selected = (seed >> 18) % graph->count;
                break;
            }
            over++;
        }
    } while (over > before);
    assert(over == graph->count);
    size_t failed = workflow_failure(graph, views);
    assert(failed == SIZE_MAX || views[failed].state == NODE_FAILED);
    if (failed != SIZE_MAX) workflow_may_recover(graph, failed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str bytes = str_of((const char *)data + 1, size - 1);
    struct arena *arena = arena_new(16 * bytes.len + 4 * MIB);
    struct nimi_submit_workflow_request request;
    struct workflow_graph graph;
    struct fault fault = {.reason = 0};
    struct err e;
    if (pb_decode_view(&nimi_submit_workflow_request_table, bytes, arena, &request, &e) &&
        request.definition) {
        if (workflow_graph_read(request.definition, arena, &graph, &fault)) {
            run(&graph, data[0]);
        } else {
            assert(fault.reason && err_text(&fault.why).len);
        }
    }
    arena_free(arena);
    return 0;
}

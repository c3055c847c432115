/* options: the settings of this contract, a struct guest_options. */
#include "contract/a2a/contract.h"

#include "config/rows.h"
#include "contract/guest.h"

#define ROW_OF struct guest_options

/* clang-format off */
static const struct setting rows[] = {
    {.group = "A2A", .key = "a2a.workspace", .flag = "a2a-workspace",
     .env = {"WEIR_A2A_WORKSPACE"}, ID(workspace), .preset = "default",
     .help = "the workspace of A2A clients without a token"},
    {.key = "a2a.on_disconnect", .flag = "a2a-on-disconnect",
     .env = {"WEIR_A2A_ON_DISCONNECT"}, LEAVING(on_disconnect), .preset = "detach",
     .help = "the task of an A2A client who leaves: cancel, detach or detach-for=30s; it can "
             "come back for a task that goes on"},
};
/* clang-format on */

const struct setting_rows a2a_rows = {
    .rows = rows, .count = ARRAY_LEN(rows), .size = sizeof(struct guest_options)};

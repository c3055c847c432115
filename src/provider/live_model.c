/* What can be talked to live. */
#include "base/mem.h"
#include "provider/live_inner.h"

#include <stdlib.h>

struct live_model *live_model_new(const struct live_model_options *options) {
    struct live_model *model = MEM_NEW(struct live_model);
    model->provider = remote_provider_new(options->remote);
    model->which = options->which;
    model->voice = text_copy(options->voice);
    return model;
}

void live_model_free(struct live_model *model) {
    if (!model) return;
    provider_free(model->provider);
    text_done(&model->voice);
    free(model);
}

bool live_model_speaks(const struct live_model *model, struct str name) {
    static const struct str word = STR_INIT("realtime");
    if (!model || model->which == LIVE_NEVER) return false;
    return model->which == LIVE_ALWAYS || str_find_nocase(name, word) < name.len;
}

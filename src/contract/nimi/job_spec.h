/* job_spec: what a job asks of a model, as providers take it.
 *
 * Memory   everything lies in the arena, or in the decoded request.
 * Threads  none.
 * Source   contracts/nimi.md 1.3, 3.2 K-DAEMON-008, 6.2 "limits".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_SPEC_H
#define WEIR_CONTRACT_NIMI_JOB_SPEC_H

#include "contract/nimi/prompt.h"
#include "provider/media.h"

#define JOB_TIMEOUT_MAX_MS 300000 /* what a request may ask for */

struct job_spec {
    bool is_text; /* a provider is asked with `prompt`; else a media */
    struct prompt prompt;
    struct media_request media;
    struct str asked;  /* for whoever looks at the run later */
    uint64_t total_ms; /* an attempt may take so long */
};

/* Read what an admitted request asks of `model`. `ret` must stay where it is.
 * errors  AI_INPUT_INVALID, AI_MEDIA_SPEC_INVALID, AI_MEDIA_OPTION_UNSUPPORTED */
MUST_CHECK bool job_spec_read(const struct nimi_submit_scenario_job_request *request,
                              struct str model, struct arena *arena, struct job_spec *ret,
                              struct fault *fault);

#endif

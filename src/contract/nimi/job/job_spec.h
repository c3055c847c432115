/* job_spec: what a job asks of a model or a media interface, and how long that may take.
 *
 * Memory   everything lies in the arena, or in the decoded request.
 * Threads  none.
 * Source   contracts/nimi.md 1.3, 3.2 K-DAEMON-008, 6.2 "limits".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_SPEC_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_SPEC_H

#include "contract/nimi/admit.h"
#include "contract/nimi/prompt.h"

struct job_spec {
    bool is_text; /* true: `prompt` goes to a model; false: `media` to a media interface */
    struct prompt prompt;
    struct media_request media;
    struct str asked;  /* the input, shown when the run is viewed later */
    uint64_t total_ms; /* how long an attempt may take */
};

/* Read the spec of an admitted request. `ret` must not move afterwards.
 * errors  those of prompt_build() and media_spec.h */
MUST_CHECK bool job_spec_read(const struct nimi_submit_scenario_job_request *request,
                              const struct admission *admission, struct arena *arena,
                              struct job_spec *ret, struct fault *fault);

#endif

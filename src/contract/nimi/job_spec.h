/* job_spec: what a job asks of a model or a media, and how long that may take.
 *
 * Memory   everything lies in the arena, or in the decoded request.
 * Threads  none.
 * Source   contracts/nimi.md 1.3, 3.2 K-DAEMON-008, 6.2 "limits".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_SPEC_H
#define WEIR_CONTRACT_NIMI_JOB_SPEC_H

#include "contract/nimi/admit.h"
#include "contract/nimi/prompt.h"

#define JOB_TIMEOUT_MAX_MS 300000 /* what a request may ask for */

struct job_spec {
    bool is_text; /* a model is asked with `prompt`; else a media with `media` */
    struct prompt prompt;
    struct media_request media;
    struct str asked;  /* for whoever looks at the run later */
    uint64_t total_ms; /* an attempt may take so long */
};

/* Read what an admitted request asks. `ret` must stay where it is.
 * errors  as prompt_build() and media_spec.h */
MUST_CHECK bool job_spec_read(const struct nimi_submit_scenario_job_request *request,
                              const struct admission *admission, struct arena *arena,
                              struct job_spec *ret, struct fault *fault);

#endif

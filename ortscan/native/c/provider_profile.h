// Adds the runs of claimed loops, under their own names, to onnxruntime's profiles.
#pragma once
#include "provider_host.h"

// The runs of a provider's loops while a profiler is active. It lives as long as its provider and all its profilers.
typedef struct profile profile;

profile *profile_new(const host *h);
void profile_release(profile *p);

// Return a name for profiles that lives as long as the profile, or null. `fused`: onnxruntime's name of the node.
typedef struct profiled profiled;
const profiled *profile_name(profile *p, const char *title, const char *fused);

// Return the start time of a run, or 0 without a profiler; record the end of a run.
int64_t profile_begin(const profile *p);
void profile_end(profile *p, const profiled *what, int64_t begun);

// Make a profiler for onnxruntime 1.25 and later.
OrtStatus *profiler_new(profile *p, OrtProfiler **made);

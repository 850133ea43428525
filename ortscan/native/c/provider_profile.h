// What profiles of onnxruntime say of loops: when each of them ran, under its own name.
#pragma once
#include "provider_host.h"

// The runs of a provider's loops, while anybody profiles. It lives as long as its provider and all profilers that were made of it.
typedef struct profile profile;

profile *profile_new(const host *h);
void profile_release(profile *p);

// Return a name for profiles that lives as long as the profile, or null; `fused` is what onnxruntime calls the node.
typedef struct profiled profiled;
const profiled *profile_name(profile *p, const char *title, const char *fused);

// Return when a run begins, or 0 where nobody profiles; and say of it that it ended.
int64_t profile_begin(const profile *p);
void profile_end(profile *p, const profiled *what, int64_t begun);

// What onnxruntime calls for a profiler, as of 1.25.
OrtStatus *profiler_new(profile *p, OrtProfiler **made);

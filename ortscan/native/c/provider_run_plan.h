#pragma once
#include "provider_fused.h"

// Run the claim's plan; `fits` is false, and nothing done, where what it is given is not as the plan has it.
OrtStatus *run_plan(const compute_info *c, OrtKernelContext *context, bool *fits);

#pragma once
#include "provider_fused.h"

// Run the claim's plan. If the inputs do not fit the plan, set `fits` to false and do nothing.
OrtStatus *run_plan(const compute_info *c, OrtKernelContext *context, bool *fits);

#pragma once
#include "provider_fused.h"

// Run the claim's model.
OrtStatus *run_model(const compute_info *c, OrtKernelContext *context);

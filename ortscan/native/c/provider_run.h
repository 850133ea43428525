// Runs a claimed loop.
#pragma once
#include "provider_fused.h"

// Return the kernel that replaces the loop, or null without memory or if the fused node differs from the claim.
OrtComputeInfo *compute_info_new(claim *c, const OrtNode *fused, profile *p);
void compute_info_free(OrtComputeInfo *info);

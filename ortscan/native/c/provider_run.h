// What runs a claimed loop.
#pragma once
#include "provider_fused.h"

// Return what onnxruntime runs in the place of the loop; null where memory is out, or where the fused node is not as it was announced.
OrtComputeInfo *compute_info_new(claim *c, const OrtNode *fused, profile *p);
void compute_info_free(OrtComputeInfo *info);

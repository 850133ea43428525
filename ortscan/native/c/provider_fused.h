// The fused node that onnxruntime makes from a claimed loop.
#pragma once
#include "provider_claimed.h"
#include "provider_profile.h"

enum { NOWHERE = -1 };

// The positions of the loop's sources and results among the inputs and outputs of the fused node.
typedef struct {
  OrtComputeInfo base;
  claim *claim;
  profile *profile;
  const profiled *name;
  int32_t *sources, *results;
} compute_info;

// Return a source as an onnxruntime tensor.
OrtStatus *source_value(const compute_info *c, OrtKernelContext *context, int32_t source, const OrtValue **value);

OrtStatus *run_error(const OrtApi *api, const char *text);

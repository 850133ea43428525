// The node that onnxruntime made of a claimed loop.
#pragma once
#include "provider_claimed.h"
#include "provider_profile.h"

enum { NOWHERE = -1 };

// Where the sources and the results of the loop are among the inputs and outputs of the node that onnxruntime made of it.
typedef struct {
  OrtComputeInfo base;
  claim *claim;
  profile *profile;
  const profiled *name;
  int32_t *sources, *results;
} compute_info;

// Return a source as a tensor of onnxruntime's.
OrtStatus *source_value(const compute_info *c, OrtKernelContext *context, int32_t source, const OrtValue **value);

OrtStatus *run_error(const OrtApi *api, const char *text);

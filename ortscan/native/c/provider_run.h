// What runs a claimed loop.
#pragma once
#include "provider_claim.h"
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

// Return what onnxruntime runs in the place of the loop; null where memory is out, or where the fused node is not as it was announced.
OrtComputeInfo *compute_info_new(claim *c, const OrtNode *fused, profile *p);
void compute_info_free(OrtComputeInfo *info);

// Run the claim's plan; `fits` is false, and nothing done, where what it is given is not as the plan has it.
OrtStatus *run_plan(const compute_info *c, OrtKernelContext *context, bool *fits);

// Run the claim's model.
OrtStatus *run_model(const compute_info *c, OrtKernelContext *context);

// Return a source as a tensor of onnxruntime's.
OrtStatus *source_value(const compute_info *c, OrtKernelContext *context, int32_t source, const OrtValue **value);

OrtStatus *run_error(const OrtApi *api, const char *text);

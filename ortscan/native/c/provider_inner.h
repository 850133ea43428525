// A model that a session of its own runs within another: what stands for a loop that is more than a plan, or the loop as it was.
#pragma once
#include "provider_abi.h"

typedef struct {
  OrtEnv *env;
  OrtSession *session;
  char **inputs, **outputs; // their names, which are to be freed by nobody else
  size_t n_inputs, n_outputs;
} inner;

// Make the session, with one thread; null where onnxruntime does not, and `failed` says why, to be let go of.
inner *inner_new(const OrtApi *api, const OrtApiBase *base, const void *model, size_t count, OrtStatus **failed);
void inner_free(const OrtApi *api, inner *i);

// Run it. What it gives is to be let go of.
OrtStatus *inner_run(const OrtApi *api, const inner *i, const char *const *inputs, const OrtValue *const *values, size_t n_inputs, const char *const *outputs, size_t n_outputs, OrtValue **given);

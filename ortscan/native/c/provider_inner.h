// A session inside another session. It runs a model that replaces a loop, or the original loop.
#pragma once
#include "provider_abi.h"

typedef struct {
  OrtEnv *env;
  OrtSession *session;
  char **inputs, **outputs; // their names; freed by this file only
  size_t n_inputs, n_outputs;
} inner;

// Make the session with one thread. On an error return null and set `failed`, which the caller frees.
inner *inner_new(const OrtApi *api, const OrtApiBase *base, const void *model, size_t count, OrtStatus **failed);
void inner_free(const OrtApi *api, inner *i);

// Run the session. The caller frees the outputs.
OrtStatus *inner_run(const OrtApi *api, const inner *i, const char *const *inputs, const OrtValue *const *values, size_t n_inputs, const char *const *outputs, size_t n_outputs, OrtValue **given);

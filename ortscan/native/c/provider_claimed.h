// A loop that the provider has claimed, and its replacement.
#pragma once
#include "answer.h"
#include "provider_host.h"
#include "provider_inner.h"
#include "protobuf.h"
#include <stdatomic.h>

// An input of the loop. `held`: its data if runs do not pass it in. A constant from the answer has no name.
typedef struct {
  char *name;
  int32_t label;
  int type;
  tensor held;
  OrtValue *value; // the held tensor
} given;

typedef struct {
  char *name;
  int32_t label;
  int type;
} result;

// `loop` runs the plan. It is null if a model replaces the loop; then `inner` runs that model. With a plan, `inner` runs the original loop in
// `model`, and is made when a run does not fit the plan. `inputs` of the plan are indices of sources, `outputs` indices of results or -1.
// `copies` are results that equal sources.
typedef struct claim claim;
struct claim {
  claim *next;
  host host;
  atomic_int users;
  char *title; // shown to users
  loop *loop;
  bytes model;
  _Atomic(inner *) inner;
  given *sources;
  result *results;
  int32_t n_sources, n_results, n_copies, *inputs, *outputs;
  answer_copy *copies;
};

void claim_release(claim *c);

// Return the index of a label among the sources or the results, or -1.
int32_t source_place(const claim *c, int32_t label);
int32_t result_place(const claim *c, int32_t label);

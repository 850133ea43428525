// A loop that the provider has claimed, with what stands for it.
#pragma once
#include "answer.h"
#include "provider_host.h"
#include "provider_inner.h"
#include "protobuf.h"
#include <stdatomic.h>

// What the loop reads. `held`: what nobody hands over in a run, else without data. A constant that the answer brought has no name.
typedef struct {
  char *name;
  int32_t label;
  int type;
  tensor held;
  OrtValue *value; // of what is held
} given;

typedef struct {
  char *name;
  int32_t label;
  int type;
} result;

// `loop`, or null where `inner` stands for the loop; else that is the loop itself, out of `model`, made when a run comes that no plan fits.
// Of the plan: `inputs` are places among the sources, `outputs` among the results, or -1; `copies` are results that are sources.
typedef struct claim claim;
struct claim {
  claim *next;
  host host;
  atomic_int users;
  char *title; // for people
  loop *loop;
  bytes model;
  _Atomic(inner *) inner;
  given *sources;
  result *results;
  int32_t n_sources, n_results, n_copies, *inputs, *outputs;
  answer_copy *copies;
};

void claim_release(claim *c);

// Return the place of a label among the sources, or the results; -1 where there is none.
int32_t source_place(const claim *c, int32_t label);
int32_t result_place(const claim *c, int32_t label);

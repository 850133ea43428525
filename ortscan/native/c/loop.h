// A loop: a plan with what is kept from run to run. Safe to run from many threads at once.
#pragma once
#include "frame.h"
#include <stdatomic.h>

// A tensor as it comes in; `axes` counts the axis of steps.
typedef struct {
  void *data;
  int type;
  size_t axes;
  int64_t dims[MOST_RANK + 1];
} tensor;

enum { SPARE_FRAMES = 8 }; // as many runs at once allocate nothing

typedef struct {
  plan *plan;
  const isa *set;
  float **packs; // of constant inputs, else null
  _Atomic(frame *) spare[SPARE_FRAMES];
} loop;

// Return the loop of a plan, or null and why not. A plan without symbols is proven here; `constants` has null data where an input is not.
loop *loop_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why);
void loop_free(loop *l);

// Return a frame for a run with these inputs, and the number of steps (of a Loop the limit, any number); null and why not where they do not fit.
frame *loop_begin(loop *l, const tensor *inputs, int64_t *steps, fault *why);

// Give back the frame after the run.
void loop_end(loop *l, frame *f);

// Write the dims of an output (final states first) and return their number.
size_t dims_of_output(const frame *f, int32_t output, int64_t steps, int64_t *dims);

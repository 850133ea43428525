// A loop: a plan and the frames that runs reuse. Thread-safe.
#pragma once
#include "frame.h"
#include <stdatomic.h>

// An input tensor; `axes` includes the axis of steps.
typedef struct {
  void *data;
  int type;
  size_t axes;
  int64_t dims[MOST_RANK + 1];
} tensor;

enum { SPARE_FRAMES = 8 }; // up to this many concurrent runs allocate nothing

typedef struct {
  plan *plan;
  const isa *set;
  float **packs; // for constant inputs; null for others
  _Atomic(frame *) spare[SPARE_FRAMES];
} loop;

// Return the loop of a plan, or null and the fault. A plan without symbols is proven here. `constants` has null data for inputs that are not constant.
loop *loop_new(const void *bytes, size_t count, const tensor *constants, int32_t n_constants, fault *why);
void loop_free(loop *l);

// Return a frame for a run with these inputs and the number of steps (for a Loop the limit), or null and the fault if they do not fit.
frame *loop_begin(loop *l, const tensor *inputs, int64_t *steps, fault *why);

// Return the frame after the run.
void loop_end(loop *l, frame *f);

// Write the dims of an output (final states first) and return their number.
size_t dims_of_output(const frame *f, int32_t output, int64_t steps, int64_t *dims);

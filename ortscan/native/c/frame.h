// What one run works in: a plan's sizes for the run's dims, its tasks, its workspace. Kept for the next run.
#pragma once
#include "resolved.h"
#include "task.h"

// The data of a run. Outputs: the final states, then what is stacked. None is null.
typedef struct {
  float *const *inputs, *const *outputs;
  int64_t steps;
} run_data;

typedef struct {
  const plan *plan;
  const isa *set;
  bool ready;
  int64_t *symbols;
  resolved sizes;
  task *tasks;
  void *block;
  size_t elements; // of the block
  float *memory;   // the workspace
  float **packs;
  const float *const *shared; // packs that were made before, else null
} frame;

frame *frame_new(const plan *p, const isa *set, const float *const *shared);
void frame_free(frame *f);

// Get ready for a run with these symbols; nothing to do where the last run had the same.
bool frame_ready(frame *f, const int64_t *symbols, fault *why);

// Pack a matrix out of an input.
void pack_matrix(const float *input, const resolved *z, pack_words k, float *packed);

// Run all steps.
void frame_run(frame *f, const run_data *data);

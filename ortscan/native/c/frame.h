// What one run works in: a plan's sizes for the run's dims, its tasks, its workspace. Kept for the next run.
#pragma once
#include "micro.h"
#include "resolved.h"

// The data of a run. Outputs: the final states, then what is stacked. None is null.
typedef struct {
  void *const *inputs, *const *outputs;
  int64_t steps;
} run_data;

// What is stacked in a Loop while it is not known how many steps there will be.
typedef struct {
  void *data;
  int64_t bytes;
} stack;

// Lists of micros, and where in `micros` each begins.
typedef struct {
  void *room;
  micro *micros;
  float *spread; // what is written 16 times
  size_t n_micros, *lists;
  list_kind *kinds;
  int32_t n_lists;
} program;

typedef struct {
  const plan *plan;
  const isa *set;
  bool ready;
  int32_t failed; // the instruction of the run, counted from 1, whose index was out of range or whose divisor was zero; else 0
  int64_t *symbols;
  resolved sizes;
  task *tasks;
  program program;
  void *block;
  size_t elements; // of the block
  char *memory;    // the workspace
  float **packs;
  const float *const *shared; // packs that were made before, else null
  int64_t step_number;        // of a Loop
  stack *stacks;
} frame;

frame *frame_new(const plan *p, const isa *set, const float *const *shared);
void frame_free(frame *f);

// Get ready for a run with these symbols; nothing to do where the last run had the same.
bool frame_ready(frame *f, const int64_t *symbols, fault *why);

// Pack a matrix out of an input of floats or bytes, as floats.
void pack_matrix(const void *input, int32_t type, const resolved *z, pack_words k, float *packed);

// Free stacks that are too large to be kept for the next run.
void frame_let_go(frame *f);

// Run all steps of a Scan; false and why if an index was out of range or an integer was divided by zero.
bool frame_run(frame *f, const run_data *data, fault *why);

// The frame of a run: sizes, tasks and workspace of a plan. The next run reuses it.
#pragma once
#include "micro.h"
#include "resolved.h"

// The data of a run. Outputs: the final states, then the stacks. No address is null.
typedef struct {
  void *const *inputs, *const *outputs;
  int64_t steps;
} run_data;

// A growing stack of a Loop, whose number of steps is unknown in advance.
typedef struct {
  void *data;
  int64_t bytes;
} stack;

// A region of the workspace. `at` is aligned.
typedef struct {
  void *data;
  char *at;
  int64_t bytes;
} region;

// Lists of micros, and the index in `micros` where each list begins.
typedef struct {
  void *room;
  micro *micros;
  float *spread; // scalars repeated 16 times
  size_t n_micros, *lists;
  list_kind *kinds;
  int32_t n_lists;
} program;

typedef struct {
  const plan *plan;
  const isa *set;
  bool ready;
  bool clears; // a run sets its memory to 0 first, because it may leave some unwritten
  int32_t failed; // the instruction, counted from 1, with an index out of range or a zero divisor; 0 if none
  int64_t *symbols;
  resolved sizes;
  task *tasks;
  program program;
  region *regions;
  void *block;     // holds packs
  size_t elements; // of the block
  float **packs;
  const float *const *shared; // packs that exist already, or null
  int64_t step_number;        // of a Loop
  stack *stacks;
} frame;

frame *frame_new(const plan *p, const isa *set, const float *const *shared);
void frame_free(frame *f);

// Prepare a run with these symbols. This does nothing if the last run had the same.
bool frame_ready(frame *f, const int64_t *symbols, fault *why);

// Pack a matrix of floats or bytes as floats.
void pack_matrix(const void *input, int32_t type, const resolved *z, pack_words k, float *packed);

// Adapt to the sizes after a step. What the run has stored is kept.
bool frame_grow(frame *f, fault *why);

// Free stacks, and regions of states that grow, if they are too large to keep for the next run.
void frame_let_go(frame *f);

// Run all steps of a Scan. Return false and the fault for an index out of range or an integer division by zero.
bool frame_run(frame *f, const run_data *data, fault *why);

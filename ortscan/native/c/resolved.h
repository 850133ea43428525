// A plan's sizes for one set of symbols, and the proof that with them it stays within bounds.
#pragma once
#include "plan.h"

typedef struct {
  int64_t *sizes, *input_rows, *output_rows; // elements of one step of each input and stacked output
  int64_t *regions;                          // the bytes of the workspace before each, and at the end all
} resolved;

// Compute all sizes, each at most MOST_ELEMENTS either way; `symbols` are dims of inputs.
bool resolve(const plan *p, const int64_t *symbols, resolved *z, fault *why);

// Prove that nothing reaches outside its value, its value's storage, or the workspace.
bool within_bounds(const plan *p, const resolved *z, fault *why);
bool pack_within_bounds(const plan *p, const resolved *z, int32_t pack, fault *why);

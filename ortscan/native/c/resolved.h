// Computes a plan's sizes for a set of symbols and proves that it stays within bounds.
#pragma once
#include "plan.h"

typedef struct {
  int64_t *sizes, *input_rows, *output_rows; // elements of one step of each input and stacked output
  int64_t *new_rows;                         // elements of each state after the step
  int64_t *regions;                          // the offset of each in the workspace in bytes, then the total
} resolved;

// Compute all sizes; their absolute values are at most MOST_ELEMENTS. `symbols` are dims of inputs.
bool resolve(const plan *p, const int64_t *symbols, resolved *z, fault *why);

// Compute the dims that an instruction iterates over for an operand.
void dims_of_operand(const resolved *z, const instruction_words *w, int k, int64_t *dims);

// Prove that no access leaves its value, the value's storage or the workspace.
bool within_bounds(const plan *p, const resolved *z, fault *why);
bool pack_within_bounds(const plan *p, const resolved *z, int32_t pack, fault *why);

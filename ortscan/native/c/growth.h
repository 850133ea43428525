// States that grow: each step adds the same number of rows along one axis. In memory, this axis is the outermost.
#pragma once
#include "resolved.h"

// Return the axis along which a state grows, or -1.
static inline int32_t grown_axis(const plan *p, int32_t state) { return p->states[state].storage < GROWS ? -1 : (p->states[state].storage - GROWS) % MOST_RANK; }

// Return the number of regions that hold a state.
static inline int32_t regions_of_state(const plan *p, int32_t state) { return p->states[state].storage < GROWS_IN_TWO ? 1 : 2; }

// Return the rows that a step adds to a state.
static inline int32_t grown_rows(const plan *p, int32_t state) {
  return grown_axis(p, state) < 0 ? 0 : p->sizes[(int64_t)p->states[state].offset * (1 + p->n_symbols)];
}

// Return the position of a state in its region. A state that grows is at the start.
static inline int64_t offset_of_state(const plan *p, const int64_t *sizes, int32_t state) { return grown_axis(p, state) < 0 ? sizes[p->states[state].offset] : 0; }

static inline int32_t axis_of_symbol(symbol_words s) { return s.axis < 0 ? -1 - s.axis : s.axis; }

// Return by how much a symbol grows in a step.
int32_t growth_of_symbol(const plan *p, int32_t symbol);

// Return whether a plan has states that grow.
bool grows(const plan *p);

// Check that only what may follow the steps does: states that grow, and instructions on the workspace.
bool growth_is_valid(const plan *p, fault *why);

// Copy a state that grows between a tensor and the workspace.
void copy_grown(const plan *p, const resolved *z, int32_t state, void *to, const void *from, bool into_workspace);

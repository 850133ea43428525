// The parts of a run, for Scans and for Loops.
#pragma once
#include "frame.h"

// Pack what has to be, and copy the initial states.
void run_begin(frame *f, const run_data *d);

// Let all addresses be those of step t.
void run_place(frame *f, const run_data *d, int64_t t);

// Run so many steps from there on.
void run_steps(const frame *f, int64_t count);

// Return whether no instruction of the steps that were run failed; else say why.
bool run_went_well(const frame *f, fault *why);

// Return where a state is before step t.
const void *run_state(const frame *f, const run_data *d, int32_t state, int64_t t);

// Whether addresses are others after the first step: a state that is the row of an output is its initial value before.
bool run_first_alone(const plan *p);

// Copy the final states.
void run_finish(const frame *f, const run_data *d);

// The parts of a run that Scan and Loop share.
#pragma once
#include "frame.h"

// Pack matrices and copy the initial states.
void run_begin(frame *f, const run_data *d);

// Set all addresses for step t.
void run_place(frame *f, const run_data *d, int64_t t);

// Set rows of the stacked outputs to 0, if the plan may leave some unwritten.
void run_clear_rows(const frame *f, const run_data *d, int64_t first, int64_t count);

// Run this number of steps.
void run_steps(const frame *f, int64_t count);

// Return true if no instruction failed, otherwise false and the fault.
bool run_went_well(const frame *f, fault *why);

// Return the address of a state before step t.
const void *run_state(const frame *f, const run_data *d, int32_t state, int64_t t);

// Return whether addresses change after the first step. A state that is stored in an output is first read from its initial value.
bool run_first_alone(const plan *p);

// Copy the final states.
void run_finish(const frame *f, const run_data *d);

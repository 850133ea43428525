// Runs a Loop while its condition holds, up to its limit.
#pragma once
#include "frame.h"

// Run the Loop. Set the number of steps and the stacks, in memory of the frame, in `data`. Return false and the fault if there is no memory.
// The sizes of the frame are then those of the final states, which run_finish copies.
bool frame_run_until(frame *f, run_data *data, void **stacked, int64_t limit, fault *why);

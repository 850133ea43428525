// Runs a Loop: step after step while its condition holds, at most so many.
#pragma once
#include "frame.h"

// Run it and count its steps in `data`, whose stacked outputs are set to memory of the frame; false and why not where that ends.
bool frame_run_until(frame *f, run_data *data, void **stacked, int64_t limit, fault *why);

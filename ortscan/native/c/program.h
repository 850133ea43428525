#pragma once
#include "frame.h"

// Compile a frame's tasks into lists of micros. Addresses are set later.
bool program_make(frame *f, fault *why);
void program_free(program *x);

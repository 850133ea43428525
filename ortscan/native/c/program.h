#pragma once
#include "frame.h"

// Make the lists of micros out of a frame's tasks; addresses come later.
bool program_make(frame *f, fault *why);
void program_free(program *x);

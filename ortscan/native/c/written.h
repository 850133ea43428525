// Proves that a run reads and returns only what it has written.
#pragma once
#include "resolved.h"

// Return whether each step writes its outputs and new states completely, and each other value before it is read.
// Return false if this is not proven: the plan may be right all the same, for example if it writes by indices.
bool writes_before_reading(const plan *p, const resolved *z);

#pragma once
#include "resolved.h"
#include "task.h"

// Make the task of an instruction with proven bounds. Addresses are set later.
void make_task(const plan *p, const resolved *z, const instruction_words *w, const isa *set, task *t);

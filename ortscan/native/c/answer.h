// What stands for a loop, as a planner says it or a model holds it; LOOP_PLANS.md describes the words.
#pragma once
#include "fault.h"
#include "loop.h"

typedef enum { A_PLAN, A_MODEL } answer_kind;

// What the plan reads: a value of the loop's model by its label; or, where that is NO_LABEL, a constant.
typedef struct {
  int32_t label;
  tensor constant;
} answer_input;

typedef struct { int32_t output, source; } answer_copy; // by their labels

typedef struct {
  int32_t kind, n_inputs, n_outputs, n_copies;
  answer_input *inputs;
  int32_t *outputs; // by their labels, NO_LABEL where one is left out
  answer_copy *copies;
  const void *content; // the plan, or the model
  size_t content_count;
} answer;

// Read an answer, whose bytes are at an address of words and stay; false and why not where they are none. To be let go of by answer_free either way.
bool answer_read(const void *bytes, size_t count, answer *a, fault *why);
void answer_free(answer *a);

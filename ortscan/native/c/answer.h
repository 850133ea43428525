// A planner's answer: a plan or a model that replaces a loop. loop-plans.md describes its words.
#pragma once
#include "fault.h"
#include "loop.h"

typedef enum { A_PLAN, A_MODEL } answer_kind;

// An input of the plan: the label of a value in the loop's model, or NO_LABEL and a constant.
typedef struct {
  int32_t label;
  tensor constant;
} answer_input;

typedef struct { int32_t output, source; } answer_copy; // the labels of an output and of the value that it copies

typedef struct {
  int32_t kind, n_inputs, n_outputs, n_copies;
  answer_input *inputs;
  int32_t *outputs; // the label of each, or NO_LABEL if it is omitted
  answer_copy *copies;
  const void *content; // the plan or the model
  size_t content_count;
} answer;

// Parse an answer. The bytes must be aligned to words and outlive the answer. Return false and the fault if it is invalid. Always call answer_free.
bool answer_read(const void *bytes, size_t count, answer *a, fault *why);
void answer_free(answer *a);

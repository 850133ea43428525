// Tells onnxruntime the types and shapes of a call's outputs while a model is loaded.
#pragma once
#include "abi.h"

// Set those that the attribute `plan` says. What is wrong with the plan is said when the kernel is made.
void infer_outputs(const OrtApi *api, OrtShapeInferContext *context);

// The same of a recurrent node.
void infer_cell_outputs(const OrtApi *api, OrtShapeInferContext *context);

// Infers the types and shapes of a call's outputs while onnxruntime loads a model.
#pragma once
#include "abi.h"

// Set the types and shapes from the attribute `plan`. Errors in the plan are reported when the kernel is made.
void infer_outputs(const OrtApi *api, OrtShapeInferContext *context);

// Set the types and shapes of the outputs of a recurrent node.
void infer_cell_outputs(const OrtApi *api, OrtShapeInferContext *context);

// Writes a loop as a model, for a planner that reads ONNX.
#pragma once
#include "labels.h"
#include "protobuf.h"
#include "provider_sources.h"

// Write the model: the node, with its sources as inputs, or as initializers if they are small constants. A value is named v plus its label
// in `values`; the sources are sorted by label. Return false if the node cannot be written.
bool write_model(const OrtApi *api, const OrtGraph *graph, const OrtNode *node, sources *all, labels *values, bytes *out);

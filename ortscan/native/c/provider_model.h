// A loop as a model of its own, so that whoever knows ONNX can plan it.
#pragma once
#include "labels.h"
#include "protobuf.h"
#include "provider_sources.h"

// Write the model: the node, its sources as inputs, or as initializers where they are small constants. A value is called v and its label,
// which it gets in `values`, and the sources are put in the order of theirs. False where it cannot be written.
bool write_model(const OrtApi *api, const OrtGraph *graph, const OrtNode *node, sources *all, labels *values, bytes *out);

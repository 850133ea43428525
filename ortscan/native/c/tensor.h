// Tensors as onnxruntime hands them over.
#pragma once
#include "abi.h"
#include "loop.h"

OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, tensor *x);

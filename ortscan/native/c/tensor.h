// Tensors as onnxruntime hands them over.
#pragma once
#include "abi.h"
#include "loop.h"

// Say of which version a table of functions is: from 1.24 on it has one that shows a shape without a copy.
void know_table(const OrtApi *api, const char *version);

OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, tensor *x);

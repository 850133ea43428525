// Reads onnxruntime's tensors.
#pragma once
#include "abi.h"
#include "loop.h"

// Set the version of the table of functions. From 1.24 on it has a function that returns a shape without copying.
void know_table(const OrtApi *api, const char *version);

OrtStatus *read_tensor(const OrtApi *api, const OrtValue *value, tensor *x);

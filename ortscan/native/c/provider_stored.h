// Answers stored in the metadata of a model, which need no planner.
#pragma once
#include "protobuf.h"
#include "provider_abi.h"

// Return the stored answer for the model of a loop, which the caller frees, or null. `metadata` may be null.
char *stored_answer(const OrtApi *api, const OrtModelMetadata *metadata, const bytes *model, size_t *count);

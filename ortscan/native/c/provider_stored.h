// Answers that a model holds in its metadata, so that nobody has to be asked.
#pragma once
#include "protobuf.h"
#include "provider_abi.h"

// Return the answer for the model of a loop, to be freed, or null; `metadata` may be null.
char *stored_answer(const OrtApi *api, const OrtModelMetadata *metadata, const bytes *model, size_t *count);

#include "provider_stored.h"
#include "base64.h"
#include "provider_graph.h"
#include "sha256.h"
#include <stdlib.h>
#include <string.h>

static const char KEY[] = "ortscan.loop.";

char *stored_answer(const OrtApi *api, const OrtModelMetadata *metadata, const bytes *model, size_t *count) {
  OrtAllocator *allocator = 0;
  char key[sizeof KEY + DIGITS], *text = 0;
  *count = 0;
  if (!metadata || !went_well(api, GetAllocatorWithDefaultOptions(&allocator))) return 0;
  memcpy(key, KEY, sizeof KEY);
  sha256(model->data, model->count, key + sizeof KEY - 1);
  if (!went_well(api, ModelMetadataLookupCustomMetadataMap(metadata, allocator, key, &text)) || !text) return 0;
  const size_t length = strlen(text);
  char *copy = malloc(length + 1);
  if (copy) memcpy(copy, text, length + 1);
  went_well(api, AllocatorFree(allocator, text));
  if (!copy || base64_decode(copy, length, count)) return copy;
  *count = 0; // an empty answer is refused as invalid
  return copy;
}

// The attribute's text: a plan is bytes, and attributes of models are text.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Decode base64 with padding and nothing else in it, in place; return whether it is such, and the number of bytes.
bool base64_decode(char *text, size_t count, size_t *bytes);

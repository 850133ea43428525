// Base64, because plans are bytes and attributes of models are text.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// Decode padded base64 in place and set the number of bytes. Return false if the text is invalid.
bool base64_decode(char *text, size_t count, size_t *bytes);

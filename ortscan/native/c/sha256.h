// SHA-256 (FIPS 180-4), as hexadecimal digits.
#pragma once
#include <stddef.h>

enum { DIGITS = 64 };

// Write the digits and a final zero.
void sha256(const void *data, size_t count, char digits[DIGITS + 1]);

#include "base64.h"
#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

bool base64_decode(char *text, size_t count, size_t *bytes) {
  uint8_t of[256];
  memset(of, 0xff, sizeof of);
  for (uint8_t i = 0; i < 64; i++) of[(uint8_t)digits[i]] = i;
  if (count % 4) return false;
  size_t padding = 0, written = 0;
  while (padding < 2 && padding < count && text[count - 1 - padding] == '=') padding++;
  for (size_t i = 0; i < count; i += 4) {
    uint32_t group = 0;
    for (size_t k = i; k < i + 4; k++) {
      const uint8_t digit = k < count - padding ? of[(uint8_t)text[k]] : 0;
      if (digit > 63) return false;
      group = group << 6 | digit;
    }
    const size_t there = i + 4 == count ? 3 - padding : 3;
    if (group & ((1u << 8 * (3 - there)) - 1)) return false; // unused bits must be 0
    for (size_t k = 0; k < there; k++) text[written++] = (char)(group >> (16 - 8 * k)); // never overtakes the reader
  }
  *bytes = written;
  return true;
}

#include "sha256.h"
#include <stdint.h>
#include <string.h>

enum { BLOCK = 64, WORDS = 8, ROUNDS = 64 };

static const uint32_t ROUND[ROUNDS] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

// A round. The state words a to h are rotated by `turned`.
static inline void add_word(uint32_t s[WORDS], int turned, uint32_t word) {
#define WORD_OF(n) s[((n) - turned) & (WORDS - 1)]
  const uint32_t a = WORD_OF(0), b = WORD_OF(1), c = WORD_OF(2), e = WORD_OF(4);
  const uint32_t one = WORD_OF(7) + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & WORD_OF(5)) ^ (~e & WORD_OF(6))) + word;
  const uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
  WORD_OF(3) += one, WORD_OF(7) = one + two;
#undef WORD_OF
}

static void add_block(uint32_t state[WORDS], const uint8_t *block) {
  uint32_t w[ROUNDS], s[WORDS];
  for (int i = 0; i < 16; i++) w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < ROUNDS; i++) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
  }
  memcpy(s, state, sizeof s);
  for (int i = 0; i < ROUNDS; i += WORDS) // eight rounds rotate the words once, so no word is moved
    for (int k = 0; k < WORDS; k++) add_word(s, k, ROUND[i + k] + w[i + k]);
  for (int i = 0; i < WORDS; i++) state[i] += s[i];
}

void sha256(const void *data, size_t count, char digits[DIGITS + 1]) {
  uint32_t state[WORDS] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const uint8_t *bytes = data;
  uint8_t last[2 * BLOCK] = {0};
  const size_t whole = count / BLOCK * BLOCK, rest = count - whole, end = rest + 9 > BLOCK ? 2 * BLOCK : BLOCK;
  for (size_t at = 0; at < whole; at += BLOCK) add_block(state, bytes + at);
  if (rest) memcpy(last, bytes + whole, rest);
  last[rest] = 0x80;
  for (int i = 0; i < 8; i++) last[end - 1 - (size_t)i] = (uint8_t)((uint64_t)count * 8 >> 8 * i);
  for (size_t at = 0; at < end; at += BLOCK) add_block(state, last + at);
  for (int i = 0; i < DIGITS; i++) digits[i] = "0123456789abcdef"[state[i / 8] >> (28 - 4 * (i % 8)) & 15];
  digits[DIGITS] = 0;
}

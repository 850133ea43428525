#include "protobuf.h"
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 0, MESSAGE = 2, FOUR_BYTES = 5, LENGTH = 5 };
static const size_t MOST_BYTES = (size_t)1 << 30;

static void put(bytes *b, const void *data, size_t count) {
  if (!b->bad && count > b->room - b->count) {
    size_t room = b->room ? b->room : 4096;
    while (room - b->count < count && room < 2 * MOST_BYTES) room *= 2;
    char *larger = room - b->count < count || b->count + count > MOST_BYTES ? 0 : realloc(b->data, room);
    if (larger) b->data = larger, b->room = room;
    else b->bad = true;
  }
  if (b->bad || !count) return;
  memcpy(b->data + b->count, data, count);
  b->count += count;
}

static void put_varint(bytes *b, uint64_t number) {
  uint8_t digits[10];
  size_t n = 0;
  for (; number > 127; number >>= 7) digits[n++] = (uint8_t)(number | 128);
  digits[n++] = (uint8_t)number;
  put(b, digits, n);
}

static void put_tag(bytes *b, uint32_t field, uint32_t kind) { put_varint(b, (uint64_t)field << 3 | kind); }

void put_bytes(bytes *b, uint32_t field, const void *data, size_t count) {
  put_tag(b, field, MESSAGE);
  put_varint(b, count);
  put(b, data, count);
}

void put_text(bytes *b, uint32_t field, const char *text) { put_bytes(b, field, text ? text : "", text ? strlen(text) : 0); }

void put_number(bytes *b, uint32_t field, int64_t number) {
  put_tag(b, field, NUMBER);
  put_varint(b, (uint64_t)number);
}

void put_float(bytes *b, uint32_t field, float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  const uint8_t little[4] = {(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)};
  put_tag(b, field, FOUR_BYTES);
  put(b, little, sizeof little);
}

size_t put_begin(bytes *b, uint32_t field) {
  static const char length[LENGTH]; // filled in at the end, with a fixed number of digits
  put_tag(b, field, MESSAGE);
  put(b, length, LENGTH);
  return b->count;
}

void put_end(bytes *b, size_t where) {
  if (b->bad) return;
  const size_t count = b->count - where;
  for (size_t i = 0; i < LENGTH; i++) b->data[where - LENGTH + i] = (char)((count >> 7 * i & 127) | (i < LENGTH - 1 ? 128 : 0));
}

// Writes protocol buffers, the format of models, into bytes that grow. What goes wrong makes the bytes bad, once and for all.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  char *data;
  size_t count, room;
  bool bad;
} bytes;

void put_bytes(bytes *b, uint32_t field, const void *data, size_t count);
void put_text(bytes *b, uint32_t field, const char *text);
void put_number(bytes *b, uint32_t field, int64_t number);
void put_float(bytes *b, uint32_t field, float number);

// Begin a message within the message and return where; end it with that.
size_t put_begin(bytes *b, uint32_t field);
void put_end(bytes *b, size_t where);

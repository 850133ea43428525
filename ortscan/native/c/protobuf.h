// Writes protocol buffers, the format of models, into growing bytes. After an error the bytes stay marked as bad.
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

// Begin a nested message and return its position, which ends it.
size_t put_begin(bytes *b, uint32_t field);
void put_end(bytes *b, size_t where);

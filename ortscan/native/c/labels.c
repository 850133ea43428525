#include "labels.h"
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, MOST_LABELS = 1 << 24 };

// Return the slot of a name, or the free slot for it. The table has twice as many slots as labels.
static int32_t *slot_of(const labels *l, const char *name) {
  uint32_t hash = 2166136261u;
  for (const char *c = name; *c; c++) hash = (hash ^ (uint8_t)*c) * 16777619u;
  const uint32_t mask = 2 * (uint32_t)l->room - 1;
  int32_t *slot = l->slots + (hash & mask);
  while (*slot != NO_LABEL && strcmp(l->names[*slot], name)) slot = l->slots + (++hash & mask);
  return slot;
}

static int grow(labels *l) {
  labels more = {.count = l->count, .room = l->room ? 2 * l->room : FIRST_ROOM};
  if (more.room > MOST_LABELS) return 0;
  more.names = calloc((size_t)more.room, sizeof *more.names), more.slots = malloc(2 * (size_t)more.room * sizeof *more.slots);
  if (!more.names || !more.slots) return free(more.names), free(more.slots), 0;
  memset(more.slots, 0xFF, 2 * (size_t)more.room * sizeof *more.slots);
  for (int32_t i = 0; i < l->count; i++) more.names[i] = l->names[i], *slot_of(&more, l->names[i]) = i;
  labels_free(l);
  return *l = more, 1;
}

int32_t label_for(labels *l, const char *name) {
  if (l->count == l->room && !grow(l)) return NO_LABEL;
  int32_t *slot = slot_of(l, name);
  if (*slot == NO_LABEL) l->names[l->count] = name, *slot = l->count++;
  return *slot;
}

int32_t label_of(const labels *l, const char *name) { return l->room ? *slot_of(l, name) : NO_LABEL; }

void labels_free(labels *l) {
  free(l->names), free(l->slots);
  *l = (labels){0};
}

int32_t label_in(const char *name) {
  int32_t label = 0;
  if (*name++ != 'v' || !*name) return NO_LABEL;
  for (; *name; name++) {
    if (*name < '0' || *name > '9' || label > MOST_LABELS) return NO_LABEL;
    label = 10 * label + (*name - '0');
  }
  return label;
}

// Checks that an answer fits the loop: its inputs exist with the right types, and it computes all results.
#pragma once
#include "provider_claimed.h"
#include "provider_sources.h"

// Accept the answer, whose bytes are copied. `all`: the sources of the node. Return false and the fault if it does not fit.
bool claim_accept(claim *c, const answer *a, const sources *all, fault *why);

// Whether an answer fits the loop: everything that it names is there, of the right type, and all that the loop gives is given.
#pragma once
#include "provider_claimed.h"
#include "provider_sources.h"

// Take the answer, whose bytes need not stay; `all` are the sources of the node. False and why not where it does not fit.
bool claim_accept(claim *c, const answer *a, const sources *all, fault *why);

"""Steps of published architectures, exported from torch, made into whole loops and timed."""

"""A loop over time as one kernel that stays on the GPU: weights on the chip, a barrier instead of a launch."""

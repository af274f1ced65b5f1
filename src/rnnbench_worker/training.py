"""The optimiser of every training step: Adam as it was published, epsilon beside the corrected root.

`update = rate × m̂ / (√v̂ + epsilon)`. A framework that puts epsilon elsewhere says so in its manifest.
"""

LEARNING_RATE = 1e-3
BETA_1, BETA_2 = 0.9, 0.999
EPSILON = 1e-8

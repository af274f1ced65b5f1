"""Lasagne 0.1, which imports a module that Theano 1.0 no longer has; nothing here calls what was in it."""

import sys
import types

from theano.tensor.signal import pool

downsample = types.ModuleType("theano.tensor.signal.downsample")
downsample.max_pool_2d = pool.pool_2d
sys.modules[downsample.__name__] = downsample
sys.modules["theano.tensor.signal"].downsample = downsample

import lasagne  # noqa: E402

__all__ = ["lasagne"]

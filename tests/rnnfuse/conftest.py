"""These tests need PyTorch: tests/test_rnnfuse.py runs them in PyTorch's environment."""

import importlib.util

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)

"""What engines share that only run networks trained elsewhere: PyTorch's `stack`, and one way forward."""

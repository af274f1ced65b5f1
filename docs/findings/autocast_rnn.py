"""Under torch.autocast with bfloat16, cuDNN's recurrent layers compute in float16. Needs a GPU."""

import torch

for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
    layer = kind(128, 512, device="cuda")
    with torch.autocast("cuda", torch.bfloat16):
        outputs = layer(torch.randn(10, 16, 128, device="cuda"))[0]
        products = torch.nn.functional.linear(outputs, torch.randn(3, 512, device="cuda"))
    print(f"{kind.__name__}: outputs {outputs.dtype}, a product with them {products.dtype}")

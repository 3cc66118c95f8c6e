"""Trains a classifier of the digits with torch, and prints a digest of its weights, the rows of the last epoch and the
accuracy. Under torchrun, the gradients are averaged.

    python digits.py FOLDER-OF-tests/data [EPOCHS]"""

import hashlib
import os
import sys

import stoker
import torch
import torch.distributed as distributed

data, epochs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3
ranks = int(os.environ.get("WORLD_SIZE", "1"))
if ranks > 1:
    distributed.init_process_group("gloo")
torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)
loader = stoker.Loader(
    {"image": stoker.Field(f"{data}/digits_images.npy", transforms=[stoker.scale(1 / 16)]), "label": f"{data}/digits_labels.npy"},
    global_batch_size=64, shuffle=True, seed=1, to="torch")
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(epochs):
    right = rows = 0
    for batch in loader:
        if len(batch["label"]):
            output = model(batch["image"])
            loss = torch.nn.functional.cross_entropy(output, batch["label"])
            optimizer.zero_grad()
            loss.backward()
            right += int((output.argmax(1) == batch["label"]).sum())
            rows += len(output)
        if ranks > 1:
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad)
                parameter.grad /= ranks
        optimizer.step()
weights = b"".join(parameter.detach().numpy().tobytes() for parameter in model.parameters())
print(hashlib.sha256(weights).hexdigest(), rows, f"{right / rows:.3f}")

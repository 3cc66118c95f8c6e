"""Trains an epoch with Lightning's own launcher on two ranks, and prints each rank's number of workers and the rows
that it read.

    python ranks.py FOLDER-OF-tests/data"""

import sys

import lightning
import stoker
import torch

data = sys.argv[1]


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(64, 10)
        self.rows = []

    def train_dataloader(self):
        self.loader = stoker.Loader({"image": stoker.Field(f"{data}/digits_images.npy", dtype="float32"), "label": f"{data}/digits_labels.npy"},
                                    batch_size=64, shuffle=True, seed=1, to="torch")
        return self.loader

    def training_step(self, batch):
        self.rows += batch.indices.tolist()
        return self.net(batch["image"].flatten(1)).sum()

    def on_train_epoch_end(self):
        every = [None] * self.trainer.world_size
        torch.distributed.all_gather_object(every, (self.loader.option("plan.workers"), self.rows))
        if self.global_rank == 0:  # rank 0 prints for both, so that their lines do not mix
            for rank, (workers, rows) in enumerate(every):
                print("rows", rank, workers, *rows)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    lightning.Trainer(max_epochs=1, accelerator="cpu", strategy="ddp", devices=2, logger=False, enable_checkpointing=False,
                      enable_progress_bar=False, enable_model_summary=False).fit(Model())

"""What happened at every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby

import torch
from torch import Tensor


@dataclass
class History:
    """What happened at each step: one growing column per quantity.

    `history["accuracy"]` is a tensor (steps, P); `len(history)` counts steps. The columns of every
    run are:

    - accuracy and best: share of satisfied weight of the decoded and of the best configuration;
    - residual: largest change of a message, as a probability;
    - entropy: mean over the marginals, bits;
    - evaluations: factor evaluations so far, (steps,), by messages and searches; looks at decoded
      configurations and candidates are not counted.

    Solvers may add columns of their own. Rows stay where they were made until somebody looks: a
    column is read on the CPU.
    """

    columns: dict[str, list[Tensor]] = field(default_factory=dict)  # rows of each quantity

    def add(self, **values: Tensor | float) -> None:
        for name, value in values.items():
            row = torch.as_tensor(value, dtype=None if isinstance(value, Tensor) else torch.float64)
            self.columns.setdefault(name, []).append(row.detach())

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.columns:
            known = ", ".join(sorted(self.columns)) or "none: the run had no steps"
            raise KeyError(f"no column {name!r} in the history; columns are: {known}")
        rows = groupby(self.columns[name], key=lambda row: row.device)
        return torch.cat([torch.stack(list(alike)).cpu() for _, alike in rows])

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def names(self) -> list[str]:
        return list(self.columns)

    def to_tensors(self) -> dict[str, Tensor]:
        return {name: self[name] for name in self.columns}

    @classmethod
    def from_tensors(cls, tensors: dict[str, Tensor]) -> History:
        return cls({name: list(value.unbind(0)) for name, value in tensors.items()})

"""Per-sample gradients of a torch module, in float64 on the CPU; the only file that uses torch.

torch is imported when a gradient is first needed (`pip install zerodelta[torch]`).
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Floats


@final
@dataclass(frozen=True, slots=True)
class TorchModel:
    """A torch module and its loss, for `Study.minimize`; the label is the last column of a row.

    What is trained are those of ``module.parameters()`` that require a gradient, flattened one
    after the other. That the module treats rows one by one is `asserted`, and so is that torch
    rounds them so.

    Parameters
    ----------
    module : torch.nn.Module
        It is copied and put in evaluation mode: no dropout, and batch normalization by its public
        running statistics.
    loss : callable
        loss(output, label) of one row, such as ``torch.nn.functional.cross_entropy``.
    classes : int, optional
        If given, labels are the integers 0..classes-1, and a row with another label counts as
        nothing; otherwise labels are floats.

    """

    module: Any
    loss: Callable[[Any, Any], Any]
    classes: int | None = None
    _double: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        torch = _torch()
        if not isinstance(self.module, torch.nn.Module):
            raise ParameterError(
                "module", type(self.module), expected="a torch.nn.Module", remedy="pass one"
            )
        double = copy.deepcopy(self.module).to(device="cpu", dtype=torch.float64).eval()
        object.__setattr__(self, "_double", double)
        if not self._named():
            raise ParameterError(
                "module",
                "no parameters",
                expected="parameters that require a gradient",
                remedy="pass a module that can be trained",
            )

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return sum(size for _, size in self.layers())

    def layers(self) -> list[tuple[str, int]]:
        """Return the name and size of each tensor of parameters, in the order of the vector."""
        return [(name, tensor.numel()) for name, tensor in self._named()]

    def start(self) -> Floats:
        """Return the module's present parameters: the public start, if they are public."""
        flat = [tensor.detach().numpy().reshape(-1) for _, tensor in self._named()]
        return np.concatenate(flat).astype(np.float64)

    def load(self, theta: Floats) -> Any:
        """Return a copy of the module with these parameters, in its own precision."""
        torch = _torch()
        trained = copy.deepcopy(self.module)
        named, start = dict(trained.named_parameters()), 0
        with torch.no_grad():
            for name, size in self.layers():
                part = torch.from_numpy(np.array(theta[start : start + size]))
                named[name].copy_(part.reshape(named[name].shape))
                start += size
        return trained

    def gradient(self, theta: Floats, rows: Floats) -> Floats:
        """Return the (n, parameters) gradients of the rows; NaN for rows that do not count."""
        torch = _torch()
        values, start = {}, 0
        for name, tensor in self._named():
            part = torch.from_numpy(np.array(theta[start : start + tensor.numel()]))
            values[name] = part.reshape(tensor.shape)
            start += tensor.numel()
        fixed = {
            **dict(self._double.named_buffers()),
            **{n: p.detach() for n, p in self._double.named_parameters() if n not in values},
        }
        features, labels = torch.from_numpy(rows[:, :-1].copy()), rows[:, -1].copy()
        counted = np.isfinite(rows).all(axis=1)
        if self.classes is not None:
            counted &= (labels >= 0) & (labels < self.classes) & (labels == np.floor(labels))
        labels[~counted] = 0.0
        features[torch.from_numpy(~counted)] = 0.0
        answers = torch.from_numpy(labels)
        if self.classes is not None:
            answers = answers.long()

        def row_loss(parameters: Any, x: Any, y: Any) -> Any:
            output = torch.func.functional_call(
                self._double, ({**fixed, **parameters},), (x.unsqueeze(0),)
            )
            return self.loss(output.squeeze(0), y).sum()

        each = torch.func.vmap(torch.func.grad(row_loss), in_dims=(None, 0, 0))
        found = each(values, features, answers)
        flat = [found[name].reshape(len(rows), -1).detach().numpy() for name in values]
        gradients: Floats = np.concatenate(flat, axis=1).astype(np.float64)
        gradients[~counted] = np.nan
        return gradients

    def _named(self) -> list[tuple[str, Any]]:
        return [(n, p) for n, p in self._double.named_parameters() if p.requires_grad]


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise ParameterError(
            "torch",
            "not installed",
            expected="torch 2.1 or later",
            remedy="pip install 'zerodelta[torch]'",
        ) from error

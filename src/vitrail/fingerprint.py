"""Digests of settings, data and code, equal in any process if a run would give the same result.

Tensors, arrays and plain values are hashed by their contents. A function is hashed by its code,
defaults, closure and the globals it names; a module by its class, constants and submodules; any
other object by its class and the state that `copy` would use. Code of installed packages is hashed
by name. Values without comparable contents (an open file, a compiled function) raise an error.
"""

from __future__ import annotations

import copyreg
import dataclasses
import dis
import functools
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterable
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))
STDLIB = Path(sysconfig.get_path("stdlib")).resolve()
PACKAGES = {"site-packages", "dist-packages"}
# attributes that Python adds to a class
WRITTEN_BY_PYTHON = {
    *vars(type("Empty", (), {})),
    *("__annotations__", "__annotate__", "__annotations_cache__", "__annotate_func__"),
    *("__abstractmethods__", "_abc_impl", "__orig_bases__", "__parameters__", "__match_args__"),
    *("__dataclass_fields__", "__dataclass_params__", "__qualname__", "__slots__"),
    *("__firstlineno__", "__static_attributes__", "__classcell__"),
}
MODULE_OWN = frozenset(vars(nn.Module()))


class FingerprintError(TypeError):
    """A value has no contents that can be compared; the message names it."""


def fingerprint(*values: Any) -> str:
    """A digest of values: 64 hex digits, the same in every process.

    Args:
        values: Tensors, settings, functions, modules, and containers of them.

    Returns:
        The digest.

    Raises:
        FingerprintError: If a value has no contents that can be compared.

    Examples:
        >>> by = lambda number: lambda x: number * x
        >>> fingerprint(by(2)) == fingerprint(by(2)), fingerprint(by(2)) == fingerprint(by(3))
        (True, False)
    """
    reader = _Reader()
    try:
        reader.every(values)
    except RecursionError as error:
        raise FingerprintError("a value contains itself, or is nested too deeply") from error
    return reader.digest.hexdigest()


class _Reader:
    """Hashes values into one digest; repeated code and objects by their first occurrence."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.turns: dict[int, tuple[int, Any]] = {}  # holds the object, so that ids stay unique

    def note(self, *words: object) -> None:
        for word in words:
            text = word if isinstance(word, bytes) else str(word).encode()
            self.digest.update(len(text).to_bytes(8, "big"))
            self.digest.update(text)

    def seen(self, value: Any) -> bool:
        turn = self.turns.get(id(value))
        if turn is None:
            self.turns[id(value)] = len(self.turns), value
            return False
        self.note("seen", turn[0])
        return True

    def read(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self.note(type(value).__name__, repr(value))
        elif isinstance(value, Tensor):
            self.tensor(value)
        elif isinstance(value, np.ndarray | np.generic):
            self.array(np.asarray(value))
        elif isinstance(value, tuple | list):
            self.note(type(value).__name__, len(value))
            self.every(value)
        elif isinstance(value, dict):
            self.note("dict", len(value))
            for key in sorted(value, key=fingerprint):
                self.every((key, value[key]))
        elif isinstance(value, set | frozenset):
            self.note("set", len(value))
            self.every(sorted(map(fingerprint, value)))
        elif isinstance(value, Enum):
            self.note("enum", type(value).__qualname__, value.name)
        elif isinstance(value, ModuleType):
            self.note("package", value.__name__)
        elif isinstance(value, torch.dtype | torch.device):
            self.note("torch", str(value))
        elif type(value).__module__.startswith("vitrail.") and hasattr(value, "fingerprint"):
            self.note(type(value).__qualname__, value.fingerprint)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self.read(type(value))
            self.every(getattr(value, field.name) for field in dataclasses.fields(value))
        elif not self.seen(value):
            self.code_or_object(value)

    def every(self, values: Iterable[Any]) -> None:
        for value in values:
            self.read(value)

    def code_or_object(self, value: Any) -> None:
        if isinstance(value, nn.Module):
            self.module(value)
        elif isinstance(value, type):
            self.type(value)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, MethodType):
            self.every((value.__self__, value.__func__))
        elif isinstance(value, functools.partial):
            self.every((value.func, value.args, value.keywords))
        elif isinstance(value, property):
            self.every((value.fget, value.fset))
        elif isinstance(value, staticmethod | classmethod):
            self.read(value.__func__)
        elif isinstance(value, functools.cached_property):
            self.read(value.func)
        elif inspect.isfunction(inspect.unwrap(value)):  # lru_cache and its like
            self.read(inspect.unwrap(value))
        elif isinstance(value, BuiltinFunctionType) and value.__self__ is not None:
            self.note("of", value.__name__)
            self.read(value.__self__)
        else:
            self.object(value)

    def tensor(self, value: Tensor) -> None:
        self.note("tensor", value.dtype, tuple(value.shape))
        whole = value if value.layout == torch.strided else value.to_dense()
        flat = whole.detach().cpu().contiguous().view(-1)
        self.note(flat.view(torch.uint8).numpy().tobytes())

    def array(self, value: np.ndarray) -> None:
        self.note("array", value.dtype.str, value.shape)
        if value.dtype.hasobject:
            self.every(value.ravel().tolist())
        else:
            self.note(np.ascontiguousarray(value).tobytes())

    def function(self, value: FunctionType) -> None:
        self.note("function", value.__module__ if _installed(value) else "")
        self.every((value.__defaults__, value.__kwdefaults__, value.__dict__))
        for cell in value.__closure__ or ():
            try:
                self.read(cell.cell_contents)
            except ValueError:  # not yet filled
                self.note("empty")
        if _installed(value):
            self.note(value.__qualname__)
            return
        self.code(value.__code__)
        names, attributes = _named(value.__code__)
        for name in sorted(names & value.__globals__.keys()):
            self.note(name)
            found = value.__globals__[name]
            self.read(found)
            if isinstance(found, ModuleType) and not _installed(found):
                self.every(vars(found)[part] for part in sorted(attributes & vars(found).keys()))

    def code(self, code: CodeType) -> None:
        self.note("code", code.co_code, code.co_argcount, code.co_kwonlyargcount, code.co_flags)
        self.every((code.co_names, code.co_freevars, code.co_cellvars))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self.code(constant)
            else:
                self.read(constant)

    def type(self, value: type) -> None:
        self.note("class", value.__module__, value.__qualname__)
        if _installed(value):
            return
        self.every(value.__bases__)
        for name, part in sorted(vars(value).items()):
            # methods generated by dataclasses follow from the fields
            written = name.startswith("__") and dataclasses.is_dataclass(value)
            generated = getattr(getattr(part, "__code__", None), "co_filename", "") == "<string>"
            if name not in WRITTEN_BY_PYTHON and not (written and generated):
                self.note(name)
                self.read(part)

    def module(self, value: nn.Module) -> None:
        self.read(type(value))
        self.note(value.training)
        for name, part in [*value._parameters.items(), *value._buffers.items()]:
            self.note(name)
            self.read(part)
        own = {name: part for name, part in vars(value).items() if name not in MODULE_OWN}
        hooks = [*value._forward_hooks.values(), *value._forward_pre_hooks.values()]
        self.every((own, hooks))
        for name, part in value._modules.items():
            self.note(name)
            if part is not None:
                self.module(part)

    def object(self, value: Any) -> None:
        """Hash an object by the state that copy and pickle use."""
        reduce = copyreg.dispatch_table.get(type(value))
        try:
            made = value.__reduce_ex__(4) if reduce is None else reduce(value)
        except (TypeError, AttributeError, NotImplementedError) as error:
            raise _unknown(value) from error
        if isinstance(made, str):  # found by its name, if the name finds it
            home = getattr(value, "__module__", None) or type(value).__module__
            found: Any = sys.modules.get(home)
            for part in made.split("."):
                found = getattr(found, part, None)
            if found is not value:
                raise _unknown(value)
            self.note("named", home, made)
        else:
            make, given, *rest = made
            state, items, pairs, *_ = (*rest, None, None, None)
            self.every((make, given, state, list(items or ()), list(pairs or ())))


def _named(code: CodeType) -> tuple[set[str], set[str]]:
    """Names of globals and attributes used by code and by functions nested in it."""
    names, attributes = set(), set()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
        elif step.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
            attributes.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = _named(constant)
            names, attributes = names | inner[0], attributes | inner[1]
    return names, attributes


def _installed(value: Any) -> bool:
    """Whether code belongs to vitrail, Python or a package, so that its name identifies it."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if name is None or name == "__main__":
        return False
    root = name.partition(".")[0]
    if root == "vitrail":
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return root in sys.stdlib_module_names
    place = Path(file).resolve()
    return place.is_relative_to(STDLIB) or not PACKAGES.isdisjoint(place.parts)


def _unknown(value: Any) -> FingerprintError:
    kind = type(value)
    name = getattr(value, "__qualname__", None) or kind.__qualname__
    return FingerprintError(
        f"{name} ({kind.__module__}.{kind.__qualname__}) has no contents that can be compared with "
        "those of a later run"
    )

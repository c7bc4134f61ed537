"""For the reference: the comment after a field or a constant is its description.

    best: Tensor  # (V,) bool

A class whose docstring has no attributes gets a table of its fields, and a constant of a module
gets its comment as a docstring. `mkdocs.yml` names this file as an extension of Griffe.
"""

from __future__ import annotations

import io
import tokenize
from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Reads the comments of each module once it is loaded."""

    def on_module(self, *, mod: griffe.Module, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Describe what the module and its classes hold."""
        if isinstance(mod.filepath, list) or mod.filepath.suffix != ".py":
            return
        comments = comments_by_line(mod.filepath.read_text())
        for member in mod.members.values():
            if isinstance(member, griffe.Class):
                describe_fields(member, comments)
            elif isinstance(member, griffe.Attribute) and member.docstring is None:
                comment = comments.get(member.endlineno or 0)
                if comment:
                    member.docstring = griffe.Docstring(comment, parent=member)


def describe_fields(cls: griffe.Class, comments: dict[int, str]) -> None:
    """Add the commented fields to the class's docstring, unless it describes fields itself."""
    if cls.docstring is None or "\nAttributes:\n" in cls.docstring.value:
        return
    lines = [
        f"    {name}: {comments[field.endlineno]}"
        for name, field in cls.members.items()
        if isinstance(field, griffe.Attribute)
        and field.docstring is None
        and field.endlineno in comments
        and "property" not in field.labels
    ]
    if lines:
        cls.docstring.value += "\n\nAttributes:\n" + "\n".join(lines)


def comments_by_line(source: str) -> dict[int, str]:
    """The comment that ends each line of code, by the line's number."""
    lines = source.splitlines()
    return {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip() != token.string
    }

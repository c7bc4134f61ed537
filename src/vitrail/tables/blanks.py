"""Blanks around text: one definition for readers, encoders, labels and exported code."""

from __future__ import annotations

BLANKS = " \t"  # ASCII space and tab; line ends are the reader's business, other spaces are text


def stripped(text: str) -> str:
    """The text without blanks around it."""
    return text.strip(BLANKS)

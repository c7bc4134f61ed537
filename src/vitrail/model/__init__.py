"""Trained models: one network or many that answer together, their files, their predictions."""

from vitrail.model.files import load_model, model_from_bytes
from vitrail.model.model import (
    Abstention,
    Answers,
    Model,
    ModelError,
    as_inputs,
    outputs_of,
    thresholds_of,
    transferred,
)

__all__ = [
    "Abstention",
    "Answers",
    "Model",
    "ModelError",
    "as_inputs",
    "load_model",
    "model_from_bytes",
    "outputs_of",
    "thresholds_of",
    "transferred",
]

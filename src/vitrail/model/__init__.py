"""Trained models: one network or many that answer together, their files, their predictions."""

from vitrail.model.files import load_model, model_from_bytes
from vitrail.model.model import Abstention, Answers, Model, ModelError

__all__ = [
    "Abstention",
    "Answers",
    "Model",
    "ModelError",
    "load_model",
    "model_from_bytes",
]

"""Trained models: one network or a committee, their files and predictions."""

from vitrail.model.explanation import Curve, Explanation, Interaction, explain
from vitrail.model.files import load_model, model_from_bytes
from vitrail.model.model import Abstention, Answers, Model, ModelError

__all__ = [
    "Abstention",
    "Answers",
    "Curve",
    "Explanation",
    "Interaction",
    "Model",
    "ModelError",
    "explain",
    "load_model",
    "model_from_bytes",
]

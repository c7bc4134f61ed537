"""What exports cannot do."""


class ExportError(ValueError):
    """A model cannot be exported as asked; the message says why and what to do."""

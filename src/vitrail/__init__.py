"""vitrail trains networks whose weights are bits, by message passing instead of gradients."""

__version__ = "0.1.0"

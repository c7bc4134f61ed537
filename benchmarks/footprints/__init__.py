"""The parts of benchmarks/footprint.py."""

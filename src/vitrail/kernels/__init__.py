"""Compiled twins of updates and of searches, one folder a machine; imported when used."""

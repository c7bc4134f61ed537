"""Compiled updates and searches, one folder per device; imported when used."""

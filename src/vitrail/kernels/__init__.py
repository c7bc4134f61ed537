"""Fast twins of updates and the compiled loops of baselines; imported when used."""

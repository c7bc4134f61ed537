"""One file per figure of the paper, and the report."""

"""Any run of the command ends with a result or a sentence: no traceback, no abort, no constant."""

import random

import pytest
from fuzz.commands import faults_of
from fuzz.seeds import fresh_seeds

LONG = 50


@pytest.mark.long
def test_runs_of_the_command_end_well(tmp_path):
    for number in fresh_seeds(LONG):
        folder = tmp_path / str(number)
        folder.mkdir()
        found, story = faults_of(number, random.Random(f"command {number}"), folder)
        assert not found, (number, found, story)

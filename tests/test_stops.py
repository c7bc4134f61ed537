"""Every command is stopped as docs/reliability.md says, whenever the stop comes."""

import os
import random
import signal
from collections.abc import Iterator

import pytest
from stops import CASES, Stopper, stopper, units

SHORT, LONG = 1, 12  # moments of each command and signal
LATEST = 30.0  # seconds; far above what it takes, because tests share a busy machine
FEW = ("fit best", "fit posterior", "capacity", "reproduce", "compare", "predict")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopper]:
    with stopper(tmp_path_factory.mktemp("stops")) as made:
        yield made


def hold(commands: Stopper, name: str, number: int, moments: int, seed: int) -> None:
    rng = random.Random(f"{name} {number} {seed}")
    for moment in range(moments):
        place = commands.folder / f"{name} {number} {moment}"
        trial = commands.try_stop(name, number, rng, place)
        assert trial.seconds < LATEST, trial


@pytest.mark.parametrize("name", FEW)
def test_a_command_keeps_to_the_policy_at_a_few_moments(commands: Stopper, name: str):
    for number in SIGNALS[: 1 + (name == "capacity")]:
        hold(commands, name, number, SHORT, 0)


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("name", CASES)
def test_a_command_keeps_to_the_policy_at_many_moments(commands: Stopper, name: str, number: int):
    seed = int(os.environ.get("FUZZ_SEED", random.randrange(10**6)))
    print(f"FUZZ_SEED={seed}")  # noqa: T201 (to run the same again)
    hold(commands, name, number, LONG, seed)


@pytest.mark.parametrize("name", ["capacity", "reproduce"])
def test_a_sweep_goes_on_after_stops_and_ends_with_the_numbers_of_one_run(
    commands: Stopper, name: str
):
    place, rng = commands.folder / f"again {name}", random.Random(name)
    for number in (signal.SIGINT, signal.SIGTERM):
        commands.try_stop(name, number, rng, place)
    assert commands.run(name, place).code == 0
    assert units(place) == units(commands.undisturbed(name))

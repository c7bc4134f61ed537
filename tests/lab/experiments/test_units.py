"""Units of work are computed once, kept, and come back in order."""

import json
import math
import os
import signal

import pytest

from vitrail.lab.experiments.methods import SBP
from vitrail.lab.experiments.units import Unit, compute, plain


def square(number: int, trace: str) -> list:
    with open(trace, "a", encoding="utf-8") as file:
        file.write(f"{number} {os.getpid()}\n")
    return [{"number": number, "square": number * number}]


def fails(number: int, trace: str) -> list:
    raise RuntimeError("this unit should have been read from disk")


def dies(number: int, trace: str) -> list:
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"number": number}]


def some(tmp_path, function=square, count=5):
    trace = str(tmp_path / "trace")
    return [Unit(function, {"number": n, "trace": trace}) for n in range(count)]


def lines(tmp_path):
    return (tmp_path / "trace").read_text().splitlines()


def test_rows_come_in_the_order_of_the_units(tmp_path):
    done = compute(some(tmp_path), tmp_path / "kept", jobs=1)
    assert [part.rows[0]["square"] for part in done] == [0, 1, 4, 9, 16]


def test_what_is_kept_is_not_computed_again(tmp_path):
    first = compute(some(tmp_path), tmp_path / "kept", jobs=1)
    reported = []
    again = compute(some(tmp_path), tmp_path / "kept", jobs=1, progress=reported.append)
    assert len(lines(tmp_path)) == 5
    assert [part.rows for part in again] == [part.rows for part in first]
    assert len(reported) == 5


def test_a_stopped_sweep_goes_on_where_it_was(tmp_path):
    units = some(tmp_path)

    def stop(done):
        if done.unit.settings["number"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute(units, tmp_path / "kept", jobs=1, progress=stop)
    compute(units, tmp_path / "kept", jobs=1)
    assert sorted(line.split()[0] for line in lines(tmp_path)) == ["0", "1", "2", "3", "4"]


def test_a_damaged_file_is_computed_again(tmp_path):
    units = some(tmp_path, count=1)
    compute(units, tmp_path / "kept", jobs=1)
    (tmp_path / "kept" / f"{units[0].key()}.json").write_text('{"rows": [')
    done = compute(units, tmp_path / "kept", jobs=1)
    assert done[0].rows == [{"number": 0, "square": 0}]


def test_a_killed_process_is_told_in_a_sentence(tmp_path):
    with pytest.raises(ChildProcessError, match="ended from outside"):
        compute(some(tmp_path, dies, 3), tmp_path / "kept", jobs=2)


def test_the_key_follows_the_settings_and_the_function(tmp_path):
    one, same = some(tmp_path, count=1)[0], some(tmp_path, count=1)[0]
    other, elsewhere = some(tmp_path, count=2)[1], some(tmp_path, fails, 1)[0]
    assert one.key() == same.key()
    assert len({one.key(), other.key(), elsewhere.key()}) == 3


def test_settings_become_plain_json():
    value = plain({"method": SBP(beta=math.inf), "sizes": (1, 2)})
    assert value["method"]["beta"] == "inf"
    assert json.loads(json.dumps(value)) == value

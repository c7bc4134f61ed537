"""Model files: the same model comes back, nothing else ever does."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load
from torch import Tensor, nn

from vitrail import BinaryNetClassifier
from vitrail.model import Model, ModelError, load_model, model_from_bytes
from vitrail.model.files import checksum, spelled
from vitrail.model.model import thresholds_of, transferred
from vitrail.model.voting import ONE, class_probabilities, class_scores
from vitrail.nn import BinaryLinear, Sign

RNG = np.random.default_rng(0)
ROWS = 60
COLOURS = RNG.choice(["red", "green", "blue"], ROWS)
SIZES = RNG.normal(size=ROWS).round(3)
TABLE = {"colour": COLOURS, "size": SIZES}
TWO = np.where((COLOURS == "red") | (SIZES > 0.5), "001", "yes, é\n")
THREE = np.where(COLOURS == "red", 2, np.where(SIZES > 0, 0, 1))
BITS = RNG.integers(0, 2, (ROWS, 9))


def trained(labels=TWO, rows=None, **settings_) -> Model:

    usual = {"random_state": 0, "predictor": "best", "epochs": 3, "hidden": (), "polish": 1}
    usual["solver"] = "messages"
    net = BinaryNetClassifier(**{**usual, **settings_})
    return net.fit(pd.DataFrame(TABLE) if rows is None else rows, labels).model_


def drawn(labels) -> Model:
    """A model of the default predictor, small."""
    net = BinaryNetClassifier(hidden=(3,), predictor="auto", networks=6, random_state=0)
    return net.fit(pd.DataFrame(TABLE), labels).model_


CASES = {
    "table": lambda: trained(),
    "hidden": lambda: trained(hidden=(3,)),
    "posterior": lambda: trained(predictor="posterior", networks=7),
    "pairs": lambda: trained(THREE, multiclass="ovo"),
    "argmax": lambda: trained(THREE, multiclass="argmax", hidden=(5,)),
    "rest": lambda: drawn(THREE),
    "bits": lambda: trained(BITS[:, 0] ^ BITS[:, 1], rows=BITS, hidden=(3,)),
}


@cache
def made(case: str) -> Model:
    return CASES[case]()


def rows_for(model: Model):
    return TABLE if "colour" in model.encoder.bit_names[0] else BITS


@pytest.mark.parametrize("case", CASES)
def test_a_saved_model_comes_back_the_same(case, tmp_path):
    model = made(case)
    path = tmp_path / "model.safetensors"
    model.save(path)
    again = load_model(path)
    for name in ("best", "marginals", "networks", "votes", "calibration"):
        assert torch.equal(getattr(model, name), getattr(again, name)), name
    assert again.encoder == model.encoder
    assert again.labels == model.labels
    assert again.program == model.program
    assert (again.bias, again.coding) == (model.bias, model.coding)
    assert (again.clip, again.thresholds) == (model.clip, model.thresholds)
    rows = rows_for(model)
    assert np.array_equal(again.probabilities(rows), model.probabilities(rows))
    assert again.predict(rows).tolist() == model.predict(rows).tolist()
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.mark.parametrize("case", CASES)
def test_probabilities_add_up_and_lead_to_the_prediction(case):
    model = made(case)
    rows = rows_for(model)
    probabilities = model.probabilities(rows)
    assert probabilities.shape == (ROWS, model.num_classes)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-12)
    assert model.labels.decode(probabilities.argmax(1)).tolist() == model.predict(rows).tolist()


def test_another_process_predicts_the_same(tmp_path):
    model = trained(hidden=(3,), predictor="posterior", networks=9)
    model.save(tmp_path / "model.safetensors")
    np.savez(tmp_path / "rows.npz", colour=COLOURS, size=SIZES)
    script = """
import sys, numpy as np
from vitrail.model import load_model
model = load_model(sys.argv[1])
with np.load(sys.argv[2]) as rows:
    table = {"colour": rows["colour"], "size": rows["size"]}
np.save(sys.argv[3], model.probabilities(table))
"""
    arguments = [str(tmp_path / name) for name in ("model.safetensors", "rows.npz", "out.npy")]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)
    assert np.array_equal(np.load(tmp_path / "out.npy"), model.probabilities(TABLE))


def test_equal_training_gives_equal_tensors_and_only_the_record_differs():
    first, again = (load(CASES["posterior"]().to_bytes()) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    other = load(trained(predictor="posterior", networks=8).to_bytes())
    assert first["networks"].shape != other["networks"].shape


def test_labels_are_written_back_verbatim():
    assert set(trained().predict(TABLE).tolist()) <= {"001", "yes, é\n"}


class Own(nn.Module):
    """Layers of vitrail in own code, with a constant that is no bit."""

    def __init__(self, shift: float = 0.0) -> None:
        super().__init__()
        self.layer = BinaryLinear(9, 3)
        self.last = BinaryLinear(3, 1)
        self.register_buffer("shift", torch.full((3,), shift))

    def forward(self, x):
        hidden = self.layer(x) + self.shift
        return self.last(torch.where(hidden > 0, 1.0, -1.0))


def test_a_net_of_ones_own_needs_its_module_again_and_gets_its_constants_back(tmp_path):
    path = tmp_path / "own.safetensors"
    model = trained(BITS[:, 0], rows=BITS, module=Own(2.0))
    model.save(path)
    with pytest.raises(ModelError, match="pass the module again"):
        load_model(path)
    with pytest.raises(ModelError, match="not the one the model was trained with"):
        load_model(path, module=BinaryLinear(9, 1))
    again = load_model(path, module=Own())
    assert np.array_equal(again.probabilities(BITS), model.probabilities(BITS))


def test_a_module_of_known_layers_is_saved_with_them(tmp_path):
    module = nn.Sequential(BinaryLinear(9, 3), Sign(), BinaryLinear(3, 1))
    model = trained(BITS[:, 0], rows=BITS, module=module)
    model.save(tmp_path / "own.safetensors")
    again = load_model(tmp_path / "own.safetensors")
    assert np.array_equal(again.probabilities(BITS), model.probabilities(BITS))


def test_probabilities_are_whole_numbers_that_add_up():
    for case in ("posterior", "pairs", "argmax", "rest"):
        model = made(case)
        answers = model.answers(rows_for(model))
        assert (answers.probabilities.sum(1) == ONE).all()
        assert torch.equal(answers.probabilities.argmax(1), answers.numbers)
        assert ((answers.against >= 0) & (answers.against <= ONE)).all()


def plain_answer(model: Model, row: Tensor) -> tuple[int, list[int]]:
    """The rule in plain Python, for one row, as other languages write it."""
    classes, clip = model.num_classes, model.clip
    nets = []  # of each net: what it gives for class 1, or for each class
    for net in range(len(model.best)):
        outputs = []
        for network in model.networks[:, net]:
            h = model.program.evaluate(network[None, None], row[None, None].float())
            outputs.append([int(value) for value in h.flatten()])
        votes = [int(vote) for vote in model.votes[:, net]]
        per_output = []
        for c in range(len(outputs[0])):
            s = 0
            for vote, h in zip(votes, outputs, strict=True):
                rivals = [h[c] + (c < r) - h[r] for r in range(len(h)) if r != c]
                m = max(-clip, min(clip, 2 * (min(rivals) if rivals else h[0]) - 1))
                s += vote * m
            most = clip * sum(votes)
            per_output.append(int(model.calibration[net][(s + most) * 256 // (2 * most)]))
        nets.append(per_output)
    if model.scheme == "pairs":
        score = [0] * classes
        for (low, high), (q,) in zip(combinations(range(classes), 2), nets, strict=True):
            score[low] += 2**30 // max(64, 65535 - q)
            score[high] += 2**30 // max(64, q)
        score = [2**30 // (cost - 2**14 * (classes - 2)) for cost in score]
    elif model.scheme == "one-vs-rest":
        score = [q for (q,) in nets]
    else:
        score = [65535 - nets[0][0], nets[0][0]] if classes == 2 else nets[0]
    answer = score.index(max(score))
    probabilities = [part * 65535 // sum(score) for part in score]
    probabilities[answer] += 65535 - sum(probabilities)
    return answer, probabilities


@pytest.mark.parametrize("case", ["hidden", "posterior", "pairs", "argmax", "rest"])
def test_the_rule_in_plain_python_gives_the_same_whole_numbers(case):
    model = made(case)
    weighted = replace(
        model, votes=1 + torch.arange(model.votes.numel()).reshape(model.votes.shape)
    )
    for one in (model, weighted, replace(weighted, clip=1), replace(weighted, clip=1001)):
        inputs = one.inputs(rows_for(one))[:12]
        found = one.answers_of(inputs)
        for row, number, probabilities in zip(
            inputs, found.numbers, found.probabilities, strict=True
        ):
            assert plain_answer(one, row) == (int(number), probabilities.tolist())


@pytest.mark.parametrize("classes", [3, 10, 40])
def test_pairs_that_agree_give_the_probabilities_that_they_come_from(classes):
    """Shares of all wins would be at most 2/C."""
    for seed in range(5):
        true = torch.from_numpy(np.random.default_rng(seed).dirichlet(np.full(classes, 0.2)))
        true = true.clamp(min=1e-3) / true.clamp(min=1e-3).sum()
        low, high = torch.tensor([*combinations(range(classes), 2)]).T
        q = (ONE * true[high] / (true[low] + true[high])).round().to(torch.int64)
        found = class_probabilities(class_scores(q[None, :, None], classes, "pairs"))
        assert found.sum() == ONE
        torch.testing.assert_close(found[0] / ONE, true, atol=2e-3, rtol=0, check_dtype=False)


def test_one_network_is_certain_and_many_may_disagree():
    assert (made("hidden").uncertainty(TABLE) == 0).all()
    labels = RNG.integers(0, 2, ROWS)
    many = trained(labels, predictor="posterior", networks=20, beta=1.0, hidden=(3,))
    divided = many.uncertainty(TABLE)
    assert divided.max() > 0.1
    assert divided.min() < 0.1


def with_thresholds(thresholds: tuple[int, ...]) -> Model:
    return replace(made("table"), thresholds=thresholds)


def test_ties_are_left_out_together_and_never_above_the_rate_asked_for():
    confidence = torch.tensor([400] * 17 + [500] * 18 + [600] * 65)
    model = with_thresholds(thresholds_of(confidence))
    for rate, share in ((0.0, 0.0), (0.16, 0.0), (0.17, 0.17), (0.3, 0.17), (0.345, 0.17),
                        (0.35, 0.35), (0.99, 0.35)):  # fmt: skip
        found = model.abstention(rate)
        assert found.rate == share
        assert float((confidence < found.threshold).double().mean()) == pytest.approx(share)


@given(st.lists(st.integers(1, ONE), min_size=100, max_size=130), st.integers(0, 99))
def test_thresholds_are_the_largest_within_the_rate(values, percent):
    confidence = torch.tensor(values)
    found = with_thresholds(thresholds_of(confidence)).abstention(percent / 100)
    left_out = sum(value < found.threshold for value in values)
    assert 100 * left_out <= percent * len(values)
    assert left_out / len(values) <= found.rate <= left_out / len(values) + 0.01
    further = sorted(value for value in values if value > found.threshold)
    if further:
        assert 100 * sum(value < further[0] for value in values) > percent * len(values)


def test_rows_that_repeat_count_as_often():
    confidence, rows = torch.tensor([9, 7, 8]), torch.tensor([30.0, 50.0, 40.0])
    repeated = confidence.repeat_interleave(rows.long())
    assert thresholds_of(confidence, rows) == thresholds_of(repeated)


def test_too_few_rows_held_out_promise_nothing():
    assert thresholds_of(torch.arange(99)) == ()
    assert len(thresholds_of(torch.arange(100))) == 101
    for model in (trained(), trained(predictor="posterior", networks=10)):
        with pytest.raises(ValueError, match="fewer than 100 rows held out"):
            model.abstention(0.1)
    with pytest.raises(ValueError, match="from 0 to below 1"):
        with_thresholds(thresholds_of(torch.arange(100))).abstention(1.0)


def test_thresholds_of_another_model_leave_out_as_many_rows():
    before = torch.arange(1000, 2000)
    after = 3 * before.flip(0) + 7
    moved = transferred(thresholds_of(before), before, after)
    for percent, threshold in enumerate(moved[:100]):
        assert int((after < threshold).sum()) == 10 * percent
    assert transferred((), before, after) == ()


def test_a_hundred_networks_of_three_thousand_bits_fit_into_fifty_kilobytes():
    rows = RNG.integers(0, 2, (40, 147))
    net = BinaryNetClassifier(hidden=(20,), solver="chains", networks=100, random_state=0)
    model = net.fit(rows, rows[:, 0]).model_
    assert model.networks.shape[0] == 100
    assert model.bits > 3000
    assert len(model.to_bytes()) <= 50_000


SOUND = trained().to_bytes()


def edited(change) -> bytes:
    """A model's file with its description or tensors changed, and a checksum that fits."""
    content = SOUND
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    metadata, tensors = header["__metadata__"], load(content)
    state = json.loads(metadata["model"])
    change(metadata, state, tensors)
    metadata["model"] = json.dumps(state)
    del metadata["checksum"]
    metadata["checksum"] = checksum(tensors, metadata)
    return spelled(tensors, metadata)


def test_a_net_beyond_its_file_is_refused_at_once():
    content = edited(lambda m, s, t: s["program"].update(nodes=[{}] * 200_000))
    begun = time.process_time()
    with pytest.raises(ModelError, match="200000 layers, at most"):
        model_from_bytes(content, "file")
    assert time.process_time() - begun < 5


FAULTS = {
    "no vitrail model": lambda m, s, t: m.update(format="other"),
    "model format 99": lambda m, s, t: m.update(version="99"),
    "model format 1, this vitrail reads format 2": lambda m, s, t: m.update(version="1"),
    "unknown kind 'pickle'": lambda m, s, t: s.update(encoder_kind="pickle"),
    "other inputs than its net": lambda m, s, t: s.update(bias=7),
    "another net than it was": lambda m, s, t: s["program"].update(fingerprint="0" * 64),
    "unknown coding": lambda m, s, t: s.update(coding="ternary"),
    "lacks the field 'labels'": lambda m, s, t: s.pop("labels"),
    "unknown field 'more'": lambda m, s, t: s.update(more=1),
    "whole number": lambda m, s, t: s.update(bias=1e30),
    "'clip' is not a whole number": lambda m, s, t: s.update(clip=0),
    "out of range": lambda m, s, t: t.update(votes=t["votes"] * 0),
    "probabilities are out of range": lambda m, s, t: t["calibration"][0].numpy()[::-1].sort(),
    "another number of thresholds": lambda m, s, t: s.update(thresholds=[1, 2]),
    "are not those": lambda m, s, t: t.pop("best"),
    "marginals are torch.uint8": lambda m, s, t: t.update(marginals=t["marginals"].byte()),
    "malformed training record": lambda m, s, t: m.update(record="[]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_field_is_named(fault):
    with pytest.raises(ModelError, match=fault):
        model_from_bytes(edited(FAULTS[fault]), "file")


def flipped(count: int, seed: int) -> None:
    """Every file that differs from a sound one by a few bits is refused."""
    draws = np.random.default_rng(seed)
    contents = [SOUND, made("posterior").to_bytes()]
    for number in range(count):
        content = bytearray(contents[number % 2])
        for place in draws.integers(0, 8 * len(content), draws.integers(1, 4)):
            content[place // 8] ^= 1 << (place % 8)
        if bytes(content) == contents[number % 2]:
            continue
        with pytest.raises(ModelError, match="file"):
            model_from_bytes(bytes(content), "file")


def test_no_flipped_bit_goes_unnoticed():
    flipped(2000, seed=1)


@pytest.mark.long
def test_none_of_many_flipped_bits_goes_unnoticed():
    flipped(10_000, seed=2)


@given(length=st.integers(0, len(SOUND) - 1), more=st.binary(min_size=1, max_size=9))
def test_a_file_cut_short_or_with_bytes_behind_it_is_refused(length, more):
    for content in (SOUND[:length], SOUND + more):
        with pytest.raises(ModelError, match="file"):
            model_from_bytes(content, "file")


@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused_in_a_sentence(content):
    with pytest.raises(ModelError, match="file"):
        model_from_bytes(content, "file")


@pytest.mark.parametrize("name", ["absent.safetensors", ".", "/dev/zero"])
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    with pytest.raises(ModelError, match="cannot read the model"):
        load_model(tmp_path / name)


def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        trained().save(tmp_path / "absent" / "model.safetensors")
    assert list(tmp_path.iterdir()) == []

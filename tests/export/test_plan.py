"""What exports make of a program, and of the rule by which networks answer."""

from dataclasses import replace

import numpy as np
import pytest
from export_cases import committee, models, plain
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from vitrail.export.plan import ExportError, Layer, Pool, plan_export
from vitrail.export.rule import class_order, rule_of
from vitrail.model.voting import HALF
from vitrail.nn import BinaryConv2d, BinaryLinear, Gate, Sign, Threshold


def test_a_pool_of_sums_becomes_a_pool_of_bits():
    module = nn.Sequential(
        BinaryConv2d(1, 2, 3, padding=1),
        nn.MaxPool2d(2),
        Sign(),
        nn.Flatten(),
        BinaryLinear(8, 1),
    )
    plan = plan_export(plain(module, (1, 4, 4)))
    assert [type(stage) for stage in plan.stages] == [Layer, Pool, Layer]
    assert plan.stages[1].outputs == plan.last.fan_in == 8
    assert plan.last.kind == "sign_sign"


REFUSED = {
    "adds up sums": nn.Sequential(BinaryLinear(4, 3), BinaryLinear(3, 1)),
    "of your own": nn.Sequential(BinaryLinear(4, 3), nn.Tanh(), BinaryLinear(3, 1)),
    "gates are not exported": nn.Sequential(BinaryLinear(4, 3), Gate(1.0), BinaryLinear(3, 1)),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_nets_that_cannot_be_translated_are_refused_with_advice(reason):
    with pytest.raises(ExportError, match=reason):
        plan_export(plain(REFUSED[reason], (4,)))


def test_a_step_behind_the_last_layer_keeps_what_it_makes():
    module = nn.Sequential(BinaryLinear(4, 3), Threshold(), BinaryLinear(3, 1), Sign())
    assert plan_export(plain(module, (4,))).last_low == -1


@settings(max_examples=200)
@given(model=models())
def test_what_is_computed_beforehand_equals_the_rule(model):
    plan = plan_export(model)
    rule = rule_of(model, plan)
    margins = np.clip(rule.margins, -model.clip, model.clip)
    rng = np.random.default_rng(0)
    for net, votes in enumerate(model.votes.numpy().T):
        drawn = rng.choice(margins, (50, len(votes)))
        score, most = (drawn * votes).sum(1), model.clip * votes.sum()
        truth = model.calibration.numpy()[net][(score + most) * 256 // (2 * most)]
        small = (drawn * rule.votes[net]).sum(1)
        assert rule.probabilities(small.tolist(), net) == truth.tolist()
        if rule.scores:
            place, rest = np.divmod(small - rule.scores.start, rule.scores.step)
            assert not rest.any()
            assert np.array_equal(np.array(rule.score_tables[net])[place], truth)
        if net == 0:
            assert np.array_equal(small >= rule.cut, truth > HALF)


def test_a_common_factor_of_votes_changes_nothing():
    model = committee()
    more = replace(model, votes=model.votes * 12)
    assert np.array_equal(
        rule_of(model, plan_export(model)).votes, rule_of(more, plan_export(more)).votes
    )


TABLES = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=classes, max_size=classes
    )
)


@given(tables=TABLES, shared=st.booleans())
def test_small_numbers_in_the_place_of_probabilities_choose_the_same_class(tables, shared):
    classes = len(tables)
    tables = [sorted(tables[0])] if shared else list(map(sorted, tables))
    small = np.array(class_order(tables, classes)).reshape(len(tables), 4)
    drawn = np.random.default_rng(0).integers(0, 4, (200, classes))
    own = np.zeros(classes, int) if shared else np.arange(classes)
    assert np.array_equal(small[own, drawn].argmax(1), np.array(tables)[own, drawn].argmax(1))

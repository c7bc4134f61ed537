"""S3P and S4P under the loop: faithful to BP where they must be, repeatable, bounded."""

import math
from typing import Any

import pytest
import torch

from vitrail.datasets import glass
from vitrail.factors import blackbox, perceptron, table
from vitrail.graph import factor_graph, indexed, join
from vitrail.random import Key
from vitrail.solvers import (
    Feedback,
    Status,
    adaptive,
    belief_propagation,
    run,
    s3p,
    s4p,
)
from vitrail.surveys import gaussian, tilted, weighted
from vitrail.surveys.histogram import point_mass
from vitrail.updates import closed_form, counting, exact, flip, pinned

FORMS = {"weighted": weighted(), "tilted": tilted(), "gaussian": gaussian()}


def glass_graph(num_examples: int, num_weights: int = 9, seed: int = 0, beta: float = math.inf):
    data = glass(num_examples, num_weights, seed=seed)
    return factor_graph(perceptron(data.inputs, data.labels, beta))


def full_feedback(graph) -> Feedback:
    return Feedback(
        torch.zeros(graph.num_problems, dtype=torch.float64),
        torch.ones(graph.num_problems, dtype=torch.bool),
    )


@pytest.mark.parametrize("solver", ["s3p", *FORMS])
def test_point_masses_with_exact_messages_and_full_damping_take_bps_step(solver):
    graph = glass_graph(6, beta=1.0)
    message = torch.linspace(-0.9, 0.9, 54, dtype=torch.float64).view(6, 9)
    settings: dict[str, Any] = {"survey_samples": 3, "bins": 201, "damping": 0.0}
    made = s3p(exact(), **settings)
    if solver != "s3p":
        made = s4p(exact(), variable=FORMS[solver], **settings)
    # BP's messages, put on the grid, so that only the binning of the result is left
    on_grid = torch.logit(point_mass(made.grid, message).double() @ _values(201))
    state = made.warm_start(Key(0), graph, [on_grid], graph.log_prior)
    state, _ = made.step(Key(0).at(1), graph, state, full_feedback(graph))
    belief = graph.log_prior + graph.blocks[0].scope.total(on_grid, 9)
    wanted = exact().messages(Key(0), graph.blocks[0], belief, on_grid.float()).log_odds
    mean = state.surveys[0].double() @ _values(201)
    # half a bin, and for the convolution one step of its log-odds grid for each factor
    tolerance = 0.5 / 200 + (0.005 if solver == "s3p" else 1e-6)
    assert (mean - torch.sigmoid(wanted)).abs().max() < tolerance
    if solver != "s3p":
        assert (state.surveys[0].amax(-1) == 1).all()


def _values(bins: int) -> torch.Tensor:
    return torch.arange(bins, dtype=torch.float64) / (bins - 1)


def test_the_message_of_an_untouched_factor_is_zero():
    graph = glass_graph(6)
    for solver in (s3p(flip(5)), s4p(flip(5)), s4p(flip(5), variable=gaussian())):
        state = solver.init(Key(3), graph)
        assert torch.equal(solver.log_odds(graph, state), state.prior)
        prior = belief_propagation(flip(5)).init(Key(3), graph).prior
        assert torch.equal(state.prior, prior)


@pytest.mark.parametrize("form", FORMS)
def test_results_do_not_depend_on_chunks(form):
    graph = glass_graph(12)
    settings: dict[str, Any] = {"survey_samples": 20, "bins": 31, "variable": FORMS[form]}
    roomy = run(s4p(flip(5), **settings), graph, seed=4, max_steps=3)
    tight = run(s4p(flip(5), memory=1, **settings), graph, seed=4, max_steps=3)
    assert torch.equal(roomy.state.surveys[0], tight.state.surveys[0])
    assert torch.equal(roomy.state.draws, tight.state.draws)
    assert torch.equal(roomy.marginals, tight.marginals)


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("form", [*FORMS, "s3p"])
def test_a_resumed_run_ends_bit_for_bit_as_an_unbroken_one(form, batch, tmp_path):
    graph = glass_graph(6, 5, beta=2.0)
    settings: dict[str, Any] = {
        "survey_samples": 10,
        "bins": 21,
        "batch": batch,
        "damping": adaptive(3),
    }
    if form == "s3p":
        solver = s3p(flip(5), **settings)
    else:
        solver = s4p(flip(5), variable=FORMS[form], watch=[2], **settings)
    whole = run(solver, graph, seed=4, max_steps=6)
    path = tmp_path / "run"
    run(solver, graph, seed=4, max_steps=3, checkpoint=path)
    resumed = run(solver, graph, seed=4, max_steps=6, checkpoint=path)
    assert torch.equal(whole.state.surveys[0], resumed.state.surveys[0])
    assert torch.equal(whole.state.draws, resumed.state.draws)
    assert torch.equal(whole.best, resumed.best)
    assert torch.equal(whole.history["accuracy"], resumed.history["accuracy"])


def test_a_batch_touches_no_survey_outside_it():
    graph = glass_graph(12)
    solver = s4p(flip(5), survey_samples=10, bins=21, batch=3)
    state = solver.init(Key(0), graph)
    before = state.surveys[0].clone()
    after, _ = solver.step(Key(0), graph, state, full_feedback(graph))
    changed = (after.surveys[0] != before).flatten(1).any(1)
    assert int(changed.sum()) <= 3
    assert after.surveys[0].data_ptr() == state.surveys[0].data_ptr()


def test_no_tensor_of_the_state_grows_with_edges_times_samples():
    graph = glass_graph(40)
    state = s4p(flip(5), survey_samples=1000, bins=5).init(Key(0), graph)
    assert state.draws.shape == (2, 1000, 9)
    assert state.surveys[0].shape == (40, 9, 5)


def test_problems_side_by_side_run_as_they_would_alone_but_for_their_draws():
    # solved problems are frozen: the easy one is done at once and does not move any more
    graph = join([glass_graph(2, seed=1), glass_graph(60, seed=2)])
    solution = run(s4p(flip(5), survey_samples=20, bins=31), graph, seed=1, max_steps=4)
    assert solution.status[0] == Status.SOLVED
    assert solution.status[1] == Status.MAX_STEPS
    later = run(s4p(flip(5), survey_samples=20, bins=31), graph, seed=1, max_steps=8)
    assert torch.equal(solution.best[:9], later.best[:9])


def test_candidates_are_the_decoded_mean_and_then_the_drawn_tracks():
    graph = glass_graph(20)
    solver = s4p(flip(5), survey_samples=50, bins=51)
    solution = run(solver, graph, seed=2, max_steps=3)
    candidates = solver.candidates(Key(2).at(2), graph, solution.state)
    assert candidates.shape == (51, 9)
    odds = solver.log_odds(graph, solution.state)
    assert torch.equal(candidates[0][odds != 0], (odds > 0)[odds != 0])
    assert float(solution.best_accuracy) >= float(graph.accuracy(candidates).amax())
    assert len(candidates.unique(dim=0)) > 1


@pytest.mark.parametrize(
    ("degree", "kind"), [(199, "Tilted"), (200, "Gaussian")], ids=["few", "many"]
)
def test_the_degree_chooses_the_variable_side(degree, kind):
    graph = glass_graph(degree, 3)
    solver = s4p(flip(5), survey_samples=5, bins=5)
    assert type(solver.sampler(solver.init(Key(0), graph))).__name__ == kind


@pytest.mark.parametrize("update", [exact(), closed_form(), pinned(3), flip(3), counting(16)])
def test_any_update_that_takes_cavities_serves(update):
    """One of 256 configurations satisfies all eight examples."""
    graph = glass_graph(8)
    solution = run(s4p(update, survey_samples=10, bins=21), graph, seed=1, max_steps=4)
    assert torch.isfinite(solution.marginals).all()
    assert solution.status == (Status.SOLVED,)


def test_any_kind_of_factor_serves():
    def two_of_three(states, _which):
        return states.sum(-1) >= 2

    factors = blackbox(two_of_three, num_factors=4, arity=3)
    solution = run(s4p(flip(5), survey_samples=10, bins=21), factor_graph(factors), max_steps=6)
    assert solution.status == (Status.SOLVED,)


def test_arity_one_gives_the_factor_itself():
    graph = factor_graph(table(torch.tensor([[0.25, 1.0]]), indexed([[0]])))
    for solver in (s3p(exact(), bins=11, damping=0.0), s4p(exact(), bins=11, damping=0.0)):
        state, _ = solver.step(Key(0), graph, solver.init(Key(0), graph), full_feedback(graph))
        assert state.surveys[0][0, 0].argmax() == 8  # p = 1/(1 + ¼) = 0.8
        assert state.surveys[0][0, 0].max() == 1


def test_contradicting_hard_factors_end_as_a_contradiction_with_exact_messages():
    torn = factor_graph(table(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), indexed([[0], [0]])))
    for solver in (s3p(exact(), bins=5, damping=0.0), s4p(exact(), bins=5, damping=0.0)):
        assert run(solver, torn, max_steps=5).status == (Status.CONTRADICTION,)
    # sampled zeros are no proof
    assert run(s4p(flip(5), bins=5, damping=0.0), torn, max_steps=5).status != (
        Status.CONTRADICTION,
    )


def test_the_watched_surveys_are_kept_for_every_step():
    graph = glass_graph(10)
    for solver in (
        s3p(flip(5), survey_samples=10, bins=31, watch=[0, 4]),
        s4p(flip(5), survey_samples=10, bins=31, watch=[0, 4]),
    ):
        solution = run(solver, graph, seed=1, max_steps=3)
        surveys = solution.history["survey"]
        assert surveys.shape == (solution.steps, 2, 31)
        assert torch.allclose(surveys.sum(-1), torch.ones(solution.steps, 2), atol=1e-4)


def test_the_effective_number_of_draws_is_in_the_history():
    graph = glass_graph(31, 9)
    few = run(s4p(flip(5), variable=weighted(), survey_samples=100), graph, max_steps=2)
    all_ = run(s4p(flip(5), variable=tilted(), survey_samples=100), graph, max_steps=2)
    assert few.history["effective_draws"][-1] < 70
    assert (few.history["effective_samples"] >= 1).all()
    assert (all_.history["effective_draws"] == 100).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"bins": 200}, "bins must be odd"),
        ({"survey_samples": 0}, "survey_samples must be from 1 to"),
        ({"feed": "direct"}, "unknown feed 'direct'"),
        ({"prior_scale": -1.0}, "prior_scale must be a number of at least 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        s4p(flip(5), **settings)

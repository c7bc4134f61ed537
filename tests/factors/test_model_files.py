"""UAI and DIMACS files: what they say, what comes out, and how damage is told."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

from vitrail.cli import main
from vitrail.errors import DataError
from vitrail.factors import read_model, result_text
from vitrail.solvers import infer

EVIDENCE = {1: 1, 4: 0}


def uai(kind: str, sizes: list[int], factors: list[tuple[tuple[int, ...], np.ndarray]]) -> str:
    lines = [kind, str(len(sizes)), " ".join(map(str, sizes)), str(len(factors))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope, _ in factors]
    for _, values in factors:
        lines += ["", str(values.size), " ".join(f"{value:.17g}" for value in values.ravel())]
    return "\n".join(lines) + "\n"


def markov(seed: int, kind: str):
    """A grid of 2 × 3 or a tree of six variables of two to eight values."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 4, 6).tolist()
    sizes[seed % 6] = 5 + seed % 4
    if kind == "grid":
        scopes = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    else:
        scopes = [(int(random.integers(v)), v) for v in range(1, 6)]
    scopes += [(2,), (5, 0)] if kind == "grid" else [(2,), ()]
    factors = [(s, random.exponential(size=[sizes[v] for v in s])) for s in scopes]
    factors[0][1].flat[1] = 0.0
    return "MARKOV", sizes, factors


def bayes(seed: int):
    """A random Bayes net of six variables: the last of a scope is the child."""
    random = np.random.default_rng(seed)
    sizes, factors = random.integers(2, 4, 6).tolist(), []
    for child in range(6):
        parents = random.permutation(child)[:2].tolist()
        table = random.exponential(size=[sizes[v] for v in (*parents, child)])
        factors.append(((*parents, child), table / table.sum(-1, keepdims=True)))
    return "BAYES", sizes, factors


def model_of(kind: str, seed: int):
    return bayes(seed) if kind == "bayes" else markov(seed, kind)


def enumerated(sizes, factors, evidence):
    """Z, marginals and the largest weight by summing over everything."""
    z, best, marginals = 0.0, 0.0, [np.zeros(size) for size in sizes]
    for values in itertools.product(*(range(size) for size in sizes)):
        if any(values[v] != value for v, value in evidence.items()):
            continue
        weight = math.prod(float(table[tuple(values[v] for v in s)]) for s, table in factors)
        z, best = z + weight, max(best, weight)
        for variable, value in enumerate(values):
            marginals[variable][value] += weight
    return z, [each / z for each in marginals], best


def answer_of(model: Any, task: Any) -> Any:
    return infer(model, task).answer


@pytest.mark.parametrize("with_evidence", [False, True], ids=["alone", "evidence"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["grid", "tree", "bayes"])
def test_a_uai_model_is_answered_as_by_enumeration(kind, seed, with_evidence, tmp_path):
    name, sizes, factors = model_of(kind, seed)
    path, known = tmp_path / "model.uai", tmp_path / "model.uai.evid"
    path.write_text(uai(name, sizes, factors))
    evidence = EVIDENCE if with_evidence else {}
    pairs = " ".join(f"{v} {value}" for v, value in evidence.items())
    known.write_text(f"{len(evidence)} {pairs}\n")
    model = read_model(path, known)
    z, marginals, best = enumerated(sizes, factors, evidence)
    assert infer(model, "pr").answer == pytest.approx(math.log10(z), abs=1e-9)
    for found, wanted in zip(answer_of(model, "mar"), marginals, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    values = answer_of(model, "map")
    assert all(values[v] == value for v, value in evidence.items())
    weight = math.prod(float(table[tuple(values[v] for v in s)]) for s, table in factors)
    assert weight == pytest.approx(best, rel=1e-9)


def test_messages_are_exact_on_a_tree_of_bits(tmp_path):
    factors = [((0, 1), np.array([[1.0, 2.0], [3.0, 1.0]])), ((1, 2), np.array([[5, 2], [1, 1.0]]))]
    (tmp_path / "m.uai").write_text(uai("MARKOV", [2, 2, 2], factors))
    model = read_model(tmp_path / "m.uai")
    for task in ("pr", "mar"):
        exact, by_messages = (infer(model, task, method=m) for m in ("elimination", "messages"))
        np.testing.assert_allclose(exact.answer, by_messages.answer, atol=1e-6)
    assert infer(model, "map", method="messages").answer == answer_of(model, "map")


def test_everything_may_be_known(tmp_path):
    (tmp_path / "m.uai").write_text("MARKOV 1 2 1 1 0 2 3 4")
    (tmp_path / "m.evid").write_text("1\n1 0 1\n")  # with the number of samples, as in 2010
    model = read_model(tmp_path / "m.uai", tmp_path / "m.evid")
    assert infer(model, "pr").answer == pytest.approx(math.log10(4))
    assert answer_of(model, "mar") == [[0.0, 1.0]]
    assert answer_of(model, "map") == [1]


def test_formulas_are_counted_and_their_weights_are_energies(tmp_path):
    cnf = tmp_path / "f.cnf"
    cnf.write_text("c three variables\np cnf 3 3\n1 -2 0\n2 3\n0 -1 1 0\n")
    model = read_model(cnf)
    solutions = [
        (a, b, c) for a, b, c in itertools.product([0, 1], repeat=3) if (a or not b) and (b or c)
    ]
    assert infer(model, "pr").answer == pytest.approx(math.log10(len(solutions)))
    assert tuple(answer_of(model, "map")) in solutions
    for text in ("p wcnf 2 3 10\n10 1 2 0\n3 -1 0\n1 -2 0\n", "h 1 2 0\n3 -1 0\n1 -2 0\n"):
        (tmp_path / "w.wcnf").write_text(text)
        assert infer(read_model(tmp_path / "w.wcnf"), "map").answer == [0, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: a model begins with"),
        ("GRAPH 1", "line 1: a model begins with"),
        ("MARKOV\n2\n2 x", "line 3: the number of values of variable 1 should be a number"),
        ("MARKOV\n1\n9", "line 3: variable 0 has 9 values, at most 8"),
        ("MARKOV\n1\n2\n1\n1 4", "line 5: a variable of factor 0 should be from 0 to 0, got 4"),
        ("MARKOV\n2\n2 2\n1\n2 1 1", "line 5: factor 0 lists a variable twice"),
        ("MARKOV\n1\n2\n1\n1 0\n3\n1 2 3", "line 6: factor 0 announces 3 entries"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 -2", "line 7: a potential of factor 0 should be at least 0"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1 nan", "line 7: a potential of factor 0"),
        ("MARKOV\n1\n2\n1\n1 0\n2\n1", "line 7: the file ends where a potential of factor 0"),
        ("MARKOV\n1\n2\n0\n7", "line 5: '7' is beyond the end"),
        ("p cnf 2 1\n1 3 0", "line 2: literal 3 is beyond the 2 variables"),
        ("p cnf 2 1\n1 x 0", "line 2: a clause is made of whole numbers, got 'x'"),
        ("p cnf 2 1\n1 2", "line 2: the last clause does not end with 0"),
        ("p dnf 2 1\n1 2 0", "line 1: a problem line is"),
    ],
)
def test_a_damaged_model_is_one_sentence_with_its_line(text, sentence, tmp_path):
    (tmp_path / "m").write_text(text)
    with pytest.raises(DataError) as caught:
        read_model(tmp_path / "m").graph  # noqa: B018
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2 0 1 1", "line 1: the file ends where the value of a known variable"),
        ("1 7 0", "evidence names variable 7, the model has 1"),
        ("1 0 2", "evidence sets variable 0 to 2"),
    ],
)
def test_damaged_evidence_is_one_sentence(text, sentence, tmp_path):
    (tmp_path / "m").write_text("MARKOV 1 2 1 1 0 2 3 4")
    (tmp_path / "e").write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_model(tmp_path / "m", tmp_path / "e")


def test_the_command_writes_result_files(tmp_path, capsys):
    (tmp_path / "m.uai").write_text("MARKOV 2 2 3 1 2 0 1 6 1 2 3 4 5 6")
    with pytest.raises(SystemExit) as stopped:
        main(["infer", str(tmp_path / "m.uai"), "--task", "map"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == "MAP\n2 1 2\n"
    with pytest.raises(SystemExit):
        main(["infer", str(tmp_path / "m.uai"), "--task", "pr", "-o", str(tmp_path / "m.PR")])
    kind, value = (tmp_path / "m.PR").read_text().split()
    assert (kind, float(value)) == ("PR", pytest.approx(math.log10(21)))


def test_result_files_have_the_format_of_the_competitions():
    assert result_text("mar", [[0.25, 0.75], [1.0]]) == "MAR\n2 2 0.25 0.75 1 1\n"
    assert result_text("pr", -1.5) == "PR\n-1.5\n"


@pytest.mark.filterwarnings("ignore")  # those of pgmpy and of what it imports
def test_answers_agree_with_pgmpy(tmp_path):
    readwrite = pytest.importorskip("pgmpy.readwrite")
    inference = pytest.importorskip("pgmpy.inference")
    for kind, seed in itertools.product(["grid", "tree"], range(3)):
        name, sizes, factors = model_of(kind, seed)
        path = tmp_path / "model.uai"
        path.write_text(uai(name, sizes, [each for each in factors if each[0]]))
        other = inference.VariableElimination(readwrite.UAIReader(str(path)).get_model())
        found = answer_of(read_model(path), "mar")
        for variable in range(len(sizes)):
            wanted = other.query([f"var_{variable}"], show_progress=False).values
            np.testing.assert_allclose(found[variable], wanted / wanted.sum(), atol=1e-6)

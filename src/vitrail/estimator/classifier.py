"""The scikit-learn classifier: it translates parameters and data for `vitrail.learning`."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    check_random_state,
    validate_data,
)
from torch import nn

from vitrail import ranks
from vitrail.datasets.dataset import Coding
from vitrail.errors import DataError
from vitrail.estimator.checks import (
    LISTS,
    check_cells,
    checked_labels,
    checked_settings,
    checked_weights,
)
from vitrail.learning.learn import FitResult, learn, prepare
from vitrail.learning.posterior import FitOptions, Predictor
from vitrail.learning.table import AUTO, OPTIONS, PARAMETERS
from vitrail.model import Explanation, Model, explain
from vitrail.solvers import Solver, Stage, Status
from vitrail.solvers.history import History
from vitrail.tables.cells import checked_names
from vitrail.tables.columns import column_lines
from vitrail.tables.frames import as_frame, collected, from_arrow, is_arrow, without_names
from vitrail.tables.labels import LabelCoder, listed
from vitrail.tables.table import Table

Auto = Literal["auto"]
IMAGE_AXES = 4  # (rows, channels, height, width)
SEQUENCES = (list, tuple, np.ndarray)
PASSED = (
    "solver", "hidden", "module", "multiclass", "inputs", "bias", "predictor", "networks", "device",
    "class_weight", "monotonic_cst", "memory", "checkpoint",
)  # fmt: skip
FIXED = {
    "hidden", "module", "multiclass", "inputs", "bias", "restarts", "monotonic_cst",
}  # by the first training # fmt: skip


class BinaryNetClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose weights are bits: a posterior over networks, which vote.

    Rows may be bits (0/1, ±1, booleans: used as they are), numbers, words or both; an encoder that
    is fitted to the training rows turns them into bits. By default, Metropolis chains sample nets
    with one hidden layer; held-out rows settle the inverse temperature and calibrate probabilities.

    `solver` names the learner. The other parameters configure it and never select it: one that the
    learner does not take is refused before training. "auto" is chosen from the data.

    Args:
        hidden: Units of each hidden layer; () is a linear net. "auto" chooses one layer by rows and
            bits for `chains`, and none, 3 or 7 units on held-out rows for solvers that run stages.
        solver: A name of `vitrail.learning.SOLVERS`, or a solver or stages of `vitrail.solvers`.
            "auto" is "chains" for nets with one hidden layer, "select" (streaming or ste, by a
            trial on held-out rows) for deep nets and convolutions, "messages" for all others and
            where predictor="best".
        predictor: "posterior" is the vote of networks drawn from the posterior, "best" the network
            that fits best, for deep nets on held-out rows. "auto" is "posterior" for `chains`,
            `streaming` and, where flips are cheap and beta is finite, `messages`; "best" for all
            others.
        multiclass: "argmax" is one net with one output per class, "ovo" one net per pair of
            classes, "ovr" one net per class against the rest. "auto" is "ovr" for `chains`; for all
            others "ovo" up to 12 classes with at most one hidden layer, else "argmax".
        inputs: How nets read a bit: "binary" as 0/1, "bipolar" as ±1. `chains` read 0/1.
        bias: Number of constant inputs; for images, after their bits, as whole channels.
        update: How messages are computed, as in `vitrail.updates.UPDATES`; for `messages`, `bp`,
            `sbp` and surveys.
        beta: Inverse temperature; a large one tolerates few errors. `chains` take one or several
            finite numbers; `select` takes none. Gradient methods and searches use it only to draw
            the networks of predictor="posterior".
        module: A torch module with one output, or one per class, instead of `hidden`; not for
            `chains`.
        samples: Draws of the update; for solvers that take `update`.
        damping: Share of the old message that is kept, from 0 to below 1; for solvers that take
            `update`.
        batch_size: Examples per step, None for all; for message passing, gradients and `select`.
        epochs: How often every example is used; for message passing, gradients and `select`.
        restarts: Independent starts, of which the best is kept; for all but `chains`, `select` and
            exact searches.
        polish: Rounds of local search after a solver that runs stages; 0 for none.
        effort: "quick" takes about a quarter of the time of "normal", "best" eight times as much,
            for longer chains of wider nets; "auto" is "normal". For `chains`.
        networks: How many networks vote; "auto" is 128, and more for `chains` of narrow nets.
            Refused where one network predicts.
        class_weight: None, "balanced" or {label: weight}.
        monotonic_cst: For two classes, columns of numbers whose growth may only raise (1) or only
            lower (−1) the probability of `classes_[1]`: a mapping of names, or a number for every
            column, 0 for no order, as in scikit-learn. Kept by every network of `chains`, by
            `compress` and by exported code. A missing value is outside the order.
        memory: Rows of `partial_fit` after which earlier evidence weighs 1/e; None is for ever;
            "auto" learns with several and answers by the one that has predicted rows best before
            they were learned. For `chains` and `streaming`.
        warm_start: Whether `fit` starts from the previous fit, with the same net: chains from where
            they were, messages from the marginals. Gradients and searches start from scratch.
            Options of the training may change between the two.
        random_state: Same number, same networks.
        device: "auto", "cpu" or "cuda"; `chains` run on the CPU.
        verbose: 1 shows a progress bar on a terminal; 2 also prints what became of each column,
            before training.
        checkpoint: A file that training is saved to; a stopped fit resumes from it. Names of
            files end with a digest of rows and settings, so folds of a cross-validation may share
            the path. A fit that has ended removes its files.

    Attributes:
        model_: The trained model; save it with `model_.save(path)`.
        classes_: The labels, in the order of `predict_proba`.
        history_: What happened at each step.
        n_iter_: Steps taken.
        status_: How training ended, of each net.
        solver_: The name of the learner that ran.
        plan_: The options that ran, a dictionary; the model's record has the same.
        found_by_: The stage that found the best network, of each net.
        feature_importances_: The share of the votes' variance that each column accounts for.

    Examples:
        >>> from vitrail import BinaryNetClassifier
        >>> rows = [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]] * 5
        >>> labels = ["no", "no", "yes", "yes"] * 5
        >>> net = BinaryNetClassifier(random_state=0).fit(rows, labels)
        >>> net.score(rows, labels)
        1.0
    """

    classes_: np.ndarray
    model_: Model
    solver_: str
    plan_: dict[str, Any]
    history_: History
    n_iter_: int
    found_by_: tuple[str, ...]
    status_: tuple[Status, ...]
    image_shape_: tuple[int, ...] | None
    _fitted: FitResult
    _fitted_params: dict[str, Any]

    def __init__(
        self,
        hidden: tuple[int, ...] | Auto = "auto",
        solver: str | Solver[Any] | Sequence[Stage] = AUTO,
        predictor: Predictor | Auto = "auto",
        multiclass: Literal["auto", "argmax", "ovo", "ovr"] = "auto",
        inputs: Coding | Auto = "auto",
        bias: int | Auto = "auto",
        update: str = AUTO,
        beta: float | Sequence[float] | Auto = "auto",
        *,
        module: nn.Module | None = None,
        samples: int | Auto = "auto",
        damping: float | Auto = "auto",
        batch_size: int | Auto | None = "auto",
        epochs: int | Auto = "auto",
        restarts: int | Auto = "auto",
        polish: int | Auto = "auto",
        effort: Literal["auto", "quick", "normal", "best"] = "auto",
        networks: int | Auto = "auto",
        class_weight: str | Mapping[Any, float] | None = None,
        monotonic_cst: Mapping[str, int] | Sequence[int] | None = None,
        memory: float | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: int = 0,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.hidden = hidden
        self.solver = solver
        self.predictor: Predictor | Auto = predictor
        self.multiclass = multiclass
        self.inputs = inputs
        self.bias = bias
        self.update = update
        self.beta = beta
        self.module = module
        self.samples = samples
        self.damping = damping
        self.batch_size = batch_size
        self.epochs = epochs
        self.restarts = restarts
        self.polish = polish
        self.effort = effort
        self.networks = networks
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst
        self.memory = memory
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table.

        Args:
            X: Rows (rows, columns): an array, a data frame, or a list of lists; or images (rows,
                channels, height, width), of which a net reads one bit per pixel: above half
                intensity or not. A `module` whose first convolution reads k times as many
                channels and one more reads k bits per pixel, equal steps of intensity apart, and
                a channel of ones; without that one channel it takes bias=0.
            y: Labels (rows,).
            sample_weight: (rows,). A row of weight k counts as k equal rows where all weights are
                whole numbers; others are scaled so that the rows that count have mean weight 1.

        Returns:
            The classifier itself.
        """
        again = hasattr(self, "model_") and self.warm_start
        return self._learn(X, y, sample_weight, None, fresh=not again, added=False)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with more rows: the net learns from all rows so far. Encoder and net stay.

        The first call fixes them, and the classes. Of more than 20,000 different rows a random
        weighted sample of that size represents all.

        Args:
            X: Rows (rows, columns).
            y: Labels (rows,).
            classes: All there will ever be; None is those in the first y. Later calls must name
                the same or none.
            sample_weight: As in `fit`; scaled over the rows of this call.

        Returns:
            The classifier itself.
        """
        fresh = not hasattr(self, "model_")
        return self._learn(X, y, sample_weight, classes, fresh=fresh, added=not fresh)

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class) of each row, (rows, C), columns as in `classes_`."""
        check_is_fitted(self)
        return self.model_.probabilities(self._table(X, reset=False))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of `predict_proba`, (rows, C); −inf where a probability is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the classes: (rows,) of `classes_[1]` for two classes, else (rows, C).

        They order rows as `predict_proba` does; rows of equal probability are ordered by votes.
        """
        check_is_fitted(self)
        decisions = self.model_.decisions(self._table(X, reset=False))
        return decisions[:, 1] if len(self.classes_) == 2 else decisions

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        check_is_fitted(self)
        return self.classes_[self.model_.answers(self._table(X, reset=False)).numbers.numpy()]

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of the votes' variance that each column accounts for, (columns,), of sum 1.

        It is read off the networks, without rows: a column counts by how much the votes move when
        its value changes and the others stay. All are 0 where no column moves a vote.
        """
        check_is_fitted(self)
        return self.model_.importances()

    def export(
        self,
        path: str | Path = ".",
        to: str = "c",
        *,
        name: str = "tiny",
        layout: str = "header",
        rows: Any = None,
    ) -> list[Path]:
        """Write the model as code that gives the same answers, as `vitrail export` does.

        Args:
            path: The folder for the files.
            to: "c", "js", "onnx" (needs the extra `export`) or "numpy".
            name: Of the files, and in C of all names.
            layout: Of C: one of `vitrail.export.LAYOUTS`.
            rows: Rows (rows, columns); the exported code checks itself with the first of them. None
                makes some up.

        Returns:
            The files that were written.

        Examples:
            >>> net = BinaryNetClassifier(hidden=(), random_state=0).fit([[0], [1]] * 5, [0, 1] * 5)
            >>> net.export("firmware", to="c", name="switch")  # doctest: +SKIP
            [PosixPath('firmware/switch.h')]
        """
        from vitrail.export import export_model

        check_is_fitted(self)
        table = None if rows is None else self._table(rows, reset=False)
        return export_model(self.model_, to, path, name=name, layout=layout, rows=table)

    def explain(self, X: Any, background: Any = None) -> Explanation:
        """What each column added to the log-odds of each row, as `vitrail explain` prints it.

        Args:
            X: Rows (rows, columns) to explain.
            background: Rows to compare with, such as those of training. None draws every column
                uniformly from the values that the encoder distinguishes.

        Returns:
            Reasons whose sum and base are `decision_function`, with curves and interactions of the
            columns that matter most; for several classes those of the answer.

        Examples:
            >>> rows, labels = [[0, 1], [0, 0], [1, 0], [1, 1]] * 5, [0, 0, 1, 1] * 5
            >>> net = BinaryNetClassifier(hidden=(), random_state=0).fit(rows, labels)
            >>> net.explain(rows[:1], background=rows).top(0, 1)[0][0]
            'x0'
        """
        check_is_fitted(self)
        others = None if background is None else self._table(background, reset=False)
        return explain(self.model_, self._table(X, reset=False), background=others)

    def report(self, path: str | Path, X: Any, y: Any) -> Path:
        """Write one page about the model, as `vitrail report` does.

        Args:
            path: The file of the page.
            X: Rows (rows, columns), best those that the model was not trained on.
            y: Labels (rows,).

        Returns:
            The file that was written.

        Examples:
            >>> net = BinaryNetClassifier(hidden=(), random_state=0).fit([[0], [1]] * 5, [0, 1] * 5)
            >>> net.report("report.html", [[0], [1]], [0, 1])  # doctest: +SKIP
            PosixPath('report.html')
        """
        from vitrail.report import write_report

        check_is_fitted(self)
        table = as_frame(self._table(X, reset=False))
        return write_report(self.model_, table, checked_labels(y, table), path, "given")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def weights_(self) -> np.ndarray:
        """The bits of the best network, (N, A) bool; N nets: one, or one per class or pair."""
        return self.model_.best.numpy()

    @property
    def marginals_(self) -> np.ndarray:
        """P(bit = 1), (N, A)."""
        return self._fitted.posterior.marginals.to(torch.float32).numpy()

    def _table(self, X: Any, *, reset: bool) -> Any:
        """X as the encoders take it, with what scikit-learn wants checked and remembered."""
        if not isinstance(X, Table):
            X = collected(X)
            X = from_arrow(X) if is_arrow(X) else X
        shape = () if isinstance(X, Table) else getattr(X, "shape", ())
        images = len(shape) == IMAGE_AXES
        if reset:
            self.image_shape_ = tuple(shape[1:]) if images else None
        if images:
            if tuple(shape[1:]) != self.image_shape_ and self.image_shape_ is not None:
                raise ValueError(
                    f"expected images of shape {self.image_shape_} as in training, got "
                    f"{tuple(shape[1:])}; resize them"
                )
            X = np.asarray(X).reshape(len(X), -1)
        if isinstance(X, Table):
            if reset:
                self.feature_names_in_ = np.array(X.columns, object)
                self.n_features_in_ = len(X.columns)
            elif not hasattr(self, "feature_names_in_"):
                warnings.warn(
                    f"X has feature names, but {type(self).__name__} was fitted without feature "
                    "names; columns are read by place",
                    stacklevel=3,
                )
        elif hasattr(X, "columns"):
            checked_names([str(name) for name in X.columns])
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset and len(X) < 1:
                raise DataError("found 0 sample(s); a minimum of 1 is required")
        if isinstance(X, Table) or hasattr(X, "columns"):
            # after a fit without names, columns are found by their places
            return X if hasattr(self, "feature_names_in_") else without_names(as_frame(X))
        anything: Any = {
            "dtype": None,
            "ensure_all_finite": "allow-nan",
            "accept_sparse": "csc",
        }
        try:
            array: Any = check_array(X, estimator=self, **anything)
        except ValueError as error:
            if not re.search("inhomogeneous|array element with a sequence", str(error)):
                raise
            raise DataError(f"rows must have as many cells as each other, {LISTS}") from None
        if array.dtype.kind == "O":
            check_cells(array)
        validate_data(self, array, reset=reset, skip_check_array=True)
        return array

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, *, fresh: bool, added: bool
    ) -> Self:
        """Train, and keep what was found: all of it, or after an error what there was before."""
        saved = dict(vars(self))
        try:
            settings = checked_settings(self.get_params(deep=False))
            table = self._table(X, reset=fresh)
            y = checked_labels(y, table)
            weight = checked_weights(y, sample_weight)
            previous = None if fresh else self._fitted
            options = self._options(settings, previous)
            if previous is None:
                if len(y) < 2:
                    raise DataError(
                        f"expected at least two rows to learn from, got {len(y)} sample; add rows"
                    )
                # all classes that are named, or those of the rows that count
                coder = LabelCoder.fit(y[weight > 0] if classes is None else np.asarray(classes))
                fixed = prepare(table, weight, coder, options, self.image_shape_)
                for line in column_lines(fixed.encoder.account) if self.verbose > 1 else ():
                    sys.stdout.write(f"{line}\n")
            else:
                fixed = previous.preprocessing
                _check_classes(classes, fixed.coder)
            fitted = learn(fixed, table, y, weight, options, previous, added=added)
        except BaseException:
            vars(self).clear()
            vars(self).update(saved)
            raise
        posterior = fitted.posterior
        vars(self).update(
            _fitted=fitted,
            _fitted_params=self.get_params(deep=False),
            classes_=fixed.coder.decode(np.arange(fixed.num_classes)),
            model_=fitted.model,
            solver_=posterior.settings["solver"],
            plan_=dict(fitted.model.record["settings"]),
            history_=posterior.history,
            n_iter_=posterior.steps,
            found_by_=posterior.found_by,
            status_=fitted.status,
        )
        return self

    def _options(self, settings: dict[str, Any], previous: FitResult | None) -> FitOptions:
        """The options of a fit. Going on, what was fixed stays, and the rest unless changed."""
        changed: set[str] = set()
        if previous is not None:
            changed = {name for name in self._fitted_params if self._changed(name)}
            fixed = sorted(changed & FIXED)
            if fixed:
                raise ValueError(
                    f"{fixed[0]} was changed to {getattr(self, fixed[0])!r} after the net was "
                    "built; set it back, or fit again with warm_start=False"
                )
        if previous is not None and "random_state" not in changed:
            seed = previous.posterior.settings["seed"]
        elif isinstance(self.random_state, Integral):
            seed = int(self.random_state)
        else:  # any other random state gives one, that of rank 0 for all ranks
            drawn = check_random_state(self.random_state).randint(2**31)
            seed = int(ranks.current_world().broadcast(str(drawn)))
        given = {option: settings[PARAMETERS.get(option, option)] for option in OPTIONS}
        return FitOptions(
            **{name: settings[name] for name in PASSED},
            given={
                name: value
                for name, value in given.items()
                if not (isinstance(value, str) and value == AUTO)
            },
            seed=seed,
            progress=bool(self.verbose) and ranks.current_world().first,
            changed=frozenset(changed),
        )

    def _changed(self, name: str) -> bool:
        old, new = self._fitted_params[name], getattr(self, name)
        if isinstance(old, SEQUENCES) and isinstance(new, SEQUENCES):
            return list(old) != list(new)
        return old is not new and not (type(old) is type(new) and bool(np.all(old == new)))


def _check_classes(classes: Any, coder: LabelCoder) -> None:
    """Raise where a later call names other classes than the first training fixed."""
    if classes is None:
        return
    given = LabelCoder.fit(np.asarray(classes))
    if given.classes != coder.classes:
        raise ValueError(
            f"classes must stay those of the first training, {listed(coder.classes)}, got "
            f"{listed(given.classes)}; leave them out, or fit again"
        )

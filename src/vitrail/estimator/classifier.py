"""The scikit-learn face: a classifier whose weights are bits."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import (
    check_array,
    check_is_fitted,
    validate_data,
)
from torch import nn

from vitrail import __version__
from vitrail.data.checks import checked_count
from vitrail.data.dataset import Coding
from vitrail.data.errors import DataError
from vitrail.data.labels import LabelCoder
from vitrail.data.tables import Table
from vitrail.estimator.rows import check_cells, checked_labels, checked_weights, fitted_encoder
from vitrail.estimator.settled import Front, Net, device_for, seed_of, shape_of, unless_auto
from vitrail.model import Model, Shape, as_inputs
from vitrail.posterior import equal_shares, fitted_scale, posterior_networks
from vitrail.random import MAX_SEED
from vitrail.selection import Choosing, choose
from vitrail.settings import (
    AUTO,
    HIDDEN_SIZES,
    Plan,
    Problem,
    auto_bias,
    plan,
)
from vitrail.solvers import Status
from vitrail.training import Examples, nets_of, train

Auto = Literal["auto"]
SIGNS = (-1.0, 1.0)
MAX_PAIR_CLASSES = 12  # beyond, a net per pair has more bits than it is worth


class BinaryNetClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose weights are bits, trained by message passing.

    Rows may be bits (0/1, ±1, booleans: used as they are), numbers, words or both; a table is
    encoded to bits by what its training rows hold. Every "auto" is chosen from the data; the
    rules and their measurements are in the documentation.

    hidden         units of each hidden layer; () is a linear net, "auto" chooses a size
    module         any torch module with one output (or one a class) instead of an MLP
    solver         "auto" is the portfolio of `vitrail.solvers`: messages, then local search, and
                   with beta=inf and few examples the stages between; "bp", "sbp", "ste", … as in
                   `vitrail.settings.SOLVERS`
    predictor      "best": the one network that is saved, probabilities from its margin;
                   "posterior": the average over networks drawn from the posterior, by short
                   chains that begin at the marginals and at the best network
    multiclass     "argmax": one net with an output a class; "ovo": a net for each pair of classes
    inputs         how the net reads a bit: "binary" as 0/1, "bipolar" as ±1
    bias           number of constant inputs
    update         how messages are computed, as in `vitrail.updates.UPDATES`; samples: its draws
    beta           inverse temperature; large insists on every example, small tolerates errors
    damping        share of the old message that is kept, from 0 to below 1
    batch_size     examples a step; None takes all
    epochs         how often every example is used
    restarts       independent starts, of which the best is kept
    polish         rounds of local search from what messages found; 0 for messages alone
    networks       how many networks the posterior predictor averages over
    class_weight   None, "balanced" or {label: weight}
    warm_start     fit starts from the marginals of the fit before
    random_state   same number, same network
    device         "auto", "cpu", "cuda"
    verbose        1 shows a progress bar on a terminal

    After fit: `model_` (save it with `model_.save(path)`), `classes_`, `weights_`, `marginals_`,
    `history_`, `n_iter_`, `status_`, `plan_` (the settings used), `found_by_` (the stage that
    found the best network, of each net).

    >>> from vitrail import BinaryNetClassifier
    >>> rows = [[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]] * 5
    >>> labels = ["no", "no", "yes", "yes"] * 5
    >>> net = BinaryNetClassifier(random_state=0).fit(rows, labels)
    >>> net.score(rows, labels)
    1.0
    """

    def __init__(
        self,
        hidden: tuple[int, ...] | Auto = (),
        solver: str = AUTO,
        predictor: Literal["best", "posterior"] = "best",
        multiclass: Literal["auto", "argmax", "ovo"] = "auto",
        inputs: Coding | Auto = "auto",
        bias: int | Auto = "auto",
        update: str = AUTO,
        beta: float | Auto = "auto",
        *,
        module: nn.Module | None = None,
        samples: int | Auto = "auto",
        damping: float | Auto = "auto",
        batch_size: int | Auto | None = "auto",
        epochs: int | Auto = "auto",
        restarts: int | Auto = "auto",
        polish: int | Auto = "auto",
        networks: int = 100,
        class_weight: str | Mapping[Any, float] | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.solver = solver
        self.predictor = predictor
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
        self.networks = networks
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on a table X (rows, columns) and labels y (rows,).

        sample_weight (rows,): a row of weight k counts as k equal rows.
        """
        again = self.warm_start and hasattr(self, "model_")
        return self._learn(X, y, sample_weight, None, fresh=not again)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with more rows: the posterior so far is the prior. Encoder and net stay.

        The first call fixes them, and the classes: all of `classes`, or those in y.
        """
        return self._learn(X, y, sample_weight, classes, fresh=not hasattr(self, "model_"))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(class) of each row, (rows, C), columns as in `classes_`."""
        check_is_fitted(self)
        return self.model_.probabilities(self._table(X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest class of each row."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(1)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def weights_(self) -> np.ndarray:
        """The bits of the best network, (N, A) bool, N nets (one unless "ovo")."""
        return self.model_.best.numpy()

    @property
    def marginals_(self) -> np.ndarray:
        """P(bit = 1), (N, A)."""
        return self.model_.marginals.numpy()

    def _table(self, X: Any, *, reset: bool) -> Any:
        """X as the encoders take it, with what scikit-learn wants checked and remembered."""
        if isinstance(X, Table):
            if reset:
                self.feature_names_in_ = np.array(X.columns, object)
                self.n_features_in_ = len(X.columns)
            return X
        if hasattr(X, "columns"):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset and len(X) < 1:
                raise DataError("found 0 sample(s); a minimum of 1 is required")
            return X
        anything: Any = {"dtype": None, "ensure_all_finite": "allow-nan"}
        array = check_array(X, estimator=self, **anything)
        if array.dtype.kind == "O":
            check_cells(array)
        validate_data(self, array, reset=reset, skip_check_array=True)
        return array

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any, *, fresh: bool) -> Self:
        """Encode, train, and keep what was found; from the start, or on from the last marginals."""
        begun = time.perf_counter()
        table = self._table(X, reset=fresh)
        y = checked_labels(y, table)
        weight = checked_weights(y, sample_weight)
        if fresh:
            self._calls = 0
            self._front = self._settle_front(table, y, weight, classes)
            self.classes_ = self._front.coder.decode(np.arange(self._front.num_classes))
        front = self._front
        weight = self._with_class_weights(y, weight)
        inputs = as_inputs(front.encoder.transform(table), front.coding, front.bias)
        labels = torch.from_numpy(front.coder.encode(y))
        examples = Examples.distinct(inputs, labels, torch.from_numpy(weight))
        if fresh:
            self._net = self._settle_net(front, examples)
        net = self._net
        nets = nets_of(examples, front.num_classes, front.pairs)
        self.plan_ = net.plan
        earlier = None if fresh else self._trained
        self._trained = train(
            net.program,
            nets,
            net.plan,
            seed=(front.seed + self._calls) % MAX_SEED,
            device=net.device,
            earlier=earlier,
            log_prior=None if earlier is None else earlier.log_odds,
            progress=bool(self.verbose),
        )
        self._calls += 1
        self.history_ = self._trained.solution.history
        self.n_iter_ = self._trained.solution.steps
        self.found_by_ = self._trained.found_by
        self.status_ = (Status.INTERRUPTED,) if net.interrupted else self._trained.status
        self.model_ = self._model(nets, len(y), begun)
        return self

    def _settle_front(self, table: Any, y: np.ndarray, weight: np.ndarray, classes: Any) -> Front:
        """What a first training fixes before it sees bits: classes, encoder, coding."""
        self._check_choices()
        if len(y) < 2:
            raise DataError(
                f"expected at least two rows to learn from, got {len(y)} sample; add rows"
            )
        coder = LabelCoder.fit(y[weight > 0] if classes is None else np.asarray(classes))
        encoder, range_ = fitted_encoder(table, weight)
        coding = unless_auto(self.inputs, "bipolar" if range_ == SIGNS else "binary")
        usual = 0 if self.module is not None else auto_bias(coding)
        bias = checked_count("bias", unless_auto(self.bias, usual), 0)
        num_classes = len(coder.classes)
        few = self.module is None and num_classes <= MAX_PAIR_CLASSES
        pairs = num_classes > 2 and (self.multiclass == "ovo" or (self.multiclass == AUTO and few))
        return Front(encoder, coder, coding, bias, pairs, seed_of(self.random_state))

    def _settle_net(self, front: Front, examples: Examples) -> Net:
        """The net and its plan: as asked for, or what does best on rows held out."""
        nets = nets_of(examples, front.num_classes, front.pairs)
        num_factors = max(len(net.labels) for net in nets)

        def plan_of(shape: Shape) -> Plan:
            return self._plan(Problem(num_factors, shape.hidden, shape.num_weights))

        def device_of(shape: Shape) -> str:
            return device_for(self.device, sum(len(net.labels) for net in nets), shape.num_weights)

        if self.module is not None:
            shape, program = shape_of(self.module, front.num_inputs, front.num_outputs)
            return Net(shape, program, plan_of(shape), device_of(shape), False)
        sizes = HIDDEN_SIZES if isinstance(self.hidden, str) else (tuple(self.hidden),)
        for units in (units for hidden in sizes for units in hidden):
            checked_count("a hidden layer", units, 1)
        shapes = [Shape.of_mlp(front.num_inputs, hidden, front.num_outputs) for hidden in sizes]
        plans = [plan_of(shape) for shape in shapes]
        searches = self.polish == AUTO and any(plan.polish for plan in plans)
        shape, plan = shapes[-1], plans[-1]
        if len(shapes) == 1 and self.predictor == "posterior":
            return Net(shape, shape.build(), plan, device_of(shape), False)
        if len(shapes) == 1 and not searches:
            return Net(shape, shape.build(), plan, device_of(shape), False)
        choosing = Choosing(
            examples,
            front.num_classes,
            front.pairs,
            front.seed,
            device_of(shape),
            bool(self.verbose),
        )
        choice, interrupted = choose(choosing, shapes, plan_of)
        if choice is not None:
            shape = Shape.of_mlp(front.num_inputs, choice.hidden, front.num_outputs)
            plan = replace(plan_of(shape), polish=choice.polish)
        if interrupted:
            plan = replace(plan, epochs=1, polish=0)  # the user wants an end
        return Net(shape, shape.build(), plan, device_of(shape), interrupted)

    def _model(self, nets: list[Examples], num_rows: int, begun: float) -> Model:
        front, net, trained, plan = self._front, self._net, self._trained, self.plan_
        networks = trained.best[None]
        shares = torch.ones(1, len(nets), dtype=torch.float64)
        if self.predictor == "posterior":
            marginals = trained.log_odds[trained.chosen, torch.arange(len(nets))]
            networks = posterior_networks(
                net.program, nets, marginals, trained.best, self.networks, plan.beta, front.seed
            )
            shares = equal_shares(self.networks, len(nets))
        scale = fitted_scale(net.program, nets, networks, shares)
        known = trained.accuracy.amax(0).nan_to_num(0.0)
        record = {
            "vitrail": __version__,
            "torch": torch.__version__,
            "rows": num_rows,
            "settings": {**asdict(plan), "predictor": self.predictor, "seed": front.seed},
            "steps": trained.solution.steps,
            "evaluations": trained.solution.evaluations,
            "seconds": round(time.perf_counter() - begun, 3),
            "train_accuracy": round(float(known.mean()), 6),
            "status": sorted({str(status) for status in trained.status}),
            "found_by": sorted(set(trained.found_by)),
        }
        return Model(
            encoder=front.encoder,
            labels=front.coder,
            coding=front.coding,
            bias=front.bias,
            shape=net.shape,
            program=net.program,
            pairs=front.pairs,
            best=trained.best,
            marginals=trained.marginals,
            networks=networks,
            shares=shares,
            scale=scale,
            record=record,
        )

    def _plan(self, problem: Problem) -> Plan:
        return plan(
            problem,
            solver=self.solver,
            update=self.update,
            samples=self.samples,
            beta=self.beta,
            damping=self.damping,
            batch=self.batch_size,
            epochs=self.epochs,
            restarts=self.restarts,
            polish=self.polish,
        )

    def _with_class_weights(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if self.class_weight is None:
            return weight
        rows = weight > 0
        each = compute_class_weight(self.class_weight, classes=self.classes_, y=y[rows])
        return weight * each[self._front.coder.encode(y)]

    def _check_choices(self) -> None:
        choices = {
            "predictor": ("best", "posterior"),
            "multiclass": ("auto", "argmax", "ovo"),
            "inputs": ("auto", "binary", "bipolar"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(
                    f"unknown {name} {getattr(self, name)!r}; choose one of: {', '.join(known)}"
                )
        if self.module is not None and self.hidden not in ((), AUTO):
            raise ValueError("give hidden layers or a module, not both")

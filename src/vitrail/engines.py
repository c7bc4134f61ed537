"""Backends for independent tasks: processes of this machine, a Dask cluster, or Ray.

    with workers("dask", 4):
        for found in map_tasks(trained, [(plan,) for plan in plans]): ...

All three are joblib backends, and `map_tasks` follows joblib's `parallel_config`. Dask and Ray
start a cluster on this machine, or join the one named by DASK_SCHEDULER_ADDRESS or RAY_ADDRESS.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeVar, get_args

from vitrail.checks import checked_choice
from vitrail.extras import needs

T = TypeVar("T")

Backend = Literal["processes", "dask", "ray"]
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def checked_backend(name: str) -> Backend:
    """`name`; an error if there is no such backend or it is not installed."""
    checked_choice("backend", name, get_args(Backend))
    if name != "processes":
        _package("distributed" if name == "dask" else name, name)
    return name  # pyright: ignore[reportReturnType] (it is one of them)


@dataclass(frozen=True)
class Failure:
    """A task that failed twice, and its last error."""

    reason: str


def run_task(task: Callable[..., Any], *given: Any) -> Any:
    """`task(*given)`, retried once; a `Failure` if it fails again."""
    try:
        return _retry_once(task, *given)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_SPACE:
            raise  # all other tasks would fail too
        return Failure(f"{type(error).__name__}: {error}")


def map_tasks(task: Callable[..., T], given: Sequence[tuple[Any, ...]]) -> Iterator[T]:
    """`task(*one)` for each of `given`, in order, on the current workers or in this process.

    On workers a task that fails is retried once; its second error is raised.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    in_force: Any = None  # None is the workers of the current block
    if effective_n_jobs(in_force) == 1 or len(given) == 1:
        yield from (task(*one) for one in given)
        return
    pool: Any = Parallel()
    yield from pool(delayed(_retry_once)(task, *one) for one in given)


def _retry_once(task: Callable[..., T], *given: Any) -> T:
    try:
        return task(*given)
    except Exception:
        return task(*given)


@contextmanager
def worker_pool(backend: Backend, jobs: int) -> Iterator[Any]:
    """A joblib.Parallel on `jobs` workers that yields results as they complete if possible."""
    from joblib import Parallel

    with workers(backend, jobs):
        # Ray's backend has no generators: it returns all results at the end
        return_as = "list" if backend == "ray" else "generator_unordered"
        yield Parallel(return_as=return_as, pre_dispatch="n_jobs")


@contextmanager
def workers(backend: Backend, jobs: int) -> Iterator[None]:
    """Run joblib's tasks on `jobs` workers inside the block; one process means this one."""
    from joblib import parallel_config

    if backend == "processes" and jobs == 1:
        yield
        return
    with ExitStack() as stack:
        if backend == "dask":
            distributed = _package("distributed", backend)
            if "DASK_SCHEDULER_ADDRESS" in os.environ:
                stack.enter_context(distributed.Client())
            else:
                cluster = stack.enter_context(
                    distributed.LocalCluster(
                        n_workers=jobs, threads_per_worker=1, dashboard_address=None
                    )
                )
                stack.enter_context(distributed.Client(cluster))
        elif backend == "ray":
            ray = _package("ray", backend)
            if not ray.is_initialized():
                mine = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": jobs}
                ray.init(include_dashboard=False, log_to_driver=False, **mine)
                stack.callback(ray.shutdown)
            import_module("ray.util.joblib").register_ray()
        name = "loky" if backend == "processes" else backend
        stack.enter_context(parallel_config(name, n_jobs=jobs))
        yield


def _package(name: str, extra: str) -> Any:
    with needs(extra, f"the backend {extra}"):
        return import_module(name)

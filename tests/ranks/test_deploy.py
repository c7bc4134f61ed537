"""The scripts that clusters are given can be read by them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from vitrail.cli.app import commands

FOLDER = Path(__file__).parents[2] / "docs" / "deploy"


def test_the_slurm_script_is_a_script():
    script = FOLDER / "slurm.sh"
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    done = subprocess.run([bash, "-n", str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = script.read_text().splitlines()
    asked = [line for line in lines if line.startswith("#SBATCH")]
    assert asked == lines[1 : 1 + len(asked)]  # Slurm reads them before the first command
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+(=\S+)?", line) for line in asked)


def test_the_manifest_is_a_pytorch_job():
    job = yaml.safe_load((FOLDER / "pytorchjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    worker = job["spec"]["pytorchReplicaSpecs"]["Worker"]
    elastic = job["spec"]["elasticPolicy"]
    assert elastic["minReplicas"] <= worker["replicas"] <= elastic["maxReplicas"]
    pod = worker["template"]["spec"]
    (container,) = pod["containers"]
    assert container["name"] == "pytorch"  # the operator looks for it by this name
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.parametrize("name", ["slurm.sh", "pytorchjob.yaml"])
def test_they_give_fit_options_that_it_has(name: str):
    import typer

    group = typer.main.get_command(commands())
    known = {o for p in group.commands["fit"].params for o in p.opts}  # pyright: ignore
    _, _, command = (FOLDER / name).read_text().partition("fit")
    used = set(re.findall(r"(?<=\s)(--[a-z-]+)", command))
    assert {"--target", "--checkpoint", "--output"} <= used <= known

"""What containers and clusters are given: the syntax is right, commands exist, and the files agree with each other."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from linkwright.cli.main import linkwright

ROOT = Path(__file__).parent.parent.parent
FILES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "packaging").iterdir()}
CONTAINER, RECIPE, SLURM = (FILES[name] for name in ("Containerfile", "linkwright.def", "slurm.sh"))
JOB = {one["kind"]: one for one in yaml.safe_load_all(FILES["kubernetes.yaml"])}
REPLICAS = JOB["MPIJob"]["spec"]["mpiReplicaSpecs"]


def is_understood(words):
    """Whether the command line reads these words; nothing is run."""
    verb, *rest = words
    context = click.Context(linkwright, info_name="linkwright")
    linkwright.get_command(context, verb).make_context(verb, rest, parent=context)


def launched():
    (container,) = REPLICAS["Launcher"]["template"]["spec"]["containers"]
    return container["command"]


@pytest.mark.parametrize("name", ["slurm.sh", "linkwright.def", "Containerfile"])
def test_scripts_are_right_shell(name):
    text = FILES[name]
    if name == "linkwright.def":  # the section that a shell runs
        text = text.partition("%post\n")[2].partition("%environment")[0]
    if name == "Containerfile":
        text = "\n".join(re.findall(r"^RUN ((?:.*\\\n)*.*)$", text, re.MULTILINE))
    assert "linkwright" in text
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_and_options_exist():
    words = shlex.split(SLURM.replace("\\\n", " "), comments=True)
    is_understood(words[words.index("dissect") :])
    is_understood(launched()[launched().index("dissect") :])
    for text in FILES.values():
        for words in re.findall(r"^#.*(?:linkwright|\.sif) ((?:dissect|run) .*)$", text, re.MULTILINE):
            is_understood(shlex.split(words))
    with pytest.raises(click.UsageError):
        is_understood(["dissect", "--no-such-option"])


def test_container_and_recipe_are_the_same():
    def installed(text):
        (found,) = re.findall(r"apt-get install --yes --no-install-recommends (.*?)(?: \\)?\n", text)
        return found.split()

    assert installed(CONTAINER) == installed(RECIPE)
    assert re.search(r"FROM (\S+)", CONTAINER)[1] == re.search(r"From: (\S+)", RECIPE)[1]
    for text in (CONTAINER, RECIPE):
        assert '"$wheel[mpi]"' in text
        assert "PATH=/opt/linkwright/bin:$PATH" in text


def test_wheels_are_called_as_make_calls_them():
    built = re.search(r"--compatibility (\S+)", (ROOT / "Makefile").read_text())[1]
    for text in (CONTAINER, RECIPE):
        assert set(re.findall(r"manylinux_\d+_\d+", text)) == {built}


def test_a_pod_finds_the_program_and_keeps_the_run():
    spec = REPLICAS["Worker"]["template"]["spec"]
    (worker,) = spec["containers"]
    words = launched()
    slots = REPLICAS["Worker"]["replicas"] * JOB["MPIJob"]["spec"]["slotsPerWorker"]
    assert int(words[words.index("-np") + 1]) == slots
    assert "/opt/linkwright/bin/linkwright" in words
    assert f"--uid {spec['securityContext']['fsGroup']} " in CONTAINER
    (mount,) = worker["volumeMounts"]  # rank 0 writes the run, and it is a worker
    assert words[words.index("--runs") + 1] == mount["mountPath"]
    (volume,) = spec["volumes"]
    assert volume["name"] == mount["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == JOB["PersistentVolumeClaim"]["metadata"]["name"]
    (launcher,) = REPLICAS["Launcher"]["template"]["spec"]["containers"]
    assert launcher["image"] == worker["image"]


def test_every_file_is_described():
    told = (ROOT / "docs" / "containers.md").read_text()
    assert all(f"`packaging/{name}`" in told for name in FILES)

"""What containers and clusters are given: the syntax is right, commands exist, and the files agree with each other."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml

import log_cases
from linkwright.cli.main import linkwright

ROOT = Path(__file__).parent.parent.parent
FILES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "packaging").iterdir() if path.is_file()}
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


@pytest.mark.parametrize("name", ["slurm.sh", "prolog.sh", "each.sh", "notes.sh", "linkwright.def", "Containerfile"])
def test_scripts_are_right_shell(name):
    text = FILES[name]
    if name == "linkwright.def":  # the section that a shell runs
        text = text.partition("%post\n")[2].partition("%environment")[0]
    if name == "Containerfile":
        text = "\n".join(re.findall(r"^RUN ((?:.*\\\n)*.*)$", text, re.MULTILINE))
    assert "linkwright" in text or name == "notes.sh"
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
    assert [name for name in FILES if f"`packaging/{name}`" not in told] == []


# ---- where people are: a workflow, a commit, a prolog, packages of other systems


@pytest.fixture
def shell(tmp_path):
    """Run a script with the program on the PATH, in a folder with a right plan, a wrong one, and two logs."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (
        ("linkwright", f'exec {sys.executable} -m linkwright "$@"'),
        ("all_reduce_perf", f'cat "{tmp_path}/node.log"; exit "${{PERF_STATUS:-0}}"'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "plans").mkdir()
    right = subprocess.run(
        [sys.executable, "-m", "linkwright", "export", "allreduce/ring", "-p", "4", "--size", "1K", "--as", "lw"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (tmp_path / "plans/right.lw").write_text(right)
    (tmp_path / "plans/wrong.lw").write_text(right.replace("reduce", "copy"))
    for name, rate in (("fine", 480e3), ("slow", 320e3)):
        times = {1 << at: (1 << at) * 1.75 / rate for at in (28, 30, 32)}
        (tmp_path / f"{name}.log").write_text(log_cases.nccl(times=times))

    def run(words, **environment):
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"} | environment,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


def hook(name):
    (found,) = [one for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text()) if one["id"] == name]
    assert (found["language"], ROOT.joinpath(found["entry"]).is_file()) == ("script", True)
    return [str(ROOT / found["entry"]), *found["args"]]


def test_hooks_fail_if_one_file_fails(shell):
    verify, gate = hook("linkwright-verify"), hook("linkwright-gate")
    assert shell([*verify, "plans/right.lw"])[0] == 0
    assert shell([*verify, "plans/wrong.lw", "plans/right.lw"])[0] != 0
    assert shell([*gate, "fine.log"])[0] == 0
    status, said = shell([*gate, "slow.log", "fine.log"])
    assert status == 1
    assert (said.count("Verdict: suspicious"), said.count("Verdict: fine")) == (1, 1)
    assert shell([str(ROOT / "packaging/each.sh"), "verify", "plans/right.lw"])[0] == 2  # without --


@pytest.mark.parametrize(
    ("plans", "logs", "status"),
    [
        ("plans/right.lw", "", 0), ("plans/*.lw", "", 1), ("", "fine.log", 0), ("", "**/*.log", 1),
        ("plans/right.lw", "slow.log", 1), ("nothing/*.lw", "", 1), ("absent.lw", "", 1),
        ("plans/right.lw\nabsent.lw", "", 1),
    ],
)  # fmt: skip
def test_the_action_proves_plans_and_gates_logs(shell, plans, logs, status):
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    named = set(re.findall(r"inputs\.([\w-]+)", str(action["runs"])))
    assert named == action["inputs"].keys()
    given = {"PLANS": plans, "LOGS": logs, "VERIFY": "", "GATE": "", "EACH": str(ROOT / "packaging/each.sh")}
    assert step["env"].keys() == given.keys()
    found = shell(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], **given)
    assert found[0] == status, found[1]
    assert not re.search(r"linkwright: -(?!-gate: )", found[1])


@pytest.mark.parametrize(("rate", "gpus", "status"), [(480e3, 8, 0), (320e3, 8, 1), (320e3, 4, 0)])
def test_the_prolog_drains_a_slow_node_and_no_other(shell, tmp_path, rate, gpus, status):
    times = {1 << at: (1 << at) * 2 * (gpus - 1) / gpus / rate for at in (28, 30, 32)}
    (tmp_path / "node.log").write_text(log_cases.nccl(times=times, ranks=gpus))
    assert shell(["bash", str(ROOT / "packaging/prolog.sh")])[0] == status


@pytest.mark.parametrize("status", [1, 0])
def test_the_prolog_drains_a_node_with_wrong_results(shell, tmp_path, status):
    """nccl-tests prints its table, then fails; where it fails without one, nothing was measured."""
    healthy = log_cases.nccl(times={1 << at: (1 << at) * 1.75 / 480e3 for at in (28, 30, 32)})
    (tmp_path / "node.log").write_text(healthy.replace("      0", "      7") if status else "no CUDA device\n")
    assert shell(["bash", str(ROOT / "packaging/prolog.sh")], PERF_STATUS="1")[0] == status


def test_the_prolog_lets_the_job_start_where_the_program_itself_fails(shell, tmp_path):
    slow = log_cases.nccl(times={1 << at: (1 << at) * 1.75 / 320e3 for at in (28, 30, 32)})
    (tmp_path / "node.log").write_text(slow)
    (tmp_path / "bin/linkwright").write_text("#!/bin/sh\necho 'linkwright: out of memory' >&2\nexit 1\n")
    assert shell(["bash", str(ROOT / "packaging/prolog.sh")])[0] == 0


def test_notes_of_a_release_are_its_section_of_the_changelog(shell, tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 0.2.0 (2027)\n\n- new\n\n## 0.1.0\n\n- old\n\n## 0.0.9\n")
    notes = str(ROOT / "packaging/notes.sh")
    assert shell([notes, "0.2.0", "CHANGELOG.md"]) == (0, "\n- new\n\n")
    assert shell([notes, "0.1.0", "CHANGELOG.md"]) == (0, "\n- old\n\n")
    assert shell([notes, "0.0.9", "CHANGELOG.md"])[0] == 1
    assert shell([notes, "0.1", "CHANGELOG.md"])[0] == 1


def test_packages_of_other_systems_need_what_the_wheel_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.sub(r"\s.*", "", one) for one in project["dependencies"]}
    conda = yaml.safe_load((ROOT / "packaging/conda/recipe.yaml").read_text().replace("${{", "").replace("}}", ""))
    assert {one.replace(" ", "") for one in conda["requirements"]["run"]} - {"python>=3.11"} == needed
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert (conda["context"]["version"], project["requires-python"]) == (cargo["version"], ">=3.11")
    spack = (ROOT / "packaging/spack/linkwright/package.py").read_text()
    compile(spack, "package.py", "exec")
    for one in needed:
        name, _, least = one.partition(">=")
        assert re.search(rf'"py-{name}@{re.escape(least.removesuffix(".0"))}:"', spack), name
    assert f"rust@{cargo['rust-version']}:" in spack


def test_a_release_calls_what_the_makefile_has():
    text = (ROOT / ".github/workflows/release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"run: make ([\w-]+)", text)) <= targets
    assert {need for job in jobs.values() for need in ([job["needs"]] if isinstance(job.get("needs"), str)
            else job.get("needs", []))} <= jobs.keys()  # fmt: skip

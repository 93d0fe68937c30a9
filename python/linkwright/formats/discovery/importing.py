"""From what a system says about itself to a machine file: the format is recognised, the file checked before it is
written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from linkwright import _native
from linkwright.base import extras
from linkwright.base.errors import FileError, LinkwrightError, PluginError, UsageError, check_known
from linkwright.formats.discovery import adapters, clusters, cpu_file, fitted, hosts, nccl_graph, networks, node_file
from linkwright.formats.discovery.node import CpuHost
from linkwright.machines import AS_DESCRIBED, Shelf, gpus

MOST_BYTES = 1 << 26


def keys() -> list[str]:
    """The keys of all formats, those of hosts first; loads no package."""
    return [*(host.key for host in hosts.HOSTS), *networks.keys()]


def entry(key: str) -> dict[str, object]:
    """One format, as `list` and `describe` print it; one of a package that cannot be used says why."""
    from linkwright.base import plugins

    try:
        one = next((host for host in hosts.HOSTS if host.key == key), None) or networks.find(key)
    except PluginError as error:
        return plugins.unusable(networks.GROUP, key, str(error))
    return {"key": one.key, "summary": one.summary, "command": "machines import"}


def entries() -> list[dict[str, object]]:
    """All formats, as `list` and `describe` print them."""
    return [entry(key) for key in keys()]


def machine_file(
    text: str,
    file: str,
    *,
    name: str,
    format_key: str | None = None,
    gpu: str | None = None,
    graph: str | None = None,
    graph_file: str = "graph",
    ports: Sequence[adapters.Adapter] = (),
    node: str | None = None,
    fabric: str | None = None,
    logs: Sequence[fitted.Log] = (),
    collective: str | None = None,
    rates: Sequence[str] = (),
) -> str:
    """The machine file that `text`, read from `file`, describes.

    Args:
        graph: the text of NCCL's graph XML of the same host.
        graph_file: its name, for messages.
        ports: adapters of a host, where its description leaves them or their rates out.
        name: of the machine.
        format_key: one of `keys`; by default the format is recognised.
        gpu: what the GPUs of a host are, such as `H100`, where the file cannot say.
        node: the machine that each computer of a network is.
        fabric: the network whose software and latencies the computers have; by default that of the node.
        logs: what benchmarks printed on a host, to which its start-ups and rates are fitted.
        collective: what the logs measured, where they do not say.
        rates: of links of a network that states none, such as `port=400Gb/s`.

    Raises:
        UsageError: an unknown format or GPU, or a GPU for a file that is of no host.
        FileError: the file is not valid, or gives no machine.

    """
    if len(text) > MOST_BYTES:
        raise FileError(f"{file}: more than {MOST_BYTES >> 20} MiB; descriptions are shorter than that")
    if not text.strip():
        raise FileError(f"{file}: is empty; give the description that the system reports")
    host, network, problems = None, None, []
    if format_key:
        host, network = _called(format_key)
    elif not (host := hosts.recognised(text)):
        network, problems = networks.recognised(text)
    if node and not network:
        raise UsageError(f"--node {node}: {file} does not describe a network of computers; omit --node")
    if fabric and not node:
        raise UsageError(f"--fabric {fabric}: is the network between nodes; name their machine with --node")
    if rates and not network:
        raise UsageError(f"--rate {rates[0]}: {file} does not describe a network of computers; omit --rate")
    if collective and not logs:
        raise UsageError(f"--collective {collective}: names what a log measured; give the log with --fit")
    if not host and not network and nccl_graph.recognises(text):
        raise UsageError(
            f"{file}: is NCCL's graph, which does not describe a host; give the topology of the same run first "
            "(NCCL_TOPO_DUMP_FILE), then the graph"
        )
    if logs and not host:
        raise UsageError(f"--fit {logs[0].file}: {file} does not describe a host with GPUs; omit --fit")
    if host:
        found = host.read(text, file, host.check(gpus.called(gpu), file) if gpu else None)
        if isinstance(found, CpuHost):
            if graph is not None or logs:
                what = f"--fit {logs[0].file}" if logs else graph_file
                raise UsageError(f"{what}: {file} describes no GPUs, which it is about; omit it. {cpu_file.MEASURE}")
            adapters.add(found, ports)
            return _checked(cpu_file.text(found, name), file)
        if graph is not None:
            found.channels = nccl_graph.channels(graph, graph_file), "NCCL: the ring of its graph, doubled"
        adapters.add(found, ports)
        made = _checked(node_file.text(found, name), file)
        return _checked(fitted.text(made, found, logs, collective), file) if logs else made
    if graph is not None:
        raise UsageError(f"{graph_file}: {file} does not describe a host, so a graph of NCCL adds nothing; omit it")
    if gpu:
        raise UsageError(f"--gpu {gpu}: {file} does not describe a host with GPUs; omit --gpu")
    if network and node:
        described = networks.described(network, text, file, rates)
        return networks.checked(clusters.machine_text(described, node, fabric, name, file), file)
    if network:
        return networks.machine_file(network, text, file, name, rates)
    raise _unrecognised(file, problems)


def _called(key: str) -> tuple[hosts.Host | None, networks.Network | None]:
    """The format of a key, of a host or of a network."""
    known = keys()
    if key in networks.PACKAGED and key not in known:
        raise UsageError(f"--as {key}: needs linkwright-networks, which is not installed; {_install()}")
    check_known("format", key, known, lists="linkwright list machine-importers")
    host = next((one for one in hosts.HOSTS if one.key == key), None)
    return host, None if host else networks.find(key)


def _unrecognised(file: str, problems: Sequence[PluginError]) -> FileError:
    """The error for a file in no format; `problems` are those of packages that might have read it."""
    known = keys()
    cure = "say which with --as"
    if missing := [key for key in networks.PACKAGED if key not in known]:
        cure += f", or, for {', '.join(missing)}, install linkwright-networks: {_install()}"
    said = [f"in no format that is known ({', '.join(known)}); {cure}", *map(str, problems)]
    return FileError(f"{file}: {'; '.join(said)}")


def _install() -> str:
    return extras.install_package("linkwright-networks")


def _checked(made: str, file: str) -> str:
    """The text of a machine file that loads."""
    try:
        _native.Draft(made, file, Shelf(Path(f"{file}.toml")), AS_DESCRIBED).machine()
    except LinkwrightError as error:
        raise FileError(f"{file}: gives no machine: {error}") from error
    return made

"""Launches in the Python of the runtime (3.10 or 3.12, NumPy 1): it knows ttnn, and nothing of linkwright.

A line of JSON says what to do; rows of bytes follow. The first answer tells about the device.

    in    {"kernel": path, "defines": [[name, value]], "cores": [[x, y]], "size": [columns, lines], "words": n,
           "network": that of the first processor, "arguments": [[words] by processor]}, then columns x lines x words
           x 4 bytes
    out   {"grid": [columns, lines], "l1_bytes": n, ...}, then for each launch {"began_s", "ended_s"} and as many bytes
          {"error": text, "code": word} instead, where something fails
"""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

SIMULATOR = "TT_METAL_SIMULATOR"
_TABLE = 16  # entries of a table of coordinates


class RefusedError(Exception):
    """What the user can mend, with a code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def prepare():
    """Set what the runtime reads when it is loaded; the name of the simulator, or None on a board."""
    found = importlib.util.find_spec("ttnn")
    if found is None:
        raise RefusedError("no-runtime", f"the Python of {sys.prefix} has no ttnn")
    root = pathlib.Path(found.submodule_search_locations[0])
    compiler = root / "runtime/sfpi/compiler/bin/riscv-tt-elf-g++"
    if subprocess.run([compiler, "--version"], capture_output=True).returncode if compiler.exists() else True:
        raise RefusedError("no-compiler", f"there is no compiler for the cores at {compiler}")
    os.environ["PATH"] = f"{pathlib.Path(sys.prefix) / 'bin'}:{os.environ.get('PATH', '')}"
    os.environ.setdefault("TT_METAL_RUNTIME_ROOT", str(root))
    os.environ.setdefault("TT_METAL_CACHE", str(pathlib.Path(sys.prefix) / "cache"))
    os.environ.setdefault("TT_METAL_LOGS_PATH", str(pathlib.Path.cwd()))
    os.environ.setdefault("TT_LOGGER_LEVEL", "error")
    os.environ.setdefault("LOGURU_LEVEL", "ERROR")
    simulator = simulator_of(os.environ.get(SIMULATOR))
    if simulator:
        os.environ["TT_METAL_SLOW_DISPATCH_MODE"] = "1"  # the only way of launching that simulators know
        os.environ.setdefault("TT_SIM_COST_MODEL", "1")  # wolfpine's; otherwise packets arrive in the next cycle
    return simulator


def simulator_of(path):
    """The name of the simulator; the one of the registry where there is neither a board nor a choice."""
    own = importlib.util.find_spec("framework.sim") if importlib.util.find_spec("framework") else None
    if path is None:
        if pathlib.Path("/dev/tenstorrent").exists():
            return None
        if own is None:
            raise RefusedError("no-device", "there is no board (/dev/tenstorrent), and no simulator is installed")
    elif not pathlib.Path(path).exists():
        raise RefusedError("no-simulator", f"{SIMULATOR}={path}: there is no such file or folder")
    wolfpine = None
    if own is not None:
        from framework.sim import simulator_dir

        wolfpine = str(simulator_dir("wormhole"))
        os.environ.setdefault(SIMULATOR, wolfpine)
    chosen = os.environ[SIMULATOR]
    is_own = wolfpine is not None and pathlib.Path(wolfpine).parent in pathlib.Path(chosen).parents
    if not is_own:
        return pathlib.Path(chosen).stem
    # The physical coordinates of a worker may be those of a DRAM tile on network 1, and wolfpine takes them for it.
    # Boards have translated ones, and so does the chip of this description.
    described = pathlib.Path(wolfpine, "cluster_descriptor.yaml")
    if described.exists():
        os.environ.setdefault("TT_METAL_MOCK_CLUSTER_DESC_PATH", str(described))
    return "wolfpine"


def guard():
    """Leave a process that ends this one, and simulators that it has started, when the session is gone.

    A call of the runtime may hang, so nothing in this process could do it.
    """
    session, own = os.getppid(), os.getpid()
    if os.fork():
        return
    os.setsid()
    while os.path.exists(f"/proc/{session}") and os.getppid() == own:  # noqa: PTH110
        time.sleep(0.5)
    if os.getppid() == own:
        for child in pathlib.Path(f"/proc/{own}/task/{own}/children").read_text().split():
            if int(child) != os.getpid():
                os.kill(int(child), signal.SIGKILL)
        os.kill(own, signal.SIGKILL)
    os._exit(0)


class OpenChip:
    """The device, open."""

    def __init__(self):
        import ttnn

        self.ttnn = ttnn
        self.device = ttnn.open_device(device_id=0)

    def about(self, simulator):
        """What the session needs to know."""
        ttnn, grid = self.ttnn, self.device.compute_with_storage_grid_size()
        return {
            "grid": [grid.x, grid.y],
            "l1_bytes": ttnn.get_memory_view(self.device, ttnn.BufferType.L1).largest_contiguous_bytes_free_per_bank,
            "chip": str(self.device.arch()).split(".")[-1].lower(),
            "runtime": importlib.metadata.version("ttnn"),
            "simulator": simulator,
        }

    def run(self, asked, rows):
        """One launch; the rows that the cores leave."""
        import numpy as np

        ttnn, (columns, lines) = self.ttnn, asked["size"]
        every = [ttnn.CoreCoord(at % columns, at // columns) for at in range(columns * lines)]
        whole = ttnn.CoreRangeSet({ttnn.CoreRange(every[0], every[-1])})
        shards = ttnn.ShardSpec(whole, [1, asked["words"]], ttnn.ShardOrientation.ROW_MAJOR)
        memory = ttnn.MemoryConfig(ttnn.TensorMemoryLayout.HEIGHT_SHARDED, ttnn.BufferType.L1, shards)
        tensor = ttnn.Tensor(
            rows, device=self.device, layout=ttnn.ROW_MAJOR_LAYOUT, mem_config=memory, data_type=ttnn.uint32
        )
        physical = [self.device.worker_core_from_logical_core(core) for core in every]
        xs, ys = [at.x for at in physical[:columns]], [at.y for at in physical[::columns]]
        if any(at.x != xs[i % columns] or at.y != ys[i // columns] for i, at in enumerate(physical)):
            raise RefusedError("no-rectangle", "the cores of a line have different coordinates; choose other cores")
        tables = xs + [0] * (_TABLE - columns) + ys + [0] * (_TABLE - lines)
        used = [ttnn.CoreCoord(x, y) for x, y in asked["cores"]]
        ranges = whole if len(used) == len(every) else ttnn.CoreRangeSet({ttnn.CoreRange(core, core) for core in used})
        kernels = []
        for place, own in enumerate(asked["arguments"]):
            number = place ^ asked["network"]
            arguments = [tensor.buffer_address(), *own, *tables]
            kernels.append(
                ttnn.KernelDescriptor(
                    kernel_source=pathlib.Path(asked["kernel"]).read_text(encoding="utf-8"),
                    source_type=ttnn.KernelDescriptor.SourceType.SOURCE_CODE,
                    core_ranges=ranges,
                    defines=[tuple(define) for define in asked["defines"]],
                    runtime_args=[(core, arguments) for core in used],
                    config=ttnn.DataMovementConfigDescriptor(
                        processor=(ttnn.DataMovementProcessor.RISCV_0, ttnn.DataMovementProcessor.RISCV_1)[number],
                        noc=(ttnn.NOC.NOC_0, ttnn.NOC.NOC_1)[number],
                    ),
                )
            )
        began = time.monotonic()
        ttnn.generic_op([tensor, tensor], ttnn.ProgramDescriptor(kernels=kernels, semaphores=[], cbs=[]))
        left = tensor.cpu().to_numpy()
        return began, time.monotonic(), np.ascontiguousarray(np.asarray(left).astype(np.uint32).reshape(rows.shape))


def serve(given, out):
    """Answer launches until the input ends."""

    def say(values, data=b""):
        out.write(json.dumps(values).encode() + b"\n" + data)
        out.flush()

    try:
        simulator = prepare()
        import numpy as np

        chip = OpenChip()
        say(chip.about(simulator))
    except RefusedError as error:
        return say({"error": str(error), "code": error.code})
    except Exception as error:  # the runtime raises what it likes
        return say({"error": f"the device could not be opened: {_short(error)}", "code": "no-device"})
    for line in given:
        asked = json.loads(line)
        (columns, lines), words = asked["size"], asked["words"]
        data = bytearray(given.read(4 * columns * lines * words))  # the runtime takes no array that is read-only
        rows = np.frombuffer(data, np.uint32).reshape(columns * lines, words)
        try:
            began, ended, left = chip.run(asked, rows)
            say({"began_s": began, "ended_s": ended}, left.tobytes())
        except RefusedError as error:
            say({"error": str(error), "code": error.code})
        except Exception as error:
            say({"error": f"the runtime failed: {_short(error)}", "code": "failed"})
    chip.ttnn.close_device(chip.device)


def _short(error):
    """The first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:300] or type(error).__name__


if __name__ == "__main__":
    guard()
    sys.path.pop(0)  # the folder of this file, whose names are for linkwright
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # anything else that prints goes to stderr
    serve(sys.stdin.buffer, answers)

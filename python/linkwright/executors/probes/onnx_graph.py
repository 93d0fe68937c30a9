"""Graphs of a single node, made in memory and run by onnxruntime on the processor.

Input and output are bound to memory of onnxruntime once, so a run neither copies nor allocates. Where it has no
kernel for a data type, onnxruntime converts to 32-bit floats and back; then the number would be about
another type, so the optimised graph is looked at and such a probe is waived.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from linkwright.base.errors import WaivedError
from linkwright.base.extras import install

CURE = f"install it with {install('compute')}"


class Graph:
    """One node, ready to run."""

    def __init__(self, key: str, node: object, shapes: dict[str, tuple], constants: dict, kind: np.dtype, threads: int):
        onnx, runtime = _libraries(key)
        of = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
        values = {name: onnx.helper.make_tensor_value_info(name, of, shape) for name, shape in shapes.items()}
        graph = onnx.helper.make_graph(
            [node],
            key,
            [value for name, value in values.items() if name != "y"],
            [values["y"]],
            [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
        )
        opset = onnx.helper.make_opsetid("", 17)
        model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9).SerializeToString()
        if kind != np.float32:
            _computes_as_such(key, onnx, runtime, model, kind)
        self._session = runtime.InferenceSession(model, _options(runtime, threads), ["CPUExecutionProvider"])
        self._binding = self._session.io_binding()
        self._values = {}
        for name, shape in shapes.items():
            value = runtime.OrtValue.ortvalue_from_numpy(np.zeros(shape, kind))
            self._values[name] = value
            bind = self._binding.bind_ortvalue_output if name == "y" else self._binding.bind_ortvalue_input
            bind(name, value)

    def run(self, *inputs: np.ndarray) -> np.ndarray:
        """One run on these inputs."""
        for (name, value), array in zip(self._values.items(), inputs, strict=False):
            value.update_inplace(array)
            self._binding.bind_ortvalue_input(name, value)
        self.repeat(1)
        return self.result()

    def repeat(self, times: int) -> None:
        """Runs on the inputs of the last `run`."""
        for _ in range(times):
            self._session.run_with_iobinding(self._binding)

    def result(self) -> np.ndarray:
        """What the last run gave."""
        return self._values["y"].numpy()


def matmul(key: str, n: int, threads: int) -> Graph:
    """Y = A B in 16-bit floats."""
    onnx, _ = _libraries(key)
    node = onnx.helper.make_node("MatMul", ["a", "b"], ["y"])
    return Graph(key, node, dict.fromkeys(("a", "b", "y"), (n, n)), {}, np.dtype(np.float16), threads)


def convolution(key: str, layer: dict, batch: int, weights: np.ndarray, threads: int) -> Graph:
    """One layer with constant weights, padded so that the output is ceil(input / stride) wide."""
    onnx, _ = _libraries(key)
    node = onnx.helper.make_node(
        "Conv", ["x", "w"], ["y"], strides=[layer["stride"]] * 2, group=layer["groups"], auto_pad="SAME_UPPER"
    )
    shapes = {
        "x": (batch, layer["in_channels"], layer["input"], layer["input"]),
        "y": (batch, layer["out_channels"], layer["output"], layer["output"]),
    }
    return Graph(key, node, shapes, {"w": weights}, weights.dtype, threads)


def _libraries(key: str) -> tuple:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
        import onnxruntime
    except ImportError as error:
        raise WaivedError(f"{key}: waived: {error.name} is not installed; {CURE}") from error
    return onnx, onnxruntime


def _options(runtime: object, threads: int) -> object:
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # warnings would go to the user's terminal
    return options


def _computes_as_such(key: str, onnx: object, runtime: object, model: bytes, kind: np.dtype) -> None:
    """Waives where the optimised graph converts, or where there is no kernel at all."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "optimised.onnx"
        options = _options(runtime, 1)
        options.optimized_model_filepath = str(file)
        try:
            runtime.InferenceSession(model, options, ["CPUExecutionProvider"])
        except runtime.capi.onnxruntime_pybind11_state.NotImplemented as error:
            raise WaivedError(f"{key}: waived: onnxruntime has no {kind} kernel on this processor") from error
        converts = any(node.op_type == "Cast" for node in onnx.load(file).graph.node)
    if converts:
        raise WaivedError(
            f"{key}: waived: on this processor onnxruntime converts {kind} to 32-bit floats, so its time is not that "
            f"of {kind}; ask for f32"
        )

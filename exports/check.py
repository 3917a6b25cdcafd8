"""Checks a SavedModel the way TensorFlow Serving would meet it.

    python exports/check.py exports/models/recall/1

Loads it in a Session, as the server does (`tf.saved_model.load` takes another path and finds
variables that the server misses), looks for ops that a stock server lacks and for XLA, which
the server switches off, verifies the manifest, and replays the warm-up requests against the
answers that the exporting process got. One line a check; the exit status says whether all passed.
"""

import hashlib
import os
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from absl import app, flags, logging
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import prediction_log_pb2

MANIFEST = "assets.extra/SHA256SUMS"
WARMUP = "assets.extra/tf_serving_warmup_requests"

INPUT_TYPES = {dtype.as_datatype_enum for dtype in (tf.string, tf.int32, tf.float32)}

# Ops of TensorFlow's core that every build of the server has: no Python, network, plug-in or GPU.
CORE_OPS = frozenset(
    """
    Const Placeholder PlaceholderWithDefault Identity IdentityN NoOp StopGradient Shape ShapeN
    Size Rank VarHandleOp ReadVariableOp AssignVariableOp VarIsInitializedOp DisableCopyOnRead
    SaveV2 RestoreV2 MergeV2Checkpoints ShardedFilename StringJoin
    PartitionedCall StatefulPartitionedCall While StatelessWhile If StatelessIf LoopCond
    TensorListFromTensor TensorListGetItem TensorListReserve TensorListSetItem TensorListStack
    TensorListPushBack TensorListPopBack TensorListLength TensorListElementShape EmptyTensorList
    HashTableV2 LookupTableFindV2 LookupTableImportV2 LookupTableSizeV2
    InitializeTableFromTextFileV2 Assert
    Add AddN AddV2 Sub Mul Div RealDiv DivNoNan MulNoNan FloorDiv FloorMod Neg Abs Sign Reciprocal
    Square Sqrt Rsqrt SquaredDifference Pow Exp Expm1 Log Log1p Sin Cos Tanh Erf Erfc Floor Ceil
    Round Maximum Minimum ClipByValue Cumsum Cast Bitcast MatMul BatchMatMul BatchMatMulV2
    BatchMatMulV3 Einsum L2Loss BiasAdd Conv2D Sigmoid Relu Elu Selu Softplus Softsign Softmax
    LogSoftmax IsFinite IsNan Digamma BitwiseAnd
    Equal NotEqual Less LessEqual Greater GreaterEqual LogicalAnd LogicalOr LogicalNot
    Select SelectV2 Where
    Sum Mean Prod Max Min All Any ArgMax ArgMin TopKV2 UnsortedSegmentSum
    Fill ZerosLike OnesLike Range OneHot Reshape Squeeze ExpandDims Transpose ReverseV2
    ReverseSequence Pack Unpack ConcatV2 Split SplitV Tile BroadcastTo BroadcastArgs Pad PadV2
    Slice StridedSlice GatherV2 GatherNd ScatterNd TensorScatterAdd TensorScatterUpdate
    MatrixBandPart MatrixDiagV3 InvertPermutation UniqueV2 UniqueWithCounts DenseBincount
    EnsureShape ResourceGather
    StatelessRandomGetKeyCounter StatelessRandomUniformV2
    DecodeRaw AsString StringLength StringLower StringStrip Substr ReduceJoin StringToNumber
    StringSplitV2 StringToHashBucketFast RegexReplace StaticRegexReplace RegexFullMatch
    StaticRegexFullMatch UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode
    RaggedTensorToTensor RaggedTensorFromVariant RaggedTensorToVariant RaggedGather RaggedRange
    """.split()
)


class Servable:
    """A SavedModel in a Session, as TensorFlow Serving holds it.

    Args:
        directory: A version, `<model>/<number>`.

    Example:

    >>> with Servable("exports/models/recall/1") as servable:
    ...     servable.predict({"text": np.array([b"a1s2d3f4g5??d"])})["digit"]
    array([b'3'], dtype=object)
    """

    def __init__(self, directory: str | os.PathLike):
        self._directory = directory
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
        self.session = tf.compat.v1.Session(graph=tf.Graph(), config=config)
        self.meta_graph = tf.compat.v1.saved_model.load(
            self.session, [tf.saved_model.SERVING], str(directory)
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def predict(
        self, inputs: dict[str, np.ndarray], signature: str = "serving_default"
    ) -> dict[str, np.ndarray]:
        """Returns the outputs of a signature, by name.

        Raises:
            ValueError: If the SavedModel has no such signature, or it takes other inputs.
        """
        definitions = self.meta_graph.signature_def
        if signature not in definitions:
            known = sorted(name for name in definitions if not name.startswith("__"))
            raise ValueError(f"{self._directory} has the signatures {known} alone.")
        definition = definitions[signature]
        if sorted(inputs) != sorted(definition.inputs):
            raise ValueError(
                f"{signature} of {self._directory} takes {sorted(definition.inputs)}, but "
                f"{sorted(inputs)} was given."
            )
        feed = {definition.inputs[name].name: value for name, value in inputs.items()}
        fetch = {name: output.name for name, output in definition.outputs.items()}
        return self.session.run(fetch, feed)


def versions(model_dir: str | os.PathLike) -> list[int]:
    """Returns the versions in a model's folder, in order: the server ignores other names."""
    model_dir = Path(model_dir)
    if not model_dir.is_dir():
        return []
    return sorted(int(path.name) for path in model_dir.iterdir() if path.name.isdecimal())


def sha256_sums(directory: Path) -> dict[str, str]:
    """Returns the SHA-256 of every file of a SavedModel but its manifest, by relative path."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    sums = {}
    for path in files:
        name = path.relative_to(directory).as_posix()
        if name != MANIFEST:
            sums[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return sums


def check_manifest(directory: Path) -> str:
    """Compares the files with the manifest."""
    lines = (directory / MANIFEST).read_text().splitlines()
    expected = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    found = sha256_sums(directory)
    wrong = sorted(name for name, _ in expected.items() ^ found.items())
    if wrong:
        raise ValueError(f"not as they were exported: {', '.join(dict.fromkeys(wrong))}")
    return f"{len(found)} files are as they were exported"


def _saved_model(directory: Path) -> saved_model_pb2.SavedModel:
    proto = saved_model_pb2.SavedModel()
    proto.ParseFromString((directory / "saved_model.pb").read_bytes())
    return proto


def _nodes(proto: saved_model_pb2.SavedModel) -> Iterator:
    for meta_graph in proto.meta_graphs:
        yield from meta_graph.graph_def.node
        for function in meta_graph.graph_def.library.function:
            yield from function.node_def


def check_ops(directory: Path, allowed: Iterable[str] = ()) -> str:
    """Compares the ops of all graphs and functions with `CORE_OPS` and `allowed`."""
    ops = {node.op for node in _nodes(_saved_model(directory))}
    foreign = sorted(ops - CORE_OPS - set(allowed))
    if foreign:
        raise ValueError(f"not on the list of core ops: {', '.join(foreign)}")
    return f"{len(ops)} ops, all on the list"


def check_xla(directory: Path) -> str:
    """Looks for ops and attributes that ask for XLA, which the server has switched off."""
    proto = _saved_model(directory)
    functions = [f for graph in proto.meta_graphs for f in graph.graph_def.library.function]
    nodes = list(_nodes(proto))
    marked = {node.op for node in nodes if node.op.startswith("Xla")}
    for owner in [*nodes, *functions]:
        marked |= {key for key in owner.attr if "xla" in key.lower() or "jit_compile" in key}
    if marked:
        raise ValueError(f"asks for XLA by {', '.join(sorted(marked))}")
    return f"none in {len(nodes)} nodes of {len(functions)} functions and the main graph"


def check_signatures(directory: Path) -> str:
    """Sees that text or numbers go in and that everything has a batch dimension."""
    (meta_graph,) = _saved_model(directory).meta_graphs
    signatures = {
        name: signature
        for name, signature in meta_graph.signature_def.items()
        if signature.method_name == tf.saved_model.PREDICT_METHOD_NAME
    }
    if "serving_default" not in signatures:
        raise ValueError("there is no signature serving_default")
    for name, signature in signatures.items():
        for key, value in signature.inputs.items():
            if value.dtype not in INPUT_TYPES:
                raise ValueError(f"input {key} of {name} is not of strings, int32 or float32")
        for key, value in [*signature.inputs.items(), *signature.outputs.items()]:
            dimensions = value.tensor_shape.dim
            if not dimensions or dimensions[0].size != -1:
                raise ValueError(f"{key} of {name} has no batch dimension of any size")
    return "; ".join(
        f"{name}: {', '.join(signature.inputs)} -> {', '.join(sorted(signature.outputs))}"
        for name, signature in sorted(signatures.items())
    )


def check_warmup(directory: Path) -> str:
    """Loads the model in a Session and compares its answers to the warm-up requests."""
    records = list(tf.data.TFRecordDataset(str(directory / WARMUP)).as_numpy_iterator())
    if not 1 <= len(records) <= 1000:
        raise ValueError(f"the server takes 1 to 1000 warm-up requests, there are {len(records)}")
    times = {}
    with Servable(directory) as servable:
        for record in records:
            log = prediction_log_pb2.PredictionLog.FromString(record).predict_log
            inputs = {key: tf.make_ndarray(value) for key, value in log.request.inputs.items()}
            name = log.request.model_spec.signature_name
            outputs = servable.predict(inputs, name)
            for key, value in log.response.outputs.items():
                _compare(key, outputs[key], tf.make_ndarray(value))
            if name not in times:  # The first time, a Session has its graph to optimize.
                start = time.perf_counter()
                servable.predict(inputs, name)
                times[name] = f"{name} {1000 * (time.perf_counter() - start):.0f} ms"
    return (
        f"loaded in a Session; {len(records)} requests answered as by the exported model; the "
        f"first one takes {', '.join(times.values())}"
    )


def _compare(name: str, found: np.ndarray, expected: np.ndarray) -> None:
    if expected.dtype == object:
        agree = np.array_equal(found, expected)
    else:
        agree = np.all(np.isfinite(found)) and np.allclose(found, expected, rtol=1e-4, atol=1e-6)
    if not agree:
        raise ValueError(
            f"{name} is {found.tolist()}, but the exported model's {expected.tolist()}"
        )


def check(directory: str | os.PathLike, allowed: Iterable[str] = ()) -> bool:
    """Runs all checks on a SavedModel, prints a line for each.

    Args:
        directory: A version, `<model>/<number>`.
        allowed: Names of ops to accept beside `CORE_OPS`.

    Returns:
        Whether all checks passed.
    """
    directory = Path(directory)
    checks = {
        "manifest": check_manifest,
        "ops": lambda directory: check_ops(directory, allowed),
        "xla": check_xla,
        "signatures": check_signatures,
        "warm-up": check_warmup,
    }
    passed = True
    for name, run in checks.items():
        try:
            verdict = f"ok    {name}: {run(directory)}"
        except (OSError, ValueError, KeyError, DecodeError, tf.errors.OpError) as error:
            passed = False
            verdict = f"FAIL  {name}: {textwrap.shorten(str(error), 500)}"
        print(f"{directory}  {verdict}")
    return passed


def quiet() -> None:
    """Keeps TensorFlow's notes about its own doings out of the output."""
    logging.set_verbosity(logging.ERROR)
    tf.get_logger().setLevel("ERROR")


def main(argv: list[str]) -> None:
    """Checks the SavedModels that the command line names."""
    if len(argv) < 2:
        raise app.UsageError("Name the versions to check, such as exports/models/recall/1.")
    quiet()
    allowed = flags.FLAGS.allow_ops
    if allowed:
        import tensorflow_text  # noqa: F401  (registers its ops)
    results = [check(directory, allowed) for directory in argv[1:]]
    sys.exit(not all(results))


if __name__ == "__main__":
    flags.DEFINE_list("allow_ops", [], "Ops of tensorflow-text to accept, by name.")
    app.run(main)

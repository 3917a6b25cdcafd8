"""Exports a trained run to a SavedModel for TensorFlow Serving.

    python -m exports.export --workdir=runs/recall --export_dir=exports/models/recall

The server loads a version the moment its numbered folder appears, so the folder is written
under another name, checked by loading it in a fresh process the way the server does, and only
then renamed.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from types import ModuleType

import keras
import tensorflow as tf
from absl import app, flags
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

import rum_keras  # noqa: F401  (registers the layers that load_model needs)
from exports import babi, check, copying, pointer_generator, ptb, recall, xsum
from exports.signature import Signature
from zoo import checkpoint

TASKS = {
    "zoo.babi.train": babi,
    "zoo.copying.train": copying,
    "zoo.pointer_generator.train": pointer_generator,
    "zoo.ptb.train": ptb,
    "zoo.recall.train": recall,
    "zoo.xsum.train": xsum,
}


def load_run(directory: str | os.PathLike) -> tuple[keras.Model, ModuleType]:
    """Loads the best model of a training run, without mixed precision.

    Args:
        directory: A run or a folder of weights: it holds best.keras and metrics.json.

    Returns:
        The model, and the module of `exports` that knows its text form.

    Raises:
        FileNotFoundError: If best.keras or metrics.json is absent.
        ValueError: If the recipe that wrote the run has no export, or a file is damaged.
    """
    directory = Path(directory)
    for name in ("best.keras", "metrics.json"):
        if not (directory / name).is_file():
            raise FileNotFoundError(
                f"There is no {name} in {directory}: a run has it once its training has ended; "
                "run the same training command again to finish it."
            )
    try:
        recipe = json.loads((directory / "metrics.json").read_text())["recipe"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{directory / 'metrics.json'} is damaged: {error}. Remove it, and run the same "
            "training command again, which writes it."
        ) from error
    if recipe not in TASKS:
        raise ValueError(
            f"{directory / 'metrics.json'} names the recipe {recipe!r}, but only "
            f"{', '.join(TASKS)} can be exported."
        )
    return checkpoint.load_best(directory / "best.keras", recipe), TASKS[recipe]


def write_warmup(directory: Path, name: str, signatures: dict[str, Signature]) -> None:
    """Writes requests that the server runs before it serves the version, with their answers.

    The server ignores the answers; `exports.check` compares them with its own.

    Args:
        directory: The SavedModel.
        name: The name of the model.
        signatures: What was exported, by name.
    """
    with tf.io.TFRecordWriter(str(directory / check.WARMUP)) as writer:
        for key, signature in signatures.items():
            for inputs in signature.requests:
                writer.write(_record(name, key, signature, inputs).SerializeToString())


def _record(
    name: str, key: str, signature: Signature, inputs: dict
) -> prediction_log_pb2.PredictionLog:
    """One request and its answer, in the server's format."""
    request, response = predict_pb2.PredictRequest(), predict_pb2.PredictResponse()
    for spec in (request.model_spec, response.model_spec):
        spec.name, spec.signature_name = name, key
    tensors = {name: signature.tensor(name, values) for name, values in inputs.items()}
    for input_name, tensor in tensors.items():
        request.inputs[input_name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
    for output_name, tensor in signature.answer(**tensors).items():
        response.outputs[output_name].CopyFrom(tf.make_tensor_proto(tensor.numpy()))
    log = prediction_log_pb2.PredictLog(request=request, response=response)
    return prediction_log_pb2.PredictionLog(predict_log=log)


def write_manifest(directory: Path) -> None:
    """Writes the SHA-256 of every file, in the format of `sha256sum -c`."""
    sums = check.sha256_sums(directory)
    text = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    (directory / check.MANIFEST).write_text(text)


def write(
    model: keras.Model, task: ModuleType, directory: Path, name: str, run: Path | None = None
) -> None:
    """Writes a SavedModel with its warm-up requests and manifest into a new folder.

    Args:
        model: The trained model.
        task: The module of `exports` that knows the model's text form, by `signatures`.
        directory: The folder to write.
        name: The name of the model.
        run: The folder of the run, for tasks that keep more there than the model.
    """
    signatures = task.signatures(model, run)
    # A plain tf.saved_model.save of a Keras 3 model loads in Python, but not in the server.
    archive = keras.export.ExportArchive()
    archive.track(model)
    for key, signature in signatures.items():
        for table in signature.tracked:
            archive.track(table)
        archive.add_endpoint(key, signature.answer, input_signature=signature.specs())
    # A server needs no gradients; those of the layers' own would be saved beside the answer.
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    archive.write_out(str(directory), options, verbose=False)
    (directory / "assets.extra").mkdir(exist_ok=True)
    write_warmup(directory, name, signatures)
    write_manifest(directory)


def next_version(export_dir: Path, version: int | None = None) -> int:
    """Returns `version`, refused if it exists, or one more than the latest there is."""
    existing = check.versions(export_dir)
    if version is None:
        return max(existing, default=0) + 1
    if version in existing:
        raise FileExistsError(
            f"Version {version} exists in {export_dir} and versions are never overwritten: "
            "leave out --version to write the next one."
        )
    return version


def publish(staging: Path, target: Path) -> None:
    """Brings a finished folder safely to the disk, then to its name."""
    for path in (*staging.rglob("*"), staging):
        _fsync(path)
    staging.rename(target)  # refused by the system if another process was faster
    _fsync(target.parent)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def export(
    model: keras.Model,
    task: ModuleType,
    export_dir: str | os.PathLike,
    version: int | None = None,
    run: Path | None = None,
) -> Path:
    """Exports a model, all of it or nothing.

    Args:
        model: The trained model.
        task: The module of `exports` that knows the model's text form.
        export_dir: The folder of the model's versions; its name is the name of the model.
        version: The version to write, by default the next one.
        run: The folder of the run, as for `write`.

    Returns:
        The new folder `<export_dir>/<version>`.

    Raises:
        FileExistsError: If the version exists.
        RuntimeError: If the SavedModel fails a check of `exports.check`.
    """
    export_dir = Path(export_dir).resolve()
    version = next_version(export_dir, version)
    absent = not export_dir.exists()
    export_dir.mkdir(parents=True, exist_ok=True)
    staging = export_dir / f".tmp-{version}-{uuid.uuid4().hex}"
    try:
        write(model, task, staging, export_dir.name, run)
        result = subprocess.run(
            [sys.executable, check.__file__, str(staging)], capture_output=True, text=True
        )
        if result.returncode != 0:
            raise RuntimeError(
                f"The export was not published, because it fails its check:\n"
                f"{result.stdout}{result.stderr[-2000:]}"
            )
        print(result.stdout, end="", file=sys.stderr)  # What was checked, and the latency.
        publish(staging, export_dir / str(version))
    finally:
        if staging.exists():
            shutil.rmtree(staging)
        if absent and not any(export_dir.iterdir()):
            export_dir.rmdir()
    return export_dir / str(version)


def main(argv: list[str]) -> None:
    """Exports the run that the flags name."""
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}: every option starts with `--`.")
    if keras.backend.backend() != "tensorflow":
        sys.exit("SavedModels are TensorFlow's: export with KERAS_BACKEND=tensorflow.")
    check.quiet()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` cleans up
    # Beside a GPU, Keras would trace cuDNN kernels that a server without one cannot run.
    tf.config.set_visible_devices([], "GPU")
    options = flags.FLAGS
    try:
        run = Path(options.workdir or options.weights)
        model, task = load_run(run)
        print(export(model, task, options.export_dir, options.version, run))
    except (OSError, RuntimeError, ValueError) as error:
        sys.exit(f"exports.export: {error}")


if __name__ == "__main__":
    flags.DEFINE_string("workdir", None, "The run to export: best.keras and metrics.json.")
    flags.DEFINE_string("weights", None, "The same of trained weights, zoo/<task>/weights/<row>.")
    flags.DEFINE_string("export_dir", None, "Folder of the versions, exports/models/<task>.")
    flags.DEFINE_integer("version", None, "Version to write; by default the next.", lower_bound=1)
    flags.mark_flags_as_mutual_exclusive(["workdir", "weights"], required=True)
    flags.mark_flag_as_required("export_dir")
    app.run(main)

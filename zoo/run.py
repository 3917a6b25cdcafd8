"""What every recipe shares: flags, the working folder, devices, callbacks and closing figures.

A recipe reads scope, model, compile, data, fit; the functions here return Keras's own objects for
it and never call `fit`. It leaves a working folder behind:

    run.flags         the flags; `--flagfile=` takes them to go on or to run again
    log.csv           a row an epoch
    tensorboard/      the same for TensorBoard
    best.keras        the model of the lowest validation loss
    backup/           the newest checkpoints, to go on from
    metrics.json      test figures of best.keras, and what they were made with
    figures/loss.png  log.csv as a picture, with the baseline

Started again with the same working folder, a recipe goes on where it stopped.
"""

import fcntl
import functools
import importlib.metadata
import json
import os
import pathlib
import platform
import sys
import tempfile
from typing import Any

import keras
import tensorflow as tf
from absl import flags, logging

from zoo import checkpoint as checkpoint_lib
from zoo import multi_worker, ordered_sums, progress, run_flags
from zoo.batches import Batches

FLAGS = flags.FLAGS
flags.DEFINE_string("workdir", None, "Folder of the run; made if absent. Required.")
flags.DEFINE_integer("seed", 0, "Seed of the weights, the data and their order.", lower_bound=0)
flags.DEFINE_integer("batch_size", 128, "Examples a step, over all replicas.", lower_bound=1)
flags.DEFINE_integer("steps", 100_000, "Steps of the whole run.", lower_bound=1)
flags.DEFINE_integer(
    "steps_per_epoch", 1000, "Steps between two validations and rows of the log.", lower_bound=1
)
flags.DEFINE_integer(
    "checkpoint_every", 200, "Steps between two checkpoints; epochs end with one.", lower_bound=1
)
flags.DEFINE_enum(
    "strategy", "default", ["default", "mirrored", "multi_worker"], "Which tf.distribute strategy."
)
flags.DEFINE_integer(
    "logical_devices", 1, "Split the CPU in so many devices, to try --strategy=mirrored.", 1
)
flags.DEFINE_enum(
    "dtype",
    "float32",
    ["float32", "mixed_float16", "mixed_bfloat16", "float64"],
    "Keras dtype policy.",
)
flags.DEFINE_enum(
    "jit_compile",
    "auto",
    ["auto", "true", "false"],
    "Compile with XLA; auto does where there is a GPU and no strategy.",
)
flags.DEFINE_float("clip_norm", None, "Largest global norm of a gradient, if any.", lower_bound=0.0)


def start() -> tf.distribute.Strategy:
    """Opens the working folder, seeds everything and chooses devices. The first call of a recipe.

    Returns:
        The strategy in whose scope to make and compile the model.

    Raises:
        SystemExit: with one sentence for what the user has to mend; with 0 if the run that the
            flags describe is finished.
    """
    if keras.backend.backend() != "tensorflow":
        sys.exit(
            f"Recipes train on the TensorFlow backend, not {keras.backend.backend()}: unset "
            "KERAS_BACKEND. (The models of zoo/*/model.py run on JAX as well.)"
        )
    _check_flags()
    workdir = _workdir()
    metrics = workdir / "metrics.json"
    if finished():
        print(f"This run is finished: {metrics}. To go on, give it more --steps.")
        sys.exit(0)
    if not FLAGS["verbosity"].present:
        logging.set_verbosity(logging.WARNING)  # TensorFlow says at each save how long it took.
    ordered_sums.install()
    keras.utils.set_random_seed(FLAGS.seed)
    keras.config.set_dtype_policy(FLAGS.dtype)
    strategy = _strategy()
    if _is_chief():
        _lock(workdir)
        run_flags.write(workdir / "run.flags", _command())
        metrics.unlink(missing_ok=True)
    return strategy


def finished() -> bool:
    """Whether the run that the flags describe has been done, metrics and all.

    Raises:
        SystemExit: if the working folder holds a run with other flags.
    """
    run_flags.check(_workdir() / "run.flags", _command())
    metrics = _workdir() / "metrics.json"
    if not metrics.exists():
        return False
    try:
        return json.loads(metrics.read_text())["steps"] >= FLAGS.steps
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{metrics} is damaged ({error!r}): remove it, and it will be written anew.")


def jit_compile() -> bool | str:
    """The argument `jit_compile` of `keras.Model.compile`."""
    return {"auto": "auto", "true": True, "false": False}[FLAGS.jit_compile]


def batches(arrays: tuple) -> Batches:
    """The training batches that the flags describe."""
    return Batches(arrays, FLAGS.batch_size, FLAGS.steps, FLAGS.steps_per_epoch, FLAGS.seed)


def callbacks(
    model: keras.Model, batches: Batches, baseline: tuple[str, float]
) -> tuple[checkpoint_lib.Checkpoint, list[keras.callbacks.Callback]]:
    """Restores the run, if it has a checkpoint, and returns the callbacks that keep it.

    Args:
        model: compiled model.
        batches: the training batches.
        baseline: what the loss is to be compared with, as (its name, its loss).

    Returns:
        The checkpoint, which knows the epochs that are left, and all callbacks for `fit`.
    """
    workdir, chief = _workdir(), _is_chief()
    agree = bool
    if FLAGS.strategy == "multi_worker":
        agree = multi_worker.any_worker(model.distribute_strategy)
    best = checkpoint_lib.SaveBest(workdir / "best.keras" if chief else None)
    checkpoint = checkpoint_lib.Checkpoint(
        model,
        workdir / "backup",
        batches,
        FLAGS.checkpoint_every,
        best,
        command=f"{_command()} --flagfile={workdir / 'run.flags'} --workdir={workdir}",
        write_to=None if chief else pathlib.Path(tempfile.mkdtemp()),
        agree=agree,
    )
    shown = []
    if chief:
        log = progress.Log(workdir, checkpoint)
        shown = [log, progress.Progress(checkpoint, batches, baseline)]
    return checkpoint, [checkpoint_lib.StopOnNaN(checkpoint), *shown, best, checkpoint]


def finish(
    test_figures, test: tuple, baseline: tuple[str, float], seconds: float, **facts: Any
) -> None:
    """Writes metrics.json and figures/loss.png. The last call of a recipe.

    Args:
        test_figures: function of (model, *test) that returns a dictionary of figures. The model is
            best.keras, read anew and without a strategy.
        test: the arrays of the test examples.
        baseline: as for `callbacks`.
        seconds: time spent on training.
        **facts: further entries of metrics.json.
    """
    if not _is_chief():
        return
    workdir = _workdir()
    best = workdir / "best.keras"
    if not best.exists():
        sys.exit(f"There is no {best}: the validation loss was never finite. Try another seed.")
    model = keras.models.load_model(best, compile=False)  # It has no optimizer.
    model.compile(None, jit_compile=jit_compile())
    figures = test_figures(model, *test)
    progress.draw_loss(workdir, baseline)
    metrics = {
        "recipe": _recipe(),
        "test": {name: float(value) for name, value in figures.items()},
        "baseline": {baseline[0]: baseline[1]},
        "steps": FLAGS.steps,
        "seed": FLAGS.seed,
        **facts,
        "wall_seconds": round(seconds, 1),
        "hardware": _hardware(),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in ("tensorflow", "keras", "numpy")},
        },
    }
    temporary = workdir / ".metrics.json"
    temporary.write_text(json.dumps(metrics, indent=2) + "\n")
    os.replace(temporary, workdir / "metrics.json")
    print("test", *(f"{k} {v:.4f}" for k, v in metrics["test"].items()), sep="  ")
    print(f"Left in {workdir}: best.keras, metrics.json, log.csv, figures/loss.png")


def _check_flags() -> None:
    if not FLAGS.workdir:
        sys.exit("Say where the run is to live: --workdir=FOLDER.")
    if pathlib.Path(FLAGS.workdir).is_file():
        sys.exit(f"--workdir={FLAGS.workdir} is a file: give the name of a folder.")
    if FLAGS.jit_compile == "true" and FLAGS.strategy != "default":
        sys.exit("--jit_compile=true fails under a strategy in Keras 3.15: leave one of them out.")
    if FLAGS.logical_devices > 1 and FLAGS.strategy != "mirrored":
        sys.exit("--logical_devices is for --strategy=mirrored.")
    if FLAGS.strategy == "multi_worker" and "TF_CONFIG" not in os.environ:
        sys.exit(
            "--strategy=multi_worker needs TF_CONFIG in the environment of each worker, for two: "
            '\'{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
            '"task": {"type": "worker", "index": 0}}\', and index 1 for the other.'
        )


def _strategy() -> tf.distribute.Strategy:
    if FLAGS.strategy == "multi_worker":
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    elif FLAGS.strategy == "mirrored" and FLAGS.logical_devices > 1:
        _split_cpu(FLAGS.logical_devices)
        devices = [f"CPU:{i}" for i in range(FLAGS.logical_devices)]
        strategy = tf.distribute.MirroredStrategy(devices)
    elif FLAGS.strategy == "mirrored":
        strategy = tf.distribute.MirroredStrategy()
    else:
        strategy = tf.distribute.get_strategy()
    replicas = strategy.num_replicas_in_sync
    if FLAGS.batch_size % replicas:
        sys.exit(f"--batch_size={FLAGS.batch_size} must be a multiple of the {replicas} replicas.")
    return strategy


@functools.cache  # TensorFlow does it once in a process, and only before any device is used.
def _split_cpu(parts: int) -> None:
    devices = [tf.config.LogicalDeviceConfiguration()] * parts
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], devices)


def _is_chief() -> bool:
    """Whether this process writes the working folder."""
    if FLAGS.strategy != "multi_worker":
        return True
    config = json.loads(os.environ["TF_CONFIG"])
    first = "chief" if "chief" in config["cluster"] else "worker"
    return config["task"]["type"] == first and config["task"]["index"] == 0


def _workdir() -> pathlib.Path:
    workdir = pathlib.Path(FLAGS.workdir)
    try:
        workdir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        sys.exit(f"--workdir={FLAGS.workdir} cannot be made: {error.strerror}.")
    return workdir


def _lock(workdir: pathlib.Path) -> None:
    """Ends the program if another one trains in the folder; holds the lock until exit."""
    try:
        descriptor = os.open(workdir / ".lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"Another process is training in {workdir}: stop it, or choose another --workdir.")
    except OSError as error:
        sys.exit(f"--workdir={workdir} cannot be written: {error.strerror}.")


def _recipe() -> str:
    """The recipe's module, as `python -m` takes it: zoo.recall.train."""
    return ".".join(pathlib.Path(sys.argv[0]).with_suffix("").parts[-3:])


def _command() -> str:
    return f"python -m {_recipe()}"


def _hardware() -> dict:
    cpu = pathlib.Path("/proc/cpuinfo")
    names = [line for line in cpu.read_text().splitlines() if "model name" in line]
    gpus = [
        tf.config.experimental.get_device_details(gpu).get("device_name", gpu.name)
        for gpu in tf.config.list_physical_devices("GPU")
    ]
    return {
        "cpu": names[0].partition(":")[2].strip() if names else platform.machine(),
        "cores": os.cpu_count(),
        "gpus": gpus,
    }

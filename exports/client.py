"""Asks a served model, or a SavedModel directly.

    python -m exports.client --model=recall --text='a1s2d3f4g5??d'
    python -m exports.client --model=recall --text='a1s2d3f4g5??d' --rest
    python -m exports.client --export_dir=exports/models/recall --text='a1s2d3f4g5??d'
    python -m exports.client --model=decrum --article="$(cat article.txt)"
    python -m exports.client --model=babi --story='Mary went home.' --question='Where is Mary?'

Prints a line for each example: the answer, then the other outputs. An input that is given several
times makes a batch; one that is given once belongs to all its examples. TensorFlow Serving listens
to gRPC on port 8500 and to REST on port 8501. REST asks by Python's standard library alone.
"""

import http.client
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

# The inputs of all models: the flags of the same names.
TEXTS = ("article", "document", "prompt", "question", "story", "text")
INTEGERS = ("length", "seed")
FLOATS = ("temperature",)

START = "start one with `docker compose -f exports/compose.yaml up`"


def ask_grpc(
    model: str,
    inputs: Mapping[str, Sequence],
    address: str = "localhost:8500",
    timeout: float = 10.0,
    signature: str = "serving_default",
) -> dict[str, list]:
    """Asks TensorFlow Serving by gRPC.

    Args:
        model: The name of the model on the server.
        inputs: One batch: for each input its values, strings, integers or floats.
        address: Host and port of the server.
        timeout: Seconds to wait for the answer.
        signature: Which of the model's functions.

    Returns:
        The outputs by name, each a list with one entry an example.

    Raises:
        ConnectionError: If no server answers.
        LookupError: If the server has no such model.
        TimeoutError: If the answer takes too long.
        ValueError: If the server refuses the request.
    """
    # Here, because they bring TensorFlow along, which takes seconds and REST does not need.
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = model, signature
    for name, values in inputs.items():
        dtype = {str: tf.string, int: tf.int32, float: tf.float32}[type(values[0])]
        request.inputs[name].CopyFrom(tf.make_tensor_proto(_utf8(values), dtype))
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            response = stub.Predict(request, timeout=timeout)
        except grpc.RpcError as error:
            kinds = {
                grpc.StatusCode.UNAVAILABLE: ConnectionError(_no_server(address)),
                grpc.StatusCode.NOT_FOUND: LookupError(_no_model(address, model)),
                grpc.StatusCode.DEADLINE_EXCEEDED: TimeoutError(_no_answer(address, timeout)),
            }
            refused = ValueError(f"{address} refused the request: {error.details()}")
            raise kinds.get(error.code(), refused) from error
    return _decode({key: tf.make_ndarray(value) for key, value in response.outputs.items()})


def ask_rest(
    model: str,
    inputs: Mapping[str, Sequence],
    address: str = "localhost:8501",
    timeout: float = 10.0,
    signature: str = "serving_default",
) -> dict[str, list]:
    """Asks TensorFlow Serving by REST; arguments, result and errors as `ask_grpc`."""
    columns = {
        name: [value.decode() if isinstance(value, bytes) else value for value in _utf8(values)]
        for name, values in inputs.items()
    }
    body = json.dumps({"signature_name": signature, "inputs": columns}).encode()
    url = f"http://{address}/v1/models/{model}:predict"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            outputs = json.load(response)["outputs"]
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise LookupError(_no_model(address, model)) from error
        raise ValueError(f"{address} refused the request: {error.read().decode()}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise TimeoutError(_no_answer(address, timeout)) from error
        raise ConnectionError(_no_server(address)) from error
    except TimeoutError as error:
        raise TimeoutError(_no_answer(address, timeout)) from error
    except http.client.HTTPException as error:
        raise ValueError(f"{address} does not speak REST: is it the port of gRPC?") from error
    # Where there is one output, the server sends it without its name.
    return outputs if isinstance(outputs, dict) else {"output": outputs}


def ask_export(
    export_dir: str, inputs: Mapping[str, Sequence], signature: str = "serving_default"
) -> dict[str, list]:
    """Asks the latest version in a model's folder, without a server.

    Args:
        export_dir: The folder of the model's versions.
        inputs: One batch, as for `ask_grpc`.
        signature: Which of the model's functions.

    Returns:
        The outputs by name, each a list with one entry an example.

    Raises:
        FileNotFoundError: If there is no version.
        ValueError: If the version has no such signature, or other inputs.
    """
    import numpy as np

    from exports import check

    versions = check.versions(export_dir)
    if not versions:
        raise FileNotFoundError(
            f"There is no version in {export_dir}: write one with `python -m exports.export`."
        )
    check.quiet()
    with check.Servable(Path(export_dir) / str(versions[-1])) as servable:
        arrays = {
            name: np.array(_utf8(values), object if isinstance(values[0], str) else None)
            for name, values in inputs.items()
        }
        return _decode(servable.predict(arrays, signature))


def _utf8(values: Sequence) -> list:
    """Encodes texts; bytes of a command line that are no UTF-8 become `?`. Numbers stay."""
    return [
        value.encode("utf-8", errors="replace") if isinstance(value, str) else value
        for value in values
    ]


def _decode(outputs: Mapping) -> dict[str, list]:
    return {
        key: [entry.decode() if isinstance(entry, bytes) else entry for entry in value.tolist()]
        for key, value in outputs.items()
    }


def _no_server(address: str) -> str:
    return f"no server answers at {address}: {START}, or ask a SavedModel with --export_dir."


def _no_model(address: str, model: str) -> str:
    return f"the server at {address} has no model {model!r}: see exports/models.config."


def _no_answer(address: str, timeout: float) -> str:
    return f"{address} gave no answer within {timeout:g} s: raise --timeout."


def batch(given: Mapping[str, Sequence | None]) -> dict[str, list]:
    """Returns inputs of one length: what was given once is repeated.

    Args:
        given: The values of each input; None or empty where it was not given.

    Raises:
        ValueError: If nothing was given, or two inputs several times but not as often.
    """
    inputs = {name: list(values) for name, values in given.items() if values}
    examples = max(map(len, inputs.values()), default=0)
    if not examples or any(len(values) not in (1, examples) for values in inputs.values()):
        raise ValueError(
            f"give each input once or equally often, at least one of {', '.join(given)}: got "
            f"{ {name: len(values) for name, values in inputs.items()} }."
        )
    return {
        name: values * examples if len(values) == 1 else values for name, values in inputs.items()
    }


def answer_lines(outputs: Mapping[str, list]) -> list[str]:
    """Returns a line for each example: the answer, then the other outputs.

    The answer is the first output, in alphabetical order, that is a text.
    """
    names = sorted(outputs, key=lambda name: (not isinstance(outputs[name][0], str), name))
    return [
        _line(dict(zip(names, values, strict=True)))
        for values in zip(*(outputs[name] for name in names), strict=True)
    ]


def _line(example: Mapping[str, str | float]) -> str:
    if example.get("probability") == 0:
        return "no answer: the text does not have the form that the model reads (exports/README.md)"
    texts = [value for value in example.values() if isinstance(value, str)]
    rest = list(example.items())[1 if texts else 0 :]
    numbers = ", ".join(
        f"{name} {value:.4f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in reversed(rest)
    )
    return f"{texts[0]}  ({numbers})" if texts and rest else (texts or [numbers])[0]


def main(argv: list[str]) -> None:
    """Asks what the flags say and prints the answers."""
    if len(argv) > 1:
        raise app.UsageError(
            f"Unknown argument {argv[1]!r}: give inputs by their names, such as --text."
        )
    options = flags.FLAGS
    port = options.port or (8501 if options.rest else 8500)
    address = f"{options.host}:{port}"
    try:
        inputs = batch({name: options[name].value for name in (*TEXTS, *INTEGERS, *FLOATS)})
        if options.export_dir:
            outputs = ask_export(options.export_dir, inputs, options.signature)
        else:
            ask = ask_rest if options.rest else ask_grpc
            outputs = ask(options.model, inputs, address, options.timeout, options.signature)
    except (OSError, LookupError, ValueError) as error:
        sys.exit(f"exports.client: {error}")
    print("\n".join(answer_lines(outputs)))


if __name__ == "__main__":
    flags.DEFINE_string("model", None, "Name of the model on the server.")
    flags.DEFINE_string("export_dir", None, "Ask the latest SavedModel in this folder instead.")
    for name in TEXTS:
        flags.DEFINE_multi_string(name, None, f"Input `{name}`; may be given several times.")
    for name in INTEGERS:
        flags.DEFINE_multi_integer(name, None, f"Input `{name}`, a whole number.")
    for name in FLOATS:
        flags.DEFINE_multi_float(name, None, f"Input `{name}`, a number.")
    flags.DEFINE_string("signature", "serving_default", "Which of the model's functions to ask.")
    flags.DEFINE_string("host", "localhost", "Host of the server.")
    flags.DEFINE_integer("port", None, "Port of the server: 8500 (gRPC) or 8501 (REST).")
    flags.DEFINE_bool("rest", False, "Ask by REST instead of gRPC.")
    flags.DEFINE_float("timeout", 10.0, "Seconds to wait for the answer.", lower_bound=0.0)
    flags.mark_flags_as_mutual_exclusive(["model", "export_dir"], required=True)
    app.run(main)

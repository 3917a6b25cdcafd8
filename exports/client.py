"""Asks a served model, or a SavedModel directly.

    python -m exports.client --model=recall --text='a1s2d3f4g5??d'
    python -m exports.client --model=recall --text='a1s2d3f4g5??d' --rest
    python -m exports.client --export_dir=exports/models/recall --text='a1s2d3f4g5??d'

Prints a line for each text: the answer, then the probability. TensorFlow Serving listens to gRPC
on port 8500 and to REST on port 8501. REST asks by Python's standard library alone.
"""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

START = "start one with `docker compose -f exports/compose.yaml up`"


def ask_grpc(
    model: str, texts: Sequence[str], address: str = "localhost:8500", timeout: float = 10.0
) -> dict[str, list]:
    """Asks TensorFlow Serving by gRPC.

    Args:
        model: The name of the model on the server.
        texts: The texts, one batch.
        address: Host and port of the server.
        timeout: Seconds to wait for the answer.

    Returns:
        The outputs by name, each a list with one entry a text.

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
    request.model_spec.name = model
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(_utf8(texts), tf.string))
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
    model: str, texts: Sequence[str], address: str = "localhost:8501", timeout: float = 10.0
) -> dict[str, list]:
    """Asks TensorFlow Serving by REST; arguments, result and errors as `ask_grpc`."""
    body = json.dumps({"inputs": {"text": [text.decode() for text in _utf8(texts)]}}).encode()
    url = f"http://{address}/v1/models/{model}:predict"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)["outputs"]
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


def ask_export(export_dir: str, texts: Sequence[str]) -> dict[str, list]:
    """Asks the latest version in a model's folder, without a server.

    Args:
        export_dir: The folder of the model's versions.
        texts: The texts, one batch.

    Returns:
        The outputs by name, each a list with one entry a text.

    Raises:
        FileNotFoundError: If there is no version.
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
        return _decode(servable.predict({"text": np.array(_utf8(texts), object)}))


def _utf8(texts: Sequence[str]) -> list[bytes]:
    """Encodes texts; bytes of a command line that are no UTF-8 become `?`."""
    return [text.encode("utf-8", errors="replace") for text in texts]


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


def answer_lines(outputs: Mapping[str, list]) -> list[str]:
    """Returns a line for each text: the answer and its probability."""
    (answers,) = (value for key, value in outputs.items() if key != "probability")
    return [
        f"{answer}  (probability {probability:.4f})"
        if answer
        else "no answer: the text does not have the form that the model reads (exports/README.md)"
        for answer, probability in zip(answers, outputs["probability"], strict=True)
    ]


def main(argv: list[str]) -> None:
    """Asks what the flags say and prints the answers."""
    if len(argv) > 1:
        raise app.UsageError(f"Unknown argument {argv[1]!r}: give texts with --text.")
    options = flags.FLAGS
    port = options.port or (8501 if options.rest else 8500)
    address = f"{options.host}:{port}"
    try:
        if options.export_dir:
            outputs = ask_export(options.export_dir, options.text)
        else:
            ask = ask_rest if options.rest else ask_grpc
            outputs = ask(options.model, options.text, address, options.timeout)
    except (OSError, LookupError, ValueError) as error:
        sys.exit(f"exports.client: {error}")
    print("\n".join(answer_lines(outputs)))


if __name__ == "__main__":
    flags.DEFINE_string("model", None, "Name of the model on the server.")
    flags.DEFINE_string("export_dir", None, "Ask the latest SavedModel in this folder instead.")
    flags.DEFINE_multi_string("text", None, "Text to send; may be given several times.")
    flags.DEFINE_string("host", "localhost", "Host of the server.")
    flags.DEFINE_integer("port", None, "Port of the server: 8500 (gRPC) or 8501 (REST).")
    flags.DEFINE_bool("rest", False, "Ask by REST instead of gRPC.")
    flags.DEFINE_float("timeout", 10.0, "Seconds to wait for the answer.", lower_bound=0.0)
    flags.mark_flags_as_mutual_exclusive(["model", "export_dir"], required=True)
    flags.mark_flag_as_required("text")
    app.run(main)

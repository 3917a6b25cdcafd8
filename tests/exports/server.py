"""A small stand-in for TensorFlow Serving: its gRPC services and REST paths over SavedModels.

PredictionService and ModelService are those of tensorflow-serving-api; the answers come from a
Session. It says for errors what the real server says. It knows no versions and no batching.
"""

import json
import threading
import time
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from exports import check


class Server(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    """Serves SavedModels on free ports of this machine, from `with` to the end of its block.

    Args:
        directories: The SavedModel of each model, by name.
        latency: Seconds that every answer is held back.
    """

    def __init__(self, directories: dict[str, str], latency: float = 0.0):
        self.servables = {name: check.Servable(path) for name, path in directories.items()}
        self.latency = latency
        self.grpc = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(self, self.grpc)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(self, self.grpc)
        self.grpc_address = f"127.0.0.1:{self.grpc.add_insecure_port('127.0.0.1:0')}"
        handler = type("Handler", (_RestHandler,), {"model_server": self})
        self.rest = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.rest_address = f"127.0.0.1:{self.rest.server_port}"

    def __enter__(self):
        self.grpc.start()
        threading.Thread(target=self.rest.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.grpc.stop(grace=None).wait()
        self.rest.shutdown()
        self.rest.server_close()
        for servable in self.servables.values():
            servable.session.close()

    def answer(self, model: str, signature: str, inputs: dict) -> dict[str, np.ndarray]:
        """Returns the outputs of a model, or raises LookupError or ValueError."""
        time.sleep(self.latency)
        if model not in self.servables:
            raise LookupError(f"Servable not found for request: Latest({model})")
        servable = self.servables[model]
        expected = set(servable.meta_graph.signature_def[signature].inputs)
        if set(inputs) != expected:
            raise ValueError(f"input keys: {sorted(inputs)}, expected: {sorted(expected)}")
        return servable.predict(inputs, signature)

    def Predict(self, request, context):  # noqa: N802
        """Answers PredictionService.Predict."""
        inputs = {key: tf.make_ndarray(value) for key, value in request.inputs.items()}
        signature = request.model_spec.signature_name or "serving_default"
        try:
            outputs = self.answer(request.model_spec.name, signature, inputs)
        except LookupError as error:
            context.abort(grpc.StatusCode.NOT_FOUND, str(error.args[0]))
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        response = predict_pb2.PredictResponse(model_spec=request.model_spec)
        for key, value in outputs.items():
            response.outputs[key].CopyFrom(tf.make_tensor_proto(value))
        return response

    def GetModelStatus(self, request, context):  # noqa: N802
        """Answers ModelService.GetModelStatus: every model it has is available."""
        if request.model_spec.name not in self.servables:
            context.abort(grpc.StatusCode.NOT_FOUND, "Could not find any versions of model")
        response = get_model_status_pb2.GetModelStatusResponse()
        response.model_version_status.add(
            version=1, state=get_model_status_pb2.ModelVersionStatus.AVAILABLE
        )
        return response


class _RestHandler(BaseHTTPRequestHandler):
    """POST /v1/models/NAME:predict with columns of texts as `inputs`; GET /v1/models/NAME/metadata.

    Pages of other origins may read the answers, as with --rest_api_enable_cors_support.
    """

    model_server: Server

    def do_GET(self):  # noqa: N802
        model = self.path.removeprefix("/v1/models/").removesuffix("/metadata")
        servable = self.model_server.servables.get(model)
        if not servable:
            self._reply(404, {"error": f"Could not find any versions of model {model}"})
            return
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in servable.meta_graph.signature_def.items():
            signatures.signature_def[name].CopyFrom(signature)
        description = json_format.MessageToDict(signatures, preserving_proto_field_name=True)
        self._reply(200, {"metadata": {"signature_def": description}})

    def do_POST(self):  # noqa: N802
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = self.path.removeprefix("/v1/models/").removesuffix(":predict")
        columns = {
            key: np.array([text.encode() for text in column], object)
            if isinstance(column[0], str)
            else np.array(column)
            for key, column in body["inputs"].items()
        }
        signature = body.get("signature_name", "serving_default")
        try:
            outputs = self.model_server.answer(model, signature, columns)
        except LookupError as error:
            self._reply(404, {"error": error.args[0]})
        except ValueError as error:
            self._reply(400, {"error": str(error)})
        else:
            self._reply(200, {"outputs": {key: _json(value) for key, value in outputs.items()}})

    def _reply(self, status, content):
        payload = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload)))
        self.send_header("Access-Control-Allow-Origin", "*")
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        """Prints nothing."""


def _json(value) -> list | str | float:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_json(entry) for entry in value]
    return value.decode() if isinstance(value, bytes) else value

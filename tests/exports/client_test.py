"""Tests of the client against a server with TensorFlow Serving's services and real exports."""

import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
import keras
import numpy as np
from absl.testing import absltest, parameterized
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from exports import client, copying, export, recall
from tests.exports import server
from zoo.copying.model import copying_model
from zoo.recall.model import recall_model

TEXTS = ["a1s2d3f4g5??d", "no such form", "x0y9q8b7a6??b", "\udcff"]
COPYING_TEXT = "8" * 10 + "09" + "0" * 10
INPUTS = {"text": TEXTS}
CLOSED = "127.0.0.1:1"


class ClientTest(parameterized.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        keras.utils.set_random_seed(5)
        models = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.export_dir = models / "recall"
        gru = keras.layers.GRU(6)
        export.write(recall_model(gru, 10), recall, cls.export_dir / "2", "recall")
        lstm = keras.layers.LSTM(7, return_sequences=True)
        export.write(copying_model(lstm, 2), copying, models / "copying" / "1", "copying")
        cls.directories = {"recall": cls.export_dir / "2", "copying": models / "copying" / "1"}
        cls.server = cls.enterClassContext(server.Server(cls.directories))

    def test_grpc_rest_and_the_savedmodel_itself_agree(self):
        by_grpc = client.ask_grpc("recall", INPUTS, self.server.grpc_address)
        by_rest = client.ask_rest("recall", INPUTS, self.server.rest_address)
        direct = client.ask_export(self.export_dir, INPUTS)
        self.assertEqual(by_grpc["digit"], direct["digit"])
        self.assertEqual(by_rest["digit"], direct["digit"])
        np.testing.assert_allclose(by_grpc["probability"], direct["probability"], atol=1e-6)
        np.testing.assert_allclose(by_rest["probability"], direct["probability"], atol=1e-6)
        self.assertEqual([digit != "" for digit in direct["digit"]], [True, False, True, False])

    def test_another_model_of_the_same_server_is_asked_by_its_name(self):
        by_grpc = client.ask_grpc("copying", {"text": [COPYING_TEXT]}, self.server.grpc_address)
        by_rest = client.ask_rest("copying", {"text": [COPYING_TEXT]}, self.server.rest_address)
        self.assertEqual(by_grpc["copy"], by_rest["copy"])
        self.assertLen(by_rest["copy"][0], 10)

    @parameterized.parameters("grpc", "rest")
    def test_an_unknown_model_is_named_in_the_error(self, protocol):
        with self.assertRaisesRegex(LookupError, "has no model 'recal'"):
            self.ask(protocol, "recal", self.server)

    @parameterized.parameters(client.ask_grpc, client.ask_rest)
    def test_without_a_server_the_error_says_how_to_start_one(self, ask):
        with self.assertRaisesRegex(ConnectionError, "no server answers at 127.0.0.1:1: start one"):
            ask("recall", INPUTS, CLOSED)

    def test_rest_on_the_port_of_grpc_is_told_in_a_sentence(self):
        address = self.server.grpc_address
        with self.assertRaisesRegex(ValueError, f"{address} does not speak REST: is it the port"):
            client.ask_rest("recall", INPUTS, address)

    @parameterized.parameters("grpc", "rest")
    def test_a_late_answer_is_not_waited_for(self, protocol):
        with server.Server({"recall": self.directories["recall"]}, latency=1.0) as late:
            with self.assertRaisesRegex(TimeoutError, "within 0.2 s: raise --timeout"):
                self.ask(protocol, "recall", late, timeout=0.2)

    def ask(self, protocol, model, model_server, **options):
        address = getattr(model_server, f"{protocol}_address")
        return getattr(client, f"ask_{protocol}")(model, INPUTS, address, **options)

    def test_the_latest_version_is_asked_and_other_folders_are_ignored(self):
        export_dir = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (export_dir / "2").symlink_to(self.directories["recall"])
        (export_dir / ".tmp-3-x").mkdir()
        self.assertIn("digit", client.ask_export(export_dir, INPUTS))
        (export_dir / "10").symlink_to(self.directories["copying"])
        self.assertIn("copy", client.ask_export(export_dir, INPUTS))

    def test_a_folder_without_versions_is_refused(self):
        with self.assertRaisesRegex(FileNotFoundError, "There is no version in"):
            client.ask_export(self.export_dir / "nowhere", INPUTS)

    def test_answers_are_a_line_each(self):
        lines = client.answer_lines({"probability": [0.98765, 0.0], "digit": ["3", ""]})
        self.assertEqual(lines[0], "3  (probability 0.9877)")
        self.assertStartsWith(lines[1], "no answer: the text does not have the form")

    def test_outputs_beside_the_answer_are_named(self):
        outputs = {"sentence": ["Bo left."], "probability": [0.5], "answer": ["hall"]}
        self.assertEqual(
            client.answer_lines(outputs), ["hall  (probability 0.5000, sentence Bo left.)"]
        )
        self.assertEqual(client.answer_lines({"bits": [2.0]}), ["bits 2.0000"])
        self.assertEqual(client.answer_lines({"continuation": ["abc"]}), ["abc"])

    def test_an_input_that_is_given_once_belongs_to_all_examples(self):
        given = {"story": ["a"], "question": ["b", "c"], "text": None, "length": [3]}
        expected = {"story": ["a", "a"], "question": ["b", "c"], "length": [3, 3]}
        self.assertEqual(client.batch(given), expected)

    @parameterized.parameters(
        {"text": None}, {"text": []}, {"story": ["a", "b"], "question": ["a", "b", "c"]}
    )
    def test_inputs_that_do_not_make_a_batch_are_refused(self, **given):
        with self.assertRaisesRegex(ValueError, "give each input once or equally often"):
            client.batch(given)

    @parameterized.parameters(
        ("serving_default", {"story": ["a"]}, r"takes \['text'\], but \['story'\] was given"),
        ("score", INPUTS, r"has the signatures \['serving_default'\] alone"),
    )
    def test_a_savedmodel_says_what_it_takes(self, signature, inputs, message):
        with self.assertRaisesRegex(ValueError, message):
            client.ask_export(self.export_dir, inputs, signature)

    def test_the_command_prints_the_answer_by_rest(self):
        host, port = self.server.rest_address.split(":")
        result = _command(
            "--rest", "--model=recall", f"--host={host}", f"--port={port}", f"--text={TEXTS[0]}"
        )
        expected = client.answer_lines(client.ask_export(self.export_dir, {"text": TEXTS[:1]}))
        self.assertEqual(result.stdout.splitlines(), expected, result.stderr)
        self.assertEqual(result.returncode, 0)

    def test_the_command_ends_with_one_line_when_there_is_no_server(self):
        result = _command("--rest", "--model=recall", "--port=1", "--text=x")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Aexports.client: no server answers at localhost:1.*\n\Z")

    def test_the_stand_in_has_the_errors_and_the_status_of_the_server(self):
        with grpc.insecure_channel(self.server.grpc_address) as channel:
            status = get_model_status_pb2.GetModelStatusRequest()
            status.model_spec.name = "recall"
            found = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(status)
            self.assertEqual(found.model_version_status[0].State.Name(30), "AVAILABLE")
            request = predict_pb2.PredictRequest(model_spec=status.model_spec)
            with self.assertRaises(grpc.RpcError) as raised:
                prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)


def _command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "exports.client", *arguments],
        capture_output=True,
        text=True,
        cwd=Path(client.__file__).parents[1],
        timeout=60,
    )


if __name__ == "__main__":
    absltest.main()

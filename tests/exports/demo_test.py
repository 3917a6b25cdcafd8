"""Tests of the demo page in Chromium, against a server that answers as TensorFlow Serving does."""

import html
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from absl.testing import absltest, parameterized

from tests.exports.demo_page import PAGE, TEXT, shown


def metadata(**signatures):
    """Makes what GET /v1/models/NAME/metadata answers, given each signature's inputs."""
    definitions = {
        name: {"inputs": {key: {"dtype": dtype} for key, dtype in inputs.items()}}
        for name, inputs in signatures.items()
    }
    return {"metadata": {"signature_def": {"signature_def": definitions}}}


PLAIN = metadata(serving_default={"document": "DT_STRING"})
WITH_ATTENTION = metadata(
    serving_default={"article": "DT_STRING"}, attention={"article": "DT_STRING"}
)


class Serving:
    """A REST server on a free port, from `with` to the end of its block.

    Args:
        description: The answer to GET .../metadata, an object, or bytes to send as they are.
        answer: The answer to POST ...:predict.
        status: Of that answer.
        cors: Whether other origins may read the answers.
    """

    def __init__(self, description, answer, status=200, cors=True):
        self.requests = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):  # noqa: N802
                self.reply(
                    200 if self.path == "/v1/models/my%20model/metadata" else 404, description
                )

            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests.append((self.path, json.loads(body)))
                self.reply(status, answer)

            def reply(self, status, content):
                payload = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(payload)))
                if cors:
                    self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                self.wfile.write(payload)

            def log_message(self, *_):
                """Prints nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()


class DemoTest(parameterized.TestCase):
    def test_is_one_file_that_loads_nothing(self):
        page = PAGE.read_text()
        self.assertNotRegex(page, r"(?i)(src|href)\s*=|url\(|import\s")

    def test_shows_summary_score_and_latency(self):
        answer = {"outputs": {"summary": ["it <i>rained</i>"], "score": [-1.25]}}
        with Serving(PLAIN, answer) as server:
            page = shown(server.url)
        self.assertEqual(html.unescape(page["summary"]), "it <i>rained</i>")
        self.assertNotIn("<i>", page["summary"])
        self.assertRegex(page["facts"], r"^\d+ ms, score -1\.250$")
        self.assertEqual(page["error"], "")
        self.assertTrue(page["heat hidden"])
        body = {"signature_name": "serving_default", "inputs": {"document": [TEXT]}}
        self.assertEqual(server.requests, [("/v1/models/my%20model:predict", body)])

    @parameterized.parameters(
        ([[0.0, 0.5, 0.25], [0.0, 0.0, 0.5]],),
        ([[[0.0, 0.9, 0.25], [0.0, 0.0, 1.0]], [[0.0, 0.1, 0.25], [0.0, 0.0, 0.0]]],),
    )
    def test_shows_where_the_model_looked_for_the_first_word(self, attention):
        outputs = {
            "summary": ["wet day"],
            "attention": [attention],
            "source_words": [["it", "rained", "<b>"]],
            "summary_words": [["wet", "day", ""]],
            "p_gen": [[0.5, 0.25, 0.0]],
        }
        with Serving(WITH_ATTENTION, {"outputs": outputs}) as server:
            page = shown(server.url)
        self.assertEqual(server.requests[0][1]["signature_name"], "attention")
        self.assertEqual(
            re.findall(r'title="([^"]*)"', page["source"]), ["0.0000", "0.5000", "0.2500"]
        )
        colours = re.findall(r"rgba?\(230, 80, 0(?:, ([\d.]+))?\)", page["source"])
        self.assertEqual(colours, ["0", "", "0.5"])  # CSS writes no opacity where it is 1.
        self.assertIn("&lt;b&gt;", page["source"])
        self.assertEqual(page["words"].count("<button"), 2)
        self.assertIn("generated with probability 0.250", page["words"])

    def test_a_server_that_does_not_run_is_named_with_what_to_do(self):
        with Serving(PLAIN, {}) as server:
            url = server.url
        page = shown(url)
        self.assertIn(f"No answer from {url}/v1/models/my%20model/metadata", page["error"])
        self.assertIn("Is TensorFlow Serving running there", page["error"])
        self.assertEqual(page["facts"], "")

    def test_a_server_without_cors_is_explained(self):
        with Serving(PLAIN, {}, cors=False) as server:
            page = shown(server.url)
        self.assertIn("--rest_api_enable_cors_support=true", page["error"])

    def test_the_servers_own_error_is_shown(self):
        with Serving(PLAIN, {"error": "input <too> large"}, status=400) as server:
            page = shown(server.url)
        self.assertIn("answered with status 400: input &lt;too&gt; large", page["error"])
        self.assertTrue(page["result hidden"])

    @parameterized.named_parameters(
        ("another program", b"<html>no</html>", "but not in JSON: &lt;html&gt;"),
        ("no text input", metadata(serving_default={"ids": "DT_INT32"}), "one input of strings"),
        ("no summary", PLAIN, 'answer has no summary: {"digit'),
    )
    def test_what_is_no_summarization_model_is_said_to_be_none(self, description, message):
        with Serving(description, {"outputs": {"digit": ["3"]}}) as server:
            page = shown(server.url)
        self.assertRegex(page["error"], message)

    def test_a_model_whose_only_output_is_a_summary_answers_without_its_name(self):
        with Serving(PLAIN, {"outputs": ["wet"]}) as server:
            page = shown(server.url)
        self.assertEqual(page["summary"], "wet")
        self.assertRegex(page["facts"], r"^\d+ ms$")

    def test_no_text_is_not_sent(self):
        with Serving(PLAIN, {}) as server:
            page = shown(server.url, text=" \n")
        self.assertEqual(page["error"], "There is no text to summarize.")
        self.assertEmpty(server.requests)


if __name__ == "__main__":
    absltest.main()

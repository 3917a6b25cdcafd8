"""Tests of the files that a stock TensorFlow Serving is started with."""

from pathlib import Path

from absl.testing import absltest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from tensorflow_serving.config import model_server_config_pb2

from exports import export

EXPORTS = Path(__file__).parents[2] / "exports"
MODELS = EXPORTS / "models.config"


def batching_parameters():
    """A BatchingParameters message, declared here: the wheel does not bring it.

    Names and types are those of tensorflow_serving/servables/tensorflow/session_bundle_config.
    """
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="batching.proto", package="rum_keras", syntax="proto3"
    )
    file.dependency.append("google/protobuf/wrappers.proto")
    message = file.message_type.add(name="BatchingParameters")
    for number, name in enumerate(
        ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads"), 1
    ):
        message.field.add(
            name=name,
            number=number,
            type=field.TYPE_MESSAGE,
            label=field.LABEL_OPTIONAL,
            type_name=".google.protobuf.Int64Value",
        )
    message.field.add(
        name="allowed_batch_sizes", number=6, type=field.TYPE_INT64, label=field.LABEL_REPEATED
    )
    from google.protobuf import wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("rum_keras.BatchingParameters")
    return message_factory.GetMessageClass(descriptor)()


def models_config(text):
    return text_format.Parse(text, model_server_config_pb2.ModelServerConfig())


class ConfigTest(absltest.TestCase):
    def test_models_config_offers_recall(self):
        (model,) = models_config(MODELS.read_text()).model_config_list.config
        self.assertEqual((model.name, model.base_path), ("recall", "/models/recall"))
        self.assertEqual(model.model_platform, "tensorflow")

    def test_without_comment_signs_models_config_offers_every_model_that_can_be_exported(self):
        lines = MODELS.read_text().splitlines()
        text = "\n".join(line.replace("  # ", "  ", 1) for line in lines)
        models = models_config(text).model_config_list.config
        exported = {recipe.split(".")[1] for recipe in export.TASKS}
        self.assertCountEqual([model.name for model in models], exported)
        for model in models:
            self.assertEqual(model.base_path, f"/models/{model.name}")

    def test_batching_parameters_are_what_the_server_accepts(self):
        text = (EXPORTS / "batching.config").read_text()
        parameters = text_format.Parse(text, batching_parameters())
        sizes = list(parameters.allowed_batch_sizes)
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual(sizes[-1], parameters.max_batch_size.value)

    def test_compose_mounts_files_that_exist_and_listens_to_this_machine_only(self):
        lines = [line.strip() for line in (EXPORTS / "compose.yaml").read_text().splitlines()]
        mounts = dict(line[2:].split(":", 1) for line in lines if line.startswith("- ./"))
        self.assertEqual(mounts.pop("./models"), "/models:ro")
        for name, target in mounts.items():
            self.assertTrue((EXPORTS / name).is_file(), name)
            self.assertTrue(any(line.endswith("=" + target.removesuffix(":ro")) for line in lines))
        ports = [line.split('"')[1] for line in lines if line.startswith('- "')]
        self.assertEqual(ports, ["127.0.0.1:8500:8500", "127.0.0.1:8501:8501"])


if __name__ == "__main__":
    absltest.main()
